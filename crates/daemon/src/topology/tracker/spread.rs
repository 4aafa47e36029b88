//! The part of a pair's rate that counts on each link.
//!
//! The packets of a pair of interfaces are several sets: one for IPv4 and one for IPv6, and one for each pair of their
//! addresses. Weir does not know which set the pair uses, so each set counts with the whole rate of the pair, divided
//! evenly among the entries of the first switch that match a part of the set. A link counts the set with the largest
//! load, not the sum. So no link counts more than the pair's rate, and each link that the pair may use counts
//! something.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{Bandwidth, LinkId};

use crate::topology::trace::Traced;

/// A part of a pair's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Share {
    count: u32,
    of: u32,
}

impl Share {
    /// The fraction is in lowest terms, so that equal parts are equal shares.
    fn new(count: u32, of: u32) -> Share {
        let (mut a, mut b) = (count, of);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let divisor = a.max(1);
        Share { count: count / divisor, of: of / divisor }
    }

    fn is_more_than(self, other: Share) -> bool {
        u64::from(self.count) * u64::from(other.of) > u64::from(other.count) * u64::from(self.of)
    }

    pub(super) fn of(self, rate: Bandwidth) -> Bandwidth {
        rate.share(self.count.into(), self.of.into())
    }
}

/// The result for a pair.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Spread {
    /// The number of entries of the first switch that send packets of the pair.
    pub(super) flows: usize,
    /// The number of these entries whose packets do not reach the receiver.
    pub(super) lost: usize,
    /// Links with the same part of the pair's rate.
    pub(super) parts: Vec<(Share, Box<[LinkId]>)>,
}

impl Spread {
    /// The result from the traces of all sets of packets.
    pub(super) fn new(traces: &[Vec<Traced>]) -> Spread {
        // By entry: whether its packets reach the receiver.
        let mut flows: BTreeMap<u32, bool> = BTreeMap::new();
        let mut shares: BTreeMap<LinkId, Share> = BTreeMap::new();
        for trace in traces {
            // For packets that do not reach their receiver, the path counts only if the first entry names the receiver:
            // otherwise it is unknown whether the packets are sent at all.
            let counted = || trace.iter().filter(|flow| flow.arrives || flow.is_meant);
            let of = counted().count() as u32;
            let mut counts: BTreeMap<LinkId, u32> = BTreeMap::new();
            for flow in counted() {
                *flows.entry(flow.entry).or_default() |= flow.arrives;
                for link in &flow.links {
                    *counts.entry(*link).or_default() += 1;
                }
            }
            for (link, count) in counts {
                let share = Share::new(count, of);
                let known = shares.entry(link).or_insert(share);
                if share.is_more_than(*known) {
                    *known = share;
                }
            }
        }
        let mut parts: BTreeMap<Share, BTreeSet<LinkId>> = BTreeMap::new();
        for (link, share) in shares {
            parts.entry(share).or_default().insert(link);
        }
        let parts = parts.into_iter().map(|(share, links)| (share, links.into_iter().collect()));
        let lost = flows.values().filter(|arrives| !**arrives).count();
        Spread { flows: flows.len(), lost, parts: parts.collect() }
    }
}
