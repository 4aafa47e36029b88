//! What has come in by each port of a tenant's network on one switch, as entries of table 0 have counted it (1.3), and what has left by
//! shared edge ports, as those of the [egress table](crate::v13::egress) have.
//!
//! Entries come and go: a link moves, a network changes, a port goes down. What one that went had counted is told by its
//! FLOW_REMOVED; until that comes, what it was last seen to have counted stands for it, also if it never comes because the
//! connection breaks: that is stored. So the sum of a port never falls.
//! When and whom to ask is in [`crate::switch::counts`].
//!
//! Counts are the tenant's: of a packet that bears a link's tag, the tag's four bytes are left out.

use crate::cookie::{Cookie, Installation};
use crate::network::{from_16_bits, in_16_bits};
use crate::policy::TenantId;
use crate::v13::egress;
use crate::v13::own::EXCHANGED;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use flowspace::{Field, Match};
use hashbrown::HashMap;
use openflow::Encode;
use openflow::v13::{self, MatchBuf};

/// Entries that are gone and of which the last counts are waited for; of more than these the last are as last seen.
const LEAVING: usize = 1024;
/// Priority of entries whose packets came with a link's tag in addition to their own, which is not in the match.
pub(crate) const LONGER: u16 = 3;
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

    /// As an entry with this match and priority counts it.
    pub(crate) fn by_entry(match_: &Match, priority: u16, packets: u64, bytes: u64) -> Count {
        let (_, tagged) = match_.get(Field::VlanVid);
        // What takes the place of the tenant's tag is as long as that.
        let is_more = match priority {
            EXCHANGED | egress::EXCHANGED => false,
            LONGER => true,
            _ => tagged != 0,
        };
        let count = Count { packets, bytes };
        if is_more { count.without_tags() } else { count }
    }

    /// Of packets that bear a link's tag beside what is the tenant's.
    pub(crate) fn without_tags(self) -> Count {
        let tags = self.packets.saturating_mul(TAG);
        Count { bytes: self.bytes.saturating_sub(tags), ..self }
    }

    /// What it is more than another.
    pub(crate) fn beyond(self, other: Count) -> Count {
        Count {
            packets: self.packets.saturating_sub(other.packets),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.packets.to_be_bytes());
        out.extend_from_slice(&self.bytes.to_be_bytes());
    }

    /// And what follows it.
    pub(crate) fn read(bytes: &[u8]) -> Option<(Count, &[u8])> {
        let (packets, bytes) = bytes.split_first_chunk()?;
        let (bytes, rest) = bytes.split_first_chunk()?;
        let count =
            Count { packets: u64::from_be_bytes(*packets), bytes: u64::from_be_bytes(*bytes) };
        Some((count, rest))
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

/// For whose port an entry of the hypervisor's own counts, and what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Counted {
    pub tenant: TenantId,
    pub of: Counter,
}

/// What is counted of a port of a tenant's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Counter {
    pub port: u32,
    pub direction: Direction,
}

/// Packets that came in by a port, or left by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Direction {
    Received,
    Sent,
}

impl Direction {
    /// Of this port.
    pub(crate) fn of(self, port: u32) -> Counter {
        Counter { port, direction: self }
    }
}

impl Counted {
    /// Of a port of a network; `None` for one by which table 0 cannot tell packets apart either.
    pub(crate) fn new(tenant: TenantId, port: u32, direction: Direction) -> Option<Counted> {
        in_16_bits(port).filter(|port| *port != 0)?;
        Some(Counted { tenant, of: direction.of(port) })
    }

    /// The cookie of an entry that counts it.
    pub(crate) fn to_cookie(self) -> Cookie {
        let tenant = match self.of.direction {
            Direction::Received => Cookie::OWN,
            Direction::Sent => Cookie::OWN_SENT,
        };
        let number = u32::from(self.tenant.0) << 16 | in_16_bits(self.of.port).map_or(0, u32::from);
        Cookie { tenant, number }
    }

    pub(crate) fn from_cookie(cookie: Cookie) -> Option<Counted> {
        let direction = match cookie.tenant {
            Cookie::OWN => Direction::Received,
            Cookie::OWN_SENT => Direction::Sent,
            _ => return None,
        };
        let (tenant, port) = ((cookie.number >> 16) as u16, cookie.number as u16);
        Counted::new(TenantId(tenant), from_16_bits(port), direction)
    }

