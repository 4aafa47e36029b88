//! Tests of a switch whose replies do not end, or that reports too many ports, rules or groups. Weir closes the session
//! with a reason, or gives up the reply. Unlisted switches share one bound of memory.

use crate::support::*;
use hypervisor::policy::Switches;
use hypervisor::{Event, Instant, Pool};
use std::collections::BTreeMap;
use std::sync::Arc;

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

/// A part of the reply to a request. The flag says that more parts follow.
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

/// The requests to the switch for statistics of these types.
fn questions(world: &World, types: &[u16]) -> Vec<Vec<u8>> {
    let asks = |message: &&Vec<u8>| {
        let type_ = if message[0] == 1 { 16 } else { 18 };
        message[1] == type_ && types.contains(&u16::from_be_bytes([message[8], message[9]]))
    };
    world.south.iter().filter(asks).cloned().collect()
}

/// A part of flow statistics with 700 equal entries.
fn long_part(question: &[u8]) -> Vec<u8> {
    let (head, entry) = if question[0] == 1 { (12, 88) } else { (16, 56) };
    let mut part = part(question, head + entry * 700);
    for entry in part[head..].chunks_mut(entry) {
        entry[1] = entry.len() as u8;
        if question[0] == 4 {
            // A match without fields.
            entry[48..52].copy_from_slice(&[0, 1, 0, 4]);
        }
    }
    part
}

/// A part of flow statistics with 700 entries that have the cookie of a tenant's rule. Weir has to compare these
/// entries with its tables.
fn long_part_of_ours(question: &[u8]) -> Vec<u8> {
    let mut part = long_part(question);
    let (head, entry, cookie) = if question[0] == 1 { (12, 88, 64) } else { (16, 56, 24) };
    for entry in part[head..].chunks_mut(entry) {
        entry[cookie..cookie + 8].copy_from_slice(&0x5745_0001_0000_0001_u64.to_be_bytes());
    }
    part
}

fn unlisted(version: Version, pool: &Arc<Pool>) -> Setup {
    Setup { pool: Some(pool.clone()), ..Setup::new(version, SPACES) }
}

#[test]
fn unlisted_switches_share_one_memory_bound_with_room_for_another_switch() {
    const ALL: usize = 8 << 20;
    for version in VERSIONS {
        let pool = Arc::new(Pool::new(ALL));
        let stranger = || {
            let mut world = World::new(Setup { by_hand: true, ..unlisted(version, &pool) });
            world.pump();
            let question = questions(&world, &[1]).remove(0);
            let part = long_part_of_ours(&question);
            (world, part)
        };
        let mut strangers: Vec<_> = (0..10).map(|_| stranger()).collect();
        let mut parts = 0;
        while let Some((world, part)) =
            strangers.iter_mut().find(|(world, _)| closed(world).is_none())
        {
            // Each switch sends parts of its reply until Weir closes the session, and never ends the reply.
            world.switch_says(part);
            parts += 1;
            assert!(pool.taken() <= ALL && parts < 100, "{version:?}: {}", pool.taken());
        }
        assert!(parts >= 10);
        let reason = closed(&strangers[0].0).unwrap();
        assert!(reason.contains("list the switch in [[switches]]"), "{reason}");
        assert_eq!(pool.taken(), 0, "a closed session gives its memory back");

        let mut strangers: Vec<_> = (0..10).map(|_| stranger()).collect();
        for (world, part) in &mut strangers {
            world.switch_says(part);
        }
        assert!(strangers.iter().any(|(world, _)| closed(world).is_none()));
        let before = pool.taken();
        let mut honest = World::new(unlisted(version, &pool));
        let ports = pool.taken() - before;
        assert!((1..8 << 10).contains(&ports), "{version:?}: {ports} for the ports alone");
        assert!(honest.core.is_ready(), "{version:?}: the strangers still report");
        let red = honest.connect("red");
        honest.say(red, 1, "flow add match=ip,nw_src=10.1.0.1 actions=output:2");
        assert_eq!(honest.heard(red), [""; 0]);
        honest.reconnect();
        assert!(honest.core.is_ready());
        drop((strangers, honest));
        assert_eq!(pool.taken(), 0);
    }
}

