//! The cost of tenants' requests inside Weir, and the turns of tenants.
//!
//! The unit is an *examined entry*: one look at an entry of a flow table. Longer work counts as several entries. A
//! tenant that has used up its credit is put into a line; each turn of the event loop pays one tenant of the line. Weir
//! looks at none of the tenant's requests until its debt is paid. A large request waits in the same line, so one turn
//! handles at most one large request.
//!
//! ```text
//!            credit used up, or a large request
//!   served ───────────────────────────────────▶ line: in each turn the first gets a quantum, then goes to the end
//!     ▲                                          │
//!     └────────────── credit again ──────────────┘
//! ```
//! A tenant that is not in line earns what one more tenant in line would have got, up to a bound. So a tenant that asks
//! for less than its share never waits, whatever other tenants ask for. There is no clock here: if no other tenant asks
//! for anything, turns follow each other at once.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::cell::Cell;
use openflow::v13::PortNo;

/// What one tenant of weight 1 may use in one turn of the event loop: about a millisecond.
pub(crate) const QUANTUM: u64 = 16_384;
/// A request of this cost waits for its tenant's turn. A tenant that is not in line does no more work at once, since
/// all tenants may do so in the same turn.
pub(crate) const LARGE: u64 = QUANTUM / 8;
/// The cost of compiling one entry.
pub(crate) const PLAN: u64 = 24;
/// The cost of adding an entry to a table, or of removing it.
pub(crate) const CHANGE: u64 = 16;
/// The cost of writing a message for the switch.
pub(crate) const MESSAGE: u64 = 16;

/// The entries that Weir examines to carry out a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Examines {
    /// All entries of the tenant, and each may change.
    Every,
    /// The entries with this cookie, and each may change (1.3).
    WithCookie(u64),
    /// The entries that send packets to this port, and each is removed.
    WithOutput(PortNo),
    /// All entries, in the shortest way: whether an entry overlaps a new entry.
    Glance,
    /// No whole table.
    Nothing,
}

/// Counts examined entries, also behind a shared reference.
#[derive(Debug, Default)]
pub(crate) struct Meter(Cell<u64>);

impl Meter {
    /// Adds examined entries.
    #[inline]
    pub(crate) fn add(&self, examined: u64) {
        self.0.set(self.0.get().wrapping_add(examined));
    }

    /// The number of all examined entries so far.
    #[inline]
    pub(crate) fn total(&self) -> u64 {
        self.0.get()
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    members: Vec<Member>,
    line: VecDeque<u32>,
    /// What a tenant of weight 1 would have got so far, if it had always been in line.
    share: i64,
    /// The sum of the weights of all tenants in line.
    weights: i64,
    /// The tenant whose turn it is.
    on_turn: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    weight: i64,
    /// What the tenant may use; a negative credit is a debt.
    credit: i64,
    /// The value of `share` when the tenant last earned something.
    earned: i64,
    in_line: bool,
}

impl Turns {
    /// Sets the weight of a tenant. A new tenant has some credit.
    pub(crate) fn set_weight(&mut self, index: u32, weight: u32) {
        let (index, weight) = (index as usize, i64::from(weight.max(1)));
        if self.members.len() <= index {
            let credit = LARGE as i64 * weight;
            let member = Member { weight, credit, earned: self.share, in_line: false };
            self.members.resize(index + 1, member);
            // The forwarding path allocates nothing.
            self.line.reserve(self.members.len());
        }
        let member = &mut self.members[index];
        if member.in_line {
            self.weights += weight - member.weight;
        }
        member.weight = weight;
    }

    /// Whether Weir looks at requests of the tenant now.
    #[inline]
    pub(crate) fn may(&self, index: u32) -> bool {
        self.members.get(index as usize).is_some_and(|member| !member.in_line)
    }

    /// Charges a tenant for examined entries.
    #[inline]
    pub(crate) fn charge(&mut self, index: u32, examined: u64) {
        let Some(member) = self.members.get_mut(index as usize) else { return };
        if !member.in_line && member.earned != self.share {
            let more = (self.share - member.earned).saturating_mul(member.weight);
            let most = LARGE as i64 * member.weight;
            member.credit = member.credit.saturating_add(more).min(most);
            member.earned = self.share;
        }
        member.credit = member.credit.saturating_sub_unsigned(examined);
        if member.credit <= 0 {
            self.wait(index);
        }
    }

    /// A tenant has work for which it must wait for its turn.
    pub(crate) fn wait(&mut self, index: u32) {
        if let Some(member) = self.members.get_mut(index as usize)
            && !member.in_line
        {
            member.in_line = true;
            self.weights += member.weight;
            self.line.push_back(index);
        }
    }

    /// Whether any tenant waits for a turn.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.line.is_empty()
    }

    /// A turn of the event loop: pays the first tenant in line. Returns this tenant if it is out of debt; then it is
    /// the tenant's turn until the turn [ends](Self::end).
    pub(crate) fn next(&mut self) -> Option<u32> {
        let index = self.line.pop_front()?;
        let member = self.members.get_mut(index as usize)?;
        let quantum = QUANTUM as i64 * member.weight;
        // Computed as if one more tenant were in line.
        self.share += quantum / (self.weights + 1);
        member.credit = member.credit.saturating_add(quantum).min(quantum);
        if member.credit <= 0 {
            self.line.push_back(index);
            return None;
        }
        member.in_line = false;
        member.earned = self.share;
        self.weights -= member.weight;
        self.on_turn = Some(index);
        Some(index)
    }

    /// The turn is over.
    pub(crate) fn end(&mut self) {
        self.on_turn = None;
    }

    /// Whether it is this tenant's turn.
    pub(crate) fn is_on_turn(&self, index: u32) -> bool {
        self.on_turn == Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(tenants: u32) -> Turns {
        let mut turns = Turns::default();
        (0..tenants).for_each(|index| turns.set_weight(index, 1));
        turns
    }

    #[test]
    fn a_tenant_waits_until_turns_have_paid_its_debt() {
        let mut turns = turns(1);
        turns.charge(0, 11 * QUANTUM);
        let mut paid = 0;
        while !turns.may(0) {
            turns.next();
            paid += 1;
        }
        assert_eq!(paid, 11);
        assert!(!turns.is_awaited());
    }

    #[test]
    fn a_tenant_that_uses_less_than_its_share_does_not_wait() {
        let mut turns = turns(20);
        for round in 0..100_000 {
            for index in 1..20 {
                if turns.may(index) {
                    turns.charge(index, 10 * QUANTUM);
                }
            }
            assert!(turns.may(0), "in round {round}");
            turns.charge(0, QUANTUM / 25);
            turns.next();
        }
    }

    #[test]
    fn waiting_tenants_share_the_turns_by_weight() {
        let mut turns = turns(3);
        turns.set_weight(2, 3);
        let mut used = [0i64; 3];
        for _ in 0..100_000 {
            for index in 0..3 {
                if turns.may(index) {
                    turns.charge(index, 5 * QUANTUM);
                    used[index as usize] += 5;
                }
            }
            turns.next();
        }
        let [one, other, three] = used;
        assert!((one - other).abs() <= 10, "{used:?}");
        assert!((three - 3 * one).abs() <= 100, "{used:?}");
    }
}
