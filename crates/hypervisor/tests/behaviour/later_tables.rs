//! Rules of later tables that send by shared edge ports, whatever is in the action set when they get their packets. One that does
//! so by its set may, as long as no rule leaves a destination there for it. That random ones forward as they would on a switch of
//! the tenant's own is in `sharing`, that all agree whatever is refused in `groups_agree`.

use crate::deliveries::{
    BIG_FROM, BLUE, BROADCAST, EVERY_NODE, EVERYWHERE, LINK, RED, WHOLE, accept, big_plan,
    big_stage, frame, host, leaves_big, leaves_by, map, plan, stage, world_on,
};
use crate::groups_kept::{on, say};
use crate::groups_shared::{all_same, same};
use crate::networks::{self, both_say, two};
use crate::support::*;
use emulate::Fault;

/// A rule of the first table that leaves a destination in the set, and one that counts on none.
const LEAVES: &str = "flow add match=arp prio=9 actions=write=mod_dl_dst:02.00.00.00.10.03;goto=1";
const COUNTS: &str = "flow add table=1 prio=5 actions=write=flood";
const PASSES: &str = "flow add prio=5 actions=meta=7/ff;goto=1";

#[track_caller]
pub(crate) fn denied(stage: &mut Stage, tenant: usize, words: &str) {
    let told = stage.say(tenant, 1, words);
    assert_eq!(told, ["7 ERROR OFPFMFC_EPERM of type 14 xid 7"], "{words}");
}

#[track_caller]
pub(crate) fn refuse(stage: &mut Stage, words: &str) {
    let told = stage.say(RED, 1, words);
    assert_eq!(told, ["7 ERROR OFPBAC_BAD_OUT_PORT of type 14 xid 7"], "{words}");
}

#[test]
fn a_later_table_floods() {
    for (first, later, by) in [
        ("goto=1", "flood", EVERYWHERE),
        ("meta=5/7fffffff;goto=1", "flood", EVERYWHERE),
        ("goto=1", "output:7", &[7][..]),
        ("goto=1", "output:8,output:1,output:7,output:10", EVERYWHERE),
        ("goto=1", "output:10,output:8", &[8, LINK]),
        ("goto=1", "write=flood", EVERYWHERE),
        ("goto=1", "write=output:8", &[8]),
        ("goto=1", "write=output:8,output:7", &[7]),
        ("goto=1", "output:1;write=output:7", &[WHOLE, 7]),
        ("output:1;goto=1", "output:7,output:8", &[WHOLE, 7, 8]),
        ("write=drop;goto=1", "flood", EVERYWHERE),
        // What is left in the set is carried out after it, or gives way.
        ("write=output:1;goto=1", "output:7,output:8", &[WHOLE, 7, 8]),
        ("write=output:1;goto=1", "write=output:8", &[8]),
        ("write=output:1;goto=1", "output:10;write=flood,output:7", &[7, LINK]),
        ("write=output:1;goto=1", "output:7;clear", &[7]),
        ("write=group:1;goto=1", "output:8", &[8, LINK]),
        // A group counts before an output.
        ("write=group:1;goto=1", "output:1;write=output:8", &[WHOLE, LINK]),
        // What is left is for tables to come.
        ("goto=1", "flood;meta=5/ff", EVERYWHERE),
    ] {
        let mut stage = stage();
        for tenant in [RED, BLUE] {
            accept(&mut stage, tenant, 1, "group add id=1 buckets=output:10");
            accept(&mut stage, tenant, 1, &format!("flow add prio=5 actions={first}"));
            accept(&mut stage, tenant, 1, &format!("flow add table=1 prio=5 actions={later}"));
        }
        for tenant in [RED, BLUE] {
            leaves_by(&mut stage, tenant, by, &format!("{first} {later}"));
        }
    }
}