#[test]
fn rules_of_another_program_take_no_memory() {
    for version in VERSIONS {
        let pool = Arc::new(Pool::new(8 << 10));
        let mut world = World::new(Setup { by_hand: true, ..unlisted(version, &pool) });
        world.pump();
        let question = questions(&world, &[1]).remove(0);
        // The switch reports thousands of rules without a cookie of Weir, and then a rule of another Weir.
        let mut part = long_part(&question);
        for _ in 0..10 {
            world.switch_says(&part);
        }
        let cookie = if version == Version::V1_0 { 12 + 64 } else { 16 + 24 };
        part[cookie..cookie + 2].copy_from_slice(&[0x51, 0x23]);
        world.switch_says(&part);
        assert_eq!(closed(&world), None, "{version:?}");
        assert!(pool.taken() < 4 << 10);
    }
}

#[test]
fn an_unlisted_switch_known_from_store_or_policy_has_its_own_memory() {
    for version in VERSIONS {
        // The pool has room for the ports alone.
        let pool = Arc::new(Pool::new(8 << 10));
        let mut world = World::new(unlisted(version, &pool));
        let red = world.connect("red");
        for n in 1..100 {
            let entry = format!("flow add match=ip,nw_src=10.1.0.{n} actions=output:2");
            world.say(red, n, &entry);
        }
        assert_eq!(world.heard(red), [""; 0]);
        world.reconnect();
        assert!(world.core.is_ready(), "{version:?}: the store has its entries");
        let mut named = policy(SPACES);
        let store = world.store.clone();
        world.another_weir(Default::default(), BTreeMap::new());
        assert!(closed(&world).unwrap().contains("list the switch"), "{version:?}");
        named.tenants[0].flowspace[0].switches = Switches::Only(vec![DPID]);
        world.expect_policy(named);
        world.another_weir(Default::default(), BTreeMap::new());
        assert!(world.core.is_ready(), "{version:?}: a flowspace names it");
        drop((world, store));
        assert_eq!(pool.taken(), 0);
        // Each item in the store gives the switch 16 KiB of memory of its own, so the switch uses 16 KiB less of the
        // shared memory.
        let taken = [0, 10, 30].map(|entries| taken_beside_the_store(version, entries));
        for [(less, more_taken), (more, less_taken)] in [[taken[0], taken[1]], [taken[1], taken[2]]]
        {
            assert!(more >= less + 10, "{version:?}: {taken:?}");
            assert_eq!(more_taken - less_taken, (more - less) * (16 << 10), "{version:?}");
        }
    }
}

/// The number of items that the store has for this number of entries, and the shared memory that an unlisted switch
/// uses for 700 rules.
fn taken_beside_the_store(version: Version, entries: u32) -> (usize, usize) {
    let pool = Arc::new(Pool::new(8 << 20));
    let mut world = World::new(unlisted(version, &pool));
    let red = world.connect("red");
    for n in 0..entries {
        world.say(red, n, &format!("flow add match=ip,nw_src=10.1.0.{n} actions=output:2"));
    }
    world.lose_south(true);
    world.south.clear();
    world.begin_to_reconnect();
    world.pump();
    let question = questions(&world, &[1]).remove(0);
    world.switch_says(&long_part_of_ours(&question));
    assert_eq!(closed(&world), None);
    (world.remembered(), pool.taken())
}

#[test]
fn ports_groups_and_meters_of_unlisted_switches_use_the_shared_memory() {
    let pool = Arc::new(Pool::new(128 << 10));
    let mut world = World::new(Setup { by_hand: true, ..unlisted(Version::V1_3, &pool) });
    world.pump();
    for (type_, length) in [(7, 8), (10, 8)] {
        let question = questions(&world, &[type_]).remove(0);
        let mut part = part(&question, 16 + 20 * length);
        for entry in part[16..].chunks_mut(length) {
            // An entry of OFPMP_GROUP_DESC and an entry of OFPMP_METER_CONFIG both begin with their length.
            entry[..2].copy_from_slice(&(length as u16).to_be_bytes());
        }
        let before = pool.taken();
        world.switch_says(&part);
        assert!(pool.taken() >= before + 20 * 1024, "{type_}");
    }
    assert_eq!(closed(&world), None);
    drop(world);
    let mut world = World::new(unlisted(Version::V1_3, &pool));
    for number in 5..500u32 {
        let mut status = vec![4, 12, 0, 80, 0, 0, 0, 0];
        status.extend_from_slice(&[0; 8]);
        status.extend_from_slice(&number.to_be_bytes());
        status.resize(80, 0);
        let before = pool.taken();
        world.switch_says(&status);
        if closed(&world).is_none() {
            assert_eq!(pool.taken() - before, 512, "{number}");
        }
        if let Some(reason) = closed(&world) {
            assert!(number > 100 && reason.contains("list the switch"), "{number}: {reason}");
            assert_eq!(pool.taken(), 0);
            return;
        }
    }
    panic!("never closed");
}

