//! What has come in by each port of a tenant's network on one switch, as entries of table 0 have counted it (1.3).
//!
//! Entries come and go: a link moves, a network changes, a port goes down. What one that went had counted is told by its
//! FLOW_REMOVED; until that comes, what it was last seen to have counted stands for it. So the sum of a port never falls.
//! When and whom to ask is in [`crate::switch::counts`].
//!
//! Counts are the tenant's: of a packet that bears a link's tag, the tag's four bytes are left out.

use crate::policy::TenantId;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use flowspace::{Field, Match};
use hashbrown::HashMap;

/// Entries that are gone and of which the last counts are waited for; of more than these the last are as last seen.
const LEAVING: usize = 4096;
/// Bytes of a link's tag.
const TAG: u64 = 4;

/// Packets, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes, without a link's tag.
    pub bytes: u64,
}

impl Count {
    /// Both together.
    pub fn plus(self, other: Count) -> Count {
        Count {
            packets: self.packets.saturating_add(other.packets),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    /// As an entry with this match counts it.
    pub(crate) fn by_entry(match_: &Match, packets: u64, bytes: u64) -> Count {
        let (_, tagged) = match_.get(Field::VlanVid);
        let tags = if tagged == 0 { 0 } else { packets.saturating_mul(TAG) };
        Count { packets, bytes: bytes.saturating_sub(tags) }
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        [self.packets.to_be_bytes(), self.bytes.to_be_bytes()].concat()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Count> {
        let (packets, bytes) = bytes.split_first_chunk()?;
        let bytes = bytes.first_chunk()?;
        Some(Count { packets: u64::from_be_bytes(*packets), bytes: u64::from_be_bytes(*bytes) })
    }
}

/// A count that may begin anew, while the sum goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rising {
    before: Count,
    last: Count,
}

impl Rising {
    /// It stands at this now.
    pub(crate) fn see(&mut self, count: Count) {
        if count.packets < self.last.packets {
            self.before = self.total();
        }
        self.last = count;
    }

    pub(crate) fn total(&self) -> Count {
        self.before.plus(self.last)
    }

    /// What counted it is gone.
    fn begin_anew(&mut self) {
        *self = Rising { before: self.total(), last: Count::default() };
    }
}

/// For whose port an entry of the hypervisor's own counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Counted {
    pub tenant: TenantId,
    pub port: u16,
}

impl Counted {
    /// The port of a network; `None` for one by which table 0 cannot tell packets apart either.
    pub(crate) fn new(tenant: TenantId, port: u32) -> Option<Counted> {
        let port = u16::try_from(port).ok().filter(|port| *port != 0)?;
        Some(Counted { tenant, port })
    }

    /// The number of an entry's cookie.
    pub(crate) fn to_number(self) -> u32 {
        u32::from(self.tenant.0) << 16 | u32::from(self.port)
    }

    pub(crate) fn from_number(number: u32) -> Option<Counted> {
        Counted::new(TenantId((number >> 16) as u16), number & 0xffff)
    }

    /// The bits of the number that name the tenant.
    pub(crate) const TENANT: u32 = 0xffff_0000;
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// By entries that are gone.
    past: BTreeMap<u32, Count>,
    live: HashMap<Match, (u32, Rising)>,
    leaving: VecDeque<Leaving>,
    /// Changes with each entry that comes or goes: an answer from before speaks of other entries.
    pub changes: u64,
}

#[derive(Debug)]
struct Leaving {
    match_: Match,
    port: u32,
    seen: Rising,
}

impl Tally {
    /// What has come in by a port.
    pub(crate) fn total(&self, port: u32) -> Count {
        let live = self.live.values().filter(|it| it.0 == port).map(|it| it.1.total());
        let leaving = self.leaving.iter().filter(|it| it.port == port).map(|it| it.seen.total());
        let past = self.past.get(&port).copied().unwrap_or_default();
        live.chain(leaving).fold(past, Count::plus)
    }

    /// Whether anything has ever come in by a port, as far as is known.
    pub(crate) fn knows(&self, port: u32) -> bool {
        self.total(port) != Count::default()
    }

    /// Whether an entry counts.
    pub(crate) fn is_counting(&self) -> bool {
        !self.live.is_empty()
    }

    /// An entry counts for a port from now on, or still does.
    pub(crate) fn enter(&mut self, match_: Match, port: u32) {
        if self.live.get(&match_).is_none_or(|(known, _)| *known != port) {
            self.changes += 1;
            self.live.insert(match_, (port, Rising::default()));
        }
    }

    /// An entry is being removed. What was stored before of the port is to be replaced, if there is something.
    pub(crate) fn leave(&mut self, match_: Match, port: u32) -> Option<(u32, Count)> {
        self.changes += 1;
        let seen = self.live.remove(&match_).filter(|(known, _)| *known == port);
        let seen = seen.map(|(_, seen)| seen).unwrap_or_default();
        self.leaving.push_back(Leaving { match_, port, seen });
        let given_up =
            (self.leaving.len() > LEAVING).then(|| self.leaving.pop_front()).flatten()?;
        Some(self.add(given_up.port, given_up.seen.total()))
    }

    /// An entry is being removed whose port is gone.
    pub(crate) fn forget(&mut self, match_: &Match) {
        self.changes += 1;
        self.live.remove(match_);
    }

