//! Tests of frames over the in-memory transport: splitting, back-pressure, bounds, and every kind of close.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use channel::memory::{self, MemoryStream};
use channel::{CloseReason, Connection, Flushed, Full, Options, ReadState};
use proptest::prelude::*;
use std::io::Write;

/// A frame of this length, whose body contains its number.
fn frame(number: u32, length: usize) -> Vec<u8> {
    let mut frame = vec![4, 2];
    frame.extend_from_slice(&(length as u16).to_be_bytes());
    frame.extend_from_slice(&number.to_be_bytes());
    frame.resize(length, number as u8);
    frame
}

fn connection(capacity: usize) -> (Connection, MemoryStream) {
    let (ours, theirs) = memory::pair(capacity);
    (Connection::in_memory(ours, &Options::default()), theirs)
}

/// Takes all complete frames.
fn take_all(connection: &mut Connection) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| connection.next_frame().unwrap().map(|frame| frame.to_vec())).collect()
}

#[test]
fn frames_split_at_any_byte_are_received_whole() {
    let frames = [frame(1, 8), frame(2, 9), frame(3, 64), frame(4, 8)];
    let stream = frames.concat();
    for cut in 0..=stream.len() {
        let (mut connection, mut peer) = connection(1 << 20);
        let mut got = Vec::new();
        for part in [&stream[..cut], &stream[cut..]] {
            peer.write_all(part).unwrap();
            let received = connection.receive(usize::MAX);
            assert_eq!((received.bytes, received.state), (part.len(), ReadState::Drained));
            got.extend(take_all(&mut connection));
        }
        assert_eq!(got, frames, "cut at {cut}");
        assert_eq!((connection.pending_bytes(), connection.memory()), (0, 0));
    }
}

#[test]
fn frames_received_byte_by_byte_are_whole() {
    let frames = [frame(1, 8), frame(2, 300), frame(3, 65_535)];
    let (mut connection, mut peer) = connection(1);
    let mut got = Vec::new();
    for byte in frames.concat() {
        peer.write_all(&[byte]).unwrap();
        assert_eq!(connection.receive(4096).bytes, 1);
        got.extend(take_all(&mut connection));
        assert!(connection.memory() <= 128 << 10);
    }
    assert_eq!(got, frames);
}

#[test]
fn a_frame_can_be_edited_in_place_and_peek_does_not_consume_a_frame() {
    let (mut connection, mut peer) = connection(1000);
    assert_eq!(connection.peek_frame(), Ok(None));
    peer.write_all(&[frame(1, 10), frame(2, 12)].concat()).unwrap();
    connection.receive(1000);
    assert_eq!(connection.peek_frame(), Ok(Some(&frame(1, 10)[..])));
    let first = connection.next_frame().unwrap().unwrap();
    assert!(openflow::frame::set_xid(first, 77));
    assert_eq!(openflow::frame::xid(first), Some(77));
    assert_eq!(connection.peek_frame(), Ok(Some(&frame(2, 12)[..])));
    assert_eq!(take_all(&mut connection), [frame(2, 12)]);
}

/// The reader takes a part of the frames, pauses and continues. All frames arrive in order, and the connection never
/// buffers more than the bound.
#[test]
fn a_reader_that_pauses_gets_frames_in_order_within_the_buffer_bound() {
    let options = Options { receive_buffer: 64 << 10, ..Options::default() };
    let (ours, mut peer) = memory::pair(1 << 20);
    let mut connection = Connection::in_memory(ours, &options);
    let stream: Vec<u8> = (0..10_000).flat_map(|number| frame(number, 80)).collect();
    peer.write_all(&stream).unwrap();

    let limit = u16::MAX as usize;
    let mut next = 0;
    while next < 10_000 {
        let state = connection.receive(usize::MAX).state;
        assert!(state == ReadState::More || state == ReadState::Drained);
        assert!(connection.pending_bytes() <= limit.max(64 << 10));
        for _ in 0..333 {
            let Some(got) = connection.next_frame().unwrap() else { break };
            assert_eq!(got, frame(next, 80));
            next += 1;
        }
        connection.trim();
    }
    assert_eq!(connection.receive(1).state, ReadState::Drained);
}

#[test]
fn receive_reads_at_most_the_given_number_of_bytes() {
    let (mut connection, mut peer) = connection(1 << 20);
    peer.write_all(&vec![0; 10_000]).unwrap();
    for (limit, bytes, state) in [
        (0, 0, ReadState::More),
        (1, 1, ReadState::More),
        (9_998, 9_998, ReadState::More),
        (1, 1, ReadState::More),
        (1, 0, ReadState::Drained),
    ] {
        let received = connection.receive(limit);
        assert_eq!((received.bytes, received.state), (bytes, state), "limit {limit}");
    }
}

