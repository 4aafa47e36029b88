//! Tests of entries without rules on the switch. An entry has no rules if its link has no path, or if no packet can
//! match the entry. The tenant sees such an entry like any other entry.

use crate::support::networks::{big_networks, two_networks};
use crate::support::*;
use fabric::embedding::{FarEnd, PortKind};
use std::sync::Arc;

const RED: usize = 0;
const LINK: [(u64, u32); 2] = [(1, 10), (2, 10)];

/// Red sends a request to its first switch on the testbed and in the reference network. Returns the messages since the
/// last call and the reply, which must be equal on both.
fn messages_of_both(testbed: &mut Testbed, words: &str) -> Vec<String> {
    let mut received: Vec<String> =
        testbed.take_received().into_iter().map(|(.., words)| words).collect();
    let mut beside = testbed.messages_beside(RED, 1);
    received.sort();
    beside.sort();
    received.extend(testbed.say(RED, 1, words));
    beside.extend(testbed.say_beside(RED, 1, words));
    assert_eq!(received, beside, "{words}");
    received
}

/// A testbed on which red's link from the first switch has no path, and the first port is closed.
fn testbed(version: Version) -> Testbed {
    let mut testbed = Testbed::new(version, two_networks());
    testbed.cut(RED, vec![LINK], 3000);
    messages_of_both(&mut testbed, "port_mod port=1 config=4 mask=4");
    testbed
}

/// An entry for a link without a path, an entry for a VLAN on this link, and an entry with the highest priority at a
/// closed port.
const UNPLACED: [&str; 3] =
    ["prio=5 match=in_port=10", "prio=6 match=in_port=10,dl_vlan=9", "prio=65535 match=in_port=1"];

#[test]
fn entries_without_rules_end_when_a_timeout_expires() {
    for version in VERSIONS {
        for (times, end, reason) in [
            ("idle=1 hard=3", 1, "IDLE_TIMEOUT"),
            ("idle=3 hard=2", 2, "HARD_TIMEOUT"),
            ("idle=2 hard=2", 2, "HARD_TIMEOUT"),
            ("idle=4", 4, "IDLE_TIMEOUT"),
            ("hard=3", 3, "HARD_TIMEOUT"),
        ] {
            let mut testbed = testbed(version);
            for rule in UNPLACED {
                let rule = format!("flow add {rule} {times} flags=rem cookie=7 actions=output:2");
                assert_eq!(messages_of_both(&mut testbed, &rule), [""; 0]);
            }
            messages_of_both(
                &mut testbed,
                "flow add prio=9 match=in_port=10 idle=1 actions=output:2",
            );
            testbed.wait(end - 1);
            assert!(messages_of_both(&mut testbed, "stats flow").join("").contains("cookie=0x7"));
            testbed.wait(1);
            let received = messages_of_both(&mut testbed, "stats flow");
            let ends = received.iter().filter(|words| words.contains(reason)).count();
            assert_eq!(
                (ends, received.len()),
                (UNPLACED.len(), UNPLACED.len() + 1),
                "{received:?}"
            );
            testbed.wait(20);
            assert_eq!(messages_of_both(&mut testbed, "stats flow"), ["7 STATS flow"]);
        }
    }
}

#[test]
fn entries_without_rules_and_without_timeouts_stay() {
    for version in VERSIONS {
        testbed(version).play(
            "
            red@1> flow add prio=5 match=in_port=10 flags=rem actions=output:2
            red@1> flow add prio=6 match=in_port=10,dl_vlan=9 flags=rem actions=output:2
            red@1> flow add prio=65535 match=in_port=1 flags=rem actions=output:2
            wait 20
            red@1> stats flow -> same
            red@1> stats aggregate -> STATS aggregate flows=3 n=0
        ",
        );
    }
}

/// An ADD of the same entry starts the timeouts again, also after a deletion. A MODIFY does not start the timeouts
/// again.
#[test]
fn timeouts_of_an_entry_without_rules_restart_when_the_entry_is_added_again() {
    let rule = "flow add match=in_port=10 prio=5 idle=4 flags=rem cookie=7 actions=output:2";
    for version in VERSIONS {
        testbed(version).play(&format!(
            "
            red@1> {rule}
            wait 3
            red@1> {rule}
            wait 3
            red@1> flow modify match=in_port=10 cookie=7 actions=drop
            wait 1
            same
            red@1> {rule}
            wait 2
            red@1> flow delete match=in_port=10 -> same
            wait 1
            red@1> {rule}
            wait 3
            red@1> stats flow -> same
            wait 1
            same
            red@1> stats flow -> STATS flow
        "
        ));
    }
}

