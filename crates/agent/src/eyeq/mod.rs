//! Who may send how much to whom, at every moment, in the manner of EyeQ (Jeyakumar et al., NSDI 2013).
//!
//! ```text
//!   classes ──▶ Sender: what goes to each destination, ──report──▶ Receiver: weighted max-min shares
//!               and whether it would be more                       of the VNIC's bandwidth
//!   ceilings ◀── Sender: at most the grant, while it is fresh ◀──grant── while it is congested ◀── interface's meter
//! ```
//!
//! Every VNIC may send and receive at its bandwidth (the hose model). A [receiver](Receiver) whose senders, or whose own
//! meter, come near that bandwidth is congested: then each sender is granted a share in proportion to its own bandwidth,
//! and what one leaves goes to the others ([`fabric::max_min`], as in [`fabric::hose`]). A grant holds for a tenth of a
//! second and is renewed at every step; without news a [sender](Sender) goes back to its VNIC's bandwidth by itself, so
//! a receiver that vanishes throttles nobody.
//!
//! What peers say is bounded by what is known without them: weights come from the configuration, so that no wish takes
//! more than its share from those who want theirs; impossible wishes are counted and taken for "everything"; and no grant
//! goes below about half of the share that the VNIC would have if all others sent as well.
//!
//! [`Control`] is one agent's part: pure, `handle_*` in, `poll_*` out, time is an argument and may jump. Start there.

mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub use receiver::Receiver;
pub use sender::Sender;

use crate::shaper::Counters;
use fabric::edge::{AgentId, Grant, Message, Rates, Report};
use fabric::{Bandwidth, Duration, Instant, MacAddress};
use std::collections::{BTreeMap, VecDeque};

/// A sender or receiver that was not heard of for so long counts no more.
pub const SILENCE: Duration = Duration::from_millis(100);
/// Rates are over so long: enough for some frames at slow rates, short against a reaction.
const WINDOW: Duration = Duration::from_millis(50);
/// How often the hypervisor is told.
const TELL: Duration = Duration::from_millis(100);

/// A virtual interface, here or at another agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vnic {
    /// Its hardware address, by which frames and messages name it.
    pub mac: MacAddress,
    /// What it may send, and receive.
    pub bandwidth: Bandwidth,
    /// VNICs of one tenant send to each other.
    pub tenant: u32,
    /// The agent that shapes and meters it.
    pub agent: AgentId,
}

/// A class that is to have another ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ceiling {
    /// The sending VNIC, one of this agent's.
    pub from: MacAddress,
    /// The destination's place in [`Control::destinations`].
    pub to: usize,
    /// At most so much.
    pub most: Bandwidth,
}

/// What was refused or ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Entries about VNICs that are not the peer's, not ours, or of different tenants.
    pub misplaced: u64,
    /// More bytes than the VNIC's bandwidth lets through, or a wish beyond it.
    pub impossible: u64,
}

/// One agent's part.
pub struct Control {
    own: AgentId,
    vnics: BTreeMap<MacAddress, Vnic>,
    senders: BTreeMap<MacAddress, Sender>,
    receivers: BTreeMap<MacAddress, Receiver>,
    hypervisor: Option<AgentId>,
    told: Option<Instant>,
    messages: VecDeque<(AgentId, Message)>,
    oddities: Oddities,
}

impl Control {
    /// Of the agent `own`, among all VNICs of the fabric; rates are told to the hypervisor, if there is one.
    pub fn new(own: AgentId, vnics: &[Vnic], hypervisor: Option<AgentId>) -> Control {
        let by_mac: BTreeMap<MacAddress, Vnic> =
            vnics.iter().map(|vnic| (vnic.mac, *vnic)).collect();
        let mut senders = BTreeMap::new();
        let mut receivers = BTreeMap::new();
        for vnic in by_mac.values().filter(|vnic| vnic.agent == own) {
            let is_other = |other: &&Vnic| other.tenant == vnic.tenant && other.mac != vnic.mac;
            let others: Vec<Vnic> = by_mac.values().filter(is_other).copied().collect();
            let all: u128 = by_mac
                .values()
                .filter(|other| other.tenant == vnic.tenant)
                .map(|other| u128::from(other.bandwidth.bits_per_second()))
                .sum();
            senders.insert(vnic.mac, Sender::new(*vnic, &others, all));
            receivers.insert(vnic.mac, Receiver::new(*vnic, &others));
        }
        let (told, messages, oddities) = (None, VecDeque::new(), Oddities::default());
        Control { own, vnics: by_mac, senders, receivers, hypervisor, told, messages, oddities }
    }

    /// To whom one of this agent's VNICs sends, in the order of its shaper's classes.
    pub fn destinations(&self, from: MacAddress) -> Vec<MacAddress> {
        self.senders.get(&from).map(Sender::destinations).unwrap_or_default()
    }

    /// What a VNIC's classes counted, and what its interface received.
    pub fn handle_counters(
        &mut self,
        now: Instant,
        vnic: MacAddress,
        classes: &[Counters],
        received: u64,
    ) {
        if let Some(sender) = self.senders.get_mut(&vnic) {
            sender.handle_counters(now, classes);
        }
        if let Some(receiver) = self.receivers.get_mut(&vnic) {
            receiver.handle_meter(now, received);
        }
    }

