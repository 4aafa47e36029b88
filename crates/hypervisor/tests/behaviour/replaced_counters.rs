//! Tests of counters when an entry is replaced or modified. An entry counts as on a switch of the tenant's own, and the
//! port counters do not change.

use crate::support::networks::{big_networks, two_networks};
use crate::support::shared_ports::{BROADCAST, RED, WHOLE, frame, host};
use crate::support::*;

/// Action lists of entries. On OpenFlow 1.0 one of these entries is several rules on the switch.
const ACTIONS: [&str; 3] = ["output:11", "drop", "output:10,output:11"];

/// Blue sends a request to its first switch on the testbed, and to its own reference switch.
fn say(testbed: &mut Testbed, words: &str) {
    assert_eq!(testbed.say(1, 1, words), [""; 0], "{words}");
    assert_eq!(testbed.say_beside(1, 1, words), [""; 0], "{words}");
}

/// Applies the changes one after another, with packets after each change. The flow statistics and the counter of the
/// ingress port equal those of the reference switch.
fn check(version: Version, changes: &[String]) {
    let mut testbed = Testbed::new(version, two_networks());
    let frame = packet("10.0.0.1>10.0.0.2");
    for (at, words) in changes.iter().enumerate() {
        say(&mut testbed, words);
        for _ in 0..at + 2 {
            testbed.send(1, 1, 1, &frame);
            testbed.send_beside(1, 1, 1, &frame);
        }
    }
    for question in ["stats flow", "stats aggregate"] {
        let received = testbed.say(1, 1, question);
        assert_eq!(received, testbed.say_beside(1, 1, question), "{version:?} {changes:?}");
    }
    let (received, _) = testbed.counted(1, 1, 1);
    assert_eq!(received, Some(testbed.received_beside(1, 1, 1)), "{version:?} {changes:?}");
}

#[test]
fn an_add_that_replaces_an_entry_resets_counters_on_1_0_but_not_on_1_3() {
    for version in VERSIONS {
        for first in ACTIONS {
            for second in ACTIONS {
                let adds = [first, second, first].map(|actions| {
                    format!("flow add match=in_port=1 prio=5 cookie=7 actions={actions}")
                });
                check(version, &adds);
                let modify = format!("flow modify match=in_port=1 cookie=7 actions={second}");
                check(version, &[adds[0].clone(), modify.clone(), adds[2].clone()]);
                check(version, &[adds[0].clone(), modify.clone(), modify]);
            }
        }
    }
}

/// Additions and modifications, with and without OFPFF_RESET_COUNTS, count as on the tenant's own switch.
#[test]
fn reset_counts_resets_the_counters_of_an_entry() {
    for first in ACTIONS {
        for second in ACTIONS {
            for flags in [["reset", "", ""], ["", "reset", ""], ["", "rem,reset", "reset"]] {
                for command in ["add", "modify", "modify_strict"] {
                    let changes = [("add", first), (command, second), (command, first)];
                    let changes = changes.iter().zip(flags).map(|((command, actions), flags)| {
                        let flags = if flags.is_empty() { "" } else { &format!(" flags={flags}") };
                        format!("flow {command} match=in_port=1 prio=5 actions={actions}{flags}")
                    });
                    check(Version::V1_3, &changes.collect::<Vec<_>>());
                }
            }
        }
    }
}

/// The packets of the entry leave by their ingress port, so the entry is several rules also on OpenFlow 1.3.
#[test]
fn reset_counts_resets_the_counters_of_an_entry_with_a_rule_for_each_port() {
    let back = "in_port";
    for (first, second) in [(back, "drop"), ("drop", back), (back, "output:10,in_port")] {
        for (command, flags) in
            ["add", "modify"].into_iter().flat_map(|it| [(it, ""), (it, " flags=reset")])
        {
            let mut testbed = Testbed::new(Version::V1_3, two_networks());
            for (command, actions, flags) in [
                ("add", first, ""),
                (command, second, flags),
                (command, first, ""),
                (command, second, flags),
            ] {
                let words = format!("flow {command} match=ip prio=5 actions={actions}{flags}");
                assert_eq!(testbed.say(RED, 1, &words), [""; 0], "{words}");
                assert_eq!(testbed.say_beside(RED, 1, &words), [""; 0], "{words}");
                for destination in [host(RED, 1), BROADCAST, host(RED, 3)] {
                    let frame = frame(host(RED, 9), destination);
                    testbed.send(RED, 1, WHOLE, &frame);
                    testbed.send_beside(RED, 1, WHOLE, &frame);
                }
                let received = testbed.say(RED, 1, "stats aggregate");
                assert_eq!(received, testbed.say_beside(RED, 1, "stats aggregate"), "{words}");
            }
        }
    }
}

