//! A random sample of an interface's frames, drawn in the kernel.
//!
//! A packet socket's filter is run where a frame comes in; it draws a random number, and only if that is below the
//! limit are the frame's first bytes copied, into a ring that this process shares. Of other frames nothing is copied,
//! and no process wakes for them. It needs neither tc nor eBPF, and adds nothing to the interface's own path.

use crate::error::{Error, Result};
use packet::{Capture, CaptureOptions, Filter, RandomSample};
use sampling::ranges::NUMBERS;
use std::time::Duration;

/// What to sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplerOptions {
    /// The share of frames, 0 to 1.
    pub rate: f64,
    /// How many bytes of a frame to take; 128 is sFlow's custom.
    pub header: u32,
    /// UDP to this port is not sampled: it carries mirrored frames.
    pub except_port: Option<u16>,
    /// The ring's size in bytes; what does not fit is counted as dropped.
    pub memory: usize,
    /// How long samples wait for others to be handed over with.
    pub wait: Duration,
}

impl Default for SamplerOptions {
    /// Every frame, 128 bytes of it, a ring of 4 MiB; VXLAN is excepted.
    fn default() -> SamplerOptions {
        SamplerOptions {
            rate: 1.0,
            header: 128,
            except_port: Some(crate::mirror::VXLAN_PORT),
            memory: 4 << 20,
            // A sample is not urgent, and a block per wake-up is cheap.
            wait: Duration::from_millis(50),
        }
    }
}

/// What was taken since the sampler was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Frames that the filter chose.
    pub chosen: u64,
    /// Of those, frames that the full ring lost.
    pub dropped: u64,
}

/// A running sampler.
pub struct Sampler {
    capture: Capture,
    options: SamplerOptions,
}

const BLOCK: usize = 1 << 16;

impl Sampler {
    /// Samples what comes in on that interface of the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::Option`] for a rate outside 0 to 1, or a ring of less than 128 KiB or more than 1 GiB; [`Error::Packet`]
    /// when there is no such interface or no privilege.
    pub fn open(interface: &str, options: &SamplerOptions) -> Result<Sampler> {
        let filter = filter(options)?;
        let blocks = options.memory / BLOCK;
        if !(2..=(1 << 30) / BLOCK).contains(&blocks) {
            return Err(Error::Option(format!(
                "a ring of {} bytes is not within 128 KiB to 1 GiB",
                options.memory
            )));
        }
        let capture = CaptureOptions {
            filter: Some(filter),
            block_size: BLOCK,
            blocks,
            block_timeout: options.wait,
            // Nobody asks a sample when it was; what passes by unsampled is not to pay for it.
            arrival_stamps: false,
            ..CaptureOptions::default()
        };
        Ok(Sampler { capture: Capture::open(interface, &capture)?, options: *options })
    }

    /// Samples at another rate from now on.
    ///
    /// # Errors
    /// As [`Sampler::open`].
    pub fn set_rate(&mut self, rate: f64) -> Result<()> {
        self.options.rate = rate;
        self.capture.set_filter(&filter(&self.options)?)?;
        Ok(())
    }

    /// Hands every sample that is there, or that comes within `patience`, to `take`: its first bytes, and its length on
    /// the wire. Returns how many there were.
    ///
    /// # Errors
    /// [`Error::Packet`] when the interface went away.
    pub fn read(
        &mut self,
        patience: Duration,
        mut take: impl FnMut(&[u8], usize),
    ) -> Result<usize> {
        let most = kept(&self.options) as usize;
        let Some(block) = self.capture.next_block(patience)? else { return Ok(0) };
        let mut count = 0;
        for frame in block.frames() {
            // With its VLAN tag a frame may have more than was asked for.
            take(frame.data.get(..most).unwrap_or(frame.data), frame.length);
            count += 1;
        }
        Ok(count)
    }

    /// What was taken so far.
    ///
    /// # Errors
    /// [`Error::Packet`] when the kernel does not tell.
    pub fn taken(&mut self) -> Result<Taken> {
        let statistics = self.capture.statistics()?;
        Ok(Taken { chosen: statistics.packets, dropped: statistics.drops })
    }
}

fn filter(options: &SamplerOptions) -> Result<Filter> {
    if !(0.0..=1.0).contains(&options.rate) {
        return Err(Error::Option(format!(
            "the sampling rate {} is not within 0 to 1",
            options.rate
        )));
    }
    Ok(Filter::random(&RandomSample {
        below: (options.rate * NUMBERS as f64).round() as u64,
        keep: kept(options),
        except_port: options.except_port,
        source: None,
    }))
}

/// At least the Ethernet header.
fn kept(options: &SamplerOptions) -> u32 {
    options.header.max(14)
}
