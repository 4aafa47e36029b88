//! Groups that send by shared edge ports and leave it to the rules that use them to say for whom packets are. That random ones
//! forward as they would on a switch of the tenant's own is in `sharing`.

use crate::deliveries::{
    BIG_FROM, BLUE, BROADCAST, EVERY_NODE, RED, WHOLE, accept, big_plan, frame, host, plan,
    plan_before_sharing, world_on,
};
use crate::groups_kept::{on, say};
use crate::networks::both_say;
use crate::sharing::at_hosts;
use crate::support::*;
use emulate::Fault;
use fabric::embedding::SwitchMap;
use std::collections::BTreeSet;

pub(crate) const STRANGER: [u8; 6] = [2, 0, 0, 0, 0x66, 6];

/// Both tenants' second switches pass on what comes, and so do switches of their own.
pub(crate) fn both() -> Stage {
    let mut stage = Stage::new(Version::V1_3, vec![plan(RED), plan(BLUE)]);
    for tenant in [RED, BLUE] {
        both_say(&mut stage, tenant, 2, "flow add prio=5 match=in_port=10 actions=output:1");
        both_say(&mut stage, tenant, 2, "flow add prio=5 match=in_port=1 actions=output:10");
    }
    stage
}

pub(crate) fn address(address: [u8; 6]) -> String {
    address.map(|octet| format!("{octet:02x}")).join(":")
}

/// For whom packets of a tenant's may be: its hosts behind the shared ports, others, and everybody.
pub(crate) fn destinations(tenant: usize) -> Vec<[u8; 6]> {
    let own = [1, 2, 3].map(|n| host(tenant, n));
    let others = [host(1 - tenant, 1), host(1 - tenant, 3), STRANGER, BROADCAST, EVERY_NODE];
    own.into_iter().chain(others).collect()
}

/// Rules for each of them.
fn name_all(stage: &mut Stage, tenant: usize, actions: &str) {
    for to in destinations(tenant) {
        let words = format!("flow add prio=5 match=dl_dst={} actions={actions}", address(to));
        both_say(stage, tenant, 1, &words);
    }
}

/// What becomes of a frame is what becomes of it on the tenant's own, where its hosts take what is for them.
#[track_caller]
pub(crate) fn same(
    stage: &mut Stage,
    plan: &Plan,
    at: (usize, u64, u32),
    to: [u8; 6],
    note: &str,
) -> Seen {
    let (tenant, switch, port) = at;
    let mut sources = plan.shared.iter().filter(|it| (it.0, it.2) == (switch, port));
    let frame = frame(sources.next().map_or([2, 0, 0, 0, 0x77, 1], |it| it.3), to);
    let beside = at_hosts(plan, stage.send_beside(tenant, switch, port, &frame));
    let mut seen = stage.send(tenant, switch, port, &frame);
    // The wires are the other tenant's as well.
    seen.delivered.retain(|it| it.0 == tenant || ![7, 8].contains(&it.2));
    assert_eq!(seen, beside, "{note}: {at:?} {to:x?}");
    seen
}

/// All frames that come in anywhere. Gives how often they leave.
#[track_caller]
pub(crate) fn all_same(stage: &mut Stage, plan: &Plan, tenant: usize, note: &str) -> usize {
    let mut left = 0;
    for (switch, port) in [(1, WHOLE), (1, 7), (1, 8), (2, WHOLE)] {
        for to in destinations(tenant) {
            left += same(stage, plan, (tenant, switch, port), to, note).delivered.len();
        }
    }
    left
}

#[track_caller]
fn refuse(stage: &mut Stage, words: &str, error: &str) {
    let told = stage.say(RED, 1, words);
    let type_ = if words.starts_with("group") { 15 } else { 14 };
    assert_eq!(told, [format!("7 ERROR {error} of type {type_} xid 7")], "{words}");
}

