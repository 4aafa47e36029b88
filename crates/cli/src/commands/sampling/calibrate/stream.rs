//! Frames from h1 to h2 as fast as server and switch bear them: the load whose throughput is T(s).
//!
//! ```text
//!   send ──▶ h1 eth0 ══ switch ══ h2 eth0 ──▶ receive
//!    ▲                                          │
//!    └──────────── when all have come ──────────┘
//! ```
//!
//! One thread hands the kernel a batch in one piece, which is cut into frames where they leave (UDP_SEGMENT), and yields the
//! CPU until all of them have arrived. It shares the CPU with the switch and the samplers, so the CPU always has something
//! to do, and what arrives per second is the inverse of what a frame costs, all together. Batches keep it steady:
//! what a switch spends on a frame depends on how many it finds when it wakes, and a TCP stream lets that be decided by chance.

use super::bridge::SWITCH;
use anyhow::{Context, ensure};
use lab::Lab;
use nix::sys::socket::{setsockopt, sockopt};
use packet::in_namespace;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::thread::yield_now;
use std::time::{Duration, Instant};

/// Frames that are handed over together.
const BATCH: usize = 64;
/// Bytes of a frame without the frame check sequence, and of its headers.
const LENGTH: usize = 1000;
const HEADERS: usize = 14 + 20 + 8;
/// After so long without an arrival, what is on its way counts as lost.
const PATIENCE: Duration = Duration::from_millis(100);
const PORT: u16 = 5001;

/// The two ends.
pub struct Stream {
    sender: UdpSocket,
    receiver: UdpSocket,
    on_the_way: usize,
    /// Frames that did not arrive in time.
    pub lost: u64,
}

impl Stream {
    pub fn open(lab: &Lab) -> anyhow::Result<Stream> {
        let address = |name| {
            let host = lab.topology().host(name).context("the lab lacks a host")?;
            anyhow::Ok((host.ip, PORT))
        };
        let (from, to) = (address("h1")?, address("h2")?);
        let bind = |host: &str, address| -> anyhow::Result<UdpSocket> {
            let socket = in_namespace(&lab.namespace(host)?, || UdpSocket::bind(address))?;
            let socket = socket.with_context(|| format!("cannot open a socket at {host}"))?;
            socket.set_nonblocking(true).context("cannot receive without waiting")?;
            Ok(socket)
        };
        let (sender, receiver) = (bind("h1", from)?, bind("h2", to)?);
        sender.connect(to).with_context(|| format!("h1 has no way through {SWITCH}"))?;
        receiver.connect(from).with_context(|| format!("h2 has no way through {SWITCH}"))?;
        setsockopt(&sender, sockopt::UdpGsoSegment, &((LENGTH - HEADERS) as i32))
            .context("this kernel cannot cut a buffer into datagrams (UDP_SEGMENT)")?;
        Ok(Stream { sender, receiver, on_the_way: 0, lost: 0 })
    }

    /// How many frames arrive within that time, and how long it really was.
    pub fn run(&mut self, time: Duration) -> anyhow::Result<(u64, Duration)> {
        let batch = [0; BATCH * (LENGTH - HEADERS)];
        // A frame the other way: the switch has learned where h2 is, and would forget it.
        self.receiver.send(&[0]).context("cannot send from h2")?;
        let start = Instant::now();
        let (mut arrived, mut last) = (0, start);
        loop {
            if self.on_the_way == 0 {
                let sent = self.sender.send(&batch).context("cannot send from h1")?;
                ensure!(sent == batch.len(), "h1 sent a part of a batch");
                self.on_the_way = BATCH;
            }
            yield_now();
            let got = self.receive()?;
            arrived += got as u64;
            let now = Instant::now();
            if got > 0 {
                last = now;
            } else if now - last > PATIENCE {
                self.lost += self.on_the_way as u64;
                self.on_the_way = 0;
            }
            if now - start >= time && self.on_the_way == 0 {
                return Ok((arrived, now - start));
            }
        }
    }

    /// Takes what is there.
    fn receive(&mut self) -> anyhow::Result<usize> {
        let mut count = 0;
        let mut buffer = [0; 64];
        while count < BATCH {
            match self.receiver.recv(&mut buffer) {
                Ok(_) => count += 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error).context("cannot receive at h2"),
            }
        }
        // What had been given up for lost may come after all.
        self.on_the_way = self.on_the_way.saturating_sub(count);
        Ok(count)
    }
}
