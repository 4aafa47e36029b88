//! Deleting a group that others name, right behind changes of those: as on a switch that does one after the other.

use crate::groups_kept::{crowded, on, say};
use crate::support::*;
use emulate::Fault;

/// Blue's groups have copies here, since its ports 10 and 11 stand on one port of the switch.
fn world() -> (World, Seat) {
    let mut world = World::new(Setup {
        policy: on(crowded()),
        ports: 6,
        per_second: Some(1_000),
        ..Setup::new(Version::V1_3, "")
    });
    let blue = world.connect("blue");
    say(&mut world, blue, "group add id=1 buckets=in_port");
    say(&mut world, blue, "group add id=2 buckets=group:1");
    say(&mut world, blue, "flow add prio=5 actions=group:1");
    say(&mut world, blue, "flow add prio=6 actions=group:2");
    (world, blue)
}

/// What the tenant is told, by the transaction ids from 1 on.
fn at_once(world: &mut World, seat: Seat, all: &[&str]) -> Vec<String> {
    for (xid, words) in (1..).zip(all) {
        world.say(seat, xid, words);
    }
    world.advance(1_000_000_000);
    world.heard(seat)
}

#[test]
fn a_group_goes_right_behind_the_change_by_which_another_ceases_to_name_it() {
    for (all, left) in [
        (["group modify id=2 buckets=drop", "group delete id=1", "barrier"], 1),
        (["group modify id=2 buckets=output:1", "group delete id=1", "barrier"], 1),
        (["group modify id=2 buckets=drop", "group delete id=all", "barrier"], 0),
        (["group delete id=2", "group delete id=1", "barrier"], 0),
    ] {
        let (mut world, blue) = world();
        let before = world.switch.switch().group_count();
        assert_eq!(at_once(&mut world, blue, &all), ["3 BARRIER_REPLY"], "{all:?}");
        assert_eq!(world.switch.switch().group_count(), left, "{all:?} of {before}");
        assert_eq!(world.tenant_flows().len(), left, "{all:?}");
    }
}

/// The group that is named again stays, and what is refused is refused for that.
#[test]
fn it_stays_if_that_change_is_refused() {
    for change in [
        "group modify id=2 buckets=drop",
        "group modify id=2 buckets=output:10",
        "group modify id=2 buckets=output:1",
        "group delete id=2",
    ] {
        // Whichever of its messages it is.
        for nth in 1.. {
            let (mut world, blue) = world();
            let (groups, flows) = (world.switch_groups(), world.switch_flows());
            world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth }]);
            let heard = at_once(&mut world, blue, &[change, "group delete id=1", "barrier"]);
            world.switch.switch_mut().plant(Vec::new());
            if !heard.iter().any(|it| it.starts_with("1 ERROR")) {
                assert!(nth > 1, "{change}");
                break;
            }
            let chained = "2 ERROR OFPGMFC_CHAINED_GROUP of type 15 xid 2";
            assert_eq!(heard[1..], [chained, "3 BARRIER_REPLY"], "{change} {nth}: {heard:?}");
            assert_eq!(world.switch_groups(), groups, "{change} {nth}");
            assert_eq!(world.switch_flows(), flows, "{change} {nth}");
        }
    }
}

/// A group that is refused names nothing.
#[test]
fn it_goes_right_behind_a_group_that_is_refused() {
    let (mut world, blue) = world();
    let all = ["group delete id=2", "group add id=3 buckets=group:1", "group delete id=1"];
    world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth: 5 }]);
    let heard = at_once(&mut world, blue, &all);
    assert_eq!(heard, ["2 ERROR OFPGMFC_OUT_OF_GROUPS of type 15 xid 2"]);
    assert_eq!(world.switch.switch().group_count(), 0);
    assert_eq!(world.remembered(), 0);
}

