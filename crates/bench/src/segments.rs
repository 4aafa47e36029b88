//! Messages per TCP segment, asked of the kernel over `sock_diag` netlink: whether batching and
//! Nagle's algorithm did what the settings say, at the generator and at the system under test.

use crate::track::Counts;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::os::fd::OwnedFd;

/// How many messages went into one TCP segment with data, on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segments {
    /// Segments per second that the sockets next to the controllers received.
    pub controller_in_per_s: f64,
    /// Segments per second that the sockets next to the controllers sent.
    pub controller_out_per_s: f64,
    /// Segments per second that the sockets next to the switches received.
    pub switch_in_per_s: f64,
    /// Segments per second that the sockets next to the switches sent.
    pub switch_out_per_s: f64,
    /// Messages received in the window per data segment of the side where they arrived: the busier
    /// of the two sides' incoming segments.
    pub messages_per_segment: f64,
    /// Messages that the generator sent in the window per data segment that it sent: what batching and
    /// Nagle's algorithm made of them. 0 where it sent none over sockets.
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
        seconds: f64,
        by_sockets: bool,
    ) -> Self {
        let per_s = |after: u64, before: u64| after.saturating_sub(before) as f64 / seconds;
        let mut segments = Self {
            controller_in_per_s: per_s(after.controller_in, before.controller_in),
            controller_out_per_s: per_s(after.controller_out, before.controller_out),
            switch_in_per_s: per_s(after.switch_in, before.switch_in),
            switch_out_per_s: per_s(after.switch_out, before.switch_out),
            messages_per_segment: 0.0,
            sent_per_segment: 0.0,
        };
        let busier = segments.controller_in_per_s.max(segments.switch_in_per_s);
        if busier > 0.0 {
            segments.messages_per_segment = counts.received as f64 / seconds / busier;
        }
        let busier = segments.controller_out_per_s.max(segments.switch_out_per_s);
        if by_sockets && busier > 0.0 {
            segments.sent_per_segment = counts.sent as f64 / seconds / busier;
        }
        segments
    }
}

/// Adds up the data segments of all connections to `controller_ports` (as the listening side sees
/// them) and to `switch_ports` (as the dialling side does). `None` when the kernel does not say.
pub(crate) fn count(controller_ports: &[u16], switch_ports: &[u16]) -> Option<SegmentCounts> {
    let (mut controllers, mut switches) = (controller_ports.to_vec(), switch_ports.to_vec());
    controllers.sort_unstable();
    switches.sort_unstable();
    let mut counts = SegmentCounts::default();
    let kind = SocketType::DGRAM;
    let flags = SocketFlags::CLOEXEC;
    let socket =
        rustix::net::socket_with(AddressFamily::NETLINK, kind, flags, Some(SOCK_DIAG)).ok()?;
    for family in [AddressFamily::INET, AddressFamily::INET6] {
        dump(&socket, family, |connection| {
            if controllers.binary_search(&connection.local_port).is_ok() {
                counts.controller_in += connection.data_in;
                counts.controller_out += connection.data_out;
            }
            if switches.binary_search(&connection.remote_port).is_ok() {
                counts.switch_in += connection.data_in;
                counts.switch_out += connection.data_out;
            }
        })?;
    }
    Some(counts)
}

struct Connection {
    local_port: u16,
    remote_port: u16,
    data_in: u64,
    data_out: u64,
}

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const REQUEST_DUMP: u16 = 0x301;
const DONE: u16 = 3;
const ERROR: u16 = 2;
const INET_DIAG_INFO: u16 = 2;
const TCP: u8 = 6;
const ESTABLISHED: u32 = 1 << 1;
/// `struct nlmsghdr` and `struct inet_diag_msg`.
const NLMSG_LEN: usize = 16;
const DIAG_LEN: usize = 72;
/// Where `struct tcp_info` has its counts of segments with data.
const DATA_SEGS_IN: usize = 152;
const DATA_SEGS_OUT: usize = 156;

/// Asks for all established TCP connections of a family.
fn dump(socket: &OwnedFd, family: AddressFamily, mut each: impl FnMut(Connection)) -> Option<()> {
    let mut request = Vec::with_capacity(NLMSG_LEN + 56);
    request.extend_from_slice(&(NLMSG_LEN as u32 + 56).to_ne_bytes());
    request.extend_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend_from_slice(&REQUEST_DUMP.to_ne_bytes());
    request.extend_from_slice(&[0; 8]);
    request.extend_from_slice(&[family.as_raw() as u8, TCP, 1 << (INET_DIAG_INFO - 1), 0]);
    request.extend_from_slice(&ESTABLISHED.to_ne_bytes());
    request.resize(NLMSG_LEN + 56, 0);
    let kernel = SocketAddrNetlink::new(0, 0);
    rustix::net::sendto(socket, &request, SendFlags::empty(), &kernel).ok()?;
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let (count, _) = rustix::net::recv(socket, &mut buffer[..], RecvFlags::empty()).ok()?;
        let mut rest = buffer.get(..count)?;
        while rest.len() >= NLMSG_LEN {
            let length = ne32(rest, 0)? as usize;
            match ne16(rest, 4)? {
                DONE => return Some(()),
                ERROR => return None,
                _ => {
                    if let Some(connection) = rest.get(..length).and_then(connection) {
                        each(connection);
                    }
                }
            }
            rest = rest.get(length.next_multiple_of(4).max(NLMSG_LEN)..).unwrap_or_default();
        }
    }
}

fn connection(message: &[u8]) -> Option<Connection> {
    let diag = message.get(NLMSG_LEN..)?;
    let port = |at: usize| Some(u16::from_be_bytes(*diag.get(at..)?.first_chunk()?));
    let mut attributes = diag.get(DIAG_LEN..)?;
    while let (Some(length), Some(kind)) = (ne16(attributes, 0), ne16(attributes, 2)) {
        let length = usize::from(length);
        if kind == INET_DIAG_INFO {
            let info = attributes.get(4..length)?;
            return Some(Connection {
                local_port: port(4)?,
                remote_port: port(6)?,
                data_in: u64::from(ne32(info, DATA_SEGS_IN)?),
                data_out: u64::from(ne32(info, DATA_SEGS_OUT)?),
            });
        }
        attributes = attributes.get(length.next_multiple_of(4).max(4)..)?;
    }
    None
}

fn ne16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|b| u16::from_ne_bytes(*b))
}

fn ne32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_ne_bytes(*b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn segments_of_one_connection() {
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
