//! A switch whose answers do not end, or that has more of anything than a switch has: its session is closed with a reason.

use crate::support::*;
use hypervisor::{Event, Instant};

const SPACES: &str = "
    red: ip,nw_src=10.1.0.0/16
    blue: ip,nw_src=10.2.0.0/16
";
const SECOND: u64 = 1_000_000_000;

fn by_hand(version: Version) -> World {
    let mut world = World::new(Setup { by_hand: true, ..Setup::new(version, SPACES) });
    world.pump();
    world
}

fn closed(world: &World) -> Option<&'static str> {
    world.events.iter().find_map(|event| match event {
        Event::CloseSwitch(reason) => Some(*reason),
        _ => None,
    })
}

/// A part of the answer to a question, with more to come.
fn part(question: &[u8], length: usize) -> Vec<u8> {
    let mut part = vec![question[0], question[1] + 1, 0, 0];
    part.extend_from_slice(&question[4..10]);
    part.extend_from_slice(&[0, 1]);
    if question[0] == 4 {
        part.extend_from_slice(&[0; 4]);
    }
    part.resize(length, 0);
    part[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    part
}

/// Questions of Weir's own for statistics of this type.
fn questions(world: &World, types: &[u16]) -> Vec<Vec<u8>> {
    let asks = |message: &&Vec<u8>| {
        let type_ = if message[0] == 1 { 16 } else { 18 };
        message[1] == type_ && types.contains(&u16::from_be_bytes([message[8], message[9]]))
    };
    world.south.iter().filter(asks).cloned().collect()
}

/// One entry of flow statistics, over and over.
fn long_part(question: &[u8]) -> Vec<u8> {
    let (head, entry) = if question[0] == 1 { (12, 88) } else { (16, 56) };
    let mut part = part(question, head + entry * 700);
    for entry in part[head..].chunks_mut(entry) {
        entry[1] = entry.len() as u8;
        if question[0] == 4 {
            // A match of nothing.
            entry[48..52].copy_from_slice(&[0, 1, 0, 4]);
        }
    }
    part
}

#[test]
fn a_switch_that_never_ends_its_answer_about_entries_is_closed() {
    for version in VERSIONS {
        let mut world = by_hand(version);
        let question = questions(&world, &[1]).remove(0);
        let part = long_part(&question);
        let mut told = 0;
        while closed(&world).is_none() {
            told += part.len();
            assert!(told < 64 << 20, "{version:?}");
            world.switch_says(&part);
        }
        assert!(told > 16 << 20, "{version:?}: {told}");
        assert!(closed(&world).unwrap().contains("32 MiB"));
        // Nothing that comes then does anything.
        let events = world.events.len();
        world.switch_says(&part);
        assert_eq!(world.events.len(), events);
        assert!(!world.core.is_ready());
    }
}

#[test]
fn a_switch_that_never_ends_its_answer_about_groups_and_meters_is_closed() {
    let mut world = by_hand(Version::V1_3);
    // OFPMP_GROUP_DESC and OFPMP_METER_CONFIG.
    let questions = questions(&world, &[7, 10]);
    assert_eq!(questions.len(), 2);
    for round in 0..1_000 {
        for question in &questions {
            let mut part = part(question, 16 + 8 * 8_000);
            for entry in part[16..].chunks_mut(8) {
                match question[9] {
                    7 => entry[1] = 8,
                    _ => entry[..2].copy_from_slice(&[0, 8]),
                }
            }
            world.switch_says(&part);
        }
        if closed(&world).is_some() {
            assert!(round < 500, "{round}");
            return;
        }
    }
    panic!("never closed");
}

#[test]
fn a_switch_that_tells_little_by_little_is_closed() {
    for version in VERSIONS {
        let mut world = by_hand(version);
        let question = questions(&world, &[1]).remove(0);
        let part = part(&question, if version == Version::V1_0 { 12 } else { 16 });
        let barriers = request(version, 0, "barrier");
        for second in 0..120 {
            for message in std::mem::take(&mut world.south) {
                // All else is answered.
                let other = version == Version::V1_3 && message[1] == 18 && message[9] != 1;
                if message[1] == barriers[1] {
                    let mut reply = message.clone();
                    reply[1] += 1;
                    world.switch_says(&reply);
                } else if other {
                    let mut end = self::part(&message, 16);
                    end[11] = 0;
                    world.switch_says(&end);
                }
            }
            world.switch_says(&part);
            world.advance(SECOND);
            if let Some(reason) = closed(&world) {
                assert!(second >= 10, "{second}");
                assert!(reason.contains("does not tell"), "{reason}");
                break;
            }
            assert!(second < 90, "{version:?}");
        }
    }
}

#[test]
fn a_switch_with_ever_new_ports_is_closed() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, SPACES));
        let mut number = 4u32;
        while closed(&world).is_none() {
            number += 1;
            assert!(number < 5_000, "{version:?}");
            let mut status = vec![version.0, 12, 0, 0, 0, 0, 0, 0];
            status.extend_from_slice(&[0; 8]);
            match version {
                Version::V1_0 => {
                    status.extend_from_slice(&(number as u16).to_be_bytes());
                    status.resize(64, 0);
                }
                _ => {
                    status.extend_from_slice(&number.to_be_bytes());
                    status.resize(80, 0);
                }
            }
            status[3] = status.len() as u8;
            world.switch_says(&status);
            world.events.retain(|event| !matches!(event, Event::Ports(_)));
        }
        assert_eq!(number, 4_097, "{version:?}");
        assert!(closed(&world).unwrap().contains("4096 ports"));
    }
}

#[test]
fn a_tenants_question_whose_answer_does_not_end_is_given_up() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, SPACES));
        let red = world.connect("red");
        world.lose_south(true);
        world.south.clear();
        world.say(red, 5, "stats flow");
        let asked = world.south.pop().unwrap();
        let part = part(&asked, if version == Version::V1_0 { 12 } else { 16 });
        for second in 0.. {
            assert!(second < 90, "{version:?}");
            world.core.handle_switch_message(&part, Instant(world.now));
            world.advance(SECOND);
            let heard = world.heard(red);
            if !heard.is_empty() {
                assert!(heard[0].starts_with("5 ERROR"), "{heard:?}");
                assert!(second >= 50, "{second}");
                break;
            }
        }
    }
}