#[test]
fn each_kind_sends_to_the_tenants_own_hosts() {
    for (kind, buckets) in [
        ("all", "output:1|output:7|output:8|output:10"),
        ("all", "flood"),
        ("all", "all|flood"),
        ("all", "in_port|output:8"),
        ("all", "mod_dl_src:02.00.00.00.00.77,flood|output:7"),
        ("all", "mod_dl_dst:ff.ff.ff.ff.ff.ff,output:7|output:8"),
        ("all", "mod_dl_dst:02.00.00.00.10.03,flood|mod_dl_dst:02.00.00.00.11.01,flood"),
        ("all", "push_vlan:8100,mod_vlan_vid:7,output:7|push_vlan:8100,flood"),
        ("all", "drop|output:1,output:7"),
        ("select", "1*output:7|1*output:8|1*flood|1*in_port"),
        ("select", "0*output:7|1*output:8"),
        ("indirect", "output:7"),
        ("indirect", "in_port"),
        ("ff", "8@output:8|7@output:7"),
        ("ff", "7@flood|8@output:8"),
    ] {
        let mut stage = both();
        for tenant in [RED, BLUE] {
            let words = format!("group add id=1 type={kind} buckets={buckets}");
            both_say(&mut stage, tenant, 1, &words);
            name_all(&mut stage, tenant, "group:1");
        }
        for tenant in [RED, BLUE] {
            assert!(all_same(&mut stage, &plan(tenant), tenant, buckets) > 0, "{buckets}");
            for question in ["stats group", "stats group_desc", "stats flow"] {
                let told = stage.say(tenant, 1, question);
                assert_eq!(told, stage.say_beside(tenant, 1, question), "{buckets} {question}");
            }
        }
    }
}

/// A rule names its destination by what it matches or writes; what is written last before the group counts.
#[test]
fn rules_that_name_their_destination_use_them() {
    let mut stage = both();
    both_say(&mut stage, RED, 1, "group add id=1 type=all buckets=output:1|output:7|output:8");
    for (match_, actions) in [
        ("", "mod_dl_dst:ff.ff.ff.ff.ff.ff,group:1"),
        ("", "mod_dl_dst:02.00.00.00.10.02,group:1"),
        ("dl_dst=ff:ff:ff:ff:ff:ff", "mod_dl_dst:02.00.00.00.10.01,group:1"),
        ("dl_dst=02:00:00:00:10:01", "group:1,mod_dl_dst:02.00.00.00.10.02,group:1"),
        ("in_port=7,dl_dst=ff:ff:ff:ff:ff:ff", "group:1"),
        // All addresses for many, whichever it is.
        ("dl_dst=01:00:00:00:00:00/01:00:00:00:00:00", "group:1"),
        ("dl_dst=33:33:00:00:00:00/ff:ff:00:00:00:00", "group:1,output:10"),
        ("dl_dst=01:00:00:00:00:00/01:00:00:00:00:00", "mod_dl_dst:02.00.00.00.10.02,group:1"),
        ("dl_dst=01:00:00:00:00:00/01:00:00:00:00:00", "write=group:1"),
        // Some bits of an address, or none: then it is several rules on the switch.
        ("dl_dst=02:00:00:00:10:00/ff:ff:ff:ff:ff:00", "group:1"),
        ("dl_dst=02:00:00:00:10:00/ff:ff:ff:ff:ff:fd", "group:1"),
        ("dl_dst=00:00:00:00:00:00/01:00:00:00:00:00", "group:1"),
        ("", "group:1"),
        ("in_port=1", "group:1"),
        ("", "group:1,mod_dl_src:02.00.00.00.00.77,output:10"),
        ("", "group:1;goto=1"),
        ("", "output:10,group:1;meta=5/ff;goto=1"),
        ("", "write=group:1"),
        ("", "group:1,group:1"),
        ("", "flood,group:1"),
        ("dl_dst=02:00:00:00:11:01", "group:1"),
        // Known in full, and so said as a list.
        ("dl_dst=ff:ff:ff:ff:ff:ff", "write=group:1"),
        ("", "write=group:1,mod_dl_dst:02.00.00.00.10.03"),
        ("", "mod_dl_dst:33.33.00.00.00.01;clear;write=group:1"),
    ] {
        let words = format!("flow add match={match_} prio=9 actions={actions}");
        both_say(&mut stage, RED, 1, &words);
        all_same(&mut stage, &plan(RED), RED, &words);
        both_say(&mut stage, RED, 1, "flow delete match=");
    }
    // Not by sets that tables to come may change.
    let many = "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00";
    for match_ in [many, "dl_dst=ff:ff:ff:ff:ff:ff", ""] {
        let words = format!("flow add match={match_} prio=9 actions=write=group:1;goto=1");
        refuse(&mut stage, &words, "OFPBIC_UNSUP_INST");
    }
    assert_eq!(stage.say(RED, 1, "stats flow"), ["7 STATS flow"]);
}

