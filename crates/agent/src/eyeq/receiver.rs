//! A VNIC as a receiver: whether the VNIC is congested, and the rate that each sender may send to the VNIC.

use super::{SILENCE, Vnic, WINDOW};
use fabric::edge::{Grant, Report};
use fabric::meter::Meter;
use fabric::share::{Demand, max_min};
use fabric::time::nanos;
use fabric::{Bandwidth, Duration, Instant, MacAddress};
use std::collections::BTreeMap;

/// The threshold of congestion, in hundredths of the bandwidth.
const BUSY: u128 = 90;
/// The time that congestion lasts after its last sign: a gap in a burst does not end congestion.
const MEMORY: Duration = Duration::from_millis(200);
/// Data that is queued in the network is to drain in this time.
const DRAIN: Duration = Duration::from_millis(100);
/// The most of a sender's share that draining takes: less than a twentieth, also together with the random variation of
/// the frames in a tenth of a second.
const MOST_DRAIN: f64 = 0.02;
/// The factor above which the meter contradicts the shares: then traffic arrives that no agent shapes.
const OVER: f64 = 1.03;
/// Bits per second: a difference of two frames in the meter's window is no contradiction.
const GRAIN: f64 = 2.0 * 1514.0 * 8.0 / 0.05;
/// The smallest share that remains for shaped traffic when other traffic needs room.
const LEAST_TRIM: f64 = 0.5;
/// A longer pause between two steps (for example of a suspended process) counts as this time.
const LONGEST_STEP: Duration = Duration::from_millis(100);

/// A VNIC of this agent as a receiver.
pub struct Receiver {
    vnic: Vnic,
    meter: Meter,
    senders: BTreeMap<MacAddress, Source>,
    busy: Option<Instant>,
    stepped: Option<Instant>,
    /// Bits that senders sent and that cannot have arrived yet.
    queued: f64,
    trim: f64,
    trimmed: Option<Instant>,
}

/// A VNIC that may send to the receiver.
struct Source {
    bandwidth: Bandwidth,
    heard: Option<(Instant, u64)>,
    wish: Bandwidth,
}

impl Receiver {
    pub(super) fn new(vnic: Vnic, others: &[Vnic]) -> Receiver {
        let source = |other: &Vnic| {
            let (heard, wish) = (None, Bandwidth::ZERO);
            (other.mac, Source { bandwidth: other.bandwidth, heard, wish })
        };
        Receiver {
            vnic,
            meter: Meter::over(WINDOW),
            senders: others.iter().map(source).collect(),
            busy: None,
            stepped: None,
            queued: 0.0,
            trim: 1.0,
            trimmed: None,
        }
    }

    /// The rate that the VNIC receives.
    pub fn rate(&self) -> Bandwidth {
        self.meter.rate()
    }

    /// Whether the VNIC grants shares to its senders.
    pub fn is_congested(&self) -> bool {
        self.busy.is_some()
    }

    pub(super) fn handle_meter(&mut self, now: Instant, bytes: u64) {
        self.meter.look(now, bytes);
    }

    /// Handles a report. `None`: the VNIC has no such sender; otherwise whether the report was possible.
    pub(super) fn handle_report(&mut self, now: Instant, report: &Report) -> Option<bool> {
        let source = self.senders.get_mut(&report.from)?;
        let mut is_possible = true;
        if let Some((at, before)) = source.heard.filter(|(at, _)| *at <= now) {
            let sent = report.bytes.saturating_sub(before) as f64 * 8.0;
            // The most bits that a shaper with that rate passes in that time, plus a burst.
            let longest = nanos((now - at).min(SILENCE) + LONGEST_STEP);
            let most = source.bandwidth.bits_per_second() as f64 * longest as f64 / 1e9 + 1e5;
            is_possible = sent <= most;
            self.queued += sent.min(most);
        }
        is_possible &= report.wish == Report::EVERYTHING || report.wish <= source.bandwidth;
        source.heard = Some((now, report.bytes));
        source.wish = report.wish.min(source.bandwidth);
        Some(is_possible)
    }

