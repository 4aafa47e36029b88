//! Tests with faulty systems under test: each fault is reported by name, no test hangs, and no fault is counted as
//! latency.

#![allow(clippy::unwrap_used, reason = "the relay below is test code too")]

mod common;

use bench::{Controllers, Error, Kind, Load, Outcome, Session, Setup, Topology};
use common::{Behaviour, Way, relay};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

const PACKET_IN: u8 = 10;
const ECHO_REPLY: u8 = 3;
const PACKET_OUT: u8 = 13;

/// Sends 100 messages of `kind` from each of two tenants, through a relay with this behaviour.
fn run(
    kind: Kind,
    behaviour: impl Fn(Way, usize, u64, Vec<u8>) -> Option<Vec<(usize, Vec<u8>)>>
    + Send
    + Sync
    + 'static,
) -> Outcome {
    let load = Load { drain_ms: 200, ..Load::constant(kind, 2, 2000.0, 100) };
    open(2, Arc::new(behaviour)).run(&load, &[]).unwrap()
}

fn open(tenants: usize, behaviour: Behaviour) -> Session {
    let controllers = Controllers::bind(tenants, "127.0.0.1:0".parse().unwrap()).unwrap();
    let switch_addresses = relay(controllers.addresses(), behaviour);
    let setup = Setup::new(Topology::PerTenant { switch_addresses }, tenants);
    Session::open(setup, &controllers).unwrap()
}

fn is(frame: &[u8], message_type: u8) -> bool {
    frame.get(1) == Some(&message_type)
}

#[test]
fn a_correct_relay_has_no_fault() {
    for kind in [Kind::PacketIn, Kind::PacketOut, Kind::Echo, Kind::FlowStats] {
        let outcome = run(kind, |_, tenant, _, frame| Some(vec![(tenant, frame)]));
        assert!(outcome.faults.is_empty(), "{:?}", outcome.faults.sentences());
        assert_eq!(outcome.counts().received, 200);
    }
}

#[test]
fn a_packet_in_sent_to_another_tenant_is_a_leak_and_adds_no_latency() {
    let outcome = run(Kind::PacketIn, |_, tenant, _, frame| {
        let to = if is(&frame, PACKET_IN) && tenant == 0 { 1 } else { tenant };
        Some(vec![(to, frame)])
    });
    assert_eq!(outcome.faults.of("leak"), 100, "{:?}", outcome.faults.sentences());
    assert!(outcome.faults.sentences()[0].contains("tenant 0 leaked to tenant 1"));
    assert_eq!(outcome.streams[0].counts.unanswered(), 100);
    assert_eq!((outcome.streams[0].latency.count(), outcome.streams[1].latency.count()), (0, 100));
}

#[test]
fn duplicate_messages_are_counted_and_add_no_latency() {
    for (kind, message_type) in
        [(Kind::PacketIn, PACKET_IN), (Kind::PacketOut, PACKET_OUT), (Kind::Echo, ECHO_REPLY)]
    {
        let outcome = run(kind, move |_, tenant, _, frame| {
            let copies = if is(&frame, message_type) { 2 } else { 1 };
            Some(vec![(tenant, frame); copies])
        });
        let counts = outcome.counts();
        assert_eq!((counts.received, counts.duplicates), (200, 200), "{kind:?}");
        assert_eq!(outcome.latency().count(), 200);
    }
}

#[test]
fn messages_dropped_by_the_relay_count_as_unanswered() {
    let outcome = run(Kind::PacketIn, |_, tenant, count, frame| {
        let swallow = is(&frame, PACKET_IN) && count % 10 == 0;
        Some(if swallow { vec![] } else { vec![(tenant, frame)] })
    });
    let counts = outcome.counts();
    assert_eq!((counts.sent, counts.unanswered()), (200, 20), "{counts:?}");
    assert_eq!(outcome.latency().count(), 180);
}

#[test]
fn a_reply_with_a_wrong_xid_is_a_fault_and_adds_no_latency() {
    for (xid, code) in [(0x7fff_ffff_u32, "unknown-xid"), (2 << 20, "foreign-xid")] {
        let outcome = run(Kind::Echo, move |_, tenant, _, mut frame| {
            if is(&frame, ECHO_REPLY) && tenant == 0 {
                frame[4..8].copy_from_slice(&xid.to_be_bytes());
            }
            Some(vec![(tenant, frame)])
        });
        assert_eq!(outcome.faults.of(code), 100, "{:?}", outcome.faults.sentences());
        assert_eq!(outcome.streams[0].latency.count(), 0);
        assert_eq!(outcome.streams[1].latency.count(), 100);
    }
}

#[test]
fn an_echo_reply_without_payload_is_reported() {
    let outcome = run(Kind::Echo, |_, tenant, _, mut frame| {
        if is(&frame, ECHO_REPLY) {
            frame.truncate(8);
            frame[3] = 8;
        }
        Some(vec![(tenant, frame)])
    });
    assert_eq!(outcome.faults.of("echo-payload"), 200);
}

