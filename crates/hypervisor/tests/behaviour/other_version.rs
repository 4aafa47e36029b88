//! Tests of a switch that reconnects with another version of OpenFlow. Weir removes the entries, groups and meters of
//! the earlier version, and sends the switch only messages of the new version.

use crate::support::*;
use openflow::Version;

const RED: &str = "red: any";

/// A match of OpenFlow 1.3 that is as long as a match of OpenFlow 1.0.
const AS_LONG: &str = "match=tcp,nw_src=10.1.0.1,nw_dst=10.9.0.1,tp_dst=80";

/// Whether all messages to the switch have the version of the switch.
fn is_spoken_to(world: &World) -> bool {
    world.south.iter().all(|message| message[0] == world.version.0)
}

#[test]
fn a_switch_that_reconnects_with_1_0_gets_only_messages_of_1_0() {
    let mut world = World::new(Setup::new(Version::V1_3, RED));
    let red = world.connect("red");
    world.say(red, 1, "group add id=1 type=all buckets=output:1");
    world.say(red, 2, "meter add id=1 rate=1000");
    world.say(red, 3, "flow add match=ip,nw_src=10.1.0.1 actions=group:1");
    world.advance(1_000_000_000);
    assert_eq!(world.heard(red), [""; 0]);
    let no_groups = ["1 STATS group_desc"];
    assert_ne!(world.switch_groups(), no_groups);
    let old = world.reconnect_as(Version::V1_0);
    assert!(world.core.is_ready() && is_spoken_to(&world));
    let red = world.connect("red");
    world.say(red, 1, "flow add match=ip,nw_src=10.1.0.3 actions=output:1");
    world.advance(10_000_000_000);
    assert_eq!(world.heard(red), [""; 0]);
    assert!(is_spoken_to(&world));
    // The first switch reconnects. This switch still has the group.
    world.replace(old, Version::V1_3);
    assert!(world.core.is_ready() && is_spoken_to(&world));
    world.advance(1_000_000_000);
    assert_eq!(world.switch_groups(), no_groups);
    assert_eq!(world.tenant_flows(), [""; 0]);
    assert!(world.store.is_empty(), "{:?}", world.store);
}

#[test]
fn entries_are_removed_when_the_switch_reconnects_with_another_version() {
    for (version, other) in [(Version::V1_3, Version::V1_0), (Version::V1_0, Version::V1_3)] {
        let mut world = World::new(Setup::new(version, RED));
        let red = world.connect("red");
        world.say(red, 1, &format!("flow add {AS_LONG} actions="));
        assert_eq!((world.heard(red), world.tenant_flows().len()), (Vec::new(), 1));
        world.reconnect_as(other);
        assert_eq!(world.tenant_flows(), [""; 0]);
        assert!(world.store.is_empty(), "{:?}", world.store);
        let red = world.connect("red");
        world.say(red, 1, "stats flow");
        assert_eq!(world.heard(red).len(), 1);
    }
}
