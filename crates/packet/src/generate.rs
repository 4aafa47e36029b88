//! Sends probes at a rate, open loop: each has its intended time, whatever became of the one before.
//!
//! On veth the kernel delivers a frame in the sender's turn, so the receiver's work is paid here.
//! Measured per CPU second, 60-byte frames in batches of 64: 750,000 that nobody captures, 540,000
//! captured by a filtered ring, and 270,000 captured that are addressed to the receiving host,
//! whose protocol stack answers each with an ICMP error. So address probes to a hardware address
//! that nobody has, unless a host is what is to be tested.
//! (`cargo test --release -p weir-packet --test root_rings measure -- --ignored --nocapture`)

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::probe::Probes;
use crate::timestamp::Timestamp;
use crate::transmit::Transmitter;

/// What to send and when.
#[derive(Clone, Copy, Debug)]
pub struct GenerateOptions {
    /// Probes per second.
    pub rate: f64,
    /// How many probes.
    pub count: u32,
    /// Sequence number of the first.
    pub first: u32,
    /// By how much probes may leave late. The generator needs a whole core to spin between the probes of a high rate;
    /// from 150 µs on it sleeps and leaves the core to others.
    pub tolerance: Duration,
}

/// What was sent.
#[derive(Clone, Copy, Debug)]
pub struct GenerateReport {
    /// Probes that the kernel took: those with the first `sent` sequence numbers.
    pub sent: u32,
    /// How often the kernel took less than a batch because the interface's queue was full.
    pub refusals: u64,
    /// Intended time of the first probe.
    pub start: Timestamp,
    /// Time between the intended times of consecutive probes, in nanoseconds.
    pub interval: f64,
    /// From the first intended time until the last probe was handed over.
    pub elapsed: Duration,
    /// Largest and mean time by which probes left later than intended.
    pub worst_lateness: Duration,
    /// See `worst_lateness`.
    pub mean_lateness: Duration,
    /// System calls that sent something.
    pub batches: u64,
}

impl GenerateReport {
    /// Intended time of the n-th probe, counted from 0.
    pub fn intended(&self, number: u32) -> Timestamp {
        Timestamp(self.start.0 + (f64::from(number) * self.interval) as u64)
    }

    /// Probes per second that were really sent.
    pub fn rate(&self) -> f64 {
        f64::from(self.sent) / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// The generator spins through the last part of a wait, this long, because the kernel wakes a sleeping thread about 60
/// µs late. It sleeps instead if probes may be late by as much.
const SPIN: Duration = Duration::from_micros(150);

/// Sends probes until all are sent or `stop` is set.
///
/// Each probe is stamped with the time at which it is handed over, not the intended one; the
/// report gives the intended times. When the generator falls behind it catches up in full batches
/// and says so in its lateness.
pub fn generate(
    transmitter: &mut Transmitter,
    probes: &mut impl Probes,
    options: &GenerateOptions,
    stop: &AtomicBool,
) -> Result<GenerateReport> {
    let interval = 1e9 / options.rate;
    // A year between probes is as good as never; it also keeps the arithmetic in range.
    if !(interval > 0.0 && interval < 3e16) {
        return Err(Error::Invalid(format!("{} probes per second is not a rate", options.rate)));
    }
    let batch = u32::try_from(transmitter.batch()).unwrap_or(u32::MAX);
    let (origin, start) = (Instant::now(), Timestamp::now());
    let spin = if options.tolerance >= SPIN { Duration::ZERO } else { SPIN };
    let due = |number: u32| Duration::from_nanos((f64::from(number) * interval) as u64);
    let (mut sent, mut refusals, mut batches) = (0_u32, 0, 0);
    let (mut worst, mut total) = (Duration::ZERO, Duration::ZERO);
    while sent < options.count && !stop.load(Ordering::Relaxed) {
        let now = origin.elapsed();
        let wait = due(sent).saturating_sub(now);
        if !wait.is_zero() {
            if wait > spin {
                // Not longer than this at a time, so that `stop` is seen soon.
                std::thread::sleep((wait - spin).min(Duration::from_millis(50)));
            } else {
                std::hint::spin_loop();
            }
            continue;
        }
        let ready = ((now.as_nanos() as f64 / interval) as u32).saturating_add(1);
        let ready = ready.min(options.count).saturating_sub(sent).clamp(1, batch);
        let time = start.plus(now);
        let taken = transmitter.send(ready as usize, |index, slot| {
            let sequence = options.first.wrapping_add(sent).wrapping_add(index as u32);
            let frame = probes.stamp(sequence, time);
            if let Some(slot) = slot.get_mut(..frame.len()) {
                slot.copy_from_slice(frame);
            }
            frame.len()
        })?;
        let taken = u32::try_from(taken).unwrap_or(0).min(ready);
        refusals += u64::from(taken < ready);
        batches += u64::from(taken > 0);
        // The first of the batch is the latest; they are evenly spaced.
        let latest = now.saturating_sub(due(sent));
        let earliest = now.saturating_sub(due((sent + taken).saturating_sub(1)));
        worst = worst.max(latest);
        total += (latest + earliest) / 2 * taken;
        sent += taken;
    }
    Ok(GenerateReport {
        sent,
        refusals,
        start,
        interval,
        elapsed: origin.elapsed(),
        worst_lateness: worst,
        mean_lateness: total.checked_div(sent).unwrap_or_default(),
        batches,
    })
}