/// The hard timeout runs whether the entry has rules or not.
#[test]
fn the_hard_timeout_continues_while_the_link_of_the_entry_has_no_path() {
    // The remaining time of a timeout is rounded up to whole seconds.
    both_versions(two_networks()).play(
        "
        red@1> flow add match=in_port=10 prio=5 hard=8 flags=rem actions=output:2
        red@2> flow add match=in_port=1 prio=1 actions=output:10
        red@2:1> 10.0.0.1>10.0.0.9 -> red@1:2
        wait 1
        cut red 1:10-2:10
        same
        wait 2
        cut red
        same
        wait 2
        red@2:1> 10.0.0.1>10.0.0.9 -> red@1:2
        only wait 3
        red@1< FLOW_REMOVED prio=5 in_port=10 cookie=0x0 HARD_TIMEOUT n=2
    ",
    );
}

/// After a restart the timeouts start again, because no component has kept the elapsed time.
#[test]
fn timeouts_of_an_entry_without_rules_start_again_after_a_restart() {
    let mut testbed = testbed(Version::V1_0);
    testbed.play(
        "
        red@1> flow add match=in_port=10 prio=5 hard=4 flags=rem actions=output:2
        wait 3
    ",
    );
    testbed.reconnect(1);
    testbed.play(
        "
        only wait 3
        only wait 1
        red@1< FLOW_REMOVED prio=5 in_port=10 cookie=0x0 HARD_TIMEOUT n=0
    ",
    );
}

/// The rules on a member that receives no packet of the entry may time out. The entry stays.
#[test]
fn an_entry_of_a_big_switch_stays_while_one_member_receives_packets() {
    for version in VERSIONS {
        for (times, port) in
            ["idle=2", "idle=2 hard=9"].into_iter().flat_map(|it| [(it, 1), (it, 10)])
        {
            let mut testbed = Testbed::new(version, big_networks());
            let rule = format!(
                "flow add match=in_port={port} prio=65535 {times} flags=rem actions=output:2"
            );
            assert_eq!(testbed.say(RED, 1, &rule), [""; 0]);
            let frame = packet("10.0.0.1>10.0.0.9");
            let at = if port == 1 { 1 } else { 2 };
            for _ in 0..4 {
                testbed.wait(1);
                let seen = testbed.send(RED, at, port, &frame);
                assert_eq!(seen.delivered, [(RED, 1, 2, frame.clone())], "{version:?} {rule}");
            }
            assert_eq!(testbed.take_received(), []);
            testbed.wait(3);
            let received = testbed.take_received();
            let [(RED, _, words)] = &received[..] else {
                panic!("{version:?} {rule}: {received:?}")
            };
            assert!(words.contains("IDLE_TIMEOUT n=4"), "{words}");
            assert_eq!(testbed.say(RED, 1, "stats flow"), ["7 STATS flow"]);
        }
    }
}

/// The switch does not confirm the change of the entries. Weir examines the expired entries repeatedly until the
/// confirmation.
#[test]
fn many_expired_entries_in_an_unconfirmed_change_use_little_processor_time() {
    let mut setup = Setup::new(Version::V1_0, "red own=1+2: -");
    let map = Arc::make_mut(setup.policy.maps.get_mut(&DPID).unwrap());
    let ports = map.members.values_mut().flat_map(|member| member.ports.get_mut(&2));
    ports.for_each(|port| {
        port.kind = PortKind::Link { sends: None, receives: Vec::new(), far: FarEnd::default() }
    });
    let mut world = World::new(setup);
    let red = world.connect("red");
    for priority in 1..9_999 {
        let rule = format!("flow add match=in_port=2 prio={priority} idle=2 actions=output:1");
        world.say(red, 1, &rule);
    }
    world.say(red, 2, "flow add match=in_port=1 actions=drop");
    assert_eq!((world.heard(red), world.tenant_flows().len()), (vec![], 1));
    world.lose_south(true);
    world.say(red, 3, "flow modify actions=drop");
    let began = worked();
    world.advance(4_000_000_000);
    let took = worked() - began;
    // The measured time is a tenth of a second. A search in the change for each entry needs three seconds.
    assert!(took < 1_000_000_000, "{took} ns");
}

/// The processor time of this thread in nanoseconds, without the time of other threads.
fn worked() -> u64 {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    schedstat.split(' ').next().and_then(|first| first.parse().ok()).unwrap()
}