/// Of what a controller sends it is known for whom it is.
#[test]
fn packets_out_of_a_controllers_hands_use_them() {
    let mut stage = both();
    both_say(
        &mut stage,
        RED,
        1,
        "group add id=1 type=all buckets=flood|mod_dl_src:2.0.0.0.0.9,in_port",
    );
    both_say(&mut stage, RED, 1, "group add id=2 type=all buckets=group:1|output:8");
    for port in ["controller", "1", "7", "10"] {
        for to in ["", "02.00.00.00.10.01", "02.00.00.00.11.01", "ff.ff.ff.ff.ff.ff"] {
            let to = if to.is_empty() { String::new() } else { format!("mod_dl_dst:{to},") };
            for group in [1, 2] {
                let words =
                    format!("out in_port={port} actions={to}group:{group} data=10.0.0.1>10.0.0.2");
                // PACKET_INs of the second switch, too, if there were any.
                let beside = at_hosts(&plan(RED), stage.out_beside(RED, 1, &words));
                let mut seen = stage.out(RED, 1, &words);
                seen.delivered.retain(|it| it.0 == RED);
                assert_eq!(seen, beside, "{words}");
            }
        }
    }
}

/// What names a group has a form for whomever that has one, unless it says itself for whom packets are.
#[test]
fn forms_follow_the_group_that_is_named() {
    let mut stage = both();
    for (words, groups) in [
        // To nobody, to the host, to many; and an exit with as many.
        ("group add id=1 buckets=output:8", 6),
        ("group add id=2 type=all buckets=output:8|output:1", 9),
        ("group add id=3 buckets=mod_dl_dst:02.00.00.00.10.03,output:8", 10),
        ("group add id=4 buckets=output:7", 18),
        ("group add id=5 buckets=group:1", 21),
        ("group add id=6 buckets=mod_dl_dst:02.00.00.00.10.03,group:5", 22),
        ("group add id=7 type=all buckets=group:5|group:4", 27),
    ] {
        both_say(&mut stage, RED, 1, words);
        assert_eq!(stage.groups(1), groups, "{words}");
    }
    both_say(&mut stage, RED, 1, "flow add prio=3 actions=group:6");
    name_all(&mut stage, RED, "group:7");
    all_same(&mut stage, &plan(RED), RED, "chained");
    for (words, groups) in [
        ("group modify id=1 buckets=output:1", 22),
        ("group modify id=5 type=all buckets=group:2|flood", 32),
        ("group modify id=4 buckets=output:10", 25),
    ] {
        both_say(&mut stage, RED, 1, words);
        all_same(&mut stage, &plan(RED), RED, words);
        stage.wait(20);
        assert_eq!(stage.groups(1), groups, "{words}");
    }
    both_say(&mut stage, RED, 1, "group delete id=all");
    stage.wait(20);
    assert_eq!(stage.groups(1), 0);
}

