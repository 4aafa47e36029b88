//! Tests of links whose packets arrive at another physical port than the port by which the link sends. The two ends
//! have not yet followed a change of the path, or cannot follow the change. A packet that returns over the link leaves
//! by the sending port, with the link's tag at that port.

use crate::support::courses::{
    Case, add_groups, agrees, at_hosts, cases, comes, config, is_shared,
};
use crate::support::networks::{big_networks, both_say, same, two_networks};
use crate::support::sharing::{sharing, sharing_big};
use crate::support::*;
use proptest::collection::vec;
use proptest::prelude::*;

const V1_3: Versions = [Version::V1_3; SWITCHES as usize];
const RED: usize = 0;
const BLUE: usize = 1;

/// At the second switch blue's ports 10 and 12 send by physical port 5. Packets from blue's first switch to port 10
/// arrive at physical port 6, where blue's port 11 is. Blue's packets that leave by port 5 have the same tag as red's
/// link to the third switch at port 6.
fn plans() -> Vec<Plan> {
    let red = Plan {
        edges: vec![(2, 1, 1), (3, 1, 1)],
        links: vec![[(2, 10), (3, 10)], [(2, 11), (3, 11)], [(2, 12), (3, 12)]],
        ..Plan::default()
    };
    let links = vec![[(1, 10), (2, 10)], [(1, 12), (2, 12)], [(2, 11), (3, 10)]];
    let blue = Plan {
        edges: vec![(1, 2, 1), (2, 2, 1), (3, 2, 1)],
        standby: links[..1].to_vec(),
        links,
        astray: vec![(1, 10)],
        ..Plan::default()
    };
    vec![red, blue]
}

/// A testbed in which the tenants' switches, except blue's second switch, output packets from links to hosts. Blue's
/// first switch outputs packets from its host to port 10.
fn testbed(version: Version) -> Testbed {
    let mut testbed = Testbed::new(version, plans());
    for (tenant, switch) in [(RED, 2), (RED, 3), (BLUE, 1), (BLUE, 3)] {
        both_say(&mut testbed, tenant, switch, "flow add prio=3 actions=output:1");
    }
    both_say(&mut testbed, BLUE, 1, "flow add prio=5 match=in_port=1 actions=output:10");
    testbed
}

fn frame() -> Vec<u8> {
    packet("10.0.0.1>10.0.0.2")
}

/// Sends these requests to blue's second switch. Then a packet from blue's first switch is delivered this number of
/// times to blue's hosts, as on a network of blue's own, and to no other tenant.
#[track_caller]
fn check(version: Version, said: &[&str], delivered: usize) {
    let mut testbed = testbed(version);
    for words in said {
        both_say(&mut testbed, BLUE, 2, words);
    }
    let seen = same(&mut testbed, BLUE, 1, 1, &frame());
    assert_eq!(seen.delivered.len(), delivered, "{version:?} {said:?}: {seen:?}");
    assert_eq!(testbed.unsure_backs(2), [""; 0], "{version:?} {said:?}");
}

#[test]
fn packets_that_arrive_at_another_port_return_by_the_sending_port() {
    for version in VERSIONS {
        check(version, &["flow add prio=5 match=in_port=10 actions=in_port"], 1);
        check(version, &["flow add prio=5 actions=in_port"], 1);
        check(version, &["flow add prio=5 actions=in_port,output:1,in_port"], 3);
    }
}

#[test]
fn packets_that_arrive_at_another_port_can_leave_by_either_physical_port() {
    for version in VERSIONS {
        for to in ["12", "11"] {
            check(version, &[&format!("flow add prio=5 match=in_port=10 actions=output:{to}")], 1);
        }
        check(version, &["flow add prio=5 actions=output:12"], 1);
        check(version, &["flow add prio=5 actions=output:12,output:11,output:1"], 3);
        check(version, &["flow add prio=5 match=in_port=10 actions=all"], 3);
    }
    check(Version::V1_0, &["flow add prio=5 actions=output:11,output:1"], 2);
    // On 1.3 a rule for all ingress ports does not know the ingress port of a packet: the switch sends no packet back.
    for said in [
        &["flow add prio=5 actions=output:11,output:1"][..],
        &["group add id=1 type=all buckets=output:11|output:1", "flow add prio=5 actions=group:1"],
    ] {
        let mut testbed = testbed(Version::V1_3);
        said.iter().for_each(|words| both_say(&mut testbed, BLUE, 2, words));
        let seen = testbed.send(BLUE, 1, 1, &frame());
        assert_eq!(seen.delivered, [(BLUE, 2, 1, frame())], "{said:?}");
    }
}

