//! How much of what one interface may send another counts on which link.
//!
//! What one sends the other are several sets of packets: one for each kind of IP, and for each pair of their addresses.
//! Which of them it uses is not known, so each is reckoned with as if it had all of the pair's rate, divided evenly among
//! the entries of the first switch that take a part of it; and a link counts the set that puts most on it, no sums. So no
//! link counts more of a pair than the pair's rate, and none on which it may send counts nothing.

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
    /// In lowest terms, so that the same part is the same share.
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

/// What was found of a pair.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Spread {
    /// Entries of the first switch that send any of the pair's packets anywhere that counts.
    pub(super) flows: usize,
    /// Those among them that bring none to their receiver.
    pub(super) lost: usize,
    /// Links that count the same part of the pair's rate.
    pub(super) parts: Vec<(Share, Box<[LinkId]>)>,
}

impl Spread {
    /// From what was traced of each set of packets.
    pub(super) fn new(traces: &[Vec<Traced>]) -> Spread {
        // By entry, whether it brings anything to the receiver.
        let mut flows: BTreeMap<u32, bool> = BTreeMap::new();
        let mut shares: BTreeMap<LinkId, Share> = BTreeMap::new();
        for trace in traces {
            // Of packets that get lost on their way what they cross is known only if they are sent at all, which an
            // entry that names their receiver says.
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