/// What is done to packets behind it is seen where it is done, and nowhere else.
#[test]
fn sets_that_are_left_are_carried_out_as_they_would_be() {
    for (first, later) in [
        ("write=mod_dl_src:02.00.00.00.00.77,output:1;goto=1", "flood"),
        ("write=mod_dl_src:02.00.00.00.00.77;goto=1", "flood;write=output:8"),
        ("write=mod_dl_dst:02.00.00.00.10.03,output:1;goto=1", "flood"),
        (
            "write=mod_dl_dst:02.00.00.00.10.03;goto=1",
            "flood;write=mod_dl_dst:ff.ff.ff.ff.ff.ff,output:8",
        ),
        ("write=mod_dl_dst:02.00.00.00.10.03;goto=1", "clear;write=flood"),
        ("write=push_vlan:8100,output:1;goto=1", "output:7,output:8"),
        ("write=push_vlan:8100;goto=1", "output:8;write=flood"),
        ("write=group:1;goto=1", "in_port,flood;write=output:8"),
        ("write=controller;goto=1", "flood;write=mod_dl_src:02.00.00.00.00.66"),
        ("mod_dl_dst:ff.ff.ff.ff.ff.ff;write=output:1;goto=1", "flood;write=output:8"),
    ] {
        let mut stage = Stage::new(Version::V1_3, vec![plan(RED), plan(BLUE)]);
        for tenant in [RED, BLUE] {
            both_say(&mut stage, tenant, 1, "group add id=1 buckets=output:10");
            both_say(&mut stage, tenant, 1, &format!("flow add prio=5 actions={first}"));
            let words = format!("flow add table=1 prio=5 actions={later}");
            both_say(&mut stage, tenant, 1, &words);
        }
        for tenant in [RED, BLUE] {
            all_same(&mut stage, &plan(tenant), tenant, &format!("{first} {later}"));
        }
    }
}

/// Sets of rules that name their destination; and groups that have forms by it.
#[test]
fn a_later_table_writes_sets_for_hosts() {
    for to in [host(RED, 1), host(RED, 3), host(BLUE, 1), BROADCAST, EVERY_NODE] {
        let address = to.map(|octet| format!("{octet:02x}")).join(":");
        let written = address.replace(':', ".");
        for (match_, actions, presumes) in [
            (format!("dl_dst={address}"), "write=output:8".to_owned(), true),
            (format!("dl_dst={address}"), "write=group:1".to_owned(), true),
            (format!("dl_dst={address}"), "write=output:1,group:1".to_owned(), true),
            (String::new(), "write=group:1".to_owned(), true),
            (String::new(), format!("write=mod_dl_dst:{written},output:8"), false),
            (String::new(), format!("mod_dl_dst:{written};write=group:1"), true),
        ] {
            let mut stage = stage();
            for tenant in [RED, BLUE] {
                accept(&mut stage, tenant, 1, "group add id=1 type=all buckets=output:8");
                accept(&mut stage, tenant, 1, "flow add prio=5 actions=write=output:1;goto=1");
                let words = format!("flow add table=1 prio=5 match={match_} actions={actions}");
                accept(&mut stage, tenant, 1, &words);
            }
            let seen = stage.send(RED, 1, WHOLE, &frame(host(RED, 9), to));
            let reached = seen.delivered.iter().filter(|it| it.0 == RED);
            let reached: Vec<_> = reached.map(|it| it.3[..6].to_vec()).collect();
            let is_meant = to == host(RED, 3) || to[0] & 1 == 1;
            let expected = if is_meant { vec![host(RED, 3).to_vec()] } else { Vec::new() };
            assert_eq!(reached, expected, "{match_} {actions}");
            // With another destination in the set now it would not be known for whom they are.
            match presumes {
                true => denied(&mut stage, RED, LEAVES),
                false => accept(&mut stage, RED, 1, LEAVES),
            }
        }
    }
}