/// The packet does not loop, though neither end of the link sends by the physical port at which it receives.
#[test]
fn flooding_does_not_loop_when_packets_arrive_at_another_port() {
    for version in VERSIONS {
        for said in ["flood", "all", "group"] {
            let mut testbed = testbed(version);
            for switch in [1, 2] {
                both_say(&mut testbed, BLUE, switch, "flow delete match=");
                let words: &[&str] = match said {
                    "group" if version == Version::V1_0 => continue,
                    "group" => &[
                        "group add id=1 type=all buckets=flood",
                        "flow add prio=5 actions=group:1",
                    ],
                    _ => &[&format!("flow add prio=5 actions={said}")],
                };
                words.iter().for_each(|words| both_say(&mut testbed, BLUE, switch, words));
            }
            // The first two switches of blue have two links. The test cuts one of these links, because two links are a
            // loop.
            let both = plans();
            testbed.cut(BLUE, both[BLUE].links[1..2].to_vec(), 2000);
            for switch in [1, 2] {
                let seen = same(&mut testbed, BLUE, switch, 1, &frame());
                assert!(!seen.endless, "{version:?} {said}");
            }
        }
    }
}

#[test]
fn groups_and_action_sets_deliver_packets_that_arrive_at_another_port() {
    for (group, delivered) in [
        ("indirect buckets=in_port", 1),
        ("all buckets=in_port|output:12|output:1", 3),
        ("all buckets=output:12|mod_nw_dst:10.0.0.9,output:12", 2),
        ("all buckets=push_vlan:8100,mod_vlan_vid:7,in_port|output:12", 2),
        ("all buckets=flood|mod_nw_dst:10.0.0.9,in_port", 4),
    ] {
        let group = format!("group add id=1 type={group}");
        for rule in [
            "flow add prio=5 actions=group:1",
            "flow add prio=5 match=in_port=10 actions=group:1",
            "flow add prio=5 actions=write=group:1;goto=1",
            // The entry uses group 2, which sends packets to group 1.
            "flow add prio=5 actions=group:2",
        ] {
            let named = "group add id=2 type=indirect buckets=group:1";
            let next = "flow add prio=5 table=1 match=ip actions=mod_nw_dst:10.0.0.3";
            check(Version::V1_3, &[&group, named, rule, next], delivered);
        }
    }
    for (set, delivered) in [("in_port", 1), ("output:12", 1), ("all", 3)] {
        let rule =
            format!("flow add prio=5 match=in_port=10,ip actions=mod_nw_dst:10.0.0.3;write={set}");
        check(Version::V1_3, &[&rule], delivered);
    }
}

#[test]
fn packet_outs_with_any_ingress_port_act_as_on_the_tenants_own_switch() {
    for version in VERSIONS {
        let mut testbed = testbed(version);
        both_say(
            &mut testbed,
            BLUE,
            2,
            "flow add prio=5 match=in_port=10 actions=in_port,output:11",
        );
        for from in ["10", "11", "12", "1", "controller"] {
            for actions in ["in_port", "output:10,output:11,output:12", "all", "table"] {
                if from == "controller" && ["in_port", "table"].contains(&actions) {
                    continue;
                }
                let words = format!("out in_port={from} actions={actions} data=10.0.0.1>10.0.0.2");
                let seen = testbed.out(BLUE, 2, &words);
                assert_eq!(seen, testbed.out_beside(BLUE, 2, &words), "{version:?} {words}");
            }
        }
    }
}

