//! Sends datagrams to a collector, many per system call. A collector that is down costs nothing but its samples.

use crate::error::{Error, Result};
use crate::sflow::{DatagramBuilder, Origin};
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg, sendmsg,
};
use std::io::IoSlice;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Instant;

/// How many datagrams wait at the most.
const BATCH: usize = 64;

/// What became of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Samples that were put into datagrams.
    pub samples: u64,
    /// Datagrams that the kernel took.
    pub datagrams: u64,
    /// Datagrams that it did not take: its buffer was full, or nobody listens there.
    pub lost: u64,
}

/// A stream of samples to one collector.
pub struct Exporter {
    socket: UdpSocket,
    builder: DatagramBuilder,
    waiting: Vec<Vec<u8>>,
    filled: usize,
    started: Instant,
    sent: Sent,
    /// Until the kernel says that it cannot.
    can_segment: bool,
}

impl Exporter {
    /// To `collector`, samples of `origin` that are taken at the rate 1/`one_in`. The socket belongs to the calling
    /// thread's network namespace.
    ///
    /// # Errors
    /// [`Error::Io`] when there is no way to the collector.
    pub fn new(collector: SocketAddr, origin: Origin, one_in: f64) -> Result<Exporter> {
        let here: SocketAddr = if collector.is_ipv4() {
            (std::net::Ipv4Addr::UNSPECIFIED, 0).into()
        } else {
            (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
        };
        let fail = |error| Error::io(format!("send to the collector {collector}"), error);
        let socket = UdpSocket::bind(here).map_err(fail)?;
        socket.connect(collector).map_err(fail)?;
        socket.set_nonblocking(true).map_err(fail)?;
        Ok(Exporter {
            socket,
            builder: DatagramBuilder::new(origin, one_in),
            waiting: vec![Vec::new(); BATCH],
            filled: 0,
            started: Instant::now(),
            sent: Sent::default(),
            can_segment: true,
        })
    }

    /// Adds a sample: the first bytes of a frame, and its length on the wire.
    pub fn add(&mut self, header: &[u8], length: usize) {
        if self.builder.is_full_for(header.len()) {
            self.finish_datagram();
        }
        self.builder.add(header, length);
        self.sent.samples += 1;
    }

    /// The same for a sample taken at a rate of its own: 1/`one_in`.
    pub fn add_at(&mut self, header: &[u8], length: usize, one_in: f64) {
        if self.builder.is_full_for(header.len()) {
            self.finish_datagram();
        }
        self.builder.add_at(header, length, one_in);
        self.sent.samples += 1;
    }

    /// States with the next samples how many were lost so far.
    pub fn set_drops(&mut self, drops: u64) {
        self.builder.set_drops(drops);
    }

    /// Sends what waits, however little.
    pub fn flush(&mut self) {
        self.finish_datagram();
        self.send();
    }

    /// What became of samples so far.
    #[must_use]
    pub fn sent(&self) -> Sent {
        self.sent
    }

    fn finish_datagram(&mut self) {
        let uptime = self.started.elapsed().as_millis() as u32;
        let Some(bytes) = self.builder.finish(uptime) else { return };
        if let Some(place) = self.waiting.get_mut(self.filled) {
            place.clear();
            place.extend_from_slice(bytes);
            self.filled += 1;
        }
        if self.filled == self.waiting.len() {
            self.send();
        }
    }

    fn send(&mut self) {
        let mut from = 0;
        while from < self.filled {
            let waiting = self.waiting.get(from..self.filled).unwrap_or_default();
            let alike = alike(waiting);
            let as_one = self.can_segment && alike >= WORTH_SEGMENTING;
            let (tried, taken) = if as_one {
                (alike, self.send_as_one(from, alike))
            } else {
                (1, self.send_one_by_one(from))
            };
            match taken {
                Ok(count) if count > 0 => {
                    from += count;
                    self.sent.datagrams += count as u64;
                }
                Err(Errno::EINTR) => {}
                // ECONNREFUSED tells of an earlier datagram; these have not been tried.
                Err(Errno::ECONNREFUSED) => {
                    self.sent.lost += tried as u64;
                    from += tried;
                }
                // A kernel or a way that cannot cut a buffer into datagrams.
                Err(Errno::EINVAL | Errno::EIO | Errno::EOPNOTSUPP | Errno::EMSGSIZE) if as_one => {
                    self.can_segment = false;
                }
                _ => {
                    self.sent.lost += (self.filled - from) as u64;
                    break;
                }
            }
        }
        self.filled = 0;
    }

    /// One pass through the kernel's network code for all of them, which it cuts apart at the end (UDP_SEGMENT).
    fn send_as_one(&mut self, from: usize, count: usize) -> Result<usize, Errno> {
        let batch = self.waiting.get(from..from + count).unwrap_or_default();
        let size = batch.first().map_or(0, |one| one.len() as u16);
        let slices: Vec<IoSlice<'_>> = batch.iter().map(|one| IoSlice::new(one)).collect();
        let cut = [ControlMessage::UdpGsoSegments(&size)];
        let flags = MsgFlags::MSG_DONTWAIT;
        sendmsg::<SockaddrStorage>(self.socket.as_raw_fd(), &slices, &cut, flags, None)?;
        Ok(count)
    }

    fn send_one_by_one(&mut self, from: usize) -> Result<usize, Errno> {
        let batch = self.waiting.get(from..self.filled).unwrap_or_default();
        // Made for each batch: it holds pointers, and would tie the exporter to one thread.
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(BATCH, None);
        let slices: Vec<[IoSlice<'_>; 1]> = batch.iter().map(|one| [IoSlice::new(one)]).collect();
        let nobody: Vec<Option<SockaddrStorage>> = vec![None; batch.len()];
        let flags = MsgFlags::MSG_DONTWAIT;
        sendmmsg(self.socket.as_raw_fd(), &mut headers, &slices, &nobody, [], flags)
            .map(Iterator::count)
    }
}

/// Fewer are as quickly sent one by one.
const WORTH_SEGMENTING: usize = 3;
/// What a UDP datagram may have before it is cut, and into how many.
const LARGEST_UNCUT: usize = 65_000;
const MOST_CUTS: usize = 64;

/// How many of the first datagrams the kernel can cut from one buffer: all of one size, but for a smaller one at the end.
fn alike(waiting: &[Vec<u8>]) -> usize {
    let size = waiting.first().map_or(0, Vec::len);
    let most = (LARGEST_UNCUT / size.max(1)).min(MOST_CUTS);
    let same = waiting.iter().take(most).take_while(|one| one.len() == size).count();
    let is_smaller = |one: &Vec<u8>| one.len() < size;
    same + usize::from(same < most && waiting.get(same).is_some_and(is_smaller))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_can_be_cut_from_one_buffer() {
        for (sizes, expected) in [
            (&[][..], 0),
            (&[100], 1),
            (&[100, 100, 100], 3),
            (&[100, 100, 60, 100], 3),
            (&[100, 120, 100], 1),
            (&[60_000, 60_000], 1),
        ] {
            let waiting: Vec<Vec<u8>> = sizes.iter().map(|size| vec![0; *size]).collect();
            assert_eq!(alike(&waiting), expected, "{sizes:?}");
        }
        let many: Vec<Vec<u8>> = (0..100).map(|_| vec![0; 10]).collect();
        assert_eq!(alike(&many), MOST_CUTS);
    }

    /// However they are sent, datagrams arrive whole and in order.
    #[test]
    fn datagrams_arrive() {
        let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
        collector.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        for can_segment in [true, false] {
            let origin = Origin { agent: [192, 0, 2, 1].into(), sub_agent: 0, interface: 1 };
            let mut exporter = Exporter::new(collector.local_addr().unwrap(), origin, 1.0).unwrap();
            exporter.can_segment = can_segment;
            // Of headers of one length, and then of two.
            (0..150).for_each(|_| exporter.add(&[1; 128], 200));
            (0..15_usize).for_each(|turn| exporter.add(&vec![2; 60 + turn % 2 * 40], 100));
            exporter.flush();
            let sent = exporter.sent();
            let mut seen = crate::Collector::new(Vec::new(), crate::Limits::default());
            let mut buffer = [0; 2048];
            for _ in 0..sent.datagrams {
                let count = collector.recv(&mut buffer).unwrap();
                seen.add(&buffer[..count]).unwrap();
            }
            assert_eq!((sent.samples, sent.lost, exporter.can_segment), (165, 0, can_segment));
            assert_eq!((seen.total().samples, seen.missing()), (165, 0));
        }
    }
}