#[test]
fn a_header_length_below_eight_is_a_permanent_error() {
    for length in 0..8_u8 {
        let (mut connection, mut peer) = connection(100);
        peer.write_all(&frame(1, 8)).unwrap();
        peer.write_all(&[1, 0, 0, length, 0, 0, 0, 0, 1, 0, 0, 8, 0, 0, 0, 0]).unwrap();
        connection.receive(100);
        assert_eq!(connection.next_frame().unwrap().unwrap(), frame(1, 8), "the one before it");
        for _ in 0..2 {
            assert_eq!(connection.next_frame().unwrap_err().length, u16::from(length));
            assert!(connection.peek_frame().is_err());
        }
    }
}

/// A length field may announce up to 65,535 bytes. If the peer then sends nothing, the connection uses one page.
#[test]
fn a_large_length_field_without_data_uses_one_page() {
    let (mut connection, mut peer) = connection(100);
    peer.write_all(&[1, 0, 0xff, 0xff, 0, 0]).unwrap();
    connection.receive(1 << 20);
    assert_eq!(connection.next_frame(), Ok(None));
    assert_eq!((connection.pending_bytes(), connection.memory()), (6, 4096));
}

#[test]
fn a_close_between_or_within_frames_keeps_earlier_whole_frames() {
    for extra in [0, 1, 7] {
        let (mut connection, mut peer) = connection(100);
        peer.write_all(&frame(1, 20)).unwrap();
        peer.write_all(&frame(2, 8)[..extra]).unwrap();
        drop(peer);
        let received = connection.receive(1000);
        assert_eq!(received.bytes, 20 + extra);
        assert_eq!(received.state, ReadState::Closed(CloseReason::PeerClosed));
        assert_eq!(take_all(&mut connection), [frame(1, 20)], "what came before the end");
        assert_eq!(connection.pending_bytes(), extra, "in mid-frame");
        assert_eq!(connection.receive(1000).state, ReadState::Closed(CloseReason::PeerClosed));

        connection.push(&frame(3, 8)).unwrap();
        let broken = CloseReason::Reset(std::io::ErrorKind::BrokenPipe);
        assert_eq!(connection.flush(), Err(broken.clone()));
        assert_eq!((connection.unsent_bytes(), connection.closed()), (0, Some(&broken)));
    }
}

/// After a failed write, `receive` returns the bytes that are there, and reports the connection as closed.
#[test]
fn a_connection_with_a_broken_write_side_is_closed_for_reads() {
    let (ours, mut theirs) = memory::pair(100);
    let mut ours = Connection::in_memory(ours, &Options::default());
    theirs.write_all(&frame(1, 8)).unwrap();
    ours.finish();
    ours.push(&frame(2, 8)).unwrap();
    let broken = CloseReason::Reset(std::io::ErrorKind::BrokenPipe);
    assert_eq!(ours.flush(), Err(broken.clone()));
    let received = ours.receive(100);
    assert_eq!((received.bytes, received.state), (8, ReadState::Closed(broken)));
    assert_eq!(take_all(&mut ours), [frame(1, 8)]);
}

#[test]
fn a_few_bytes_that_the_socket_does_not_accept_use_one_page() {
    let (ours, _theirs) = memory::pair(99_900);
    let mut ours = Connection::in_memory(ours, &Options::default());
    for number in 0..1_000 {
        ours.push(&frame(number, 100)).unwrap();
    }
    assert_eq!(ours.flush(), Ok(Flushed::Blocked));
    assert_eq!((ours.unsent_bytes(), ours.memory()), (100, 4096));
}

#[test]
fn a_peer_that_half_closed_still_receives_the_reply() {
    let (ours, theirs) = memory::pair(100);
    let mut ours = Connection::in_memory(ours, &Options::default());
    let mut theirs = Connection::in_memory(theirs, &Options::default());
    theirs.push(&frame(1, 8)).unwrap();
    theirs.finish();
    assert_eq!(ours.receive(100).state, ReadState::Closed(CloseReason::PeerClosed));
    assert_eq!(take_all(&mut ours), [frame(1, 8)]);

    ours.push(&frame(2, 8)).unwrap();
    assert_eq!(ours.flush(), Ok(Flushed::Empty));
    assert_eq!(theirs.receive(100).state, ReadState::Drained);
    assert_eq!(take_all(&mut theirs), [frame(2, 8)]);
}

