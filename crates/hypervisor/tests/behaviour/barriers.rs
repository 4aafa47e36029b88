//! Tests of barriers. Weir sends a BARRIER_REPLY to a tenant only when all its earlier requests are done and answered.
//! Weir answers later requests, except ECHO_REQUESTs, only after this reply.

use crate::support::hairpin::{hairpin_map, policy_on};
use crate::support::*;
use emulate::Fault;
use hypervisor::Counts;

const SECOND: u64 = 1_000_000_000;

/// A switch that handles a thousand messages per second.
fn slow(version: Version) -> World {
    World::new(Setup { per_second: Some(1_000), ..Setup::new(version, "blue: any") })
}

/// Requests that Weir handles or answers by itself, on both versions.
const BY_WEIR: &[&str] = &[
    "features",
    "get_config",
    "set_config len=50",
    "stats desc",
    "stats flow",
    "stats aggregate",
    "stats table",
    "queues port=77",
    "port_mod port=77 config=1 mask=1",
    "vendor id=0x2320",
    "flow add match=in_port=77 actions=output:77",
    "out in_port=77 actions=output:1 data=10.1.0.1>10.2.0.1",
];

const BY_WEIR_V13: &[&str] = &[
    "role master generation=1",
    "get_async",
    "table_mod",
    "stats port_desc",
    "stats group_desc",
    "stats meter_config",
    "stats group",
    "stats meter",
    "stats table_features",
    "group delete id=77",
    "group modify id=77 buckets=drop",
    "meter modify id=77",
];

#[test]
fn requests_after_a_barrier_are_answered_after_the_barrier_reply() {
    for version in VERSIONS {
        let more = BY_WEIR_V13.iter().filter(|_| version == Version::V1_3);
        for question in BY_WEIR.iter().chain(more) {
            let mut world = slow(version);
            let blue = world.connect("blue");
            let alone = at_once(&mut world, blue, &["echo data=", question]);
            let mut world = slow(version);
            let blue = world.connect("blue");
            let heard = at_once(&mut world, blue, &["barrier", question]);
            assert_eq!(heard[0], "1 BARRIER_REPLY", "{version:?}: {question}: {heard:?}");
            assert_eq!(heard[1..], alone[1..], "{version:?}: {question}");
        }
    }
}

#[test]
fn replies_about_groups_meters_and_ports_show_the_state_after_the_barrier() {
    for (version, change, question) in [
        (Version::V1_3, "group add id=1 buckets=output:1", "stats group_desc"),
        (Version::V1_3, "meter add id=1 rate=5", "stats meter_config"),
        (Version::V1_3, "port_mod port=1 config=1 mask=1", "stats port_desc"),
        (Version::V1_0, "port_mod port=1 config=1 mask=1", "features"),
    ] {
        let mut world = slow(version);
        let blue = world.connect("blue");
        let heard = at_once(&mut world, blue, &[change, "barrier", question]);
        assert_eq!(heard[0], "2 BARRIER_REPLY", "{change}: {heard:?}");
        let at_rest = at_once(&mut world, blue, &["echo data=", "echo data=", question]);
        assert_eq!(heard[1..], at_rest[2..], "{change}");
    }
    let mut world = slow(Version::V1_3);
    let blue = world.connect("blue");
    world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth: 1 }]);
    let all = ["group add id=1 buckets=output:1", "barrier", "stats group_desc"];
    let heard = at_once(&mut world, blue, &all);
    assert!(heard[0].starts_with("1 ERROR"), "{heard:?}");
    assert_eq!(heard[1..], ["2 BARRIER_REPLY", "3 STATS group_desc"]);
}

/// The switch handles FLOW_MODs, PACKET_OUTs and barriers in order, so Weir sends them without waiting for the reply to
/// an earlier barrier. Weir also answers an ECHO_REQUEST at once.
#[test]
fn requests_for_the_switch_do_not_wait_for_a_barrier_reply() {
    for version in VERSIONS {
        let mut world = World::new(Setup { delay: SECOND, ..Setup::new(version, "blue: any") });
        let blue = world.connect("blue");
        world.south.clear();
        for words in [
            "barrier",
            "flow add actions=output:1",
            "out actions=flood data=10.1.0.1>10.2.0.1",
            "barrier",
        ] {
            world.say(blue, 1, words);
        }
        let barrier = if version == Version::V1_0 { 18 } else { 20 };
        assert_eq!(world.south_types(), [barrier, 14, 13, barrier], "{version:?}");
        world.say(blue, 1, "echo data=01");
        assert_eq!(world.heard(blue), ["1 ECHO_REPLY 01"], "{version:?}");
    }
}

#[test]
fn port_statistics_before_a_barrier_are_answered_before_the_barrier_reply() {
    for is_reported in [false, true] {
        let setup =
            Setup { policy: policy_on(hairpin_map()), ports: 6, ..Setup::new(Version::V1_3, "") };
        let mut world = World::new(setup);
        let blue = world.connect("blue");
        world.say(blue, 1, "stats port port=10");
        world.say(blue, 2, "barrier");
        assert_eq!(world.heard(blue), [""; 0], "{is_reported}");
        let now = hypervisor::Instant(world.now);
        if is_reported {
            let tenant = world.tenant("blue");
            for from in 1..=3 {
                let counts = Counts { tenant, received: Some(Default::default()) };
                world.core.handle_counters_reply(from, counts, now);
            }
            world.pump();
        } else {
            world.advance(SECOND);
        }
        let heard = world.heard(blue);
        assert!(heard[0].starts_with("1 STATS port"), "{is_reported}: {heard:?}");
        assert_eq!(heard[1..], ["2 BARRIER_REPLY"], "{is_reported}");
    }
}