    /// Cookies of all entries that count for a tenant's ports, and the bits by which they are known.
    pub(crate) fn cookies(tenant: TenantId, by: Installation) -> (u64, u64) {
        let number = u32::from(tenant.0) << 16;
        let cookie = |owner| Cookie { tenant: owner, number }.to_wire(by);
        let (received, sent) = (cookie(Cookie::OWN), cookie(Cookie::OWN_SENT));
        (received & sent, !(received ^ sent) & !u64::from(u16::MAX))
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// By entries that are gone.
    past: BTreeMap<Counter, Count>,
    live: HashMap<Match, (Counter, Rising)>,
    leaving: VecDeque<Leaving>,
    /// What was leaving when the connection broke, until it is known what the switch holds.
    lost: Vec<Leaving>,
    /// Changes with each entry that comes or goes: an answer from before speaks of other entries.
    pub changes: u64,
}

#[derive(Debug)]
struct Leaving {
    match_: Match,
    of: Counter,
    seen: Rising,
}

impl Tally {
    /// All that is counted of it.
    pub(crate) fn total(&self, of: Counter) -> Count {
        let live = self.live.values().filter(|it| it.0 == of).map(|it| it.1.total());
        let leaving = self.leaving.iter().filter(|it| it.of == of).map(|it| it.seen.total());
        let past = self.past.get(&of).copied().unwrap_or_default();
        live.chain(leaving).fold(past, Count::plus)
    }

    /// The matches of entries that count.
    pub(crate) fn matches(&self) -> impl Iterator<Item = &Match> {
        self.live.keys()
    }

    /// Whether an entry counts.
    pub(crate) fn is_counting(&self) -> bool {
        !self.live.is_empty()
    }

    /// An entry counts this from now on, or still does.
    pub(crate) fn enter(&mut self, match_: Match, of: Counter) {
        if self.live.get(&match_).is_none_or(|(known, _)| *known != of) {
            self.changes += 1;
            self.live.insert(match_, (of, Rising::default()));
        }
    }

    /// An entry is being removed.
    pub(crate) fn leave(&mut self, match_: Match, of: Counter) {
        self.changes += 1;
        let seen = self.live.remove(&match_).filter(|(known, _)| *known == of);
        let seen = seen.map(|(_, seen)| seen).unwrap_or_default();
        self.leaving.push_back(Leaving { match_, of, seen });
        if self.leaving.len() > LEAVING
            && let Some(given_up) = self.leaving.pop_front()
        {
            self.add(given_up.of, given_up.seen.total());
        }
    }

    /// An entry is being removed whose port is gone.
    pub(crate) fn forget(&mut self, match_: &Match) {
        self.changes += 1;
        self.live.remove(match_);
    }

    /// The switch has told the last counts of an entry.
    pub(crate) fn removed(&mut self, match_: &Match, of: Counter, count: Count) {
        let is_meant = |it: &Leaving| it.match_ == *match_ && it.of == of;
        if let Some(at) = self.leaving.iter().position(is_meant) {
            if let Some(mut gone) = self.leaving.remove(at) {
                gone.seen.see(count);
                self.add(of, gone.seen.total());
            }
        } else if let Some((_, seen)) = self.live.get_mut(match_).filter(|it| it.0 == of) {
            // Somebody else has removed it: it counts again when it is back.
            seen.see(count);
            seen.begin_anew();
        }
    }

    /// What an entry has counted so far.
    pub(crate) fn see(&mut self, match_: &Match, of: Counter, count: Count) {
        if let Some((_, seen)) = self.live.get_mut(match_).filter(|(known, _)| *known == of) {
            seen.see(count);
        }
    }

