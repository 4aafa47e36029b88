//! Items of the log: changes and barriers.

use super::request::Request;
use crate::buffers::Buffered;
use crate::flows::Flow;
use crate::ids::ControllerIndex;
use crate::refusals::Verdict;
use crate::south::pending::Origin;
use crate::store::Kind;
use crate::time::Instant;
use crate::v13::numbers::GroupOrMeter;
use alloc::boxed::Box;
use alloc::vec::Vec;
use hashbrown::HashSet;
use openflow::v10::PortConfig;

/// The new configuration of a port, and the controller that asks for it.
pub(crate) struct Configures {
    pub(super) doer: ControllerIndex,
    pub(super) number: u32,
    pub(super) config: PortConfig,
    pub(super) mask: PortConfig,
}

/// A group or meter as it was before a change.
pub(crate) struct NumberBefore {
    pub kind: Kind,
    pub number: u32,
    pub before: Option<GroupOrMeter>,
    /// Ids on the switch that the change has taken.
    pub made: Vec<u32>,
}

impl NumberBefore {
    pub(crate) fn new(kind: Kind, number: u32, before: Option<GroupOrMeter>) -> NumberBefore {
        NumberBefore { kind, number, before, made: Vec::new() }
    }
}

/// A log with at most this many changed entries is searched one by one.
const FEW: usize = 16;

/// An item of the log.
pub(crate) enum Logged {
    /// A change, by its operation.
    Change(u32),
    Barrier(Barrier),
}

/// A barrier of a controller, or of Weir on behalf of the tenant.
pub(crate) struct Barrier {
    pub(super) origin: Option<Origin>,
    /// The answer of the switch, when it has come.
    pub(super) outcome: Option<Result<(), Verdict>>,
}

/// The outcome of a change so far.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    /// The tables show the change.
    Applied,
    /// The tables do not allow the change. A replay may allow the change.
    Refused(Verdict),
    /// The switch has refused the change.
    Dropped(Verdict),
}

/// A request that changes tables or ports.
pub(crate) struct LoggedChange {
    pub(super) origin: Origin,
    /// The message as the controller sent it.
    pub(super) frame: Box<[u8]>,
    /// When the request arrived; if it waited for its turn, when it was sent.
    pub(super) at: Instant,
    pub(super) outcome: Outcome,
    /// The changed entries as they were before; `None` for new entries.
    pub(super) before: Vec<(u32, Option<Flow>)>,
    /// The numbers of the changed entries, if there are many: Weir looks here for each entry that times out.
    changed: HashSet<u32>,
    /// The changed groups and meters as they were before (1.3).
    pub(super) numbers_before: Vec<NumberBefore>,
    /// The number of the added entry. When the request is applied again, the entry gets the same number.
    pub(super) number: Option<u32>,
    /// The egress groups that groups of the change need (1.3).
    pub(super) needs: Vec<u32>,
    /// The added entry, whose time begins with the change.
    pub(super) begins: Option<u32>,
    /// The last message to the switch whose deleted rules do not count for the added entry.
    pub(super) counts_since: Option<u32>,
    /// Whether the counters of the changed entries begin at 0 (OFPFF_RESET_COUNTS).
    pub(super) resets_counts: bool,
    /// The new configuration of a slice's port, if the request is a PORT_MOD.
    pub(super) configures: Option<Configures>,
    /// The buffered packet that the change releases.
    pub(super) buffered: Option<Buffered>,
    /// Whether messages of the change were removed from the queue.
    pub(super) is_cut: bool,
}

impl LoggedChange {
    pub(super) fn new(request: &Request<'_>) -> LoggedChange {
        LoggedChange {
            origin: request.origin(),
            frame: request.frame.into(),
            at: request.now,
            outcome: Outcome::Applied,
            before: Vec::new(),
            changed: HashSet::new(),
            numbers_before: Vec::new(),
            number: None,
            needs: Vec::new(),
            begins: None,
            counts_since: None,
            resets_counts: false,
            configures: None,
            buffered: None,
            is_cut: false,
        }
    }

    /// Whether the change changes an entry.
    pub(super) fn changes(&self, number: u32) -> bool {
        match self.before.len() <= FEW {
            true => self.before.iter().any(|(other, _)| *other == number),
            false => self.changed.contains(&number),
        }
    }

    /// Whether the tables show the change.
    pub(super) fn is_applied(&self) -> bool {
        matches!(self.outcome, Outcome::Applied)
    }

    /// Notes an entry as it was before the change.
    pub(super) fn remember(&mut self, number: u32, before: Option<Flow>) {
        // A request touches an entry once, or twice in a row.
        if self.before.last().is_some_and(|(known, _)| *known == number) {
            return;
        }
        if self.before.is_empty() {
            // Most requests change one entry.
            self.before.reserve_exact(1);
        }
        self.before.push((number, before));
        if self.before.len() == FEW + 1 {
            self.changed.extend(self.before.iter().map(|(number, _)| *number));
        } else if self.before.len() > FEW {
            self.changed.insert(number);
        }
    }

    /// Takes the entries and groups as they were before the change, to restore them before a replay.
    pub(super) fn take_back(&mut self) -> (Vec<(u32, Option<Flow>)>, Vec<NumberBefore>) {
        self.changed.clear();
        self.needs.clear();
        (core::mem::take(&mut self.before), core::mem::take(&mut self.numbers_before))
    }

    /// Bytes that the change holds, without its messages.
    pub(super) fn size(&self) -> usize {
        let flows = self.before.iter().filter_map(|(_, flow)| flow.as_ref());
        let entries = size_of::<u64>() * self.before.len();
        let numbers = self.numbers_before.iter().map(|one| {
            let body = one.before.as_ref().map_or(0, |before| before.body.len());
            size_of_val(one) + body + 4 * one.made.len()
        });
        let flows: usize = flows.map(Flow::size).sum();
        size_of::<LoggedChange>() + self.frame.len() + flows + entries + numbers.sum::<usize>()
    }
}