/// Rules follow what becomes of the groups that they use, also such that do not name their destination; but a set that later
/// tables may change cannot, where one gives packets another destination.
#[test]
fn groups_are_changed_under_rules() {
    let mut stage = both();
    for words in [
        "group add id=1 type=all buckets=output:1",
        "group add id=2 type=all buckets=group:1",
        "flow add prio=4 match=ip actions=group:2",
        "flow add prio=5 match=dl_dst=ff:ff:ff:ff:ff:ff actions=group:1",
    ] {
        both_say(&mut stage, RED, 1, words);
    }
    let entries = stage.entries(1);
    for buckets in ["output:7", "output:1|flood", "in_port|output:8", "output:1"] {
        let words = format!("group modify id=1 type=all buckets={buckets}");
        both_say(&mut stage, RED, 1, &words);
        all_same(&mut stage, &plan(RED), RED, buckets);
    }
    stage.wait(20);
    assert_eq!((stage.groups(1), stage.entries(1)), (2, entries));
    both_say(&mut stage, RED, 1, "flow add prio=9 match=ip actions=write=group:1;goto=1");
    both_say(&mut stage, RED, 1, "flow add table=1 prio=5 actions=meta=5/ff");
    stage.wait(20);
    let entries = stage.entries(1);
    for buckets in ["output:7", "output:1|flood", "in_port"] {
        let words = format!("group modify id=1 type=all buckets={buckets}");
        refuse(&mut stage, &words, "OFPGMFC_EPERM");
        // What it would have needed of Weir's own goes.
        stage.wait(20);
        assert_eq!((stage.groups(1), stage.entries(1)), (2, entries.clone()), "{buckets}");
    }
    all_same(&mut stage, &plan(RED), RED, "as before");
}

/// What is for nobody has to be said without naming the hosts; hosts that have nothing in common make that long.
#[test]
fn rules_are_refused_that_would_be_too_many() {
    let mut far = plan(RED);
    far.shared.extend((0..32).map(|n| (1, 4, 7, [n << 3 | 2, n, 0, n, 0, 1])));
    let mut stage = Stage::new(Version::V1_3, vec![far.clone()]);
    both_say(&mut stage, RED, 1, "group add id=1 type=all buckets=output:7");
    refuse(&mut stage, "flow add prio=5 actions=group:1", "OFPBAC_BAD_OUT_PORT");
    // Of these there are fewer.
    let near = "flow add prio=5 match=dl_dst=02:00:00:00:10:00/ff:ff:ff:ff:ff:00 actions=group:1";
    both_say(&mut stage, RED, 1, near);
    for to in destinations(RED) {
        same(&mut stage, &far, (RED, 1, WHOLE), to, "near");
    }
}

/// Each of the messages that a change becomes is refused once: then all of it is.
#[test]
fn a_group_is_refused_with_all_its_forms() {
    for (words, messages) in [
        // Each four, and as many of the exit.
        ("group add id=3 type=all buckets=output:7", 8),
        // Five of the exit, of the group, and of what names it.
        ("group modify id=1 type=all buckets=flood", 5 + 5 + 5),
    ] {
        let refused = (1..30).filter(|nth| {
            let mut stage = both();
            for words in [
                "group add id=1 type=all buckets=output:1",
                "group add id=2 type=all buckets=group:1|output:10",
                "flow add prio=5 match=dl_dst=02:00:00:00:10:01 actions=group:1",
                "flow add prio=5 match=dl_dst=ff:ff:ff:ff:ff:ff actions=group:2",
            ] {
                both_say(&mut stage, RED, 1, words);
            }
            let entries = stage.entries(1);
            stage.plant(1, vec![Fault::RefuseOnce { nth: *nth }]);
            let told = stage.say(RED, 1, words);
            stage.plant(1, Vec::new());
            if told.is_empty() {
                return false;
            }
            assert_eq!(told, ["7 ERROR OFPGMFC_OUT_OF_GROUPS of type 15 xid 7"], "{nth}");
            assert_eq!(stage.entries(1), entries, "{words} {nth}");
            all_same(&mut stage, &plan(RED), RED, words);
            both_say(&mut stage, RED, 1, words);
            all_same(&mut stage, &plan(RED), RED, words);
            true
        });
        assert_eq!(refused.count(), messages, "{words}");
    }
}

#[test]
fn a_switch_that_does_not_chain_groups_refuses_them() {
    let mut stage = both();
    stage.plant(1, vec![Fault::RefuseChaining]);
    for buckets in ["output:7", "flood", "output:1|in_port"] {
        let words = format!("group add id=1 type=all buckets={buckets}");
        refuse(&mut stage, &words, "OFPGMFC_CHAINING_UNSUPPORTED");
    }
    accept(&mut stage, RED, 1, "group add id=1 buckets=mod_dl_dst:02.00.00.00.10.01,output:7");
}