/// A rule of the last table outputs to a tunnel of a big switch. The tunnel is on the physical port by which the end of
/// the link sends.
#[test]
fn outputs_in_the_last_table_deliver_packets_that_arrive_at_another_port() {
    let host = [2, 0, 0, 0, 0x10, 1];
    let red = Plan {
        edges: vec![(2, 1, 1), (3, 1, 1)],
        links: (10..16).map(|port| [(2, port), (3, port)]).collect(),
        ..Plan::default()
    };
    let links = vec![[(2, 10), (3, 10)]];
    let blue = Plan {
        edges: vec![(1, 2, 1), (3, 2, 1)],
        shared: vec![(1, 4, 7, host)],
        standby: links.clone(),
        links,
        astray: vec![(2, 10)],
        big: vec![1, 2],
        ..Plan::default()
    };
    for (runs_sets, version) in
        [(false, Version::V1_0), (false, Version::V1_3), (true, Version::V1_3)]
    {
        let make = Make { runs_sets, ..Make::default() };
        let mut testbed = Testbed::made([version; 3], vec![red.clone(), blue.clone()], make);
        for switch in [2, 3] {
            both_say(&mut testbed, RED, switch, "flow add prio=3 actions=output:1");
        }
        both_say(&mut testbed, BLUE, 3, "flow add prio=5 match=in_port=1 actions=output:10");
        // On 1.0 there is no last table, so the entry names its destination.
        let match_ = if version == Version::V1_0 { "dl_dst=02:00:00:00:10:01" } else { "" };
        let words = format!("flow add prio=5 match={match_} actions=output:7");
        both_say(&mut testbed, BLUE, 1, &words);
        let mut frame = frame();
        frame[..6].copy_from_slice(&host);
        let seen = testbed.send(BLUE, 3, 1, &frame);
        assert_eq!(seen.delivered, [(BLUE, 1, 7, frame.clone())], "{version:?} {runs_sets}");
        for switch in 1..=3 {
            assert_eq!(testbed.unsure_backs(switch), [""; 0], "{version:?} {runs_sets}");
        }
    }
}

/// Ends of links get and lose ingress ports. The packets of blue are delivered as before, and at the end rules and
/// groups equal those at the start.
#[test]
fn rules_and_groups_follow_when_second_paths_are_added_and_removed() {
    for version in VERSIONS {
        let mut testbed = testbed(version);
        if version == Version::V1_3 {
            let group = "group add id=1 type=all buckets=in_port|output:12|output:1";
            both_say(&mut testbed, BLUE, 2, group);
            both_say(&mut testbed, BLUE, 2, "flow add prio=6 match=ip actions=group:1");
        }
        both_say(&mut testbed, BLUE, 2, "flow add prio=5 actions=in_port,output:12,output:1");
        let seen = same(&mut testbed, BLUE, 1, 1, &frame());
        let entries = |testbed: &Testbed| {
            let mut entries = testbed.entries(2);
            entries.retain(|entry| version == Version::V1_0 || !entry.starts_with("0 "));
            (entries, testbed.groups(2))
        };
        let before = entries(&testbed);
        for (standby, astray) in [(false, false), (true, false), (false, false), (true, true)] {
            let mut plans = plans();
            plans[BLUE].standby.retain(|_| standby);
            plans[BLUE].astray.retain(|_| astray);
            let (maps, last) = Testbed::maps_from(2000, &plans);
            testbed.set_maps(&maps, 2000..=last);
            assert_eq!(testbed.take_received(), []);
            assert_eq!(same(&mut testbed, BLUE, 1, 1, &frame()), seen, "{version:?}");
            assert_eq!(testbed.unsure_backs(2), [""; 0]);
        }
        assert_eq!(entries(&testbed), before, "{version:?}");
    }
}

/// For each link of a tenant: whether the link has a path on the other side of the ring, and for both ends whether the
/// end sends by this path.
type Ways = Vec<(bool, bool, bool)>;

fn ways() -> impl Strategy<Value = [Ways; 2]> {
    let ways = || vec((prop::bool::weighted(0.7), any::<bool>(), any::<bool>()), 3);
    [ways(), ways()]
}

fn with_ways(mut plans: Vec<Plan>, ways: &[Ways; 2]) -> Vec<Plan> {
    for (plan, ways) in plans.iter_mut().zip(ways) {
        for (link, &(standby, first, second)) in plan.links.iter().zip(ways) {
            if standby {
                plan.standby.push(*link);
                let ends = link.iter().zip([first, second]);
                plan.astray.extend(ends.filter(|it| it.1).map(|it| *it.0));
            }
        }
    }
    plans
}

/// Changes the rules of a case. On OpenFlow 1.3 the new rules may lose packets that arrive at another port, but do not
/// send them back. Rules that output to a link match on the ingress port, and do not use a group or another table for
/// the output.
fn without_returns(mut case: Case) -> Case {
    let returns = |words: &str| {
        ["group", "write=output:10", "write=output:11", "write=mod_nw_dst", "write=output:2"]
            .iter()
            .any(|it| words.contains(it))
    };
    case.commands.retain(|it| !returns(&it.2));
    for (_, _, words) in &mut case.commands {
        if words.contains("output:1") && !words.contains("in_port=") {
            *words = words.replace("match=ip", "match=in_port=10,ip");
        }
    }
    case.spreads = false;
    case
}