/// Whichever comes first stays, and the other may come when that is gone.
#[test]
fn both_kinds_do_not_meet() {
    let mut stage = stage();
    accept(&mut stage, RED, 1, PASSES);
    accept(&mut stage, RED, 1, LEAVES);
    for actions in ["write=flood", "write=output:7", "flood;write=output:8"] {
        refuse(&mut stage, &format!("flow add table=1 prio=5 actions={actions}"));
        refuse(&mut stage, &format!("flow add table=2 prio=5 actions={actions}"));
    }
    for actions in [
        "clear;write=flood",
        "flood,in_port;write=output:1",
        "write=mod_dl_dst:02.00.00.00.10.01,output:7",
        "write=output:1",
    ] {
        accept(&mut stage, RED, 1, &format!("flow add table=1 prio=4 actions={actions}"));
    }
    // What it leaves is no matter of the other tenant's.
    accept(&mut stage, BLUE, 1, COUNTS);
    accept(&mut stage, RED, 1, &LEAVES.replace("add", "modify").replace("goto=1", "goto=2"));
    refuse(&mut stage, "flow add table=2 prio=5 actions=write=flood");
    accept(&mut stage, RED, 1, COUNTS);
    leaves_by(&mut stage, RED, EVERYWHERE, "for the table behind");

    denied(&mut stage, RED, LEAVES);
    denied(&mut stage, RED, "flow modify actions=write=mod_dl_dst:02.00.00.00.10.03;goto=1");
    denied(
        &mut stage,
        RED,
        "flow modify actions=clear;write=output:1,mod_dl_dst:2.0.0.0.0.9;goto=1",
    );
    denied(&mut stage, BLUE, LEAVES);
    accept(&mut stage, RED, 1, "flow add match=arp prio=9 actions=write=output:1;goto=1");
    accept(&mut stage, RED, 1, "flow add match=arp prio=9 actions=goto=1");
    accept(&mut stage, RED, 1, "flow modify table=1 actions=flood");
    accept(&mut stage, RED, 1, LEAVES);
    refuse(&mut stage, "flow modify table=1 actions=write=flood");
    refuse(&mut stage, COUNTS);
    accept(&mut stage, RED, 1, "flow delete match=arp");
    accept(&mut stage, RED, 1, COUNTS);
    leaves_by(&mut stage, RED, EVERYWHERE, "alone again");
    accept(&mut stage, RED, 1, "flow delete match= table=255");
    accept(&mut stage, RED, 1, LEAVES);
}

/// What stands, what gives it up, and what could not stand beside it, with the error for that.
pub(crate) type Beside<'a> = (&'a str, &'a str, &'a str, &'a str);

/// Rules on ports that become shared, or cease to be: that of priority 5 cannot stand any more and goes, and its tenant is told.
/// What is `counting` and what is `giving` is not both there.
#[track_caller]
pub(crate) fn goes_when_ports_become_shared(
    rules: [&str; 4],
    [gives_up, counting, giving]: [&str; 3],
) {
    let mut bare = plan(RED);
    bare.shared.clear();
    bare.edges.extend([(1, 4, 7), (1, 3, 8)]);
    let bare = Stage::maps_from(2000, &[bare]).0.remove(&1).unwrap();
    let (mut world, red) = world_on(bare.clone(), |config| config.n_buffers = 0);
    rules.iter().for_each(|words| say(&mut world, red, words));
    world.set_policy(on(map()));
    world.advance(1_000_000_000);
    let told = world.heard(red);
    let removed: Vec<_> = told.iter().filter(|it| it.starts_with("FLOW_REMOVED")).collect();
    assert!(matches!(removed[..], [it] if it.contains("prio=5")), "{told:?}");
    say(&mut world, red, gives_up);
    say(&mut world, red, counting);
    world.set_policy(on(bare));
    world.advance(1_000_000_000);
    say(&mut world, red, giving);
}

/// A change that is on its way may come back: what could not stand beside that waits.
#[track_caller]
pub(crate) fn waits_for_what_may_come_back((there, changes, wanted, code): Beside<'_>) {
    for is_refused in [false, true] {
        let setup = Setup::new(Version::V1_3, "");
        let mut world =
            World::new(Setup { policy: on(map()), ports: 6, per_second: Some(1_000), ..setup });
        let red = world.connect("red");
        world.advance(1_000_000_000);
        world.say(red, 1, there);
        world.advance(1_000_000_000);
        assert_eq!(world.heard(red), [""; 0]);
        if is_refused {
            world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth: 1 }]);
        }
        world.say(red, 2, changes);
        world.advance(2_000_000);
        world.say(red, 3, wanted);
        world.say(red, 4, "echo");
        world.advance(2_000_000_000);
        let mut told = world.heard(red);
        told.retain(|it| !it.contains("ECHO"));
        let context = format!("{there}; {changes}; {wanted}");
        match is_refused {
            false => assert_eq!(told, [""; 0], "{context}"),
            true => {
                assert_eq!(told.len(), 2, "{context}: {told:?}");
                assert!(told[0].starts_with("2 ERROR"), "{context}: {told:?}");
                assert_eq!(told[1], format!("3 ERROR {code} of type 14 xid 3"), "{context}");
            }
        }
        let flows = world.switch_flows();
        world.reconnect();
        assert_eq!(world.switch_flows(), flows, "{context}");
    }
}

