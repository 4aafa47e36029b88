//! A VNIC as a receiver: whether it is congested, and who may send it how much.

use super::{SILENCE, Vnic, WINDOW};
use fabric::edge::{Grant, Report};
use fabric::meter::Meter;
use fabric::share::{Demand, max_min};
use fabric::time::nanos;
use fabric::{Bandwidth, Duration, Instant, MacAddress};
use std::collections::BTreeMap;

/// Congested from here, in hundredths of the bandwidth.
const BUSY: u128 = 90;
/// How long congestion is remembered: a burst's gap is not its end.
const MEMORY: Duration = Duration::from_millis(200);
/// What waits somewhere in the network is to drain in this time.
const DRAIN: Duration = Duration::from_millis(100);
/// But takes no more than this of anybody's share: less than a twentieth, also with the frames that a tenth of a second has
/// more or less by chance.
const MOST_DRAIN: f64 = 0.02;
/// Beyond this the meter contradicts the shares: somebody sends whom no agent shapes.
const OVER: f64 = 1.03;
/// Bits per second: two frames more or less in the meter's window are no contradiction.
const GRAIN: f64 = 2.0 * 1514.0 * 8.0 / 0.05;
/// And is made room for at the most down to this share.
const LEAST_TRIM: f64 = 0.5;
/// A longer pause between two steps (the process slept) is not reckoned with.
const LONGEST_STEP: Duration = Duration::from_millis(100);

/// A VNIC of this agent as a receiver.
pub struct Receiver {
    vnic: Vnic,
    meter: Meter,
    senders: BTreeMap<MacAddress, Source>,
    busy: Option<Instant>,
    stepped: Option<Instant>,
    /// Bits that were sent to it and cannot have come in yet.
    queued: f64,
    trim: f64,
    trimmed: Option<Instant>,
}

/// Somebody who may send to it.
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

    /// What it receives.
    pub fn rate(&self) -> Bandwidth {
        self.meter.rate()
    }

    /// Whether its senders are granted shares.
    pub fn is_congested(&self) -> bool {
        self.busy.is_some()
    }

    pub(super) fn handle_meter(&mut self, now: Instant, bytes: u64) {
        self.meter.look(now, bytes);
    }

    /// None when it cannot come from there; whether it was possible.
    pub(super) fn handle_report(&mut self, now: Instant, report: &Report) -> Option<bool> {
        let source = self.senders.get_mut(&report.from)?;
        let mut is_possible = true;
        if let Some((at, before)) = source.heard.filter(|(at, _)| *at <= now) {
            let sent = report.bytes.saturating_sub(before) as f64 * 8.0;
            // What passes a shaper of that rate in that time, and a burst.
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

    /// What each sender may send from now on; nothing while there is no congestion.
    pub(super) fn grants(&mut self, now: Instant) -> Vec<Grant> {
        let last = self.stepped.replace(now).filter(|last| *last <= now);
        let elapsed =
            last.map_or(Duration::ZERO, |last| (now - last).min(LONGEST_STEP)).as_secs_f64();
        for source in self.senders.values_mut() {
            // Of the future is what was heard before the clock jumped back.
            source.heard = source.heard.filter(|(at, _)| *at <= now && now - *at < SILENCE);
        }
        let whole = self.vnic.bandwidth.bits_per_second() as f64;
        let measured = self.meter.rate().bits_per_second() as f64;

        self.queued = (self.queued - whole.max(measured) * elapsed).clamp(0.0, whole / 4.0);
        if measured < whole * 0.9 {
            // Nothing stands in the network while there is room at its end.
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
        // As long as they cannot exceed it together, nobody has to be told anything.
        let can_exceed =
            sum(|source| source.bandwidth) > u128::from(self.vnic.bandwidth.bits_per_second());
        if can_exceed && (wished >= near || measured as u128 >= near) {
            self.busy = Some(now);
        }
        self.busy = self.busy.filter(|at| can_exceed && *at <= now && now - *at < MEMORY);
        if self.busy.is_none() {
            return Vec::new();
        }
        // A step's worth and each sender's burst are always on the way.
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
}

impl Receiver {
    /// Makes room for what comes from elsewhere, if the meter shows more than the shares can be.
    fn trim(&mut self, now: Instant, whole: f64, measured: f64) {
        // The meter looks back that far, so a correction shows no sooner.
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

/// Max-min fair shares of what they wish, weighted by their bandwidths; and what nobody wishes, in the same proportion,
/// so that a sender that wants more a moment later has some.
fn shares(capacity: f64, active: &[(&MacAddress, &Source)]) -> Vec<f64> {
    let demand = |(_, source): &(&MacAddress, &Source)| Demand {
        links: &[0],
        weight: source.bandwidth.bits_per_second().max(1),
        most: source.wish.bits_per_second() as f64,
    };
    let demands: Vec<Demand<'_>> = active.iter().map(demand).collect();
    // Neither can be out of range; nobody would be held back if they were.
    let mut rates = max_min(&[capacity], &demands).unwrap_or_else(|_| vec![capacity; active.len()]);
    let spare = (capacity - rates.iter().sum::<f64>()).max(0.0);
    let weights: f64 = demands.iter().map(|demand| demand.weight as f64).sum();
    for ((rate, demand), (_, source)) in rates.iter_mut().zip(&demands).zip(active) {
        let whole = source.bandwidth.bits_per_second() as f64;
        *rate = (*rate + spare * demand.weight as f64 / weights).min(whole);
    }
    rates
}
