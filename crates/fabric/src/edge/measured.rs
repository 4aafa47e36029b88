//! The hypervisor's view of agents' reports: how much each VNIC sends to each other VNIC.
//!
//! ```text
//!   reports (bytes so far) ──▶ one Meter per pair ──▶ bounded by bandwidths ──▶ poll_change: what a VNIC sends to whom
//!   rates, reports         ──▶ "heard of"        ──▶ silent for its lifetime ─▶ poll_change: nothing is known of it
//! ```
//!
//! Agents may be wrong or lie, so their reports are bounded by other knowledge. An agent reports on its own VNICs only.
//! No pair has more than either end's bandwidth, and no VNIC sends more in all than its own bandwidth. Higher values
//! are cut and counted ([`Measured::impossible`]).
//!
//! Rates are bytes per time of the hypervisor's clock, so an agent's clock does not matter. If the hypervisor's clock
//! jumps, one measurement is lost. A VNIC without a report for the lifetime counts as not measured.
//!
//! This module deliberately has no sockets and clocks. Start reading at [`Measured::handle_message`].

use super::agent::AgentId;
use super::message::{Message, Report};
use crate::meter::Meter;
use crate::time::{Duration, Instant};
use crate::units::{Bandwidth, MacAddress, TenantId};
use alloc::collections::{BTreeMap, BTreeSet};

/// The shortest time over which a rate is measured: agents report every 100 ms, and some datagrams are late.
const WINDOW: Duration = Duration::from_millis(450);
/// A pair without a report for this time sends nothing: two datagrams may get lost.
const QUIET: Duration = Duration::from_millis(350);
/// The time from the first report until a VNIC counts as measured: the first rate needs two reports.
const SETTLING: Duration = Duration::from_millis(250);
/// The time between two checks for silent VNICs.
const TICK: Duration = Duration::from_millis(100);
/// Changes below one hundredth of the sender's bandwidth are not reported.
const GRAIN: u64 = 100;
/// A rate above this share of the VNIC's bandwidth, in hundredths, is impossible. The share exceeds 100 because shapers
/// let some bursts through.
const POSSIBLE: u128 = 110;

/// A virtual interface, as the hypervisor knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vnic {
    /// The hardware address; no two VNICs have the same.
    pub mac: MacAddress,
    /// The tenant of the VNIC.
    pub tenant: TenantId,
    /// The bandwidth that the VNIC may send and receive.
    pub bandwidth: Bandwidth,
    /// The agent that measures the VNIC.
    pub agent: Option<AgentId>,
}

/// The rate that a VNIC sends to each receiver; missing receivers get nothing. `None`: no agent measures the VNIC.
pub type Sent = Option<BTreeMap<MacAddress, Bandwidth>>;

/// All VNICs, and the reports about them.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    vnics: BTreeMap<MacAddress, Known>,
    lifetime: Duration,
    changed: BTreeSet<MacAddress>,
    looked: Instant,
    misplaced: u64,
    impossible: u64,
}

#[derive(Clone, Debug)]
struct Known {
    vnic: Vnic,
    heard: Option<Heard>,
    pairs: BTreeMap<MacAddress, Pair>,
    reported: Sent,
}

#[derive(Clone, Copy, Debug)]
struct Heard {
    first: Instant,
    last: Instant,
    is_settled: bool,
}

#[derive(Clone, Debug)]
struct Pair {
    meter: Meter,
    heard: Instant,
    rate: Bandwidth,
}

impl Measured {
    /// The state without any report. A VNIC without a report for `lifetime` counts as not measured.
    pub fn new(vnics: impl IntoIterator<Item = Vnic>, lifetime: Duration) -> Measured {
        let known = |vnic: Vnic| Known {
            vnic,
            heard: None,
            pairs: BTreeMap::new(),
            reported: Sent::default(),
        };
        let vnics = vnics.into_iter().map(|vnic| (vnic.mac, known(vnic))).collect();
        Measured { vnics, lifetime, ..Measured::default() }
    }

    /// Handles a message of an agent.
    pub fn handle_message(&mut self, now: Instant, from: AgentId, message: &Message) {
        match message {
            Message::Reports(reports) => {
                reports.iter().for_each(|report| self.handle_report(now, from, report));
            }
            Message::Rates(rates) => {
                for rates in rates {
                    let Some(known) = self.own(from, rates.vnic) else { continue };
                    let wrong = is_impossible(rates.sent, known.vnic.bandwidth);
                    if known.hear(now) {
                        self.changed.insert(rates.vnic);
                    }
                    self.impossible += u64::from(wrong);
                }
            }
            // The hypervisor sends no grants, receives none, and sees hellos only in [`Sessions`](super::Sessions).
            Message::Grants(_) | Message::Hello { .. } => self.misplaced += 1,
        }
    }

    /// Forgets VNICs that have become silent. The caller calls this function at [`next_due`](Measured::next_due).
    pub fn handle_timeout(&mut self, now: Instant) {
        self.looked = now;
        for (mac, known) in &mut self.vnics {
            let Some(heard) = &mut known.heard else { continue };
            // A clock that was set back must not keep a silent VNIC measured until the clock has caught up.
            heard.last = heard.last.min(now);
            heard.first = heard.first.min(now);
            if now - heard.last >= self.lifetime {
                known.heard = None;
                known.pairs.clear();
                self.changed.insert(*mac);
                continue;
            }
            let before = known.pairs.len();
            known.pairs.retain(|_, pair| {
                pair.heard = pair.heard.min(now);
                now - pair.heard < QUIET
            });
            if known.pairs.len() < before {
                self.changed.insert(*mac);
            }
        }
    }

