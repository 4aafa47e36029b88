//! What an entry has counted when another comes in its place or it is changed, as on a switch of the tenant's own; and what its
//! ports have counted, which that does not concern.

use crate::networks::two;
use crate::support::*;

/// One that is several on the switch on 1.0, and others.
const ACTIONS: [&str; 3] = ["output:11", "drop", "output:10,output:11"];

/// Blue says something to its first switch, and to the one that it believes to have.
fn say(stage: &mut Stage, words: &str) {
    assert_eq!(stage.say(1, 1, words), [""; 0], "{words}");
    assert_eq!(stage.say_beside(1, 1, words), [""; 0], "{words}");
}

/// Packets come in between changes of the entry that they meet.
fn check(version: Version, changes: &[String]) {
    let mut stage = Stage::new(version, two());
    let frame = packet("10.0.0.1>10.0.0.2");
    for (at, words) in changes.iter().enumerate() {
        say(&mut stage, words);
        for _ in 0..at + 2 {
            stage.send(1, 1, 1, &frame);
            stage.send_beside(1, 1, 1, &frame);
        }
    }
    for question in ["stats flow", "stats aggregate"] {
        let told = stage.say(1, 1, question);
        assert_eq!(told, stage.say_beside(1, 1, question), "{version:?} {changes:?}");
    }
    let (received, _) = stage.counted(1, 1, 1);
    assert_eq!(received, Some(stage.received_beside(1, 1, 1)), "{version:?} {changes:?}");
}

#[test]
fn what_replaces_an_entry_counts_from_nothing_on_1_0_and_goes_on_on_1_3() {
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

/// What is gone has not been told of yet when another comes in its place.
#[test]
fn what_is_told_late_is_what_the_entry_before_has_counted() {
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
