//! Counts messages per TCP segment, from the kernel's counters. The counts show whether batching and Nagle's algorithm
//! have the effect of the settings, at the generator and at the system under test.

use crate::track::Counts;

/// The mean number of messages in one TCP segment with data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segments {
    /// Messages received in the window per data segment of the side where they arrived: the busier
    /// of the two sides' incoming segments.
    pub messages_per_segment: f64,
    /// Messages that the generator sent in the window per data segment that the generator sent: the effect of batching
    /// and Nagle's algorithm. 0 if the generator sent no messages over sockets.
    pub sent_per_segment: f64,
}

/// Data segments of all watched sockets so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentCounts {
    controller_in: u64,
    controller_out: u64,
    switch_in: u64,
    switch_out: u64,
}

impl Segments {
    pub(crate) fn between(
        before: SegmentCounts,
        after: SegmentCounts,
        counts: Counts,
        by_sockets: bool,
    ) -> Self {
        let new = |of: fn(&SegmentCounts) -> u64| of(&after).saturating_sub(of(&before));
        let received = new(|it| it.controller_in).max(new(|it| it.switch_in));
        let sent = new(|it| it.controller_out).max(new(|it| it.switch_out));
        let per = |messages: u64, segments: u64| match segments {
            0 => 0.0,
            _ => messages as f64 / segments as f64,
        };
        Self {
            messages_per_segment: per(counts.received, received),
            sent_per_segment: if by_sockets { per(counts.sent, sent) } else { 0.0 },
        }
    }
}

/// Adds up the data segments of all connections to `controller_ports` (as the listening side sees the connections) and
/// to `switch_ports` (as the dialling side sees the connections). Returns `None` if the kernel has no such counters.
pub(crate) fn count(controller_ports: &[u16], switch_ports: &[u16]) -> Option<SegmentCounts> {
    let (mut controllers, mut switches) = (controller_ports.to_vec(), switch_ports.to_vec());
    controllers.sort_unstable();
    switches.sort_unstable();
    let mut counts = SegmentCounts::default();
    packet::tcp_connections(|connection| {
        if controllers.binary_search(&connection.local_port).is_ok() {
            counts.controller_in += connection.data_in;
            counts.controller_out += connection.data_out;
        }
        if switches.binary_search(&connection.remote_port).is_ok() {
            counts.switch_in += connection.data_in;
            counts.switch_out += connection.data_out;
        }
    })?;
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn tcp_segments_of_a_connection_are_counted_per_direction() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut dialled = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        dialled.set_nodelay(true).unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        let mut byte = [0];
        for _ in 0..5 {
            dialled.write_all(&[7]).unwrap();
            accepted.read_exact(&mut byte).unwrap();
        }
        let counts = count(&[port], &[port]).expect("this kernel has inet_diag");
        assert_eq!((counts.controller_in, counts.controller_out), (5, 0));
        assert_eq!((counts.switch_in, counts.switch_out), (0, 5));
    }
}
