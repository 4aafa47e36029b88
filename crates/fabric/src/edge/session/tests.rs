use super::*;
use crate::edge::{Grant, Rates, Report};
use crate::units::{Bandwidth, MacAddress};
use alloc::vec;

const KEY: EdgeKey = EdgeKey([9; 16]);
const START: Instant = Instant(1 << 40);

fn agent(name: &str, life: u64, peer: &str) -> Sessions {
    Sessions::new(KEY, AgentId::of(name), life, [AgentId::of(peer)])
}

fn mac(last: u8) -> MacAddress {
    MacAddress::new([2, 0, 0, 0, 0, last]).unwrap()
}

fn report(bytes: u64) -> Message {
    Message::Reports(vec![Report { from: mac(1), to: mac(2), bytes, wish: Report::EVERYTHING }])
}

fn to_b(from: &mut Sessions, bytes: u64) -> Vec<u8> {
    from.seal(AgentId::of("b"), &report(bytes)).unwrap()
}

/// Agent a sends one datagram without a valid token, and b replies with a hello.
fn meet(a: &mut Sessions, b: &mut Sessions, now: Instant) {
    assert_eq!(b.open(&to_b(a, 0)), Err(Refused::Unplaced));
    let (to, hello) = b.poll_hello(now).unwrap();
    assert_eq!(to, AgentId::of("a"));
    assert_eq!(a.open(&hello), Ok(None));
}

fn taken(sessions: &mut Sessions, datagram: &[u8]) -> bool {
    matches!(sessions.open(datagram), Ok(Some(_)))
}

#[test]
fn every_sealed_message_is_opened_unchanged() {
    let (mut a, mut b) = (agent("a", 1, "b"), agent("b", 2, "a"));
    meet(&mut a, &mut b, START);
    let rate = Bandwidth::from_bits_per_second;
    let messages = [
        report(u64::MAX),
        Message::Reports(vec![]),
        Message::Grants(vec![
            Grant { from: mac(1), to: mac(2), rate: rate(7) };
            Message::MOST_GRANTS
        ]),
        Message::Rates(vec![
            Rates { vnic: mac(3), received: rate(1), sent: rate(2) };
            Message::MOST_RATES
        ]),
    ];
    for message in messages {
        let datagram = a.seal(AgentId::of("b"), &message).unwrap();
        assert!(datagram.len() <= LONGEST_DATAGRAM);
        assert_eq!(b.open(&datagram), Ok(Some(Opened { from: AgentId::of("a"), message })));
    }
    let (from, to, bytes, wish) = (mac(1), mac(2), 0, rate(0));
    let long = vec![Report { from, to, bytes, wish }; Message::MOST_REPORTS + 1];
    assert_eq!(a.seal(AgentId::of("b"), &Message::Reports(long)), None);
    assert_eq!(a.seal(AgentId::of("c"), &report(0)), None);
}

/// docs/agent.md and the module page of this folder describe the format byte by byte.
#[test]
fn the_datagram_format_has_the_documented_bytes() {
    let mut a = agent("a", 0x1122_3344_5566_7788, "b");
    let datagram = to_b(&mut a, 0x0102);
    let hex: alloc::string::String =
        datagram.iter().map(|byte| alloc::format!("{byte:02x}")).collect();
    // The numbers of "a" and "b" and the hash were computed separately, in Python.
    let expected =
        "57454952 01 01 0001 96c20860cd93a249 efae8b44dcd72ae4 1122334455667788 0000000000000000
        0000000000000001 020000000001 020000000002 0000000000000102 ffffffffffffffff
        c8751e7ea1642c10266252345e20d322";
    assert_eq!(hex, expected.split_whitespace().collect::<alloc::string::String>());
}

