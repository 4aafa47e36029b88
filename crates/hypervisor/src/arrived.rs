//! What has come in by the ports of a tenant's network on a switch of OpenFlow 1.0, where others stand on the same port.
//!
//! There is no table before the tenants' own, so what comes by a link, or from a host at a shared edge port, is counted by the
//! entries of the one table that are for these packets alone, together: they are asked for as an aggregate. To that comes
//! what entries have counted that are gone (FLOW_REMOVED) and what met none (PACKET_IN); and what did not come in is taken away:
//! packets that a controller has sent through the table.
//!
//! ```text
//!   told = aggregate + gone + missed − resent        when the switch was last asked
//! ```
//! The switch answers in order: what is gone when it says the aggregate is known to be. Between two answers the sum is what it
//! was, and it never falls. What was told is stored, with the aggregate that is in it: so it goes on when the connection has been lost,
//! by what the entries that still stand have counted meanwhile. Of those that went without a word nothing more is known.
//! When and whom to ask is in [`crate::switch::counts`].

use crate::network::{Network, at_port};
use crate::tally::Count;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use flowspace::field::VLAN_PRESENT;
use flowspace::{Field, Match};
use hashbrown::HashMap;

/// Looks of packets that come in no more and of which entries may still go; of more than these the last is not waited for.
const LEAVING: usize = 1024;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Arrived {
    /// By how packets look.
    by_looks: HashMap<Match, One>,
    /// Ports by which packets come in now.
    current: BTreeSet<u32>,
    /// By port, what has come with looks that are forgotten, and what met no entry.
    past: BTreeMap<u32, Count>,
    resent: BTreeMap<u32, Count>,
    told: BTreeMap<u32, Count>,
    /// What entries had counted as told before the connection was lost, until the switch is asked again.
    stood: BTreeMap<u32, Count>,
    /// What was stored last: what was told, and what part of it entries had counted that stood.
    stored: BTreeMap<u32, (Count, Count)>,
    /// What the last round of questions was about, and how many of them are not answered.
    round: (u32, Vec<Match>),
    unanswered: usize,
}

/// What has come with one look.
#[derive(Clone, Copy, Debug, Default)]
struct One {
    port: u32,
    /// A link's tag is a part of what entries count.
    is_tagged: bool,
    is_current: bool,
    /// As the switch said last of the entries that stand.
    aggregate: Count,
    /// Of entries that are gone.
    gone: Count,
}

impl One {
    fn own(&self, count: Count) -> Count {
        if self.is_tagged { count.without_tags() } else { count }
    }
}

impl Arrived {
    /// Whether packets may come in that are counted so.
    pub(crate) fn is_counting(&self) -> bool {
        !self.current.is_empty()
    }

    /// What has come in by a port.
    pub(crate) fn total(&self, port: u32) -> Count {
        let told = self.told.get(&port).copied().unwrap_or_default();
        if self.current.contains(&port) {
            return told;
        }
        // Nothing comes by it now: the last word is in when its last entries are gone.
        let ones = self.by_looks.values().filter(|one| one.port == port);
        let counts = ones.map(|one| one.aggregate.plus(one.gone));
        later(told, self.came(port, counts.fold(Count::default(), Count::plus)))
    }

    /// With what entries have counted, all that has come in.
    fn came(&self, port: u32, by_entries: Count) -> Count {
        let came = self.past.get(&port).map_or(by_entries, |past| past.plus(by_entries));
        came.beyond(self.resent.get(&port).copied().unwrap_or_default())
    }

    /// Begins to ask, and for so much `beside` that is not about looks: gives the number of the round, and the looks to ask for.
    pub(crate) fn ask(&mut self, beside: usize) -> (u32, Vec<Match>) {
        let current = self.by_looks.iter().filter(|(_, one)| one.is_current);
        self.round = (self.round.0.wrapping_add(1), current.map(|(looks, _)| *looks).collect());
        self.unanswered = self.round.1.len() + beside;
        self.round.clone()
    }

    /// What all entries have counted that are for packets of one of the looks asked for. Says whether that was the last.
    pub(crate) fn answered(&mut self, (round, at): (u32, u32), aggregate: Count) -> bool {
        let Some(looks) = self.round.1.get(at as usize).filter(|_| self.round.0 == round) else {
            return false;
        };
        if let Some(one) = self.by_looks.get_mut(looks).filter(|one| one.is_current) {
            one.aggregate = one.own(aggregate);
        }
        self.answered_beside(round)
    }

    /// What was asked for beside the looks is answered. Says whether that was the last.
    pub(crate) fn answered_beside(&mut self, round: u32) -> bool {
        if self.round.0 != round {
            return false;
        }
        self.unanswered = self.unanswered.saturating_sub(1);
        if self.unanswered > 0 {
            return false;
        }
        let mut by_entries: BTreeMap<u32, Count> = BTreeMap::new();
        for one in self.by_looks.values() {
            let count = by_entries.entry(one.port).or_default();
            *count = count.plus(one.aggregate).plus(one.gone);
        }
        for (port, count) in by_entries {
            if let Some(stood) = self.stood.remove(&port) {
                // Some are gone that had counted the difference.
                let past = self.past.entry(port).or_default();
                *past = past.plus(stood.beyond(count));
            }
            let sum = self.came(port, count);
            let told = self.told.entry(port).or_default();
            *told = later(*told, sum);
        }
        true
    }

