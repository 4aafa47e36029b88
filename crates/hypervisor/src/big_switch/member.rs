//! A member: its connection, and how far it has come to hold what the big switch holds.

use super::wire;
use super::wire::Sent;
use crate::outbox::Outbox;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use openflow::Version;

/// Messages without an answer to a member, before a barrier shows that they need not be remembered.
pub(super) const SWEEP: usize = 512;

/// A member that is connected.
pub(super) struct Member {
    pub(super) out: Outbox,
    /// The member's ports, by number, as the member describes them.
    pub(super) ports: BTreeMap<u32, Vec<u8>>,
    pub(super) progress: Progress,
    /// Messages that may be answered, by a number of which the xid is the lower half.
    pub(super) sent: BTreeMap<u64, Sent>,
    pub(super) next: u64,
    /// Messages without an answer since the last barrier.
    pub(super) unanswered: usize,
    /// What the member has reported of its tables, until Weir sends it the entries of the big switch.
    pub(super) learned: Learned,
    /// The last change that was in flight when Weir sent the member the entries of the big switch, until Weir knows whether the
    /// members have accepted these changes.
    pub(super) filled_during: Option<u64>,
    /// Whether Weir knows the result of these changes, but not yet which of them the member has refused.
    pub(super) is_settling: bool,
    /// Whether the member has refused an entry, group or meter of the big switch.
    pub(super) lacks: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Weir has asked the member for its entries, groups and meters; this many answers are due.
    Learning(u8),
    /// The member gets all changes, but no barrier has confirmed yet that it has the entries of the big switch.
    Filling,
    /// The member has the entries of the big switch.
    Up,
}

#[derive(Default)]
pub(super) struct Learned {
    pub(super) flows: Vec<u8>,
    pub(super) groups: Vec<u8>,
    pub(super) meters: Vec<u8>,
}

impl Member {
    pub(super) fn send(&mut self, what: Sent, message: &[u8]) {
        if self.unanswered >= SWEEP && !what.is_answered() {
            self.unanswered = 0;
            let version = openflow::frame::version(message).unwrap_or(Version::V1_3);
            self.send(Sent::Sweep, &wire::barrier(version));
        }
        self.unanswered = if what.is_answered() { 0 } else { self.unanswered + 1 };
        let number = self.next;
        self.next += 1;
        self.sent.insert(number, what);
        let start = self.out.len();
        self.out.end().extend_from_slice(message);
        openflow::frame::set_xid(self.out.tail(start), number as u32);
    }

    /// The number of a message by its xid.
    pub(super) fn number(&self, xid: u32) -> u64 {
        self.next.wrapping_sub(u64::from((self.next as u32).wrapping_sub(xid)))
    }

    /// A barrier with this number has confirmed all earlier messages. Takes those that need no answer of their own.
    pub(super) fn confirm(&mut self, number: u64) -> Vec<Sent> {
        let before: Vec<u64> = self.sent.range(..number).map(|(&before, _)| before).collect();
        let mut done = Vec::new();
        for before in before {
            if let Some(&what) = self.sent.get(&before)
                && !what.is_answered()
            {
                done.push(what);
                self.sent.remove(&before);
            }
        }
        done
    }
}