#[test]
fn statistics_replies_of_unlisted_switches_use_the_shared_memory() {
    for version in VERSIONS {
        let pool = Arc::new(Pool::new(256 << 10));
        let ask = || {
            let mut world = World::new(unlisted(version, &pool));
            let red = world.connect("red");
            world.lose_south(true);
            world.south.clear();
            world.say(red, 5, "stats flow");
            let question = world.south.pop().unwrap();
            (world, red, long_part(&question))
        };
        let before = pool.taken();
        let (mut first, red, part) = ask();
        for _ in 0..10 {
            first.core.handle_switch_message(&part, Instant(first.now));
            assert!(pool.taken() <= 256 << 10);
        }
        first.pump();
        let heard = first.heard(red);
        assert!(heard[0].starts_with("5 ERROR"), "{version:?}: {heard:?}");
        assert!(first.core.is_ready(), "the session goes on");
        let at_rest = pool.taken();
        assert!(at_rest < 8 << 10, "{version:?}: {at_rest} of the ports");
        let (mut second, red, part) = ask();
        second.core.handle_switch_message(&part, Instant(second.now));
        assert!(pool.taken() > at_rest + part.len());
        // The last part of the reply does not announce more parts.
        let mut last = part.clone();
        last[11] = 0;
        second.core.handle_switch_message(&last, Instant(second.now));
        // A long reply waits for the tenant's turn.
        second.pump();
        second.advance(1_000_000);
        assert!(second.heard(red)[0].starts_with("5 "));
        drop((first, second));
        assert_eq!(pool.taken(), before);
    }
}

#[test]
fn the_session_is_closed_when_flow_statistics_exceed_32_mib() {
    for version in VERSIONS {
        let mut world = by_hand(version);
        let question = questions(&world, &[1]).remove(0);
        let part = long_part(&question);
        let mut sent = 0;
        while closed(&world).is_none() {
            sent += part.len();
            assert!(sent < 64 << 20, "{version:?}");
            world.switch_says(&part);
        }
        assert!((31 << 20..33 << 20).contains(&sent), "{version:?}: {sent}");
        assert!(closed(&world).unwrap().contains("32 MiB"));
        // Weir ignores messages that arrive after the close.
        let events = world.events.len();
        world.switch_says(&part);
        assert_eq!(world.events.len(), events);
        assert!(!world.core.is_ready());
    }
}

#[test]
fn the_session_is_closed_when_group_and_meter_replies_exceed_32_mib() {
    let mut world = by_hand(Version::V1_3);
    // OFPMP_GROUP_DESC and OFPMP_METER_CONFIG.
    let questions = questions(&world, &[7, 10]);
    assert_eq!(questions.len(), 2);
    let mut sent = 0;
    while closed(&world).is_none() {
        for question in &questions {
            let mut part = part(question, 16 + 8 * 8_000);
            for entry in part[16..].chunks_mut(8) {
                match question[9] {
                    7 => entry[1] = 8,
                    _ => entry[..2].copy_from_slice(&[0, 8]),
                }
            }
            world.switch_says(&part);
            sent += part.len();
        }
        assert!(sent < 33 << 20, "never closed");
    }
    assert!(sent > 31 << 20, "{sent}");
    assert!(closed(&world).unwrap().contains("32 MiB"));
}

