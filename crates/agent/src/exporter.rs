//! Sends datagrams to a collector, many per system call. A collector that is down costs nothing but its samples.

use crate::error::{Error, Result};
use crate::sflow::{DatagramBuilder, Origin};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg};
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
        // Made for each batch: it holds pointers, and would tie the exporter to one thread.
        let mut headers = MultiHeaders::<SockaddrStorage>::preallocate(BATCH, None);
        while from < self.filled {
            let batch = self.waiting.get(from..self.filled).unwrap_or_default();
            let slices: Vec<[IoSlice<'_>; 1]> =
                batch.iter().map(|one| [IoSlice::new(one)]).collect();
            let nobody: Vec<Option<SockaddrStorage>> = vec![None; batch.len()];
            let flags = MsgFlags::MSG_DONTWAIT;
            let taken =
                sendmmsg(self.socket.as_raw_fd(), &mut headers, &slices, &nobody, [], flags)
                    .map(Iterator::count);
            match taken {
                Ok(count) if count > 0 => {
                    from += count;
                    self.sent.datagrams += count as u64;
                }
                Err(Errno::EINTR) => {}
                // ECONNREFUSED tells of an earlier datagram; this one has not been tried.
                Err(Errno::ECONNREFUSED) => {
                    self.sent.lost += 1;
                    from += 1;
                }
                _ => {
                    self.sent.lost += (self.filled - from) as u64;
                    break;
                }
            }
        }
        self.filled = 0;
    }
}