#[test]
fn forged_changed_cut_and_misdirected_datagrams_are_refused() {
    let (mut a, mut b) = (agent("a", 1, "b"), agent("b", 2, "a"));
    meet(&mut a, &mut b, START);
    let good = to_b(&mut a, 5);
    for at in 0..good.len() {
        let mut changed = good.clone();
        changed[at] ^= 1;
        assert_eq!(b.open(&changed), Err(Refused::Garbage), "byte {at}");
        assert_eq!(b.open(&good[..at]), Err(Refused::Garbage), "{at} bytes");
    }
    assert_eq!(b.open(&[0; 5000]), Err(Refused::Garbage));
    let mut other = Sessions::new(EdgeKey([8; 16]), AgentId::of("a"), 1, [AgentId::of("b")]);
    assert_eq!(b.open(&to_b(&mut other, 5)), Err(Refused::Garbage));
    assert_eq!(agent("c", 3, "a").open(&good), Err(Refused::Stranger));
    assert_eq!(b.open(&to_b(&mut agent("c", 3, "b"), 5)), Err(Refused::Stranger));
    assert!(taken(&mut b, &good), "none of that spoilt it");
}

#[test]
fn each_datagram_is_accepted_only_once_in_any_order() {
    let (mut a, mut b) = (agent("a", 1, "b"), agent("b", 2, "a"));
    meet(&mut a, &mut b, START);
    let mut sent: Vec<_> = (0..200).map(|number| to_b(&mut a, number)).collect();
    sent.swap(10, 40);
    let outcomes: Vec<bool> = sent.iter().map(|one| taken(&mut b, one)).collect();
    assert!(outcomes.iter().all(|taken| *taken));
    assert!(sent.iter().all(|one| b.open(one) == Err(Refused::Repeated)));
    // The number of the datagram is so low that the receiver no longer knows whether it received this number.
    let late = to_b(&mut a, 0);
    (0..WINDOW).for_each(|number| assert!(taken(&mut b, &to_b(&mut a, number))));
    assert_eq!(b.open(&late), Err(Refused::Repeated));
}

#[test]
fn datagrams_from_before_a_restart_are_refused() {
    let (mut a, mut b) = (agent("a", 1, "b"), agent("b", 2, "a"));
    meet(&mut a, &mut b, START);
    let first = to_b(&mut a, 1);
    assert!(taken(&mut b, &first));
    let unseen = to_b(&mut a, 2);

    // The sender restarts: its next life gets a new token, and the datagrams of its first life are refused.
    let mut again = agent("a", 11, "b");
    meet(&mut again, &mut b, START + BETWEEN_HELLOS);
    assert!(taken(&mut b, &to_b(&mut again, 3)));
    assert_eq!(b.open(&unseen), Err(Refused::Unplaced));
    assert_eq!(b.open(&first), Err(Refused::Unplaced));
    assert!(taken(&mut b, &to_b(&mut again, 4)), "an attempt changes nothing");

    // The receiver restarts: its new life gave none of these tokens.
    let recorded = to_b(&mut again, 5);
    let mut b = agent("b", 22, "a");
    assert_eq!(b.open(&recorded), Err(Refused::Unplaced));
    let (_, hello) = b.poll_hello(START).unwrap();
    assert_eq!(again.open(&hello), Ok(None));
    assert_eq!(again.open(&hello), Err(Refused::Repeated));
    assert!(taken(&mut b, &to_b(&mut again, 6)));
    // A new life of the agent refuses the hello to an earlier life.
    assert_eq!(agent("a", 33, "b").open(&hello), Err(Refused::Repeated));
}

#[test]
fn datagrams_without_a_session_cause_a_limited_number_of_hellos() {
    let (mut a, mut b) = (agent("a", 1, "b"), agent("b", 2, "a"));
    let mut hellos = 0;
    for step in 0..1000 {
        let now = START + Duration::from_millis(step);
        let _ = b.open(&to_b(&mut a, step));
        hellos += u32::from(b.poll_hello(now).is_some());
    }
    assert_eq!(hellos, 20);
    // The clock jumps back by a day.
    let _ = b.open(&to_b(&mut a, 0));
    assert!(b.poll_hello(Instant(0)).is_some());
}
