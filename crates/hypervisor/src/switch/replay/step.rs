//! The steps of one round of a [replay](super), and the work that remains in each step.

use super::findings::{Findings, Gone, Object};
use crate::flows::Flow;
use crate::store::Kind;
use crate::switch::bulk::change::BulkChange;
use crate::switch::mend::difference::{Addition, Deletion, Difference};
use alloc::boxed::Box;
use alloc::collections::btree_map;
use alloc::vec;
use alloc::vec::Vec;
use compile::RuleKey;
use hashbrown::{HashMap, HashSet, hash_set};

/// The state of a round.
pub(crate) struct Round {
    /// The next step; `None` at the end of the round.
    pub(super) step: Option<Step>,
    /// The findings when the round began. Later findings are for the next round.
    pub(super) findings: Findings,
    /// The changes in the log, the first first.
    pub(super) changes: Vec<u32>,
    /// Whether any group or meter is restored or evicted.
    pub(super) has_numbers: bool,
    /// Whether Weir stops repairing the switch after this round.
    pub(super) is_last: bool,
    /// The last change of each entry, group and meter.
    pub(super) causes: HashMap<Object, u32>,
    /// Whether Weir has sent any repair.
    pub(super) is_repaired: bool,
}

/// The steps, in their order. One turn of the event loop does a batch of the work.
pub(super) enum Step {
    /// 1. The tables go back to the state before the first change in the log.
    Restore(Restore),
    /// 2. Rules that the switch has removed by itself are removed from the tables, and groups and meters that cannot be
    ///    on the switch.
    Removals(vec::IntoIter<Gone>),
    /// 3. The changes are applied again, the first first.
    Apply(Apply),
    /// 4. Entries that cannot be on the switch are evicted.
    Evict(vec::IntoIter<u32>),
    /// 5. Groups and then changed entries are compiled again, for the present groups, ports and map.
    Reform(vec::IntoIter<u32>),
    Compile(vec::IntoIter<u32>),
    /// 6. Entries take over rules that other entries have given up. From here on the tables stay as they are.
    TakeOver,
    /// 7. Rules that may differ are compared with what the switch holds.
    Compare(Compare),
    /// 8. For each difference, finds the change that is to be refused if the switch refuses a part of the difference.
    Blame(Blame, Difference),
    /// 9. Weir sends the difference to the switch, as fast as messages leave.
    Repair(Repair),
    /// 10. If Weir has sent no message in this round, it reports the ends of entries to the tenant. The replay is over.
    Report,
}

/// Changes whose before-images are restored, the last first.
pub(super) struct Restore {
    /// The changes that have not been begun.
    pub(super) changes: Vec<u32>,
    /// The entries of the present change that have not been restored.
    pub(super) entries: Vec<(u32, Option<Flow>)>,
}

impl Restore {
    pub(super) fn new(changes: Vec<u32>) -> Restore {
        Restore { changes, entries: Vec::new() }
    }
}

/// Changes that are applied again.
pub(super) struct Apply {
    pub(super) changes: vec::IntoIter<u32>,
    pub(super) present: Present,
}

/// The rest of the change that is being applied.
#[derive(Default)]
pub(super) enum Present {
    #[default]
    Nothing,
    /// Further batches of entries.
    Batches(u32, Box<BulkChange>),
    /// The tables do not allow the change.
    Refused(Restore),
}

pub(super) struct Compare {
    pub(super) keys: hash_set::IntoIter<RuleKey>,
    pub(super) compared: HashSet<RuleKey>,
    pub(super) difference: Difference,
}

pub(super) struct Blame {
    pub(super) changes: vec::IntoIter<u32>,
    /// How many entries of the next change have been examined.
    pub(super) seen: usize,
}

pub(super) struct Repair {
    /// Groups, each after those that it names, and meters.
    pub(super) numbers: vec::IntoIter<(Kind, u32)>,
    pub(super) deletions: vec::IntoIter<Deletion>,
    pub(super) additions: btree_map::IntoIter<u32, Vec<Addition>>,
}

impl Round {
    /// Whether the present step adds messages to the tenant's queue.
    pub(super) fn is_repairing(&self) -> bool {
        matches!(self.step, Some(Step::Repair(_)))
    }
}