#[test]
fn frames_to_a_peer_that_never_reads_are_refused_at_the_send_limit() {
    let options = Options { send_buffer: 10_000, ..Options::default() };
    let (ours, mut theirs) = memory::pair(1_000);
    let mut ours = Connection::in_memory(ours, &options);
    let mut accepted = 0;
    for number in 0..1_000 {
        match ours.push(&frame(number, 100)) {
            Ok(()) => accepted += 1,
            Err(Full) => assert!(ours.unsent_bytes() > 9_900),
        }
        let flushed = ours.flush().unwrap();
        assert_eq!(flushed == Flushed::Empty, !ours.wants_write());
        assert!(ours.unsent_bytes() <= 10_000);
        assert!(ours.memory() <= 40_000);
    }
    assert_eq!(accepted, 110, "10,000 bytes here and 1,000 in the pipe");
    assert_eq!(ours.send_buffer().refused_frames(), 890);
    assert_eq!(ours.send_buffer().refused_bytes(), 89_000);

    // The peer reads at last, and gets all accepted frames whole and in order.
    let mut theirs = {
        theirs.set_capacity(1_000);
        Connection::in_memory(theirs, &Options::default())
    };
    let mut got = Vec::new();
    while ours.wants_write() || theirs.receive(300).bytes > 0 {
        ours.flush().unwrap();
        theirs.receive(300);
        got.extend(take_all(&mut theirs));
    }
    assert_eq!(got, (0..110).map(|number| frame(number, 100)).collect::<Vec<_>>());
    assert_eq!(ours.memory(), 0);
}

#[test]
fn a_tls_peer_of_a_plain_endpoint_is_recognized() {
    let client = [0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03];
    let server = [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x0a];
    for (hello, cut) in (0..client.len())
        .map(|cut| (&client[..], cut))
        .chain((0..server.len()).map(|cut| (&server[..], cut)))
    {
        let (mut connection, mut peer) = connection(100);
        peer.write_all(&hello[..cut]).unwrap();
        let early = connection.receive(100).state;
        if cut < 2 {
            assert_eq!(early, ReadState::Drained, "cut at {cut}");
        }
        peer.write_all(&hello[cut..]).unwrap();
        assert_eq!(connection.receive(100).state, ReadState::Closed(CloseReason::TlsPeer));
        assert_eq!(connection.next_frame(), Ok(None));
        assert_eq!(connection.flush(), Err(CloseReason::TlsPeer));
    }
}

#[test]
fn counters_count_bytes_and_system_calls() {
    let (mut connection, mut peer) = connection(1_000);
    for number in 0..5 {
        connection.push(&frame(number, 10)).unwrap();
    }
    assert_eq!(connection.flush(), Ok(Flushed::Empty));
    peer.write_all(&frame(9, 30)).unwrap();
    connection.receive(1_000);
    let counters = connection.counters();
    assert_eq!((counters.sent_bytes, counters.writes), (50, 1), "five frames in one write");
    assert_eq!((counters.received_bytes, counters.reads), (30, 1));
}

proptest! {
    /// For frames of any length, pipes of any capacity, turns of any budget and readers that stop anywhere: all frames
    /// arrive in order, and memory stays within the bounds.
    #[test]
    fn any_schedule(
        lengths in proptest::collection::vec(
            prop_oneof![8..200_usize, 8..200_usize, 60_000..65_535_usize], 1..30),
        capacity in 1..100_000_usize,
        budgets in proptest::collection::vec((0..70_000_usize, 0..5_usize), 1..20),
    ) {
        let options = Options { send_buffer: 100_000, ..Options::default() };
        let (left, right) = memory::pair(capacity);
        let mut left = Connection::in_memory(left, &options);
        let mut right = Connection::in_memory(right, &options);
        let (mut sent, mut got) = (0, 0);
        // Small pipes carry few bytes per turn. A turn without a complete frame also counts.
        let mut turns = budgets.iter().cycle();
        while got < lengths.len() {
            while sent < lengths.len() && left.push(&frame(sent as u32, lengths[sent])).is_ok() {
                sent += 1;
            }
            // A step has many writes, because the smallest pipes would take too long with one write.
            let (budget, frames) = *turns.next().unwrap();
            for _ in 0..1 + 10_000 / capacity {
                left.flush().unwrap();
                right.receive(budget.max(1));
            }
            for _ in 0..frames.max(1) {
                match right.next_frame().unwrap() {
                    Some(taken) => {
                        prop_assert_eq!(&*taken, &frame(got as u32, lengths[got])[..]);
                        got += 1;
                    }
                    None => break,
                }
            }
            prop_assert!(left.unsent_bytes() <= 100_000);
            prop_assert!(right.pending_bytes() <= options.receive_buffer);
            prop_assert!(right.memory() <= 2 * options.receive_buffer);
        }
        right.next_frame().unwrap();
        prop_assert_eq!((left.memory(), right.memory()), (0, 0));
    }
}