    /// When [`handle_timeout`](Measured::handle_timeout) is next worth calling, if ever.
    pub fn next_due(&self) -> Option<Instant> {
        let is_any = self.vnics.values().any(|known| known.heard.is_some());
        is_any.then(|| self.looked + TICK)
    }

    /// The next VNIC whose rates differ from the rates that were reported last.
    pub fn poll_change(&mut self) -> Option<(TenantId, MacAddress, Sent)> {
        while let Some(mac) = self.changed.pop_first() {
            let Some(known) = self.vnics.get_mut(&mac) else { continue };
            let (sent, is_cut) = known.sent();
            self.impossible += u64::from(is_cut);
            if is_worth_reporting(&known.reported, &sent, known.vnic.bandwidth) {
                known.reported.clone_from(&sent);
                return Some((known.vnic.tenant, mac, sent));
            }
        }
        None
    }

    /// VNICs that are measured now.
    pub fn len(&self) -> usize {
        self.vnics.values().filter(|known| known.is_measured()).count()
    }

    /// Whether no VNIC is measured now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of entries about VNICs that are unknown or belong to another agent, and of messages that only agents
    /// send each other.
    pub fn misplaced(&self) -> u64 {
        self.misplaced
    }

    /// The number of entries above the VNIC's bandwidth, which were reduced to the bandwidth.
    pub fn impossible(&self) -> u64 {
        self.impossible
    }

    fn handle_report(&mut self, now: Instant, from: AgentId, report: &Report) {
        let to = self.vnics.get(&report.to).map(|known| known.vnic);
        let Some(known) = self.own(from, report.from) else { return };
        let vnic = known.vnic;
        let Some(to) = to.filter(|to| to.tenant == vnic.tenant && to.mac != vnic.mac) else {
            self.misplaced += 1;
            return;
        };
        let is_new = known.hear(now);
        let pair = known.pairs.entry(report.to).or_insert_with(|| Pair {
            meter: Meter::over(WINDOW),
            heard: now,
            rate: Bandwidth::ZERO,
        });
        pair.heard = now;
        pair.meter.look(now, report.bytes);
        let (rate, most) = (pair.meter.rate(), vnic.bandwidth.min(to.bandwidth));
        let wrong = is_impossible(rate, vnic.bandwidth);
        let rate = rate.min(most);
        if pair.rate != rate || is_new {
            pair.rate = rate;
            self.changed.insert(report.from);
        }
        self.impossible += u64::from(wrong);
    }

    /// A VNIC, if this agent may report about it.
    fn own(&mut self, agent: AgentId, vnic: MacAddress) -> Option<&mut Known> {
        let known = self.vnics.get_mut(&vnic).filter(|known| known.vnic.agent == Some(agent));
        if known.is_none() {
            self.misplaced += 1;
        }
        known
    }
}

impl Known {
    /// Notes a report. The result says whether the VNIC becomes measured by this report.
    fn hear(&mut self, now: Instant) -> bool {
        let new = Heard { first: now, last: now, is_settled: false };
        let heard = self.heard.get_or_insert(new);
        heard.last = now;
        let is_settled = now - heard.first >= SETTLING;
        is_settled && !core::mem::replace(&mut heard.is_settled, true)
    }

    fn is_measured(&self) -> bool {
        self.heard.is_some_and(|heard| heard.is_settled)
    }

    /// The rates that the VNIC sends, in total at most its bandwidth, and whether they had to be reduced.
    fn sent(&self) -> (Sent, bool) {
        if !self.is_measured() {
            return (None, false);
        }
        let bits = |pair: &Pair| u128::from(pair.rate.bits_per_second());
        let sum: u128 = self.pairs.values().map(bits).sum();
        let bandwidth = self.vnic.bandwidth;
        let fits = sum <= u128::from(bandwidth.bits_per_second());
        let rates = self.pairs.iter().map(|(to, pair)| {
            (*to, if fits { pair.rate } else { bandwidth.share(bits(pair), sum) })
        });
        let rates = rates.filter(|(_, rate)| *rate > Bandwidth::ZERO).collect();
        (Some(rates), sum * 100 > u128::from(bandwidth.bits_per_second()) * POSSIBLE)
    }
}

fn is_impossible(rate: Bandwidth, bandwidth: Bandwidth) -> bool {
    u128::from(rate.bits_per_second()) * 100 > u128::from(bandwidth.bits_per_second()) * POSSIBLE
}

/// Whether the receivers differ, or a rate differs by more than the grain.
fn is_worth_reporting(reported: &Sent, sent: &Sent, bandwidth: Bandwidth) -> bool {
    let (Some(reported), Some(sent)) = (reported, sent) else { return reported != sent };
    let grain = bandwidth.bits_per_second() / GRAIN;
    let differs = |(a, b): (&Bandwidth, &Bandwidth)| {
        a.bits_per_second().abs_diff(b.bits_per_second()) > grain
    };
    !reported.keys().eq(sent.keys()) || reported.values().zip(sent.values()).any(differs)
}

#[cfg(test)]
mod tests;