    /// What is to be stored of a counter: what entries that are gone have counted, and those that are going, each with its
    /// match. Nothing if it is nothing.
    pub(crate) fn record(&self, of: Counter) -> Option<Vec<u8>> {
        let past = self.past.get(&of).copied().unwrap_or_default();
        let counts = |it: &&Leaving| it.of == of && it.seen != Rising::default();
        let leaving: Vec<&Leaving> = self.leaving.iter().filter(counts).collect();
        if past == Count::default() && leaving.is_empty() {
            return None;
        }
        let mut out = Vec::new();
        past.write(&mut out);
        for it in leaving {
            let mut fields = MatchBuf::new();
            // It was written for the switch once, so it can be.
            if it.match_.to_v13(&mut fields).is_ok() {
                it.seen.total().write(&mut out);
                let mut match_ = Vec::new();
                Encode::write(&fields.as_match(), &mut match_);
                let length = u16::try_from(match_.len()).unwrap_or(u16::MAX);
                out.extend_from_slice(&length.to_be_bytes());
                out.extend_from_slice(&match_);
            }
        }
        Some(out)
    }

    /// Takes over what was stored of a counter. False if it cannot be read.
    pub(crate) fn restore(&mut self, of: Counter, record: &[u8]) -> bool {
        let Some((past, mut rest)) = Count::read(record) else { return false };
        self.past.insert(of, past);
        while !rest.is_empty() {
            let Some((it, after)) = Leaving::read(of, rest) else { return false };
            self.lost.push(it);
            rest = after;
        }
        true
    }

    /// What the switch holds is known: entries of which the last word was lost are gone, or are still there. Gives the
    /// counters of which another record is to be stored.
    pub(crate) fn settle(&mut self) -> BTreeSet<Counter> {
        let mut changed = BTreeSet::new();
        for it in core::mem::take(&mut self.lost) {
            let held = self.live.get(&it.match_).filter(|held| held.0 == it.of);
            if held.is_none_or(|held| held.1.last.packets < it.seen.last.packets) {
                self.add(it.of, it.seen.total());
            }
            changed.insert(it.of);
        }
        changed
    }

    /// Forgets what there was of other ports. Gives those of which something may be stored.
    pub(crate) fn keep(&mut self, is_there: impl Fn(u32) -> bool) -> BTreeSet<Counter> {
        let leaving = self.leaving.iter().map(|it| it.of);
        let known = self.past.keys().copied().chain(leaving);
        let gone: BTreeSet<Counter> = known.filter(|of| !is_there(of.port)).collect();
        self.leaving.retain(|it| is_there(it.of.port));
        self.past.retain(|of, _| is_there(of.port));
        gone
    }

