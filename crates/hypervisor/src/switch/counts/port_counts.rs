//! The counters of the ports of a tenant's network.

use crate::tally::Count;
use crate::time::Instant;
use alloc::collections::{BTreeMap, BTreeSet};
use compile::Network;
use fabric::embedding::{FarEnd, PortKind};

/// Questions to the switch for the received counters of a tenant's ports.
#[derive(Debug, Default)]
pub(super) struct Asking {
    /// The numbers of questions and of answers. At most one question is open.
    pub(super) asked: u64,
    pub(super) answered: u64,
    pub(super) answered_at: Option<Instant>,
    /// By port: the counters of the last answer, and those of the next answer so far.
    pub(super) received: BTreeMap<u32, Count>,
    pub(super) parts: BTreeMap<u32, Count>,
    /// Other switches that wait for the answer, by datapath id.
    pub(super) askers: BTreeSet<u64>,
}

/// A switch at the other ends of links, and its last answer.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    /// The ports on that switch.
    pub(super) ports: BTreeSet<u32>,
    /// By port. `None` until the switch has answered, or if the switch has no such counters.
    pub(super) received: Option<BTreeMap<u32, Count>>,
    pub(super) asked: Option<Instant>,
    pub(super) answered: Option<Instant>,
    pub(super) is_silent: bool,
}

/// The counters of the ports of a tenant's network.
#[derive(Debug, Default)]
pub(crate) struct PortCounts {
    /// Received counters, and the questions to the switch for them (1.3).
    pub(super) asking: Asking,
    /// The counters of the links' other ends, by the datapath ids of the switches there.
    pub(super) elsewhere: BTreeMap<u64, Elsewhere>,
}

impl PortCounts {
    /// Whether all counters for an answer are known.
    pub(crate) fn is_due(&self, due: Due, now: Instant) -> bool {
        let waits = self.elsewhere.values().any(Elsewhere::is_waited_for);
        self.asking.answered >= due.answer && (!waits || now >= due.until)
    }

    /// The packets that have arrived at the other end of a link, on all switches where that end has been.
    pub(super) fn arrived(&self, far: &FarEnd) -> Option<Count> {
        far.on.iter().try_fold(Count::default(), |sum, dpid| {
            let ports = self.elsewhere.get(&dpid.0)?.received.as_ref()?;
            let arrived = ports.get(&far.port).copied().unwrap_or_default();
            Some(sum.plus(arrived))
        })
    }

    /// Follows a change of the tenant's network: the counters of a port's other end are forgotten with the port.
    pub(crate) fn keep(&mut self, network: Option<&Network>) {
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

/// The counters that an answer about ports waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    pub(super) answer: u64,
    /// When Weir waits for other switches no longer.
    pub(super) until: Instant,
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