/// Forms for hosts count among those that a tenant may have.
#[test]
fn hosts_take_numbers() {
    let mut plan = plan(RED);
    plan.shared = (1..=200).map(|n| (1, 4, 7, host(RED, n))).collect();
    let mut stage = Stage::new(Version::V1_3, vec![plan]);
    // One for each host, for many, and for others; and an exit.
    for id in 1..=19 {
        accept(&mut stage, RED, 1, &format!("group add id={id} buckets=output:7"));
        assert_eq!(stage.groups(1), (id + 1) * 202);
    }
    refuse(&mut stage, "group add id=20 buckets=output:7", "OFPGMFC_OUT_OF_GROUPS");
    accept(&mut stage, RED, 1, "group add id=20 buckets=output:1");
    refuse(&mut stage, "group modify id=20 buckets=output:7", "OFPGMFC_OUT_OF_GROUPS");
    assert_eq!(stage.groups(1), 20 * 202 + 1);
}

pub(crate) fn with(plan: &Plan, added: &[(u64, u32, u32, [u8; 6])], removed: &[[u8; 6]]) -> Plan {
    let mut plan = plan.clone();
    plan.shared.retain(|it| !removed.contains(&it.3));
    plan.shared.extend_from_slice(added);
    plan
}

/// Forms follow hosts that come and go, and then count anew.
#[test]
fn hosts_come_and_go() {
    let mut stage = both();
    both_say(&mut stage, RED, 1, "group add id=1 type=all buckets=output:1|output:7|flood");
    both_say(&mut stage, RED, 1, "group add id=2 type=select buckets=1*group:1");
    let unused = stage.say(RED, 1, "stats group");
    name_all(&mut stage, RED, "group:2");
    let words = format!("flow add prio=5 match=dl_dst={} actions=group:2", address(host(RED, 4)));
    both_say(&mut stage, RED, 1, &words);
    let groups = stage.groups(1);
    let own = plan(RED);
    for (red, more) in [
        (with(&own, &[(1, 3, 8, host(RED, 4))], &[]), 3),
        (with(&own, &[], &[host(RED, 2)]), -4),
        (with(&own, &[(1, 3, 8, host(RED, 2))], &[host(RED, 2)]), -1),
        (with(&own, &[], &[]), 0),
    ] {
        let (maps, tags) = Stage::maps_from(2000, &[red.clone(), plan(BLUE)]);
        stage.set_maps(&maps, 2000..=tags);
        stage.take_told();
        assert_eq!(stage.say(RED, 1, "stats group"), unused, "{red:?}");
        for to in [1, 2, 3, 4].map(|n| host(RED, n)).into_iter().chain([BROADCAST, EVERY_NODE]) {
            same(&mut stage, &red, (RED, 1, WHOLE), to, "map");
            same(&mut stage, &red, (RED, 1, 7), to, "map");
        }
        assert_ne!(stage.say(RED, 1, "stats group"), unused);
        stage.wait(20);
        assert_eq!(stage.groups(1) as i32 - groups as i32, more, "{red:?}");
    }
}

/// A port comes to be shared under rules that do not name their destination: they cannot stand, and the tenant is told.
#[test]
fn rules_go_when_a_port_comes_to_be_shared() {
    let mut stage = Stage::new(Version::V1_3, vec![plan_before_sharing(RED)]);
    for words in [
        "group add id=1 type=all buckets=output:8",
        "flow add prio=5 match=in_port=1 flags=rem actions=write=group:1;goto=1",
        "flow add prio=4 match=in_port=1 flags=rem actions=group:1",
        "flow add prio=6 match=dl_dst=ff:ff:ff:ff:ff:ff flags=rem actions=group:1",
    ] {
        accept(&mut stage, RED, 1, words);
    }
    assert_eq!(stage.groups(1), 1);
    let (maps, tags) = Stage::maps_from(2000, &[plan(RED)]);
    stage.set_maps(&maps, 2000..=tags);
    let told = stage.take_told();
    let removed: Vec<_> = told.iter().filter(|it| it.2.starts_with("FLOW_REMOVED")).collect();
    assert!(matches!(removed[..], [it] if it.2.contains("prio=5")), "{told:?}");
    assert_eq!(stage.groups(1), 6);
    let seen = stage.send(RED, 1, WHOLE, &frame(STRANGER, BROADCAST));
    assert_eq!(seen.delivered, [(RED, 1, 8, frame(STRANGER, host(RED, 3)))]);
    let (maps, tags) = Stage::maps_from(2000, &[plan_before_sharing(RED)]);
    stage.set_maps(&maps, 2000..=tags);
    let seen = stage.send(RED, 1, WHOLE, &frame(STRANGER, BROADCAST));
    assert_eq!(seen.delivered, [(RED, 1, 8, frame(STRANGER, BROADCAST))]);
    stage.wait(20);
    assert_eq!(stage.groups(1), 1);
}