/// A BARRIER_REQUEST has no body. The switch would refuse a BARRIER_REQUEST with a body, and Weir would not know
/// whether the earlier requests are done.
#[test]
fn barrier_features_and_config_requests_with_a_body_are_refused() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, "blue: any"));
        let blue = world.connect("blue");
        world.south.clear();
        for words in ["barrier", "features", "get_config"] {
            let mut message = request(version, 1, words);
            message.extend([0; 8]);
            message[3] = 16;
            world.send(blue, &message);
            let heard = world.heard(blue);
            assert!(heard[0].contains("OFPBRC_BAD_LEN"), "{version:?}: {words}: {heard:?}");
        }
        assert_eq!(world.south_types(), [0; 0], "{version:?}");
    }
}

/// The switch does not answer a barrier. Weir sends another barrier to learn whether the earlier requests are done.
#[test]
fn an_unanswered_barrier_gets_an_error_and_does_not_block_later_requests() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, "blue: in_port=1\nred: in_port=2"));
        let (blue, red) = (world.connect("blue"), world.connect("red"));
        let message_type = if version == Version::V1_0 { 18 } else { 20 };
        world.switch.switch_mut().plant(vec![Fault::NeverAnswers { message_type }]);
        world.say(blue, 1, "flow add prio=7 match=in_port=1 actions=output:1");
        world.say(red, 1, "barrier");
        world.say(red, 2, "features");
        world.advance(5 * SECOND);
        world.switch.switch_mut().plant(vec![]);
        world.say(blue, 2, "flow modify match=in_port=1 actions=drop");
        world.say(blue, 3, "barrier");
        world.advance(9 * SECOND);
        assert_eq!(world.heard(blue), ["3 BARRIER_REPLY"], "{version:?}");
        let heard = world.heard(red);
        assert!(heard[0].starts_with("1 ERROR"), "{version:?}: {heard:?}");
        assert!(heard[1].starts_with("2 FEATURES"), "{version:?}: {heard:?}");
    }
}

/// If the switch refuses a part of a change, Weir restores the state before the change. A barrier reply before the
/// restoration would report a wrong state.
#[test]
fn a_refused_change_is_undone_before_the_barrier_reply() {
    let all = ["in_port", "output:10|output:11"];
    for (buckets, nth) in all.iter().flat_map(|it| (1..8).map(move |nth| (it, nth))) {
        for change in [
            "group delete id=1",
            "group modify id=1 buckets=output:1|flood",
            "flow add actions=flood",
        ] {
            let setup = Setup {
                policy: policy_on(hairpin_map()),
                ports: 6,
                ..Setup::new(Version::V1_3, "")
            };
            let mut world = World::new(Setup { per_second: Some(1_000), ..setup });
            let blue = world.connect("blue");
            let before = [
                &format!("group add id=1 buckets={buckets}"),
                "group add id=2 buckets=group:1",
                "flow add actions=group:1",
                "flow add prio=7 actions=group:2",
            ];
            assert_eq!(at_once(&mut world, blue, &before), [""; 0]);
            world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth }]);
            world.say(blue, 1, change);
            world.say(blue, 2, "barrier");
            let mut heard = Vec::new();
            while heard.last().is_none_or(|it: &String| !it.starts_with("2 ")) {
                world.advance(100_000);
                heard.extend(world.heard(blue));
            }
            let finished = (world.switch_entries(), heard);
            world.advance(SECOND);
            assert_eq!(world.switch_entries(), finished.0, "{buckets} {nth} {change}");
            assert_eq!(world.heard(blue), [""; 0], "{buckets} {nth} {change}: {:?}", finished.1);
        }
    }
}

/// Another controller of the same tenant sends a new change after each refusal. The switch refuses all these changes.
#[test]
fn a_barrier_does_not_wait_for_refused_changes_of_another_controller() {
    let setup =
        Setup { policy: policy_on(hairpin_map()), ports: 6, ..Setup::new(Version::V1_3, "") };
    let mut world = World::new(Setup { per_second: Some(1_000), ..setup });
    let (a, b) = (world.connect("blue"), world.connect("blue"));
    world.switch.switch_mut().plant(vec![Fault::RefuseFlowMods { every: 2 }]);
    let mut refused = 0;
    (0..2).for_each(|xid| world.say(b, xid, "flow add actions=flood"));
    world.say(a, 1, "barrier");
    for _ in 0..2_000 {
        world.advance(1_000_000);
        for _ in world.heard(b) {
            refused += 1;
            world.say(b, 1 + refused, "flow add actions=flood");
        }
    }
    assert_eq!(world.heard(a), ["1 BARRIER_REPLY"], "{refused}");
}
