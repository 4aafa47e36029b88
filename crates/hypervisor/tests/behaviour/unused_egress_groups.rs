//! Tests of egress groups that no group or rule needs any more. Weir deletes these groups some time later, or at once
//! when the switch has no room for groups.

use crate::support::hairpin::{hairpin_map, policy_on, say};
use crate::support::*;
use emulate::Fault;

fn world() -> (World, Seat) {
    let mut world = World::new(Setup {
        policy: policy_on(hairpin_map()),
        ports: 6,
        ..Setup::new(Version::V1_3, "")
    });
    let blue = world.connect("blue");
    (world, blue)
}

fn groups(world: &World) -> usize {
    world.switch.switch().group_count()
}

#[test]
fn unused_egress_groups_are_deleted_after_a_delay() {
    let [one, other] = [6, 7].map(|id| format!("group add id={id} buckets=strip_vlan,output:10"));
    let flood = "group add id=7 buckets=flood|strip_vlan,output:10 type=all";
    for (comes, goes, stays) in [
        ([&*one, &*other], ["group delete id=7", "group delete id=6"], 6),
        ([&*other, &*one], ["group delete id=6", "group modify id=7 buckets=drop"], 6),
        ([&*one, flood], ["group modify id=7 buckets=drop", "group delete id=6"], 7),
    ] {
        let (mut world, blue) = world();
        comes.iter().for_each(|words| say(&mut world, blue, words));
        say(&mut world, blue, goes[0]);
        world.advance(30_000_000_000);
        assert_eq!(groups(&world), stays, "{comes:?} {goes:?}");
        let before = groups(&world);
        say(&mut world, blue, goes[1]);
        // Weir keeps the egress group for some time, because a tenant may need it again.
        assert!(groups(&world) >= 3, "{comes:?} {goes:?} {before}");
        world.advance(11_000_000_000);
        let left = usize::from(goes.concat().contains("drop"));
        assert_eq!(groups(&world), left, "{comes:?} {goes:?}: {:?}", world.switch_groups());
        // The groups can be added again, and the result is the same.
        say(&mut world, blue, "group delete id=all");
        world.advance(11_000_000_000);
        assert_eq!((groups(&world), world.remembered()), (0, 0), "{comes:?} {goes:?}");
        comes.iter().for_each(|words| say(&mut world, blue, words));
        say(&mut world, blue, goes[0]);
        world.advance(11_000_000_000);
        assert_eq!(groups(&world), before);
    }
}

/// The switch has no room for a group of the tenant. Weir deletes the unused egress groups at once, and the tenant's
/// next GROUP_MOD is accepted.
#[test]
fn unused_egress_groups_are_deleted_when_the_switch_has_no_room() {
    let (mut world, blue) = world();
    say(&mut world, blue, "group add id=6 buckets=strip_vlan,output:10");
    say(&mut world, blue, "group delete id=6");
    assert_eq!(groups(&world), 3);
    world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth: 1 }]);
    world.say(blue, 1, "group add id=1 buckets=output:1");
    world.advance(100_000_000);
    assert_eq!(world.heard(blue), ["1 ERROR OFPGMFC_OUT_OF_GROUPS of type 15 xid 1"]);
    assert_eq!(groups(&world), 0);
    say(&mut world, blue, "group add id=1 buckets=output:1");
}

#[test]
fn unused_egress_groups_are_deleted_after_a_reconnect() {
    let (mut world, blue) = world();
    say(&mut world, blue, "group add id=6 buckets=strip_vlan,output:10");
    say(&mut world, blue, "group delete id=6");
    world.reconnect();
    assert_eq!(groups(&world), 3);
    world.advance(11_000_000_000);
    assert_eq!((groups(&world), world.remembered()), (0, 0));
}