#[test]
fn the_session_is_closed_when_flow_statistics_do_not_end_in_60_seconds() {
    for version in VERSIONS {
        let mut world = by_hand(version);
        let question = questions(&world, &[1]).remove(0);
        let part = part(&question, if version == Version::V1_0 { 12 } else { 16 });
        let barriers = request(version, 0, "barrier");
        for second in 0..120 {
            for message in std::mem::take(&mut world.south) {
                // The switch answers all other requests.
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
                assert!((60..63).contains(&(second + 1)), "{second}");
                assert!(reason.contains("does not report"), "{reason}");
                break;
            }
            assert!(second < 63, "{version:?}");
        }
    }
}

#[test]
fn the_session_is_closed_when_the_switch_has_more_than_4096_ports() {
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
fn a_statistics_request_fails_when_the_reply_does_not_end_in_60_seconds() {
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
                assert!((60..63).contains(&(second + 1)), "{second}");
                break;
            }
        }
    }
}

/// The tenant gets an ERROR and may ask again. The session continues, because a switch may have that many entries.
#[test]
fn a_statistics_reply_above_16_mib_is_refused_and_its_memory_is_freed() {
    for version in VERSIONS {
        // The pool has room for all replies that Weir keeps.
        let pool = Arc::new(Pool::new(256 << 20));
        let mut world = World::new(unlisted(version, &pool));
        let red = world.connect("red");
        let at_rest = pool.taken();
        world.lose_south(true);
        world.south.clear();
        world.say(red, 5, "stats flow");
        let part = long_part(&world.south.pop().unwrap());
        let mut sent = 0;
        let heard = loop {
            world.core.handle_switch_message(&part, Instant(world.now));
            world.pump();
            sent += part.len();
            assert!(sent < 17 << 20, "{version:?}: never refused");
            let heard = world.heard(red);
            if !heard.is_empty() {
                break heard;
            }
            assert!(pool.taken() <= at_rest + (16 << 20), "{version:?}: {}", pool.taken());
        };
        assert!(heard.len() == 1 && heard[0].starts_with("5 ERROR"), "{version:?}: {heard:?}");
        assert!(sent > 16 << 20, "{version:?}: {sent}");
        // Weir discards later parts of the refused reply.
        world.core.handle_switch_message(&part, Instant(world.now));
        assert_eq!((pool.taken(), world.core.is_ready()), (at_rest, true), "{version:?}");
        world.lose_south(false);
        world.say(red, 6, "stats flow");
        assert_eq!(world.heard(red), ["6 STATS flow"], "{version:?}");
    }
}

/// Four open replies of 15 MiB have room, and a fifth reply does not. Weir refuses the fifth reply. The session and the
/// other replies continue.
#[test]
fn an_open_statistics_reply_above_64_mib_in_total_is_refused() {
    const EACH: usize = 15 << 20;
    for version in VERSIONS {
        let pool = Arc::new(Pool::new(256 << 20));
        let mut world = World::new(unlisted(version, &pool));
        let at_rest = pool.taken();
        let red = world.connect("red");
        world.lose_south(true);
        world.south.clear();
        for n in 1..=5 {
            world.say(red, n, &format!("stats flow match=ip,nw_src=10.1.0.{n}"));
        }
        let asked = questions(&world, &[1]);
        assert_eq!(asked.len(), 5, "{version:?}");
        let parts: Vec<Vec<u8>> = asked.iter().map(|it| long_part(it)).collect();
        let mut sent = 0;
        let heard = 'all: {
            for part in &parts {
                let begin = sent;
                while sent - begin < EACH {
                    world.core.handle_switch_message(part, Instant(world.now));
                    world.pump();
                    sent += part.len();
                    let taken = pool.taken() - at_rest;
                    assert!(taken <= 64 << 20, "{version:?}: {taken}");
                    let heard = world.heard(red);
                    if !heard.is_empty() {
                        break 'all heard;
                    }
                }
            }
            panic!("{version:?}: all of {sent} bytes are kept");
        };
        assert!(heard.len() == 1 && heard[0].starts_with("5 ERROR"), "{version:?}: {heard:?}");
        assert!((64 << 20..65 << 20).contains(&sent), "{version:?}: {sent}");
        assert_eq!((closed(&world), world.core.is_ready()), (None, true), "{version:?}");
        for (part, n) in parts[..4].iter().zip(1..) {
            let mut last = part.clone();
            last[11] = 0;
            world.switch_says(&last);
            world.advance(SECOND);
            assert_eq!(world.heard(red), [format!("{n} STATS flow")], "{version:?}");
        }
        drop(world);
        assert_eq!(pool.taken(), 0, "{version:?}");
    }
}

