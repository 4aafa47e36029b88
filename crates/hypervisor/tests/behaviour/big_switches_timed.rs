//! Tests of entries of a big switch that time out while a change of the entry is in flight.

use crate::support::*;

/// Red has a big switch with three members. Ports 1 and 2 are on the first member, port 3 is on the second member, and
/// port 4 is on the third member.
fn plan() -> Plan {
    Plan {
        edges: vec![(1, 1, 1), (1, 2, 2), (2, 1, 3), (3, 1, 4)],
        big: vec![1, 2, 3],
        ..Plan::default()
    }
}

fn say(testbed: &mut Testbed, words: &str) {
    assert_eq!(testbed.say(0, 1, words), Vec::<String>::new(), "{words}");
}

const REFUSED: &str = "flow modify match=ip actions=output:9";

/// While one member receives packets of the entry, the other members forward packets of the entry too. Then all members
/// are idle, and the controller gets one FLOW_REMOVED.
#[test]
fn refused_changes_do_not_affect_the_idle_timeout_of_an_entry() {
    for version in VERSIONS {
        let mut testbed = Testbed::new(version, vec![plan()]);
        say(&mut testbed, "flow add match=ip prio=5 actions=output:4 idle=2 flags=rem");
        let frame = packet("10.0.0.1>10.0.0.2");
        for quarter in 0..40 {
            if quarter % 4 == 1 {
                let seen = testbed.send(0, 2, 3, &frame);
                assert_eq!(seen.delivered, [(0, 3, 4, frame.clone())], "{version:?} {quarter}");
            }
            testbed.wait_and_say(0, 1, &[REFUSED]);
        }
        let seen = testbed.send(0, 1, 1, &frame);
        assert_eq!(seen.delivered, [(0, 3, 4, frame.clone())], "{version:?}");
        testbed.take_received();
        (0..12).for_each(|_| testbed.wait_and_say(0, 1, &[REFUSED]));
        let received = testbed.take_received();
        let ends = received.iter().filter(|it| it.2.starts_with("FLOW_REMOVED"));
        assert_eq!(ends.count(), 1, "{version:?}: {received:?}");
    }
}

/// A refused change of the entry is in flight when the timeout of the entry expires.
#[test]
fn an_expired_entry_does_not_return_after_a_refused_change() {
    for version in VERSIONS {
        for timeout in ["idle=2", "hard=2"] {
            for is_before in [false, true] {
                let mut testbed = Testbed::new(version, vec![plan()]);
                let before = [1, 2, 3].map(|switch| testbed.entries(switch));
                let add = format!("flow add match=ip prio=5 actions=output:4 {timeout} flags=rem");
                say(&mut testbed, &add);
                for _ in 0..8 {
                    match is_before {
                        true => testbed.say_and_wait(0, 1, &[REFUSED]),
                        false => testbed.wait_and_say(0, 1, &[REFUSED]),
                    }
                }
                testbed.wait(1);
                let received = testbed.take_received();
                let ends = received.iter().filter(|it| it.2.starts_with("FLOW_REMOVED"));
                assert_eq!(ends.count(), 1, "{version:?} {timeout} {is_before}: {received:?}");
                let after = [1, 2, 3].map(|switch| testbed.entries(switch));
                assert_eq!(after, before, "{version:?} {timeout} {is_before}");
            }
        }
    }
}

/// The first member has no packets of the entry, so its rule has timed out and Weir will install the rule again. A
/// modification releases a packet that is buffered there, and the packet is forwarded.
#[test]
fn a_modification_releases_a_buffered_packet_where_the_entry_is_idle() {
    for version in VERSIONS {
        let make = Make { buffers: 8, ..Make::default() };
        let mut testbed = Testbed::made([version; 3], vec![plan()], make);
        say(&mut testbed, "flow add prio=1 actions=controller:40");
        say(&mut testbed, "flow add match=ip prio=5 actions=output:4 idle=4");
        let question = if version == Version::V1_0 { 16 } else { 18 };
        let frame = packet("10.0.0.1>10.0.0.2*200");
        testbed.wait(2);
        testbed.send(0, 2, 3, &frame);
        testbed.plant(2, vec![emulate::Fault::NeverAnswers { message_type: question }]);
        testbed.wait(3);
        let seen = testbed.send(0, 1, 1, &frame);
        assert!(seen.delivered.is_empty() && seen.received[0].2.contains("buffer=0"), "{seen:?}");
        let seen = testbed.out(0, 1, "flow modify match=ip actions=output:4 buffer=0");
        assert_eq!(seen.delivered, [(0, 3, 4, frame)], "{version:?}");
    }
}