    /// The classes of a VNIC were made again: all have its whole bandwidth.
    pub fn handle_reset(&mut self, vnic: MacAddress) {
        if let Some(sender) = self.senders.get_mut(&vnic) {
            sender.handle_reset();
        }
    }

    /// What another agent says.
    pub fn handle_message(&mut self, now: Instant, from: AgentId, message: &Message) {
        match message {
            Message::Reports(reports) => {
                reports.iter().for_each(|report| self.handle_report(now, from, report));
            }
            Message::Grants(grants) => {
                grants.iter().for_each(|grant| self.handle_grant(now, from, grant));
            }
            // Only the hypervisor listens to rates.
            Message::Rates(_) | Message::Hello { .. } => self.oddities.misplaced += 1,
        }
    }

    /// A step: to be called at least every 10 ms, after the counters of all VNICs.
    pub fn handle_step(&mut self, now: Instant) {
        let mut reports: BTreeMap<AgentId, Vec<Report>> = BTreeMap::new();
        let mut all = Vec::new();
        for sender in self.senders.values_mut() {
            for report in sender.reports(now) {
                all.push(report);
                if let Some(to) = self.vnics.get(&report.to) {
                    reports.entry(to.agent).or_default().push(report);
                }
            }
        }
        // Those to ourselves need no datagram, and count in this very step.
        for report in reports.remove(&self.own).unwrap_or_default() {
            self.handle_report(now, self.own, &report);
        }
        let mut grants: BTreeMap<AgentId, Vec<Grant>> = BTreeMap::new();
        for receiver in self.receivers.values_mut() {
            for grant in receiver.grants(now) {
                if let Some(from) = self.vnics.get(&grant.from) {
                    grants.entry(from.agent).or_default().push(grant);
                }
            }
        }
        for grant in grants.remove(&self.own).unwrap_or_default() {
            self.handle_grant(now, self.own, &grant);
        }
        // What the step before left unsent is out of date.
        self.messages.clear();
        for (to, entries) in reports {
            let pieces = entries.chunks(Message::MOST_REPORTS).map(<[Report]>::to_vec);
            self.messages.extend(pieces.map(|piece| (to, Message::Reports(piece))));
        }
        for (to, entries) in grants {
            let pieces = entries.chunks(Message::MOST_GRANTS).map(<[Grant]>::to_vec);
            self.messages.extend(pieces.map(|piece| (to, Message::Grants(piece))));
        }
        self.tell_hypervisor(now, &all);
    }

    /// The next datagram to send.
    pub fn poll_message(&mut self) -> Option<(AgentId, Message)> {
        self.messages.pop_front()
    }

    /// The next class that has to get another ceiling.
    pub fn poll_ceiling(&mut self, now: Instant) -> Option<Ceiling> {
        self.senders.values_mut().find_map(|sender| sender.poll_ceiling(now))
    }

    /// This agent's VNICs as senders.
    pub fn senders(&self) -> impl Iterator<Item = &Sender> {
        self.senders.values()
    }

    /// This agent's VNIC as a receiver.
    pub fn receiver(&self, vnic: MacAddress) -> Option<&Receiver> {
        self.receivers.get(&vnic)
    }

    /// What was refused or ignored so far.
    pub fn oddities(&self) -> Oddities {
        self.oddities
    }

    fn handle_report(&mut self, now: Instant, from: AgentId, report: &Report) {
        let is_theirs = self.vnics.get(&report.from).is_some_and(|vnic| vnic.agent == from);
        let receiver = self.receivers.get_mut(&report.to).filter(|_| is_theirs);
        match receiver.map(|receiver| receiver.handle_report(now, report)) {
            Some(Some(true)) => {}
            Some(Some(false)) => self.oddities.impossible += 1,
            Some(None) | None => self.oddities.misplaced += 1,
        }
    }

    fn handle_grant(&mut self, now: Instant, from: AgentId, grant: &Grant) {
        let is_theirs = self.vnics.get(&grant.to).is_some_and(|vnic| vnic.agent == from);
        let sender = self.senders.get_mut(&grant.from).filter(|_| is_theirs);
        match sender.map(|sender| sender.handle_grant(now, grant)) {
            Some(Some(true)) => {}
            Some(Some(false)) => self.oddities.impossible += 1,
            Some(None) | None => self.oddities.misplaced += 1,
        }
    }

    /// What each VNIC receives and sends, and what went from which to which so far.
    fn tell_hypervisor(&mut self, now: Instant, reports: &[Report]) {
        let Some(hypervisor) = self.hypervisor else { return };
        if self.told.is_some_and(|told| told <= now && now - told < TELL) {
            return;
        }
        self.told = Some(now);
        let rates = self.senders.iter().map(|(mac, sender)| Rates {
            vnic: *mac,
            received: self.receivers.get(mac).map_or(Bandwidth::ZERO, Receiver::rate),
            sent: sender.rate(),
        });
        let rates: Vec<Rates> = rates.collect();
        let pieces = rates.chunks(Message::MOST_RATES).map(<[Rates]>::to_vec);
        self.messages.extend(pieces.map(|piece| (hypervisor, Message::Rates(piece))));
        let pieces = reports.chunks(Message::MOST_REPORTS).map(<[Report]>::to_vec);
        self.messages.extend(pieces.map(|piece| (hypervisor, Message::Reports(piece))));
    }
}