    /// The grants for each sender from now on. Without congestion there is no grant.
    pub(super) fn grants(&mut self, now: Instant) -> Vec<Grant> {
        let last = self.stepped.replace(now).filter(|last| *last <= now);
        let elapsed =
            last.map_or(Duration::ZERO, |last| (now - last).min(LONGEST_STEP)).as_secs_f64();
        for source in self.senders.values_mut() {
            // After the clock jumped back, earlier reports have times in the future.
            source.heard = source.heard.filter(|(at, _)| *at <= now && now - *at < SILENCE);
        }
        let whole = self.vnic.bandwidth.bits_per_second() as f64;
        let measured = self.meter.rate().bits_per_second() as f64;

        self.queued = (self.queued - whole.max(measured) * elapsed).clamp(0.0, whole / 4.0);
        if measured < whole * 0.9 {
            // While the interface has unused bandwidth, no data is queued in the network.
            self.queued = 0.0;
        }
        self.trim(now, whole, measured);

        let active: Vec<(&MacAddress, &Source)> =
            self.senders.iter().filter(|(_, source)| source.heard.is_some()).collect();
        let sum = |each: fn(&Source) -> Bandwidth| -> u128 {
            active.iter().map(|(_, source)| u128::from(each(source).bits_per_second())).sum()
        };
        let near = u128::from(self.vnic.bandwidth.bits_per_second()) * BUSY / 100;
        let wished = sum(|source| source.wish);
        // While the senders together cannot exceed the bandwidth, no sender needs a grant.
        let can_exceed =
            sum(|source| source.bandwidth) > u128::from(self.vnic.bandwidth.bits_per_second());
        if can_exceed && (wished >= near || measured as u128 >= near) {
            self.busy = Some(now);
        }
        self.busy = self.busy.filter(|at| can_exceed && *at <= now && now - *at < MEMORY);
        if self.busy.is_none() {
            return Vec::new();
        }
        // The data of one step and one burst per sender is always in flight.
        let usual = whole * elapsed + 8.0 * 3200.0 * active.len() as f64;
        let drain = (self.queued - usual).max(0.0) * 1e9 / nanos(DRAIN) as f64;
        let capacity = (whole * self.trim - drain.min(whole * MOST_DRAIN)).max(whole * LEAST_TRIM);
        let rates = shares(capacity, &active);
        let grant = |((from, _), rate): (&(&MacAddress, &Source), f64)| Grant {
            from: **from,
            to: self.vnic.mac,
            rate: Bandwidth::from_bits_per_second(rate as u64),
        };
        active.iter().zip(rates).map(grant).collect()
    }

    /// Leaves room for unshaped traffic when the meter shows more than the sum of the shares.
    fn trim(&mut self, now: Instant, whole: f64, measured: f64) {
        // The meter averages over a window, so a correction becomes visible only after this time.
        if self.trimmed.is_some_and(|at| at <= now && now - at < 2 * WINDOW) {
            return;
        }
        self.trimmed = Some(now);
        self.trim = if measured > whole * OVER + GRAIN {
            (self.trim * whole / measured).max(LEAST_TRIM)
        } else {
            (self.trim + 0.1).min(1.0)
        };
    }
}

/// The weighted max-min fair shares of the senders' wishes; the weights are the senders' bandwidths. Unused capacity is
/// divided in the same proportion: a sender that wants more a moment later already has some room.
fn shares(capacity: f64, active: &[(&MacAddress, &Source)]) -> Vec<f64> {
    let demand = |(_, source): &(&MacAddress, &Source)| Demand {
        links: &[0],
        weight: source.bandwidth.bits_per_second().max(1),
        most: source.wish.bits_per_second() as f64,
    };
    let demands: Vec<Demand<'_>> = active.iter().map(demand).collect();
    // The arguments are in range, so an error is impossible; after an error no sender would be limited.
    let mut rates = max_min(&[capacity], &demands).unwrap_or_else(|_| vec![capacity; active.len()]);
    let spare = (capacity - rates.iter().sum::<f64>()).max(0.0);
    let weights: f64 = demands.iter().map(|demand| demand.weight as f64).sum();
    for ((rate, demand), (_, source)) in rates.iter_mut().zip(&demands).zip(active) {
        let whole = source.bandwidth.bits_per_second() as f64;
        *rate = (*rate + spare * demand.weight as f64 / weights).min(whole);
    }
    rates
}
