//! Computes the rate that each VNIC may send to each other VNIC, with the algorithm of EyeQ (Jeyakumar et al., NSDI
//! 2013).
//!
//! ```text
//!   classes ──▶ Sender: the rate to each destination,  ──report──▶ Receiver: weighted max-min shares
//!               and whether the sender wants more                  of the VNIC's bandwidth
//!   ceilings ◀── Sender: at most the grant, while it is fresh ◀──grant── while it is congested ◀── interface's meter
//! ```
//!
//! Every VNIC may send and receive at its bandwidth (the hose model). A [receiver](Receiver) is congested when the
//! traffic of its senders, or its own meter, comes near that bandwidth. A congested receiver grants each sender a share
//! in proportion to the sender's bandwidth; other senders get the unused part of a share ([`fabric::max_min`], as in
//! [`fabric::hose`]). A grant is valid for a tenth of a second, and every step renews the grant. Without a grant, a
//! [sender](Sender) returns to its VNIC's bandwidth. Therefore a receiver that disappears limits no sender.
//!
//! The configuration bounds the effect of peers' messages. Weights come from the configuration: a large wish takes no
//! bandwidth from senders that want their shares. Impossible wishes are counted and treated as "everything". No grant
//! is below about half of the share that the VNIC would have if all other VNICs sent as well.
//!
//! [`Control`] is the part of one agent. The control has no I/O: `handle_*` are inputs, `poll_*` are outputs; the time
//! is an argument and may jump. Start reading at [`Control`].

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

/// A sender or receiver without a message for this time no longer counts.
pub const SILENCE: Duration = Duration::from_millis(100);
/// The window of rates: long enough for some frames at slow rates, and short against a reaction.
const WINDOW: Duration = Duration::from_millis(50);
/// The interval of messages to the hypervisor.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// A virtual interface of this agent or of another agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vnic {
    /// The hardware address of the VNIC; frames and messages name the VNIC by this address.
    pub mac: MacAddress,
    /// The bandwidth of the VNIC, for sending and for receiving.
    pub bandwidth: Bandwidth,
    /// VNICs of one tenant send to each other.
    pub tenant: u32,
    /// The agent that shapes and meters the VNIC.
    pub agent: AgentId,
}

/// A new ceiling for a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ceiling {
    /// The sending VNIC; the VNIC belongs to this agent.
    pub from: MacAddress,
    /// The index of the destination in [`Control::destinations`].
    pub to: usize,
    /// The new ceiling.
    pub most: Bandwidth,
}

/// Counters of refused or ignored entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Entries about VNICs that do not belong to the peer, do not belong to this agent, or belong to different tenants.
    pub misplaced: u64,
    /// Entries with more bytes than the VNIC's bandwidth allows, or with a wish above the bandwidth.
    pub impossible: u64,
}

/// The rate control of one agent.
pub struct Control {
    own: AgentId,
    vnics: BTreeMap<MacAddress, Vnic>,
    senders: BTreeMap<MacAddress, Sender>,
    receivers: BTreeMap<MacAddress, Receiver>,
    hypervisor: Option<AgentId>,
    last_report: Option<Instant>,
    messages: VecDeque<(AgentId, Message)>,
    oddities: Oddities,
}

impl Control {
    /// The control of the agent `own`; `vnics` are all VNICs of the fabric. The hypervisor, if there is one, gets the
    /// rates.
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
        Control {
            own,
            vnics: by_mac,
            senders,
            receivers,
            hypervisor,
            last_report: None,
            messages: VecDeque::new(),
            oddities: Oddities::default(),
        }
    }

    /// The destinations of one of this agent's VNICs, in the order of its shaper's classes.
    pub fn destinations(&self, from: MacAddress) -> Vec<MacAddress> {
        self.senders.get(&from).map(Sender::destinations).unwrap_or_default()
    }

    /// Takes the counters of a VNIC's classes and the received bytes of its interface.
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

    /// Handles a new shaper of a VNIC: all classes have the VNIC's whole bandwidth.
    pub fn handle_reset(&mut self, vnic: MacAddress) {
        if let Some(sender) = self.senders.get_mut(&vnic) {
            sender.handle_reset();
        }
    }

    /// Handles a message of another agent.
    pub fn handle_message(&mut self, now: Instant, from: AgentId, message: &Message) {
        match message {
            Message::Reports(reports) => {
                reports.iter().for_each(|report| self.handle_report(now, from, report));
            }
            Message::Grants(grants) => {
                grants.iter().for_each(|grant| self.handle_grant(now, from, grant));
            }
            // Only the hypervisor uses rates.
            Message::Rates(_) | Message::Hello { .. } => self.oddities.misplaced += 1,
        }
    }

    /// Handles a step. The caller calls this function at least every 10 ms, after the counters of all VNICs.
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
        // Reports to this agent's own VNICs need no datagram, and count in this same step.
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
        // Unsent messages of the previous step are out of date.
        self.messages.clear();
        for (to, entries) in reports {
            let pieces = entries.chunks(Message::MOST_REPORTS).map(<[Report]>::to_vec);
            self.messages.extend(pieces.map(|piece| (to, Message::Reports(piece))));
        }
        for (to, entries) in grants {
            let pieces = entries.chunks(Message::MOST_GRANTS).map(<[Grant]>::to_vec);
            self.messages.extend(pieces.map(|piece| (to, Message::Grants(piece))));
        }
        self.report_to_hypervisor(now, &all);
    }

    /// The next datagram to send.
    pub fn poll_message(&mut self) -> Option<(AgentId, Message)> {
        self.messages.pop_front()
    }

    /// The next new ceiling of a class.
    pub fn poll_ceiling(&mut self, now: Instant) -> Option<Ceiling> {
        self.senders.values_mut().find_map(|sender| sender.poll_ceiling(now))
    }

    /// This agent's VNICs as senders.
    pub fn senders(&self) -> impl Iterator<Item = &Sender> {
        self.senders.values()
    }

    /// One of this agent's VNICs as a receiver.
    pub fn receiver(&self, vnic: MacAddress) -> Option<&Receiver> {
        self.receivers.get(&vnic)
    }

    /// The counters of refused or ignored entries.
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

    /// Sends the hypervisor the rates of each VNIC and the byte counters of each pair of VNICs.
    fn report_to_hypervisor(&mut self, now: Instant, reports: &[Report]) {
        let Some(hypervisor) = self.hypervisor else { return };
        if self.last_report.is_some_and(|last| last <= now && now - last < REPORT_INTERVAL) {
            return;
        }
        self.last_report = Some(now);
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
