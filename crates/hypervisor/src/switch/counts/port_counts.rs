//! What the ports of a tenant's network have counted.

use crate::tally::Count;
use crate::time::Instant;
use alloc::collections::{BTreeMap, BTreeSet};
use compile::Network;
use fabric::embedding::{FarEnd, PortKind};

/// Questions to the switch for what a tenant's ports have received.
#[derive(Debug, Default)]
pub(super) struct Asking {
    /// How many have been asked, and answered.
    pub(super) asked: u64,
    pub(super) answered: u64,
    pub(super) is_open: bool,
    pub(super) answered_at: Option<Instant>,
    /// By port, what the last answer said; and the parts of the one to come.
    pub(super) received: BTreeMap<u32, Count>,
    pub(super) parts: BTreeMap<u32, Count>,
    /// Other switches that want to know, by datapath id.
    pub(super) askers: BTreeSet<u64>,
}

/// A switch at the other ends of links, and what it has told.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    /// The ports there.
    pub(super) ports: BTreeSet<u32>,
    /// By port; `None` until it has said something, or if it cannot tell.
    pub(super) received: Option<BTreeMap<u32, Count>>,
    pub(super) asked: Option<Instant>,
    pub(super) told: Option<Instant>,
    pub(super) is_silent: bool,
}

/// What the ports of a tenant's network have counted.
#[derive(Debug, Default)]
pub(crate) struct PortCounts {
    /// What has come in by them, and questions for that to the switch (1.3).
    pub(super) asking: Asking,
    /// What other switches have reported of the other ends of its links, by datapath id.
    pub(super) elsewhere: BTreeMap<u64, Elsewhere>,
}

impl PortCounts {
    /// Whether all is there that an answer waits for.
    pub(super) fn is_due(&self, due: Due, now: Instant) -> bool {
        let waits = self.elsewhere.values().any(Elsewhere::is_waited_for);
        self.asking.answered >= due.answer && (!waits || now >= due.until)
    }

    /// What has arrived at the other end of a link, wherever that was.
    pub(super) fn arrived(&self, far: &FarEnd) -> Option<Count> {
        far.on.iter().try_fold(Count::default(), |sum, dpid| {
            let ports = self.elsewhere.get(&dpid.0)?.received.as_ref()?;
            let arrived = ports.get(&far.port).copied().unwrap_or_default();
            Some(sum.plus(arrived))
        })
    }

    /// Follows the tenant's network: with a port goes what had arrived at its other end.
    pub(super) fn keep(&mut self, network: Option<&Network>) {
        let ends = network.map(far_ends).unwrap_or_default();
        self.elsewhere.retain(|dpid, _| ends.contains_key(dpid));
        for (dpid, ports) in ends {
            let known = self.elsewhere.entry(dpid).or_default();
            if let Some(received) = &mut known.received {
                received.retain(|port, _| ports.contains(port));
            }
            known.ports = ports;
        }
    }
}

impl Elsewhere {
    fn is_waited_for(&self) -> bool {
        self.asked.is_some() && !self.is_silent
    }
}

/// What an answer about ports waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub(super) answer: u64,
    /// When other switches are no longer waited for.
    pub(super) until: Instant,
}

/// What is known of one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PortTotals {
    pub received: Option<Count>,
    pub sent: Option<Count>,
}

/// The switches at the other ends of a network's links, and the ports there.
fn far_ends(network: &Network) -> BTreeMap<u64, BTreeSet<u32>> {
    let mut ends: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
    for port in network.ports().values() {
        if let PortKind::Link { far, .. } = &port.kind {
            for dpid in &far.on {
                ends.entry(dpid.0).or_default().insert(far.port);
            }
        }
    }
    ends
}