#[test]
fn an_error_reply_counts_as_refused_and_adds_no_latency() {
    // The relay refuses requests to the switch: the relay sends an ERROR to the controller in place of the reply.
    let outcome = run(Kind::Echo, |_, tenant, _, mut frame| {
        if is(&frame, ECHO_REPLY) {
            frame[1] = 1;
            frame[8..12].copy_from_slice(&[0, 1, 0, 6]);
        }
        Some(vec![(tenant, frame)])
    });
    let counts = outcome.counts();
    assert_eq!((counts.refused, counts.received, counts.unanswered()), (200, 0, 0), "{counts:?}");
    assert_eq!(outcome.faults.of("error"), 200);
    assert_eq!(outcome.latency().count(), 0);
}

#[test]
fn a_closed_connection_is_reported_and_another_tenant_continues() {
    let outcome = run(Kind::PacketIn, |_, tenant, count, frame| {
        (tenant == 1 || count < 20).then(|| vec![(tenant, frame)])
    });
    assert!(outcome.faults.of("switch-closed") > 0, "{:?}", outcome.faults.sentences());
    assert!(outcome.faults.of("controller-closed") > 0);
    assert!(outcome.streams[0].counts.blocked > 0, "{:?}", outcome.streams[0].counts);
    assert_eq!(outcome.streams[1].counts.received, 100);
}

#[test]
fn an_invalid_message_length_is_reported_and_another_tenant_continues() {
    let outcome = run(Kind::PacketIn, |way, tenant, count, mut frame| {
        if way == Way::ToController && tenant == 0 && count == 20 {
            frame[2..4].copy_from_slice(&[0, 7]);
        }
        Some(vec![(tenant, frame)])
    });
    assert_eq!(outcome.faults.of("bad-length"), 1, "{:?}", outcome.faults.sentences());
    assert_eq!(outcome.streams[1].counts.received, 100);
}

#[test]
fn packets_without_a_tag_are_reported() {
    let outcome = run(Kind::PacketIn, |_, tenant, _, mut frame| {
        if is(&frame, PACKET_IN) {
            let end = frame.len();
            frame[end - 18..].fill(0);
        }
        Some(vec![(tenant, frame)])
    });
    assert_eq!(outcome.faults.of("untagged"), 200);
    assert_eq!(outcome.counts().unanswered(), 200);
}

#[test]
fn messages_to_a_system_that_stops_reading_count_as_blocked() {
    let behaviour = |way, tenant, count, frame: Vec<u8>| {
        if way == Way::ToController && count == 10 {
            std::thread::sleep(std::time::Duration::from_secs(20));
        }
        Some(vec![(tenant, frame)])
    };
    let load = Load { drain_ms: 100, ..Load::constant(Kind::PacketIn, 1, 400_000.0, 400) };
    let outcome = open(1, Arc::new(behaviour)).run(&load, &[]).unwrap();
    let counts = outcome.counts();
    assert!(counts.blocked > 0 && counts.unanswered() > 0, "{counts:?}");
    assert_eq!(counts.sent + counts.blocked, 160_000);
}

#[test]
fn a_handshake_that_does_not_complete_is_an_error_with_the_reason() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = SocketAddr::from(([127, 0, 0, 1], packet::free_port().unwrap()));
    for (address, word) in [(silent.local_addr().unwrap(), "0 of 1"), (nobody, "refused")] {
        let controllers = Controllers::bind(1, "127.0.0.1:0".parse().unwrap()).unwrap();
        let topology = Topology::Shared { switch_address: address, switches: 1 };
        let setup = Setup { handshake_ms: 300, ..Setup::new(topology, 1) };
        let error = Session::open(setup, &controllers).unwrap_err();
        assert!(matches!(error, Error::Handshake { ready: 0, wanted: 1, .. }), "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn late_messages_and_reordered_messages_are_counted_separately() {
    // Every tenth message waits for the next message, so messages are reordered. From the 60th message on all messages
    // wait 60 ms, so these messages are late.
    let held: std::sync::Mutex<Vec<Option<Vec<u8>>>> = std::sync::Mutex::new(vec![None, None]);
    let behaviour = move |_, tenant: usize, _: u64, frame: Vec<u8>| {
        if !is(&frame, PACKET_IN) {
            return Some(vec![(tenant, frame)]);
        }
        let end = frame.len();
        let sequence = u32::from_be_bytes(frame[end - 12..end - 8].try_into().unwrap());
        if sequence == 60 {
            std::thread::sleep(std::time::Duration::from_millis(60));
        }
        let mut held = held.lock().unwrap();
        if sequence % 10 == 3 {
            held[tenant] = Some(frame);
            return Some(vec![]);
        }
        let mut out = vec![(tenant, frame)];
        out.extend(held[tenant].take().map(|earlier| (tenant, earlier)));
        Some(out)
    };
    let load = Load { late_ms: 20, ..Load::constant(Kind::PacketIn, 2, 2000.0, 100) };
    let outcome = open(2, Arc::new(behaviour)).run(&load, &[]).unwrap();
    let counts = outcome.counts();
    assert_eq!((counts.sent, counts.received, counts.duplicates), (200, 200, 0), "{counts:?}");
    assert_eq!(counts.reordered, 20, "{counts:?}");
    // Messages 60 to 99 wait for up to 60 ms, the last message for 20 ms, so at least half of these messages are late.
    assert!(counts.late >= 40, "{counts:?}");
    assert_eq!(outcome.latency().count(), 200, "late is still measured");
}
