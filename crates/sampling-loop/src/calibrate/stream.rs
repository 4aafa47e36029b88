//! The load: frames from one host to another, as fast as server and switch can forward them. Its throughput is T(s).
//!
//! ```text
//!   send ──▶ eth0 ══ switch ══ eth0 ──▶ receive the last of a batch
//!    ▲                                    │
//!    └────────────────────────────────────┘
//! ```
//!
//! One thread gives the kernel a batch in one buffer and sleeps until the last frame has arrived. The kernel cuts the
//! buffer into frames where they leave (UDP_SEGMENT). The receiving socket's filter drops all other frames, because the
//! work of the load's ends is of no interest. No thread waits busily, and switch and samplers share the CPU with this
//! thread, so the frames per second are the inverse of the total cost of a frame. Batches keep the rate steady: a
//! switch's cost per frame depends on how many frames it finds when it wakes, which is random with a TCP stream.
//!
//! Kernels before 6.11 do not cut a buffer if the interface leaves checksums to them, as the lab's interfaces do for
//! the userspace datapath. There the thread sends a batch frame by frame, with one call each.

use anyhow::{Context, ensure};
use lab::Lab;
use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use packet::{Filter, in_namespace};
use std::fs;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// Bytes of a frame's headers.
const HEADERS: usize = 14 + 20 + 8;
/// The most bytes that the kernel cuts into datagrams, without the headers of IPv4 and UDP.
const MOST_TOGETHER: usize = 65_507;
/// The first byte of a batch's last frame; the batch's number follows.
const LAST: u8 = 1;
/// After this time without an arrival, the remaining frames count as lost.
const PATIENCE: Duration = Duration::from_millis(100);
const PORT: u16 = 5001;

/// The frames that are sent together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    frames: usize,
    /// The bytes of each payload.
    payload: usize,
}

impl Batch {
    /// A batch of so many frames of this length, without the frame check sequence.
    pub(crate) fn of(frames: u16, length: u16) -> Result<Batch, sampling::Error> {
        let (frames, payload) = (usize::from(frames), usize::from(length).saturating_sub(HEADERS));
        if frames * payload > MOST_TOGETHER {
            return Err(sampling::Error::Input {
                place: "--batch".to_owned(),
                message: format!(
                    "the kernel cuts at most {MOST_TOGETHER} bytes: {} frames of {length} bytes",
                    MOST_TOGETHER / payload
                ),
            });
        }
        Ok(Batch { frames, payload })
    }

    fn bytes(self) -> usize {
        self.frames * self.payload
    }
}

/// The two ends.
pub(crate) struct Stream {
    sender: UdpSocket,
    receiver: UdpSocket,
    /// The receiver's address.
    namespace: String,
    batch: Batch,
    /// Whether the kernel cuts a batch into frames.
    is_cut: bool,
    number: u32,
    sent: u64,
    /// The receiver's interface counter at the start.
    before: u64,
}

impl Stream {
    /// A stream from one host of the lab to another.
    pub(crate) fn open(
        lab: &Lab,
        [first, second]: [&str; 2],
        batch: Batch,
    ) -> anyhow::Result<Stream> {
        let address = |name| {
            let host = lab.topology().host(name).context("the lab lacks a host")?;
            anyhow::Ok((host.ip, PORT))
        };
        let (from, to) = (address(first)?, address(second)?);
        let bind = |host: &str, address| -> anyhow::Result<UdpSocket> {
            let socket = in_namespace(&lab.namespace(host)?, || UdpSocket::bind(address))?;
            socket.with_context(|| format!("cannot open a socket at {host}"))
        };
        let (sender, receiver) = (bind(first, from)?, bind(second, to)?);
        sender.connect(to).with_context(|| format!("{first} has no way to {second}"))?;
        receiver.connect(from).with_context(|| format!("{second} has no way to {first}"))?;
        receiver.set_read_timeout(Some(PATIENCE)).context("cannot set a timeout")?;
        Filter::first_byte(LAST).attach(&receiver)?;
        let is_cut = setsockopt(&sender, sockopt::UdpGsoSegment, &(batch.payload as i32)).is_ok();
        let namespace = lab.namespace(second)?;
        let before = frames_in(&namespace)?;
        Ok(Stream { sender, receiver, namespace, batch, is_cut, number: 0, sent: 0, before })
    }