/// What is configured of ports bears on groups that are there, also while none is open.
#[test]
fn ports_open_and_close() {
    let mut stage = both();
    both_say(&mut stage, RED, 1, "group add id=1 type=all buckets=flood|output:8");
    name_all(&mut stage, RED, "group:1");
    let groups = stage.groups(1);
    for (port, bits) in [(7, "0x20"), (8, "0x1"), (7, "0"), (8, "0x4"), (8, "0")] {
        both_say(&mut stage, RED, 1, &format!("port_mod port={port} config={bits} mask=0x25"));
        let words = format!("{port} {bits}");
        for (switch, port) in [(1, WHOLE), (2, WHOLE)] {
            for to in destinations(RED) {
                same(&mut stage, &plan(RED), (RED, switch, port), to, &words);
            }
        }
        assert_eq!(stage.groups(1), groups, "{words}");
    }
}

/// Two of the tenant's ports on one port of the switch: a packet from one to the other goes back by it, and never to where it
/// came from.
#[test]
fn packets_go_back_to_hosts_at_another_port_of_the_tenants() {
    let mut plan = plan(RED);
    plan.shared.push((1, 4, 9, host(RED, 4)));
    let mut stage = Stage::new(Version::V1_3, vec![plan]);
    for (buckets, sends_to) in [
        ("flood", [true; 4]),
        ("output:7|output:8|output:9", [true; 4]),
        ("output:9", [false, false, false, true]),
    ] {
        accept(&mut stage, RED, 1, &format!("group add id=1 type=all buckets={buckets}"));
        for to in destinations(RED).into_iter().chain([host(RED, 4)]) {
            let words = format!("flow add prio=5 match=dl_dst={} actions=group:1", address(to));
            accept(&mut stage, RED, 1, &words);
        }
        let port_of = |n: u8| [7, 7, 8, 9][usize::from(n) - 1];
        for from in [1, 3, 4] {
            // The wire is both ports'.
            let at = if from == 3 { 8 } else { 7 };
            for to in destinations(RED).into_iter().chain([host(RED, 4)]) {
                let seen = stage.send(RED, 1, at, &frame(host(RED, from), to)).delivered;
                let seen = seen.iter().filter(|it| [7, 8, 9].contains(&it.2));
                let seen: BTreeSet<&[u8]> = seen.map(|it| &it.3[..6]).collect();
                let is_reached = |n: &u8| {
                    let is_for = to[0] & 1 == 1 || to == host(RED, *n);
                    is_for && sends_to[usize::from(*n) - 1] && port_of(*n) != port_of(from)
                };
                let wanted: Vec<[u8; 6]> =
                    (1..=4).filter(is_reached).map(|n| host(RED, n)).collect();
                assert!(seen.into_iter().eq(wanted.iter().map(|it| &it[..])), "{from} {to:x?}");
            }
        }
        accept(&mut stage, RED, 1, "group delete id=1");
    }
}