/// In a slice Weir sends one FLOW_MOD for a modification of all entries.
#[test]
fn reset_counts_resets_the_counters_of_an_entry_of_a_slice() {
    both(
        "red: ip",
        "
        [1.3] red> 1 flow add match=ip prio=5 actions=output:2
        [1.3] wire> 1 10.1.0.1>10.9.0.1
        [1.3] red> 2 flow add match=ip prio=5 actions=output:2
        [1.3] red> 3 stats flow
        [1.3] red< 3 STATS flow prio=5 ip n=1 output:2
        [1.3] red> 4 flow add match=ip prio=5 actions=output:2 flags=reset
        [1.3] red> 5 stats flow
        [1.3] red< 5 STATS flow prio=5 ip n=0 output:2
        [1.3] wire> 1 10.1.0.1>10.9.0.1
        [1.3] red> 6 flow modify actions=output:3 flags=reset
        [1.3] red> 7 stats flow
        [1.3] red< 7 STATS flow prio=5 ip n=0 output:3
    ",
    );
}

/// The switch refuses a replacement with OFPFF_RESET_COUNTS. Neither the refused change nor the restored entry resets
/// the counter.
#[test]
fn an_entry_restored_after_a_refused_change_keeps_its_counters() {
    let mut world = World::new(Setup::new(Version::V1_3, "red: ip"));
    let red = world.connect("red");
    world.say(red, 1, "flow add match=ip prio=5 actions=output:2 flags=reset");
    world.packet(1, &packet("10.1.0.1>10.9.0.1"));
    world.switch.switch_mut().plant(vec![emulate::Fault::RefuseFlowMods { every: 1 }]);
    world.say(red, 2, "flow add match=ip prio=5 actions=output:3 flags=reset");
    world.switch.switch_mut().plant(Vec::new());
    world.say(red, 3, "stats flow");
    let heard = world.heard(red);
    assert_eq!(heard.last().unwrap(), "3 STATS flow prio=5 ip n=1 output:2", "{heard:?}");
}

/// The counter of an entry is the sum over all members, and includes the counters of deleted rules. With
/// OFPFF_RESET_COUNTS the sum becomes 0.
#[test]
fn reset_counts_resets_the_counters_of_an_entry_of_a_big_switch() {
    let frame = packet("10.0.0.1>10.0.0.2");
    for command in ["add", "modify"] {
        for flags in ["", " flags=reset"] {
            let mut testbed = Testbed::new(Version::V1_3, big_networks());
            let rule = "flow add match=ip prio=5 actions=output:2 idle=4";
            assert_eq!(testbed.say(0, 1, rule), [""; 0]);
            testbed.send(0, 3, 11, &frame);
            for _ in 0..3 {
                testbed.wait(2);
                testbed.send(0, 2, 10, &frame);
            }
            let counted = ["7 STATS aggregate flows=1 n=4", "7 STATS aggregate flows=1 n=0"];
            assert_eq!(testbed.say(0, 1, "stats aggregate"), counted[..1]);
            let change = format!("flow {command} match=ip prio=5 actions=output:1 idle=4{flags}");
            assert_eq!(testbed.say(0, 1, &change), [""; 0]);
            let received = testbed.say(0, 1, "stats aggregate");
            assert_eq!(received, [counted[usize::from(!flags.is_empty())]], "{change}");
        }
    }
}

/// Red's flowspace becomes smaller, and red replaces its entry before the switch reports the last counters of the
/// deleted rule.
#[test]
fn counters_that_are_reported_late_are_not_added_to_the_new_entry() {
    let policy = "
        red: in_port=1
        red: in_port=2
    ";
    let setup = Setup { per_second: Some(100), ..Setup::new(Version::V1_0, policy) };
    let mut world = World::new(setup);
    let red = world.connect("red");
    world.say(red, 1, "flow add prio=9 actions=output:1");
    world.advance(500_000_000);
    world.packet(2, &packet("10.1.0.1>10.9.0.1"));
    world.set_policy(crate::support::policy("red: in_port=1"));
    world.say(red, 2, "flow add prio=9 actions=output:1");
    world.advance(500_000_000);
    world.say(red, 3, "stats aggregate");
    world.advance(500_000_000);
    let heard = world.heard(red);
    assert_eq!(heard.last().unwrap(), "3 STATS aggregate flows=1 n=0", "{heard:?}");
}
