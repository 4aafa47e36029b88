//! A VNIC as a sender: for each destination, the present rate, the wanted rate and the allowed rate.

use super::{Ceiling, SILENCE, Vnic, WINDOW};
use crate::shaper::Counters;
use fabric::edge::{Grant, Report};
use fabric::meter::Meter;
use fabric::{Bandwidth, Duration, Instant, MacAddress};

/// The time for which a VNIC reports a destination after the last byte to the destination.
const LINGER: Duration = Duration::from_millis(200);
/// The ceiling limits a class when the class had to wait and sent at least this share of the ceiling. Otherwise the
/// limits of the sender itself, or of the VNIC, limit the class.
const NEAR: (u128, u128) = (85, 100);

/// A VNIC of this agent as a sender.
pub struct Sender {
    vnic: Vnic,
    pairs: Vec<Pair>,
}

/// One destination.
struct Pair {
    to: MacAddress,
    /// The minimum growth of the rate; small for sender and receiver.
    room: Bandwidth,
    /// The minimum of a grant: a peer with wrong messages cannot stop a VNIC.
    least: Bandwidth,
    meter: Meter,
    counters: Option<Counters>,
    wish: Bandwidth,
    moved: Option<Instant>,
    grant: Option<(Bandwidth, Instant)>,
    /// The present ceiling of the class.
    ceiling: Bandwidth,
}

impl Sender {
    /// The argument `all` is the sum of the bandwidths of the tenant's VNICs.
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

    /// The VNIC that sends.
    pub fn vnic(&self) -> Vnic {
        self.vnic
    }

    /// The rate that the VNIC sends to all destinations together.
    pub fn rate(&self) -> Bandwidth {
        self.pairs
            .iter()
            .fold(Bandwidth::ZERO, |sum, pair| sum.checked_add(pair.meter.rate()).unwrap_or(sum))
    }

    /// Each destination with the rate to the destination and the ceiling of its class.
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

    /// Handles a grant. `None`: the VNIC has no such destination; otherwise whether the grant was possible.
    pub(super) fn handle_grant(&mut self, now: Instant, grant: &Grant) -> Option<bool> {
        let most = self.vnic.bandwidth;
        let pair = self.pairs.iter_mut().find(|pair| pair.to == grant.to)?;
        pair.grant = Some((grant.rate.clamp(pair.least, most), now));
        // A receiver grants less than the minimum to a sender with a small wish.
        Some(grant.rate <= most)
    }

    /// The reports for receivers. Grants that no receiver renewed expire here.
    pub(super) fn reports(&mut self, now: Instant) -> Vec<Report> {
        let from = self.vnic.mac;
        let mut reports = Vec::new();
        for pair in &mut self.pairs {
            // After the clock jumped back, earlier grants have times in the future.
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
            // Small changes are skipped: the kernel gets a request only for a noticeable change.
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
            // The wish is a little above the present rate: the rate can grow until the ceiling limits the class.
            let more = rate.share(17, 16).checked_add(self.room);
            more.unwrap_or(whole).min(whole)
        };
    }
}