    fn add(&mut self, of: Counter, count: Count) {
        let past = self.past.entry(of).or_default();
        *past = past.plus(count);
    }
}

impl Leaving {
    /// As [`Tally::record`] writes it, and what follows.
    fn read(of: Counter, bytes: &[u8]) -> Option<(Leaving, &[u8])> {
        let (last, bytes) = Count::read(bytes)?;
        let (length, bytes) = bytes.split_first_chunk()?;
        let (match_, rest) = bytes.split_at_checked(u16::from_be_bytes(*length).into())?;
        let match_ = Match::from_v13(&v13::Match::parse(match_).ok()?).ok()?;
        let seen = Rising { before: Count::default(), last };
        Some((Leaving { match_, of, seen }, rest))
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

    fn port(number: u32) -> Counter {
        Direction::Received.of(number)
    }

    fn count(packets: u64) -> Count {
        Count { packets, bytes: packets * 60 }
    }

    #[test]
    fn the_tag_is_not_the_tenants() {
        assert_eq!(Count::by_entry(&tagged(2000), u16::MAX, 3, 3 * 64), count(3));
        assert_eq!(Count::by_entry(&tagged(2001), EXCHANGED, 3, 3 * 60), count(3));
        assert_eq!(Count::by_entry(&at_port(5), EXCHANGED, 3, 3 * 60), count(3));
    }

    #[test]
    fn a_sum_never_falls_while_entries_come_and_go() {
        let mut tally = Tally::default();
        tally.enter(tagged(2000), port(10));
        tally.see(&tagged(2000), port(10), count(7));
        // It moves, and another one counts before the last word of the first is in.
        tally.leave(tagged(2000), port(10));
        tally.enter(tagged(2001), port(10));
        assert_eq!(tally.total(port(10)), count(7));
        tally.see(&tagged(2001), port(10), count(2));
        assert_eq!(tally.total(port(10)), count(9));
        tally.removed(&tagged(2000), port(10), count(8));
        assert_eq!(tally.total(port(10)), count(10));
        // And back by the first way, twice.
        for _ in 0..2 {
            tally.leave(tagged(2001), port(10));
            tally.enter(tagged(2001), port(10));
        }
        assert_eq!(tally.total(port(10)), count(10));
        tally.removed(&tagged(2001), port(10), count(3));
        tally.removed(&tagged(2001), port(10), count(4));
        assert_eq!(tally.total(port(10)), count(8 + 3 + 4));
        // Nothing of it is another port's.
        assert_eq!(tally.total(port(11)), Count::default());
    }

    #[test]
    fn an_entry_that_somebody_else_removes_is_not_forgotten() {
        let mut tally = Tally::default();
        tally.enter(tagged(2000), port(10));
        tally.removed(&tagged(2000), port(10), count(5));
        assert_eq!(tally.total(port(10)), count(5));
        tally.see(&tagged(2000), port(10), count(1));
        assert_eq!(tally.total(port(10)), count(6));
        // A word of which nobody waits for changes nothing.
        tally.removed(&tagged(2009), port(10), count(5));
        tally.removed(&tagged(2000), port(11), count(5));
        assert_eq!((tally.total(port(10)), tally.total(port(11))), (count(6), Count::default()));
    }

    #[test]
    fn what_is_waited_for_is_bounded_and_what_was_seen_stays() {
        let mut tally = Tally::default();
        for _ in 0..LEAVING + 10 {
            tally.enter(tagged(2000), port(10));
            tally.see(&tagged(2000), port(10), count(1));
            tally.leave(tagged(2000), port(10));
        }
        assert_eq!(tally.leaving.len(), LEAVING);
        assert_eq!(tally.total(port(10)), count(LEAVING as u64 + 10));
    }

    #[test]
    fn what_was_seen_of_an_entry_counts_once_whether_it_was_removed_or_not() {
        let mut before = Tally::default();
        assert_eq!(before.record(port(10)), None);
        before.enter(tagged(2000), port(10));
        before.see(&tagged(2000), port(10), count(3));
        before.leave(tagged(2000), port(10));
        before.removed(&tagged(2000), port(10), count(4));
        before.enter(tagged(2001), port(10));
        before.see(&tagged(2001), port(10), count(5));
        before.leave(tagged(2001), port(10));
        let record = before.record(port(10)).unwrap();
        // What the entry counts that is held now, if one is, and what it comes to.
        for (held, sum) in [(None, 9), (Some(5), 9), (Some(6), 10), (Some(2), 11)] {
            let mut after = Tally::default();
            assert!(after.restore(port(10), &record));
            if let Some(held) = held {
                after.enter(tagged(2001), port(10));
                after.see(&tagged(2001), port(10), count(held));
            }
            assert_eq!(after.settle(), BTreeSet::from([port(10)]));
            assert_eq!(after.total(port(10)), count(sum), "{held:?}");
        }
        for cut in 0..record.len() {
            assert_eq!(Tally::default().restore(port(10), &record[..cut]), cut == 16, "{cut}");
        }
    }

    #[test]
    fn whom_an_entry_counts_for_is_in_its_cookie() {
        let tenant = TenantId(7);
        let by = Installation::default();
        let (cookies, mask) = Counted::cookies(tenant, by);
        for direction in [Direction::Received, Direction::Sent] {
            for port in [1, 0xff00, 0xffff_fffe] {
                let counted = Counted::new(tenant, port, direction).unwrap();
                let cookie = counted.to_cookie();
                assert!(cookie.is_own());
                assert_eq!(Counted::from_cookie(cookie), Some(counted));
                assert_eq!(cookie.to_wire(by) & mask, cookies);
                let another = Counted { tenant: TenantId(8), ..counted }.to_cookie();
                assert_ne!(another.to_wire(by) & mask, cookies);
            }
            for port in [0, 0x1_0000, u32::MAX] {
                assert_eq!(Counted::new(tenant, port, direction), None, "{port:#x}");
            }
        }
        // An entry of the hypervisor's own that counts nothing, and a tenant's.
        for (owner, number) in [(0, 0), (0, 7 << 16), (7, 7 << 16 | 1)] {
            let cookie = Cookie { tenant: TenantId(owner), number };
            assert_eq!(Counted::from_cookie(cookie), None, "{cookie:?}");
        }
        assert_ne!(Cookie { tenant, number: 7 << 16 | 1 }.to_wire(by) & mask, cookies);
    }
}
