//! Entries of a big switch that time out while they change.

use crate::support::*;

/// Red has a switch on all three physical ones, with ports 1 and 2 on the first, 3 on the second, 4 on the third.
fn plan() -> Plan {
    Plan {
        edges: vec![(1, 1, 1), (1, 2, 2), (2, 1, 3), (3, 1, 4)],
        big: vec![1, 2, 3],
        ..Plan::default()
    }
}

fn say(stage: &mut Stage, words: &str) {
    assert_eq!(stage.say(0, 1, words), Vec::<String>::new(), "{words}");
}

/// A packet that a modification releases goes its way, also where the entry has been idle and is to come back.
#[test]
fn a_change_releases_a_packet_where_the_entry_is_idle() {
    for version in VERSIONS {
        let mut stage = Stage::with_buffers(version, vec![plan()], 8);
        say(&mut stage, "flow add prio=1 actions=controller:40");
        say(&mut stage, "flow add match=ip prio=5 actions=output:4 idle=4");
        let question = if version == Version::V1_0 { 16 } else { 18 };
        let frame = packet("10.0.0.1>10.0.0.2*200");
        stage.wait(2);
        stage.send(0, 2, 3, &frame);
        stage.plant(2, vec![emulate::Fault::NeverAnswers { message_type: question }]);
        stage.wait(3);
        let seen = stage.send(0, 1, 1, &frame);
        assert!(seen.delivered.is_empty() && seen.told[0].2.contains("buffer=0"), "{seen:?}");
        let seen = stage.out(0, 1, "flow modify match=ip actions=output:4 buffer=0");
        assert_eq!(seen.delivered, [(0, 3, 4, frame)], "{version:?}");
    }
}
