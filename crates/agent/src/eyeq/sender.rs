//! A VNIC as a sender: what goes to each destination, what would, and what is let.

use super::{Ceiling, SILENCE, Vnic, WINDOW};
use crate::shaper::Counters;
use fabric::edge::{Grant, Report};
use fabric::meter::Meter;
use fabric::{Bandwidth, Duration, Instant, MacAddress};

/// How long a destination is reported after the last byte to it.
const LINGER: Duration = Duration::from_millis(200);
/// A class counts as held back by its ceiling when it had to wait and sent this share of it: else its sender's own
/// limits, or the VNIC's, hold it back.
const NEAR: (u128, u128) = (85, 100);

/// A VNIC of this agent as a sender.
pub struct Sender {
    vnic: Vnic,
    pairs: Vec<Pair>,
}

/// One destination.
struct Pair {
    to: MacAddress,
    /// What it may always grow by: little for both of them.
    room: Bandwidth,
    /// No grant goes below: nobody who lies or errs can stop a VNIC.
    least: Bandwidth,
    meter: Meter,
    counters: Option<Counters>,
    wish: Bandwidth,
    moved: Option<Instant>,
    grant: Option<(Bandwidth, Instant)>,
    /// What the class has now.
    ceiling: Bandwidth,
}

impl Sender {
    /// `all` is the sum of the bandwidths of the tenant's VNICs.
    pub(super) fn new(vnic: Vnic, others: &[Vnic], all: u128) -> Sender {
        let pair = |other: &Vnic| {
            let receivable = all - u128::from(other.bandwidth.bits_per_second());
            let weight = u128::from(vnic.bandwidth.bits_per_second());
            Pair {
                to: other.mac,
                room: vnic.bandwidth.min(other.bandwidth).share(1, 100),
                least: other.bandwidth.share(weight * 49, receivable * 100).min(vnic.bandwidth),
                meter: Meter::over(WINDOW),
                counters: None,
                wish: Bandwidth::ZERO,
                moved: None,
                grant: None,
                ceiling: vnic.bandwidth,
            }
        };
        Sender { vnic, pairs: others.iter().map(pair).collect() }
    }

    /// Which VNIC it is.
    pub fn vnic(&self) -> Vnic {
        self.vnic
    }

    /// What it sends to all destinations together.
    pub fn rate(&self) -> Bandwidth {
        self.pairs
            .iter()
            .fold(Bandwidth::ZERO, |sum, pair| sum.checked_add(pair.meter.rate()).unwrap_or(sum))
    }

    /// Each destination with what goes there, and its class's ceiling.
    pub fn pairs(&self) -> impl Iterator<Item = (MacAddress, Bandwidth, Bandwidth)> {
        self.pairs.iter().map(|pair| (pair.to, pair.meter.rate(), pair.ceiling))
    }

    pub(super) fn destinations(&self) -> Vec<MacAddress> {
        self.pairs.iter().map(|pair| pair.to).collect()
    }

    pub(super) fn handle_counters(&mut self, now: Instant, classes: &[Counters]) {
        for (pair, counters) in self.pairs.iter_mut().zip(classes) {
            pair.handle_counters(now, counters, self.vnic.bandwidth);
        }
    }

    pub(super) fn handle_reset(&mut self) {
        for pair in &mut self.pairs {
            pair.ceiling = self.vnic.bandwidth;
            pair.counters = None;
        }
    }

    /// None when there is no such destination; whether the grant was possible.
    pub(super) fn handle_grant(&mut self, now: Instant, grant: &Grant) -> Option<bool> {
        let most = self.vnic.bandwidth;
        let pair = self.pairs.iter_mut().find(|pair| pair.to == grant.to)?;
        pair.grant = Some((grant.rate.clamp(pair.least, most), now));
        // Less than the least is what a receiver grants to a sender that wishes little.
        Some(grant.rate <= most)
    }

    /// What receivers have to know; and forgets grants that nobody renewed.
    pub(super) fn reports(&mut self, now: Instant) -> Vec<Report> {
        let from = self.vnic.mac;
        let mut reports = Vec::new();
        for pair in &mut self.pairs {
            // A grant of the future is one from before the clock jumped back.
            pair.grant = pair.grant.filter(|(_, at)| *at <= now && now - *at < SILENCE);
            pair.moved = pair.moved.filter(|at| *at <= now && now - *at < LINGER);
            if let (Some(_), Some(counters)) = (pair.moved, pair.counters) {
                reports.push(Report { from, to: pair.to, bytes: counters.bytes, wish: pair.wish });
            }
        }
        reports
    }

    pub(super) fn poll_ceiling(&mut self, now: Instant) -> Option<Ceiling> {
        let whole = self.vnic.bandwidth;
        self.pairs.iter_mut().enumerate().find_map(|(to, pair)| {
            let fresh = pair.grant.filter(|(_, at)| *at <= now && now - *at < SILENCE);
            let most = fresh.map_or(whole, |(rate, _)| rate);
            // Not for every bit: the kernel is asked only for what can be felt.
            let change = most.bits_per_second().abs_diff(pair.ceiling.bits_per_second());
            let is_felt = change > pair.ceiling.bits_per_second() / 200;
            if !(is_felt || most == whole && change > 0) {
                return None;
            }
            pair.ceiling = most;
            Some(Ceiling { from: self.vnic.mac, to, most })
        })
    }
}

impl Pair {
    fn handle_counters(&mut self, now: Instant, counters: &Counters, whole: Bandwidth) {
        let before = self.counters.replace(*counters);
        self.meter.look(now, counters.bytes);
        let Some(before) = before else { return };
        if counters.bytes != before.bytes || counters.backlog > 0 {
            self.moved = Some(now);
        }
        let waited = counters.backlog > 0
            || counters.throttled != before.throttled
            || counters.dropped != before.dropped;
        let rate = self.meter.rate();
        let fastest = rate.max(self.meter.latest());
        self.wish = if waited && fastest >= self.ceiling.share(NEAR.0, NEAR.1) {
            Report::EVERYTHING
        } else {
            // A little more than it has, so that it can grow until its ceiling tells.
            let more = rate.share(17, 16).checked_add(self.room);
            more.unwrap_or(whole).min(whole)
        };
    }
}