/// A switch that says nothing is not waited for: the tenant is told that it is not done.
#[test]
fn it_is_not_waited_for_for_good() {
    let (mut world, blue) = world();
    world.lose_south(true);
    for (xid, words) in
        (1..).zip(["group modify id=2 buckets=drop", "group delete id=1", "echo data=01"])
    {
        world.say(blue, xid, words);
    }
    assert_eq!(world.heard(blue), [""; 0]);
    world.advance(11_000_000_000);
    let heard = world.heard(blue);
    assert!(heard[0].starts_with("2 ERROR OFPBRC_EPERM"), "{heard:?}");
    assert!(heard[1].starts_with("3 ECHO_REPLY"), "{heard:?}");
}

/// What is left of an entry that goes with a group, if the switch refuses the first of these and its controller changes the
/// entry after them: of what it was, and of what it may have become.
fn left_of(entry: &str, refused: &[&str], change: &str) -> [bool; 2] {
    let mut world =
        World::new(Setup { per_second: Some(1_000), ..Setup::new(Version::V1_3, "blue: any") });
    let blue = world.connect("blue");
    say(&mut world, blue, "group add id=1 buckets=output:1");
    say(&mut world, blue, &format!("flow add prio=7 actions={entry}"));
    world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth: 1 }]);
    let heard = at_once(&mut world, blue, &[refused, &[change, "barrier"]].concat());
    assert_eq!(heard.len(), 2, "{change}: {heard:?}");
    assert!(heard[0].starts_with("1 ERROR"), "{change}: {heard:?}");
    let flows = at_once(&mut world, blue, &["stats flow"]).concat();
    let left = [entry, "output:2"].map(|it| flows.contains(it));
    let count = left.iter().filter(|it| **it).count();
    assert_eq!(world.tenant_flows().len(), count, "{change}: {flows}");
    left
}

/// An entry that goes with a group, and stands again if the switch refuses that, is what its controller makes of it after that.
#[test]
fn what_did_not_go_is_changed_by_what_came_after() {
    for (change, left) in [
        ("flow delete", [false, false]),
        ("flow delete_strict prio=7", [false, false]),
        ("flow delete_strict prio=8", [true, false]),
        ("flow delete out_group=1", [false, false]),
        ("flow modify prio=7 actions=output:2", [false, true]),
        ("flow add prio=7 actions=output:2", [false, true]),
    ] {
        assert_eq!(left_of("group:1", &["group delete id=1"], change), left, "{change}");
    }
}

/// So is one that stands as it was before it used the group, if the switch refuses that it does.
#[test]
fn what_stands_again_is_changed_by_what_came_after() {
    for (change, left) in [
        ("flow delete", [false, false]),
        ("flow delete_strict prio=7", [false, false]),
        ("flow delete_strict prio=8", [true, false]),
        ("flow delete out_port=2", [true, false]),
        ("flow delete out_port=1", [false, false]),
        ("flow modify_strict prio=7 actions=output:2", [false, true]),
        ("flow modify_strict prio=8 actions=output:2", [true, false]),
        ("flow add prio=7 actions=output:2", [false, true]),
    ] {
        let refused = ["flow add prio=7 actions=group:1", "group delete id=1"];
        assert_eq!(left_of("output:1", &refused, change), left, "{change}");
    }
}

fn slow(policy: &str) -> (World, Seat) {
    let mut world =
        World::new(Setup { per_second: Some(1_000), ..Setup::new(Version::V1_3, policy) });
    let blue = world.connect("blue");
    say(&mut world, blue, "group add id=1 buckets=output:1");
    (world, blue)
}

