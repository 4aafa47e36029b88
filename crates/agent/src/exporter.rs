//! Sends datagrams to a collector, many datagrams per system call. When a collector is down, only its samples are lost.

use crate::error::{Error, Result};
use crate::sflow::{DatagramBuilder, Origin};
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg, sendmsg,
};
use std::io::IoSlice;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Instant;

/// The most datagrams that wait.
const BATCH: usize = 64;

/// Counters of an exporter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Samples that the exporter put into datagrams.
    pub samples: u64,
    /// Datagrams that the kernel accepted.
    pub datagrams: u64,
    /// Datagrams that the kernel did not accept: its buffer was full, or no process listens at the collector's address.
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
    /// True until the kernel refuses UDP segmentation.
    can_segment: bool,
}

impl Exporter {
    /// An exporter to `collector`, for samples of `origin` at the rate 1/`one_in`. The socket belongs to the calling
    /// thread's network namespace.
    ///
    /// # Errors
    /// [`Error::Io`] when there is no route to the collector.
    pub fn new(collector: SocketAddr, origin: Origin, one_in: f64) -> Result<Exporter> {
        let fail = |error| Error::io(format!("send to the collector {collector}"), error);
        let socket = UdpSocket::bind(own_address(collector)).map_err(fail)?;
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

    /// Adds a sample with its own rate 1/`one_in`.
    pub fn add_at(&mut self, header: &[u8], length: usize, one_in: f64) {
        if self.builder.is_full_for(header.len()) {
            self.finish_datagram();
        }
        self.builder.add_at(header, length, one_in);
        self.sent.samples += 1;
    }

    /// Sets the number of lost samples so far, for the next samples.
    pub fn set_drops(&mut self, drops: u64) {
        self.builder.set_drops(drops);
    }

    /// Sends all waiting samples.
    pub fn flush(&mut self) {
        self.finish_datagram();
        self.send();
    }

    /// The counters so far.
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
                // ECONNREFUSED belongs to an earlier datagram; the kernel did not try the present datagrams.
                Err(Errno::ECONNREFUSED) => {
                    self.sent.lost += tried as u64;
                    from += tried;
                }
                // The kernel or the route cannot segment a buffer into datagrams.
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

    /// All datagrams pass the kernel's network code once; the kernel segments the buffer at the end (UDP_SEGMENT).
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
        // The headers hold pointers and would tie the exporter to one thread. Therefore each batch gets new headers.
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(BATCH, None);
        let slices: Vec<[IoSlice<'_>; 1]> = batch.iter().map(|one| [IoSlice::new(one)]).collect();
        let nobody: Vec<Option<SockaddrStorage>> = vec![None; batch.len()];
        let flags = MsgFlags::MSG_DONTWAIT;
        sendmmsg(self.socket.as_raw_fd(), &mut headers, &slices, &nobody, [], flags)
            .map(Iterator::count)
    }
}

/// The address by which a socket gets the source address and port that the kernel chooses for that receiver.
pub(crate) fn own_address(receiver: SocketAddr) -> SocketAddr {
    let any: IpAddr = match receiver {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(any, 0)
}

/// Fewer datagrams are sent as quickly one by one.
const WORTH_SEGMENTING: usize = 3;
/// The most bytes of a buffer before segmentation, and the most segments.
const LARGEST_UNCUT: usize = 65_000;
const MOST_CUTS: usize = 64;

/// The number of first datagrams that the kernel can segment from one buffer. All datagrams have one size; only the
/// last datagram may be smaller.
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
    fn datagrams_of_equal_length_are_segmented_from_one_buffer_up_to_the_limit() {
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

    /// Datagrams arrive complete and in order, with segmentation and without segmentation.
    #[test]
    fn samples_arrive_with_and_without_udp_segmentation() {
        let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
        collector.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        for can_segment in [true, false] {
            let origin = Origin { agent: [192, 0, 2, 1].into(), sub_agent: 0, interface: 1 };
            let mut exporter = Exporter::new(collector.local_addr().unwrap(), origin, 1.0).unwrap();
            exporter.can_segment = can_segment;
            // First all headers have one length, then two lengths.
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