/// Weir requests the port statistics for itself. Weir keeps no counters of ports that the switch does not have, and
/// gives up a reply that does not end in 60 seconds.
#[test]
fn endless_port_statistics_are_given_up_and_unknown_ports_are_ignored() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, "red: any"));
        world.lose_south(true);
        let ask = |world: &mut World| {
            world.south.clear();
            world.core.ask_traffic(Instant(world.now));
            world.pump();
            questions(world, &[4]).pop()
        };
        let (head, entry) = if version == Version::V1_0 { (12, 104) } else { (16, 112) };
        let strange_ports = |question: &[u8], round: u32| {
            let mut part = part(question, head + entry * 500);
            for (number, entry) in (5 + round * 500..).zip(part[head..].chunks_mut(entry)) {
                match version {
                    Version::V1_0 => entry[..2].copy_from_slice(&(number as u16).to_be_bytes()),
                    _ => entry[..4].copy_from_slice(&number.to_be_bytes()),
                }
            }
            part
        };
        let question = ask(&mut world).unwrap();
        let mut second = 0;
        // Weir sends no second request before it gives up the first request.
        let question = loop {
            let part = strange_ports(&question, second);
            world.core.handle_switch_message(&part, Instant(world.now));
            world.advance(SECOND);
            second += 1;
            if let Some(question) = ask(&mut world) {
                break question;
            }
        };
        assert!((60..63).contains(&second), "{version:?}: {second}");
        let mut last = strange_ports(&question, 0);
        last[11] = 0;
        world.core.handle_switch_message(&last, Instant(world.now));
        assert_eq!(world.core.traffic_of(world.tenant("red")), [], "{version:?}");
        assert_eq!((closed(&world), world.core.is_ready()), (None, true), "{version:?}");
    }
}

/// Weir requests the table statistics at the start. No other request waits for the reply, and Weir divides the tables
/// only after a whole reply.
#[test]
fn endless_table_statistics_do_not_delay_the_session_or_divide_tables() {
    for version in VERSIONS {
        let mut world = World::new(Setup { by_hand: true, ..Setup::new(version, SPACES) });
        let barriers = request(version, 0, "barrier")[1];
        let of_tables = if version == Version::V1_0 { 3 } else { 12 };
        let mut open = Vec::new();
        for _ in 0..20 {
            world.pump();
            for message in std::mem::take(&mut world.south) {
                let is_multipart = message[1] == if version == Version::V1_0 { 16 } else { 18 };
                if message[1] == barriers {
                    let mut reply = message.clone();
                    reply[1] += 1;
                    world.switch_says(&reply);
                } else if is_multipart && message[9] == of_tables {
                    open.push(message);
                } else if is_multipart {
                    let mut end = part(&message, if version == Version::V1_0 { 12 } else { 16 });
                    end[11] = 0;
                    world.switch_says(&end);
                }
            }
        }
        assert!(world.core.is_ready() && open.len() == 1, "{version:?}: {open:?}");
        let before = world.core.space_changes();
        let (head, entry) = if version == Version::V1_0 { (12, 64) } else { (16, 64) };
        for round in 0..10_000u32 {
            let mut part = part(&open[0], head + entry);
            let table = &mut part[head..];
            match version {
                Version::V1_0 => {
                    table[39] = 1;
                    table[40..44].copy_from_slice(&(1_000 + round).to_be_bytes());
                }
                _ => {
                    table[..2].copy_from_slice(&[0, 64]);
                    table[2] = (round % 250) as u8;
                    table[60..64].copy_from_slice(&(1_000 + round).to_be_bytes());
                }
            }
            world.core.handle_switch_message(&part, Instant(world.now));
        }
        assert_eq!(world.core.space_changes(), before, "{version:?}");
        for _ in 0..70 {
            world.advance(SECOND);
        }
        assert_eq!((closed(&world), world.core.is_ready()), (None, true), "{version:?}");
        assert_eq!(world.core.shares_of(world.tenant("red")), [], "{version:?}");
    }
}