    /// The switch has told the last counts of an entry. Gives what is to be stored of the port.
    pub(crate) fn removed(
        &mut self,
        match_: &Match,
        port: u32,
        count: Count,
    ) -> Option<(u32, Count)> {
        let is_meant = |it: &Leaving| it.match_ == *match_ && it.port == port;
        if let Some(at) = self.leaving.iter().position(is_meant) {
            let mut gone = self.leaving.remove(at)?;
            gone.seen.see(count);
            return Some(self.add(port, gone.seen.total()));
        }
        // Somebody else has removed it: it counts again when it is back.
        let (_, seen) = self.live.get_mut(match_).filter(|(known, _)| *known == port)?;
        seen.see(count);
        seen.begin_anew();
        None
    }

    /// What an entry has counted so far.
    pub(crate) fn see(&mut self, match_: &Match, port: u32, count: Count) {
        if let Some((_, seen)) = self.live.get_mut(match_).filter(|(known, _)| *known == port) {
            seen.see(count);
        }
    }

    /// What was stored.
    pub(crate) fn restore(&mut self, port: u32, count: Count) {
        self.past.insert(port, count);
    }

    /// Forgets what there was of other ports. Gives those of which something may be stored.
    pub(crate) fn keep(&mut self, is_there: impl Fn(u32) -> bool) -> Vec<u32> {
        self.leaving.retain(|it| is_there(it.port));
        let gone: Vec<u32> = self.past.keys().copied().filter(|port| !is_there(*port)).collect();
        self.past.retain(|port, _| is_there(*port));
        gone
    }

    fn add(&mut self, port: u32, count: Count) -> (u32, Count) {
        let past = self.past.entry(port).or_default();
        *past = past.plus(count);
        (port, *past)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::at_port;
    use flowspace::field::VLAN_PRESENT;

    fn tagged(vid: u16) -> Match {
        at_port(5).with(Field::VlanVid, u128::from(vid) | VLAN_PRESENT)
    }

    fn count(packets: u64) -> Count {
        Count { packets, bytes: packets * 60 }
    }

    #[test]
    fn the_tag_is_not_the_tenants() {
        assert_eq!(Count::by_entry(&tagged(2000), 3, 3 * 64), count(3));
        assert_eq!(Count::by_entry(&at_port(5), 3, 3 * 60), count(3));
    }

    #[test]
    fn a_sum_never_falls_while_entries_come_and_go() {
        let mut tally = Tally::default();
        tally.enter(tagged(2000), 10);
        tally.see(&tagged(2000), 10, count(7));
        // It moves, and another one counts before the last word of the first is in.
        assert_eq!(tally.leave(tagged(2000), 10), None);
        tally.enter(tagged(2001), 10);
        assert_eq!(tally.total(10), count(7));
        tally.see(&tagged(2001), 10, count(2));
        assert_eq!(tally.total(10), count(9));
        assert_eq!(tally.removed(&tagged(2000), 10, count(8)), Some((10, count(8))));
        assert_eq!(tally.total(10), count(10));
        // And back by the first way, twice.
        for _ in 0..2 {
            tally.leave(tagged(2001), 10);
            tally.enter(tagged(2001), 10);
        }
        assert_eq!(tally.total(10), count(10));
        tally.removed(&tagged(2001), 10, count(3));
        tally.removed(&tagged(2001), 10, count(4));
        assert_eq!(tally.total(10), count(8 + 3 + 4));
        // Nothing of it is another port's.
        assert_eq!(tally.total(11), Count::default());
    }

    #[test]
    fn an_entry_that_somebody_else_removes_is_not_forgotten() {
        let mut tally = Tally::default();
        tally.enter(tagged(2000), 10);
        tally.removed(&tagged(2000), 10, count(5));
        assert_eq!(tally.total(10), count(5));
        tally.see(&tagged(2000), 10, count(1));
        assert_eq!(tally.total(10), count(6));
        // A word of which nobody waits for changes nothing.
        assert_eq!(tally.removed(&tagged(2009), 10, count(5)), None);
        assert_eq!(tally.removed(&tagged(2000), 11, count(5)), None);
        assert_eq!((tally.total(10), tally.total(11)), (count(6), Count::default()));
    }

    #[test]
    fn what_is_waited_for_is_bounded_and_what_was_seen_stays() {
        let mut tally = Tally::default();
        for _ in 0..LEAVING + 10 {
            tally.enter(tagged(2000), 10);
            tally.see(&tagged(2000), 10, count(1));
            tally.leave(tagged(2000), 10);
        }
        assert_eq!(tally.leaving.len(), LEAVING);
        assert_eq!(tally.total(10), count(LEAVING as u64 + 10));
    }

    #[test]
    fn whom_an_entry_counts_for_is_in_its_number() {
        let counted = Counted::new(TenantId(7), 0xff00).unwrap();
        assert_eq!(Counted::from_number(counted.to_number()), Some(counted));
        for number in [0, 7 << 16] {
            assert_eq!(Counted::from_number(number), None, "{number:#x}");
        }
        for port in [0, 0x1_0000] {
            assert_eq!(Counted::new(TenantId(7), port), None, "{port:#x}");
        }
    }
}