/// Checks that no packet reaches another tenant. On OpenFlow 1.3 rules for all ingress ports may lose packets that
/// arrive at another port, or send them back. With `is_sure` the only packets that arrive are those that also arrive on
/// a network of the tenant's own.
fn stays_inside(
    versions: Versions,
    plans: &[Plan],
    case: &Case,
    is_sure: bool,
) -> Result<(), TestCaseError> {
    // With `runs_sets` the switch, like Open vSwitch, executes the action set of a packet that matches no entry, so
    // this packet is not lost.
    let make = Make { runs_sets: case.runs_sets && !is_sure, ..Make::default() };
    let mut testbed = Testbed::made(versions, plans.to_vec(), make);
    for tenant in [RED, BLUE] {
        for switch in testbed.switches_of(tenant) {
            if testbed.version(switch) == Version::V1_3 {
                add_groups(&mut testbed, plans, case, (tenant, switch));
            }
        }
    }
    // Weir may install an entry again, after other entries. So the case has no entries with equal priority and
    // different matches in one table.
    for (tenant, switch, words) in case.undisputed(plans) {
        let switch = testbed.head(*tenant, *switch);
        let mut received = testbed.say(*tenant, switch, words);
        received.retain(|words| !words.starts_with("PORT_STATUS"));
        if received.is_empty() {
            testbed.say_beside(*tenant, switch, words);
        }
    }
    let links = [plans[BLUE].links.first(), plans[BLUE].links.last()];
    let cut = links.into_iter().zip(case.cut).filter(|(_, is_cut)| *is_cut);
    let cut: Vec<_> = cut.filter_map(|(link, _)| link.copied()).collect();
    if !cut.is_empty() {
        testbed.cut(BLUE, cut, 3000);
    }
    for switch in 1..=SWITCHES {
        prop_assert_eq!(testbed.unsure_backs(switch), [""; 0]);
    }
    for &packet in &case.packets {
        let (tenant, switch, port, frame) = comes(plans, packet);
        let beside = testbed.send_beside(tenant, switch, port, &frame);
        if beside.endless {
            break;
        }
        let mut beside = at_hosts(&plans[tenant], beside);
        let mut seen = testbed.send(tenant, switch, port, &frame);
        seen.delivered.retain(|it| it.0 == tenant || !is_shared(&plans[it.0], it.1, it.2));
        prop_assert!(seen.delivered.iter().all(|it| it.0 == tenant));
        prop_assert!(seen.received.iter().all(|it| it.0 == tenant));
        if !is_sure {
            continue;
        }
        for one in seen.delivered {
            let at = beside.delivered.iter().position(|it| *it == one);
            prop_assert!(at.is_some(), "{one:?} from {port} at {switch}");
            at.map(|at| beside.delivered.swap_remove(at));
        }
        for one in seen.received {
            let at = beside.received.iter().position(|it| *it == one);
            prop_assert!(at.is_some(), "{one:?} from {port} at {switch}");
            at.map(|at| beside.received.swap_remove(at));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn networks_with_second_paths_forward_like_dedicated_switches_v10(
        case in cases(Version::V1_0, 0.3), ways in ways()
    ) {
        agrees(Version::V1_0, &with_ways(two_networks(), &ways), &case)?;
    }

    #[test]
    fn big_switches_with_second_paths_forward_like_dedicated_switches_v10(case in cases(Version::V1_0, 0.3), ways in ways()) {
        agrees(Version::V1_0, &with_ways(big_networks(), &ways), &case)?;
    }

    #[test]
    fn shared_ports_with_second_paths_forward_like_dedicated_switches_v10(case in cases(Version::V1_0, 0.3), ways in ways()) {
        agrees(Version::V1_0, &with_ways(sharing(), &ways), &case)?;
    }

    #[test]
    fn packets_on_second_paths_reach_no_other_tenant_v13(
        case in cases(Version::V1_3, 0.3), ways in ways()
    ) {
        for plans in [two_networks(), big_networks(), sharing(), sharing_big()] {
            stays_inside(V1_3, &with_ways(plans, &ways), &case, false)?;
        }
    }

    #[test]
    fn packets_on_second_paths_reach_no_other_tenant_on_mixed_versions(
        (versions, case) in mixed::cases(&mixed::ALL), ways in ways()
    ) {
        stays_inside(versions, &with_ways(two_networks(), &ways), &case, false)?;
    }

    #[test]
    fn packets_on_second_paths_arrive_only_as_with_dedicated_switches_v13(case in cases(Version::V1_3, 0.3), ways in ways()) {
        let case = without_returns(case);
        for plans in [two_networks(), big_networks(), sharing(), sharing_big()] {
            stays_inside(V1_3, &with_ways(plans, &ways), &case, true)?;
        }
    }
}
