//! A random sample of an interface's frames, drawn in the kernel.
//!
//! The kernel runs the filter of a packet socket when a frame arrives. The filter draws a random number. If the number
//! is below the limit, the kernel copies the first bytes of the frame into a ring that this process shares. For other
//! frames the kernel copies nothing and wakes no process. The sampler needs neither tc nor eBPF, and adds no work to
//! the interface's own path.

use crate::error::{Error, Result};
use packet::{Capture, CaptureOptions, Filter, RandomSample};
use std::time::Duration;

/// The options of a sampler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplerOptions {
    /// The share of sampled frames, 0 to 1.
    pub rate: f64,
    /// The number of bytes of a frame to take; 128 is usual for sFlow.
    pub header: u32,
    /// UDP datagrams to this port are not sampled: the datagrams carry mirrored frames.
    pub except_port: Option<u16>,
    /// The size of the ring in bytes; frames that do not fit are counted as dropped.
    pub memory: usize,
    /// The time that samples wait for more samples before the kernel hands the samples over.
    pub wait: Duration,
}

impl Default for SamplerOptions {
    /// All frames, 128 bytes of each frame, a ring of 4 MiB; VXLAN is not sampled.
    fn default() -> SamplerOptions {
        SamplerOptions {
            rate: 1.0,
            header: 128,
            except_port: Some(crate::mirror::VXLAN_PORT),
            memory: 4 << 20,
            // A sample is not urgent, and one wake-up per block is cheap.
            wait: Duration::from_millis(50),
        }
    }
}

/// Counters since the sampler was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Frames that the filter chose.
    pub chosen: u64,
    /// Chosen frames that the full ring lost.
    pub dropped: u64,
}

/// A running sampler.
pub struct Sampler {
    capture: Capture,
    /// The most bytes of a frame to take.
    kept: usize,
}

const BLOCK: usize = 1 << 16;

impl Sampler {
    /// Samples received frames of that interface in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::Option`] for a rate outside 0 to 1, or a ring of less than 128 KiB or more than 1 GiB;
    /// [`Error::Packet`] when the interface does not exist or the process lacks privileges.
    pub fn open(interface: &str, options: &SamplerOptions) -> Result<Sampler> {
        if !(0.0..=1.0).contains(&options.rate) {
            return Err(Error::Option(format!(
                "the sampling rate {} is not within 0 to 1",
                options.rate
            )));
        }
        let blocks = options.memory / BLOCK;
        if !(2..=(1 << 30) / BLOCK).contains(&blocks) {
            return Err(Error::Option(format!(
                "a ring of {} bytes is not within 128 KiB to 1 GiB",
                options.memory
            )));
        }
        // At least the Ethernet header is kept.
        let kept = options.header.max(14);
        let sample = RandomSample {
            below: RandomSample::limit(options.rate),
            keep: kept,
            except_port: options.except_port,
            source: None,
        };
        let capture = CaptureOptions {
            filter: Some(Filter::random(&sample)),
            block_size: BLOCK,
            blocks,
            block_timeout: options.wait,
            // Nobody needs the time of a sample, and frames that are not sampled should not cost a timestamp.
            arrival_stamps: false,
            ..CaptureOptions::default()
        };
        Ok(Sampler { capture: Capture::open(interface, &capture)?, kept: kept as usize })
    }

    /// Hands every sample that is ready, or that arrives within `patience`, to `take`: the first bytes of the frame and
    /// its length on the wire. Returns the number of samples.
    ///
    /// # Errors
    /// [`Error::Packet`] when the interface disappeared.
    pub fn read(
        &mut self,
        patience: Duration,
        mut take: impl FnMut(&[u8], usize),
    ) -> Result<usize> {
        let Some(block) = self.capture.next_block(patience)? else { return Ok(0) };
        let mut count = 0;
        for frame in block.frames() {
            // With its VLAN tag, a frame may have more bytes than requested.
            take(frame.data.get(..self.kept).unwrap_or(frame.data), frame.length);
            count += 1;
        }
        Ok(count)
    }

    /// The counters so far.
    ///
    /// # Errors
    /// [`Error::Packet`] when the kernel does not return the counters.
    pub fn taken(&mut self) -> Result<Taken> {
        let statistics = self.capture.statistics()?;
        Ok(Taken { chosen: statistics.packets, dropped: statistics.drops })
    }
}

/// Runs `work` in that network namespace, or in the thread's own namespace.
pub(crate) fn within<T: Send>(
    namespace: Option<&str>,
    work: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    match namespace {
        Some(namespace) => packet::in_namespace(namespace, work)?,
        None => work(),
    }
}
