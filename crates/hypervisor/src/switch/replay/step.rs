//! The steps of one round of a [replay](super), and what each of them has still to do.

use super::round::{Gone, Object, Round};
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

/// A round, once nothing of the tenant is in flight.
pub(crate) struct Settling {
    /// Without a step the round is over.
    pub(super) step: Option<Step>,
    /// What was known when the round began. What comes later is for the next round.
    pub(super) round: Round,
    /// The changes in the log, the first first.
    pub(super) changes: Vec<u32>,
    /// Whether groups or meters are restored or evicted.
    pub(super) has_numbers: bool,
    /// The switch is left as it is after this round.
    pub(super) is_last: bool,
    /// The last change of each entry, group and meter.
    pub(super) causes: HashMap<Object, u32>,
    /// Whether the switch gets anything.
    pub(super) is_repaired: bool,
}

/// The steps, in their order. One turn of the event loop does a batch of the work.
pub(super) enum Step {
    /// 1. The tables go back to the state before the first change in the log.
    Restore(Restore),
    /// 2. What has happened on the switch by itself happens to the tables. Groups and meters go that cannot be on the switch.
    Happen(vec::IntoIter<Gone>),
    /// 3. The changes are applied again, the first first.
    Apply(Apply),
    /// 4. Entries go that cannot be on the switch.
    Evict(vec::IntoIter<u32>),
    /// 5. Groups and then changed entries are compiled again, for the groups, ports and map of now.
    Reform(vec::IntoIter<u32>),
    Compile(vec::IntoIter<u32>),
    /// 6. Entries take over rules that other entries have given up. From here on the tables stay as they are.
    Inherit,
    /// 7. Rules that may differ are compared with what the switch holds.
    Compare(Compare),
    /// 8. For each difference there may be a change that is to blame if the switch refuses a part of the difference.
    Blame(Blame, Difference),
    /// 9. The switch gets the difference, as fast as the messages leave.
    Repair(Repair),
    /// 10. Only if the switch got nothing: the tenant hears of the ends of entries. Then the replay is over.
    Tell,
}

/// Changes whose before-images are restored, the last first.
pub(super) struct Restore {
    /// The changes that have not been begun.
    pub(super) changes: Vec<u32>,
    /// What the present change has still to restore.
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

/// What is left of the change that is being applied.
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
    /// How many entries of the next change have been looked at.
    pub(super) seen: usize,
}

pub(super) struct Repair {
    /// Groups, each after those that it names, and meters.
    pub(super) numbers: vec::IntoIter<(Kind, u32)>,
    pub(super) deletions: vec::IntoIter<Deletion>,
    pub(super) additions: btree_map::IntoIter<u32, Vec<Addition>>,
}

impl Settling {
    /// Whether the present step adds to the tenant's queue.
    pub(super) fn is_repairing(&self) -> bool {
        matches!(self.step, Some(Step::Repair(_)))
    }
}