/// On a big switch a host may be behind a port of another member, and the bucket may change tags as well.
#[test]
fn members_of_a_big_switch_send_to_each_others_hosts() {
    let vlan = "push_vlan:8100,mod_vlan_vid:7";
    for buckets in [
        "flood".to_owned(),
        "output:1|output:7|output:8|output:10".to_owned(),
        "in_port|flood".to_owned(),
        format!("{vlan},output:8|{vlan},in_port|{vlan},output:7"),
        format!("mod_dl_dst:02.00.00.00.10.02,{vlan},output:8|mod_dl_dst:02.00.00.00.10.01,flood"),
    ] {
        let mut stage = Stage::new(Version::V1_3, vec![big_plan(RED), big_plan(BLUE)]);
        for tenant in [RED, BLUE] {
            both_say(&mut stage, tenant, 3, "flow add prio=5 match=in_port=10 actions=output:1");
            both_say(&mut stage, tenant, 3, "flow add prio=5 match=in_port=1 actions=output:10");
            let words = format!("group add id=1 type=all buckets={buckets}");
            both_say(&mut stage, tenant, 1, &words);
            name_all(&mut stage, tenant, "group:1");
        }
        for (switch, port) in BIG_FROM {
            for to in destinations(RED) {
                same(&mut stage, &big_plan(RED), (RED, switch, port), to, &buckets);
            }
        }
        for question in ["stats group", "stats group_desc"] {
            let told = stage.say(RED, 1, question);
            assert_eq!(told, stage.say_beside(RED, 1, question), "{buckets} {question}");
        }
        both_say(&mut stage, RED, 1, "flow delete match=");
        both_say(&mut stage, RED, 1, "flow add prio=6 match= actions=group:1");
        for (switch, port) in BIG_FROM {
            for to in destinations(RED) {
                same(&mut stage, &big_plan(RED), (RED, switch, port), to, &buckets);
            }
        }
    }
}

/// Two of red's shared ports stand on one port of the switch, so some groups are apart by ports, some by hosts, some by both.
fn crowded_map(more: &[(u64, u32, u32, [u8; 6])]) -> SwitchMap {
    let red = with(&with(&plan(RED), &[(1, 4, 9, host(RED, 4))], &[]), more, &[]);
    Stage::maps_from(2000, &[red, plan(BLUE)]).0.remove(&1).unwrap()
}

#[test]
fn all_of_it_is_found_again() {
    let (mut world, red) = world_on(crowded_map(&[]), |config| config.n_buffers = 0);
    for words in [
        "group add id=1 type=all buckets=output:1",
        "group add id=2 type=all buckets=mod_dl_dst:02.00.00.00.10.01,output:7",
        "group add id=3 type=all buckets=output:8",
        "group add id=4 type=all buckets=flood|group:3",
        "flow add prio=5 match=dl_dst=ff:ff:ff:ff:ff:ff actions=group:4",
        "flow add prio=5 match=dl_dst=02:00:00:00:10:04 actions=group:4",
        "flow add prio=5 match=arp actions=group:2",
    ] {
        say(&mut world, red, words);
    }
    // Of the tenant's groups, and of the exits for port 8 and for FLOOD: one that is as ever, three with copies by ports, and
    // two by destinations alone.
    let begins = |bytes: &[u8]| world.store.values().filter(|it| it.starts_with(bytes)).count();
    assert_eq!((begins(&[255, 255, 255, 252]), begins(&[255, 255, 255, 253])), (3, 2));
    let there = (world.switch_groups(), world.switch_entries());
    let reached = |world: &mut World| {
        let to = |to| (to, frame(STRANGER, to));
        [BROADCAST, host(RED, 4), host(RED, 1)].map(to).map(|(_, frame)| world.packet(1, &frame))
    };
    let reaches = reached(&mut world);
    // Each host, the other switch, and by group 3 one of them once more.
    assert_eq!(reaches, [vec![3, 3, 4, 4, 4, 5], vec![4, 5], vec![]]);
    for _ in 0..2 {
        world.reconnect();
        assert_eq!((world.switch_groups(), world.switch_entries()), there);
        assert_eq!(reached(&mut world), reaches);
    }
    // What the switch has lost is put back.
    world.behind("group delete id=all");
    world.reconnect();
    assert_eq!((world.switch_groups(), world.switch_entries()), there);
    // A host has come while Weir was away, and has gone.
    world.restart_with(on(crowded_map(&[(1, 3, 8, host(RED, 5))])));
    world.advance(20_000_000_000);
    assert_eq!(reached(&mut world)[0].len(), reaches[0].len() + 2);
    world.restart_with(on(crowded_map(&[])));
    world.advance(20_000_000_000);
    assert_eq!(world.switch_groups().concat().len(), there.0.concat().len());
    assert_eq!(reached(&mut world), reaches);
}
