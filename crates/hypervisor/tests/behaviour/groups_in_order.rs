//! Tests of a group deletion that follows a change of the groups that use this group. The result is the same as on a
//! switch that handles one request after the other.

use crate::support::hairpin::{hairpin_map, policy_on, say};
use crate::support::*;
use emulate::Fault;

/// A world with two groups and two entries of blue. The groups have several instances, because blue's ports 10 and 11
/// are on one physical port.
fn world() -> (World, Seat) {
    let mut world = World::new(Setup {
        policy: policy_on(hairpin_map()),
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

#[test]
fn a_group_can_be_deleted_right_after_the_last_group_reference_is_removed() {
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

/// After the refusal, group 2 still uses group 1. So group 1 stays, and the deletion of group 1 is refused.
#[test]
fn a_group_deletion_is_refused_when_the_preceding_group_change_is_refused() {
    for change in [
        "group modify id=2 buckets=drop",
        "group modify id=2 buckets=output:10",
        "group modify id=2 buckets=output:1",
        "group delete id=2",
    ] {
        // In each round the switch refuses another message of the change.
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

/// A refused group does not use any other group.
#[test]
fn a_group_can_be_deleted_after_the_add_of_a_referencing_group_is_refused() {
    let (mut world, blue) = world();
    let all = ["group delete id=2", "group add id=3 buckets=group:1", "group delete id=1"];
    world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth: 5 }]);
    let heard = at_once(&mut world, blue, &all);
    assert_eq!(heard, ["2 ERROR OFPGMFC_OUT_OF_GROUPS of type 15 xid 2"]);
    assert_eq!(world.switch.switch().group_count(), 0);
    assert_eq!(world.remembered(), 0);
}

/// Weir does not wait forever for a silent switch: the barrier fails with an error. Until then Weir answers the
/// tenant's ECHO requests.
#[test]
fn a_barrier_after_group_changes_fails_when_the_switch_stays_silent() {
    let (mut world, blue) = world();
    world.lose_south(true);
    for (xid, words) in (1..).zip([
        "group modify id=2 buckets=drop",
        "group delete id=1",
        "barrier",
        "echo data=01",
    ]) {
        world.say(blue, xid, words);
    }
    assert_eq!(world.heard(blue), ["4 ECHO_REPLY 01"]);
    world.advance(25_000_000_000);
    let heard = world.heard(blue);
    assert!(heard[0].starts_with("3 ERROR OFPBRC_EPERM") && heard.len() == 1, "{heard:?}");
}