    /// Sends a frame in the other direction. The switch has learned the port of its sender, and would forget it.
    pub(crate) fn remind(&self) -> anyhow::Result<()> {
        self.receiver.send(&[0]).context("cannot send from the second host")?;
        Ok(())
    }

    /// The number of frames that arrive within this time, and the real time.
    pub(crate) fn run(&mut self, time: Duration) -> anyhow::Result<(u64, Duration)> {
        let mut batch = [0; MOST_TOGETHER];
        let batch = &mut batch[..self.batch.bytes()];
        let frames = self.batch.frames as u64;
        let start = Instant::now();
        let mut arrived = 0;
        loop {
            self.number = self.number.wrapping_add(1);
            let last = batch.len() - self.batch.payload;
            batch[last] = LAST;
            batch[last + 1..last + 5].copy_from_slice(&self.number.to_be_bytes());
            self.hand_over(batch).context("cannot send from the first host")?;
            self.sent += frames;
            if self.arrives()? {
                arrived += frames;
            }
            let took = start.elapsed();
            if took >= time {
                return Ok((arrived, took));
            }
        }
    }

    fn hand_over(&mut self, batch: &[u8]) -> anyhow::Result<()> {
        if self.is_cut {
            match self.sender.send(batch) {
                Err(error) if error.raw_os_error() == Some(Errno::EIO as i32) => {
                    setsockopt(&self.sender, sockopt::UdpGsoSegment, &0)?;
                    self.is_cut = false;
                }
                sent => {
                    ensure!(sent? == batch.len(), "a part of a batch was sent");
                    return Ok(());
                }
            }
        }
        for payload in batch.chunks(self.batch.payload) {
            self.sender.send(payload)?;
        }
        Ok(())
    }

    /// Waits for the last frame of the batch under way; false if it does not come.
    fn arrives(&self) -> anyhow::Result<bool> {
        let mut buffer = [0; 5];
        loop {
            match self.receiver.recv(&mut buffer) {
                // A frame that counted as lost may still arrive.
                Ok(_) if buffer[1..] != self.number.to_be_bytes() => {}
                Ok(_) => return Ok(true),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("cannot receive at the second host"),
            }
        }
    }

    /// The frames so far that did not arrive.
    pub(crate) fn lost(&self) -> anyhow::Result<u64> {
        Ok(self.sent.saturating_sub(frames_in(&self.namespace)? - self.before))
    }
}

/// Frames that a host's interface has received.
fn frames_in(namespace: &str) -> anyhow::Result<u64> {
    let counters = in_namespace(namespace, || fs::read_to_string("/proc/thread-self/net/dev"))?;
    let counters = counters.context("cannot read an interface's counters")?;
    let line = counters.lines().find_map(|line| line.trim().strip_prefix("eth0:"));
    // Bytes come first, then packets.
    let packets = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    packets.context("a host lacks eth0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_sent_as_frames_with_and_without_kernel_segmentation() {
        let batch = Batch { frames: 3, payload: 100 };
        for is_cut in [true, false] {
            let [sender, receiver] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
            sender.connect(receiver.local_addr().unwrap()).unwrap();
            receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            if is_cut {
                setsockopt(&sender, sockopt::UdpGsoSegment, &100).unwrap();
            }
            let namespace = String::new();
            let (number, sent, before) = (0, 0, 0);
            let mut stream =
                Stream { sender, receiver, namespace, batch, is_cut, number, sent, before };
            stream.hand_over(&[7; 300]).unwrap();
            assert_eq!(stream.is_cut, is_cut);
            for _ in 0..3 {
                assert_eq!(stream.receiver.recv(&mut [0; 300]).unwrap(), 100);
            }
        }
    }
}
