//! Groups by which action sets and buckets send, when nothing needs them any more.

use crate::groups_kept::{crowded, on, say};
use crate::support::*;
use emulate::Fault;

fn world() -> (World, Seat) {
    let mut world =
        World::new(Setup { policy: on(crowded()), ports: 6, ..Setup::new(Version::V1_3, "") });
    let blue = world.connect("blue");
    (world, blue)
}

fn groups(world: &World) -> usize {
    world.switch.switch().group_count()
}

#[test]
fn they_go_a_while_after_the_last_that_needed_them() {
    let entry = "flow add prio=5 actions=write=output:10;goto=1";
    let other = "flow add prio=6 match=arp actions=write=output:10;goto=1";
    let group = "group add id=7 buckets=strip_vlan,output:10";
    for (comes, goes, stays) in [
        ([entry, other], ["flow delete match=arp", "flow delete match="], 3),
        ([entry, group], ["flow delete match=", "group delete id=7"], 6),
        ([group, entry], ["group delete id=7", "flow modify match= actions=output:10"], 3),
        ([entry, group], ["flow delete match=", "group modify id=7 buckets=drop"], 6),
    ] {
        let (mut world, blue) = world();
        comes.iter().for_each(|words| say(&mut world, blue, words));
        say(&mut world, blue, goes[0]);
        world.advance(30_000_000_000);
        assert_eq!(groups(&world), stays, "{comes:?} {goes:?}");
        let before = groups(&world);
        let flows = world.switch_flows();
        say(&mut world, blue, goes[1]);
        // Soon it may be needed again.
        assert!(groups(&world) >= 3, "{comes:?} {goes:?} {before}");
        world.advance(11_000_000_000);
        let left = usize::from(goes[1].contains("drop"));
        assert_eq!(groups(&world), left, "{comes:?} {goes:?}: {:?}", world.switch_groups());
        // And they come again, under whichever numbers.
        say(&mut world, blue, "flow delete match=");
        say(&mut world, blue, "group delete id=all");
        assert_eq!((groups(&world), world.remembered()), (0, 0), "{comes:?} {goes:?}");
        comes.iter().for_each(|words| say(&mut world, blue, words));
        say(&mut world, blue, goes[0]);
        assert_eq!(world.switch_flows(), flows);
    }
}

/// When there is no number for one more, all go that nothing needs, but for those that are needed now.
#[test]
fn they_make_room_when_numbers_run_out() {
    let (mut world, blue) = world();
    let add = |length: u32| format!("flow add prio=5 actions=write=controller:{length};goto=1");
    // All within the time for which they stay.
    for length in 1..=251 {
        world.say(blue, 1, &add(length));
    }
    world.advance(100_000_000);
    assert_eq!(groups(&world), 251);
    let group = "group add id=1 type=all buckets=push_vlan:8100,controller:7";
    let bucket = format!("{group}|strip_vlan,output:10");
    world.say(blue, 2, &bucket);
    world.advance(100_000_000);
    assert_eq!(world.heard(blue), [""; 0]);
    // The entry's, that for port 10, and the group, with copies of both of these.
    assert_eq!(groups(&world), 7, "{:?}", world.switch_groups());
}

/// A switch that has no room gets it at once.
#[test]
fn they_make_room_when_the_switch_has_none() {
    let (mut world, blue) = world();
    say(&mut world, blue, "flow add prio=5 actions=write=output:10;goto=1");
    say(&mut world, blue, "flow add prio=5 actions=drop");
    assert_eq!(groups(&world), 3);
    world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth: 1 }]);
    world.say(blue, 1, "group add id=1 buckets=output:1");
    world.advance(100_000_000);
    assert_eq!(world.heard(blue), ["1 ERROR OFPGMFC_OUT_OF_GROUPS of type 15 xid 1"]);
    assert_eq!(groups(&world), 0);
    say(&mut world, blue, "group add id=1 buckets=output:1");
}

#[test]
fn they_go_after_a_restart() {
    let (mut world, blue) = world();
    say(&mut world, blue, "flow add prio=5 actions=write=output:10;goto=1");
    say(&mut world, blue, "flow delete match=");
    world.reconnect();
    assert_eq!(groups(&world), 3);
    world.advance(11_000_000_000);
    assert_eq!((groups(&world), world.remembered()), (0, 0));
}
