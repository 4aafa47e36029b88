//! Tests of groups whose buckets watch other groups. The watched groups are deleted and added again.

use crate::support::hairpin::{hairpin_map, policy_on, say};
use crate::support::networks::{big_networks, both_say, same, two_networks};
use crate::support::*;
use emulate::Fault;

/// Checks that Weir reports and forwards the same as a switch of the tenant's own.
fn is_the_same(testbed: &mut Testbed, tenant: usize, plans: &[Plan]) {
    let questions = ["stats group", "stats group_desc", "stats flow"];
    let ask = |testbed: &mut Testbed| {
        for question in questions {
            let received = testbed.say(tenant, 1, question);
            assert_eq!(received, testbed.say_beside(tenant, 1, question));
        }
    };
    ask(testbed);
    for (switch, _, port) in plans[tenant].edges.clone() {
        for last in 0..2 {
            same(testbed, tenant, switch, port, &packet(&format!("10.0.0.{last}>10.0.0.9")));
        }
    }
    ask(testbed);
}

fn watching(plans: &[Plan], tenant: usize, more: &[&str]) -> Testbed {
    let mut testbed = Testbed::new(Version::V1_3, plans.to_vec());
    for words in [
        "group add id=1 buckets=output:1",
        "group add id=2 buckets=output:1",
        "group add id=4 type=ff buckets=g1@group:2|1@output:11|g1@output:1|g2@output:10",
        "flow add prio=5 actions=group:4",
    ] {
        both_say(&mut testbed, tenant, 1, words);
    }
    more.iter().for_each(|words| both_say(&mut testbed, tenant, 1, words));
    testbed
}

/// A bucket that watches the deleted group is not live. The group of this bucket still follows changes of other groups.
#[test]
fn a_group_stays_when_a_watched_group_is_deleted() {
    for (plans, tenant) in [(two_networks(), 1), (big_networks(), 0)] {
        let gone = ["group delete id=1", "group modify id=2 buckets=in_port"];
        let back = [gone[0], gone[1], "group add id=1 buckets=drop"];
        let other = ["group add id=5 buckets=drop", gone[0], "group add id=3 buckets=output:1"];
        for more in [&gone[..1], &gone, &back, &other] {
            is_the_same(&mut watching(&plans, tenant, more), tenant, &plans);
        }
        // Group 4 can be modified, but a bucket cannot watch a group that does not exist.
        let mut testbed = watching(&plans, tenant, &gone);
        let received =
            testbed.say(tenant, 1, "group modify id=4 type=ff buckets=g1@output:1").join("");
        assert!(received.contains("OFPGMFC_BAD_WATCH"), "{received}");
        both_say(&mut testbed, tenant, 1, "group modify id=4 type=ff buckets=g2@output:1");
        is_the_same(&mut testbed, tenant, &plans);
    }
}

fn world() -> (World, [Seat; 2]) {
    let mut world = World::new(Setup {
        policy: policy_on(hairpin_map()),
        ports: 6,
        ..Setup::new(Version::V1_3, "")
    });
    let seats = [world.connect("red"), world.connect("blue")];
    (world, seats)
}

/// After the deletion, another tenant's group gets the number of the deleted group on the switch. This group must not
/// make the bucket live.
#[test]
fn a_bucket_never_watches_a_group_of_another_tenant_after_a_deletion() {
    let (mut world, [red, blue]) = world();
    say(&mut world, blue, "group add id=1 buckets=drop");
    say(&mut world, blue, "group add id=4 type=ff buckets=g1@output:1");
    say(&mut world, blue, "group delete id=1");
    say(&mut world, red, "group add id=9 buckets=output:2");
    let watches = |world: &mut World| world.switch_groups()[0].contains("g1@");
    assert!(world.switch_groups()[0].contains(" 1:output:2"), "{:?}", world.switch_groups());
    assert!(!watches(&mut world), "{:?}", world.switch_groups());
    world.reconnect();
    assert!(!watches(&mut world), "{:?}", world.switch_groups());
    // Blue adds the group again. The group gets another number on the switch, and the bucket watches this number.
    let blue = world.connect("blue");
    say(&mut world, blue, "group add id=1 buckets=drop");
    assert!(world.switch_groups()[0].contains("g3@"), "{:?}", world.switch_groups());
}

/// In each round the switch refuses another message of the change.
#[test]
fn a_group_that_watches_another_group_is_unchanged_after_a_refused_change() {
    for change in [
        "group delete id=1",
        "group add id=3 buckets=output:10",
        "group modify id=2 buckets=in_port",
        "group delete id=all",
    ] {
        for nth in 1.. {
            let (mut world, [_, blue]) = world();
            for words in [
                "group add id=1 buckets=output:10",
                "group add id=3 buckets=in_port",
                "group add id=2 buckets=output:1",
                "group add id=4 type=ff buckets=g1@group:2|g3@output:10|1@output:1",
                "flow add prio=5 actions=group:4",
                "group delete id=3",
            ] {
                say(&mut world, blue, words);
            }
            let (groups, flows) = (world.switch_groups(), world.switch_flows());
            world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth }]);
            world.say(blue, 1, change);
            world.advance(1_000_000_000);
            world.switch.switch_mut().plant(Vec::new());
            if world.heard(blue).is_empty() {
                assert!(nth > 1, "{change}");
                break;
            }
            assert_eq!(world.switch_groups(), groups, "{change} {nth}");
            assert_eq!(world.switch_flows(), flows, "{change} {nth}");
            world.reconnect();
            assert_eq!(world.switch_groups(), groups, "{change} {nth}");
        }
    }
}