/// Entries that stand again have room, which is nobody else's meanwhile.
#[test]
fn entries_that_stand_again_are_no_more_than_there_may_be() {
    let (mut world, blue) = slow("blue flows=2: any");
    say(&mut world, blue, "flow add match=in_port=1 prio=1 actions=output:1");
    say(&mut world, blue, "flow add match=in_port=2 prio=2 actions=output:1");
    for round in 1..4 {
        let adds = [10, 11].map(|prio| {
            format!("flow add match=in_port=1 prio={} actions=output:1", prio + 2 * round)
        });
        // The switch does not take that action without the match of an IP packet.
        let modify = "flow modify match= actions=mod_nw_src:1.2.3.4,group:1";
        let all = [modify, "group delete id=1", &adds[0], &adds[1], "group add id=1 buckets=drop"];
        let heard = at_once(&mut world, blue, &all);
        assert_eq!(heard.iter().filter(|it| it.contains("ERROR")).count(), 3, "{heard:?}");
        assert_eq!(world.tenant_flows().len(), 2, "{heard:?}");
    }
}

/// The switch deletes what sends there as it finds it; the tenant's table, as it is about to be.
#[test]
fn what_is_deleted_for_where_it_sends_is_the_same_on_the_switch() {
    let (mut world, blue) = slow("blue flows=2: any");
    for round in 0..5 {
        say(&mut world, blue, &format!("flow add match=in_port={round} prio=1 actions=output:2"));
        let modify = format!(
            "flow modify_strict match=in_port={round} prio=1 actions=mod_nw_src:1.2.3.4,output:3"
        );
        let heard = at_once(&mut world, blue, &[&modify, "flow delete out_port=3", "barrier"]);
        assert!(heard[0].starts_with("1 ERROR") && heard.len() == 2, "{heard:?}");
        assert_eq!(world.tenant_flows().len(), 1);
        say(&mut world, blue, "flow delete");
    }
}

/// What a controller has asked for is done though it has gone meanwhile.
#[test]
fn what_waits_is_done_without_its_controller() {
    let (mut world, blue) = slow("blue: any");
    say(&mut world, blue, "flow add prio=7 actions=group:1");
    say(&mut world, blue, "flow add prio=8 actions=output:2");
    world.say(blue, 1, "group delete id=1");
    world.say(blue, 2, "flow delete");
    world.core.controller_disconnected(world.controllers[blue.0].index);
    world.advance(1_000_000_000);
    assert_eq!(world.tenant_flows(), [""; 0]);
}

/// Nor does it wait in vain behind what its tenant may only send slowly.
#[test]
fn what_waits_for_its_tenants_rate_is_done() {
    let (mut world, blue) = slow("blue flow_mod=10/1: any");
    say(&mut world, blue, "flow add prio=7 actions=group:1");
    world.advance(2_000_000_000);
    for number in 0..150 {
        let words = format!("flow add match=in_port=1 prio={} actions=output:1", 100 + number);
        world.say(blue, 1000 + number, &words);
    }
    for (xid, words) in (1..).zip(["group delete id=1", "flow delete", "barrier"]) {
        world.say(blue, xid, words);
    }
    world.advance(60_000_000_000);
    assert_eq!(world.heard(blue), ["3 BARRIER_REPLY"]);
    assert_eq!(world.tenant_flows(), [""; 0]);
}

/// The switch has refused to delete a group, so that it tells of the end of an entry that uses it is news.
#[test]
fn the_end_of_what_did_not_go_is_told() {
    let (mut world, blue) = slow("blue: any");
    say(&mut world, blue, "flow add prio=7 actions=group:1 flags=rem");
    world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth: 1 }]);
    let heard = at_once(&mut world, blue, &["group delete id=1", "barrier"]);
    assert!(heard[0].starts_with("1 ERROR"), "{heard:?}");
    let mut said = Vec::new();
    let delete = request(Version::V1_3, 1, "flow delete table=1");
    let now = world.now;
    world.switch.switch_mut().handle_message(now, &delete, &mut said);
    world.switch_says(&said);
    let heard = world.heard(blue);
    assert!(heard.len() == 1 && heard[0].contains("FLOW_REMOVED"), "{heard:?}");
    let flows = at_once(&mut world, blue, &["stats flow"]).concat();
    assert!(!flows.contains("prio=7"), "{flows}");
}