    /// What is to be stored of ports, as far as it is not what was stored last.
    pub(crate) fn take_records(&mut self) -> Vec<(u32, Vec<u8>)> {
        let mut stand: BTreeMap<u32, Count> = BTreeMap::new();
        for one in self.by_looks.values() {
            let count = stand.entry(one.port).or_default();
            *count = count.plus(one.aggregate);
        }
        let mut records = Vec::new();
        for (&port, &told) in &self.told {
            let stands = stand.get(&port).copied().unwrap_or_default();
            let before = self.stored.insert(port, (told, stands)).unwrap_or_default();
            if before != (told, stands) {
                let mut record = Vec::new();
                told.write(&mut record);
                stands.write(&mut record);
                records.push((port, record));
            }
        }
        records
    }

    /// Takes over what was stored of a port. False if it cannot be read.
    pub(crate) fn restore(&mut self, port: u32, record: &[u8]) -> bool {
        let Some((told, rest)) = Count::read(record) else { return false };
        let Some((stood, [])) = Count::read(rest) else { return false };
        self.told.insert(port, told);
        self.past.insert(port, told.beyond(stood));
        self.resent.insert(port, stood.beyond(told));
        self.stood.insert(port, stood);
        self.stored.insert(port, (told, stood));
        true
    }

    /// An entry is gone, or begins to count anew, that has counted this.
    pub(crate) fn gone(&mut self, match_: &Match, count: Count) {
        let [at, tag, source] =
            [Field::InPort, Field::VlanVid, Field::DlSrc].map(|it| match_.exact_value(it));
        let Some(at) = at.map(|at| at_port(at as u32)) else { return };
        let tag = tag.filter(|tag| tag & VLAN_PRESENT != 0);
        let tagged = tag.map(|tag| at.with(Field::VlanVid, tag));
        let sent = source.map(|source| at.with(Field::DlSrc, source));
        let mut looks = tagged.into_iter().chain(sent);
        if let Some(looks) = looks.find(|looks| self.by_looks.contains_key(looks))
            && let Some(one) = self.by_looks.get_mut(&looks)
        {
            one.gone = one.gone.plus(one.own(count));
        }
    }

    /// A packet of the tenant's, of so many bytes, has come by the port and met no entry.
    pub(crate) fn missed(&mut self, port: u32, bytes: u64) {
        let past = self.past.entry(port).or_default();
        *past = past.plus(Count { packets: 1, bytes });
    }

    /// A packet of the tenant's goes through the table as one that has come by the port, and does not come in now.
    pub(crate) fn resent(&mut self, port: u32, bytes: u64) {
        let resent = self.resent.entry(port).or_default();
        *resent = resent.plus(Count { packets: 1, bytes });
    }

    /// Follows the network: what has come by a port stays as long as the port, whichever its looks are. Gives the ports of which
    /// nothing is to be stored any more.
    pub(crate) fn follow(&mut self, network: Option<&Network>) -> Vec<u32> {
        let Some(network) = network else {
            return core::mem::take(self).stored.into_keys().collect();
        };
        let mut looks = HashMap::new();
        for port in network.entries().filter(|port| network.whole_edge(*port).is_none()) {
            // What 1.0 cannot say cannot be asked for, and nothing is.
            let said = network.arrivals(port).into_iter().filter(|it| it.looks.to_v10().is_ok());
            for arrival in said {
                looks.insert(arrival.looks, (port, arrival.tag.is_some()));
            }
        }
        let is_there = |port: &u32| network.ports.contains_key(port);
        let stored = core::mem::take(&mut self.stored);
        let (stored, gone): (BTreeMap<_, _>, BTreeMap<_, _>) =
            stored.into_iter().partition(|(port, _)| is_there(port));
        self.stored = stored;
        self.by_looks.retain(|_, one| is_there(&one.port));
        for counts in [&mut self.past, &mut self.resent, &mut self.told, &mut self.stood] {
            counts.retain(|port, _| is_there(port));
        }
        let mut leaving = 0;
        let before = core::mem::take(&mut self.by_looks);
        for (known, one) in before {
            let (is_same, is_current) =
                looks.get(&known).map_or((true, false), |(port, _)| (*port == one.port, true));
            leaving += usize::from(!is_current);
            if is_same && (is_current || leaving <= LEAVING) {
                // What its entries have counted they tell when they go.
                let aggregate = if is_current { one.aggregate } else { Count::default() };
                self.by_looks.insert(known, One { is_current, aggregate, ..one });
            } else {
                let past = self.past.entry(one.port).or_default();
                *past = past.plus(one.gone);
            }
        }
        self.current = looks.values().map(|(port, _)| *port).collect();
        for (looks, (port, is_tagged)) in looks {
            let one = self.by_looks.entry(looks).or_default();
            (one.port, one.is_tagged, one.is_current) = (port, is_tagged, true);
        }
        gone.into_keys().collect()
    }
}

/// Of two counts of the same the one that was taken later.
fn later(one: Count, other: Count) -> Count {
    if other.packets > one.packets { other } else { one }
}