/// Rules and what Weir has made for them are the same after a restart, and so is what is denied beside them.
#[track_caller]
pub(crate) fn is_found_again(rules: [&str; 3], is_denied: &str) {
    let (mut world, red) = world_on(map(), |config| config.n_buffers = 0);
    rules.iter().for_each(|words| say(&mut world, red, words));
    let there = (world.switch_groups(), world.switch_entries());
    world.reconnect();
    assert_eq!((world.switch_groups(), world.switch_entries()), there);
    world.restart_with(on(map()));
    world.advance(1_000_000_000);
    assert_eq!((world.switch_groups(), world.switch_entries()), there);
    let red = world.connect("red");
    world.say(red, 1, is_denied);
    world.advance(100_000_000);
    assert_eq!(world.heard(red), ["1 ERROR OFPFMFC_EPERM of type 14 xid 1"]);
}

#[test]
fn ports_become_shared() {
    let floods = "flow add table=1 prio=5 actions=write=flood flags=rem";
    let lists = "flow add table=1 prio=6 match=arp actions=flood flags=rem";
    let rules = [floods, lists, PASSES, LEAVES];
    goes_when_ports_become_shared(rules, ["flow delete match=arp", COUNTS, LEAVES]);
}

#[test]
fn what_could_not_stand_beside_what_comes_back_waits() {
    for beside in [
        (LEAVES, "flow add match=arp prio=9 actions=goto=1", COUNTS, "OFPBAC_BAD_OUT_PORT"),
        (COUNTS, "flow add table=1 prio=5 actions=output:1", LEAVES, "OFPFMFC_EPERM"),
    ] {
        waits_for_what_may_come_back(beside);
    }
}

#[test]
fn on_a_big_switch_as_well() {
    for counts in [COUNTS, "flow add table=1 prio=5 actions=flood"] {
        let mut stage = big_stage(Version::V1_3);
        for tenant in [RED, BLUE] {
            accept(&mut stage, tenant, 1, PASSES);
            accept(&mut stage, tenant, 1, counts);
        }
        for (from, to) in BIG_FROM.into_iter().flat_map(|from| {
            [host(RED, 1), host(RED, 3), host(BLUE, 1), BROADCAST].map(|to| (from, to))
        }) {
            leaves_big(&mut stage, from, &[1, 2, 7, 8, LINK], to, "later");
        }
        if counts == COUNTS {
            denied(&mut stage, RED, LEAVES);
            accept(&mut stage, RED, 1, "flow delete table=1 match=");
            accept(&mut stage, RED, 1, LEAVES);
            refuse(&mut stage, COUNTS);
        }
    }
    // What is left there leaves there as well.
    let mut stage = Stage::new(Version::V1_3, vec![big_plan(RED), big_plan(BLUE)]);
    both_say(&mut stage, RED, 1, "flow add prio=5 actions=write=output:1;goto=1");
    both_say(&mut stage, RED, 1, "flow add table=1 prio=5 actions=output:8,output:7");
    for at in BIG_FROM {
        for to in [host(RED, 1), host(RED, 3), host(BLUE, 1), BROADCAST] {
            same(&mut stage, &big_plan(RED), (RED, at.0, at.1), to, "left");
        }
    }
}

#[test]
fn all_of_it_is_found_again() {
    let both = "flow add table=2 prio=5 actions=flood;write=output:8";
    is_found_again([PASSES, COUNTS, both], LEAVES);
}

/// Open vSwitch does what is in the set, and says of no entry that it did.
#[test]
fn a_set_that_is_done_on_a_miss_tells_the_controller() {
    let mut stage =
        Stage::made([Version::V1_3; 3], two(), Make { runs_sets: true, ..Make::default() });
    for tenant in 0..2 {
        let words = "flow add match=in_port=1 prio=5 actions=write=controller;goto=1";
        both_say(&mut stage, tenant, 1, words);
        let seen = networks::same(&mut stage, tenant, 1, 1, &packet("10.0.0.1>10.0.0.2"));
        assert_eq!((seen.delivered.len(), seen.told.len()), (0, 1), "{seen:?}");
    }
}
