//! The state of a reconciliation.

use crate::cookie::Installation;
use crate::ids::TenantIndex;
use crate::south::installed::Owner;
use crate::south::reports::ReportedRule;
use crate::store::StoreKey;
use crate::switch::map::{OwnChanges, StaleGroups};
use crate::switch::mend::difference::{Addition, Deletion, Difference};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;
use compile::RuleKey;
use hashbrown::HashSet;

/// The most bytes of messages of the switch that wait until the tables are reconciled.
const WAITING: usize = 1 << 20;

/// A reconciliation, which is done in turns of the event loop.
#[derive(Default)]
pub(crate) struct Reconciliation {
    /// The step that is to be done next; `None` at the end.
    pub(super) step: Option<Step>,
    /// Rules on the wire that step 2 has not read: rules with the mark of this installation, or of the installation
    /// that it takes over from.
    pub(super) parts: vec::IntoIter<Vec<u8>>,
    /// Rules that step 2 has read.
    pub(super) held: Vec<ReportedRule>,
    pub(super) is_to_adopt: bool,
    /// Cookies of rules that are left alone.
    pub(super) left_cookies: BTreeSet<u64>,
    /// Rules of tenants' entries that the switch holds.
    pub(super) seen: HashSet<(TenantIndex, RuleKey)>,
    /// Rules that may differ. Each may be there more than once.
    pub(super) keys: Vec<(TenantIndex, RuleKey)>,
    /// Weir's own rules that the switch holds.
    pub(super) own: Vec<ReportedRule>,
    pub(super) differences: BTreeMap<TenantIndex, Difference>,
    /// Rules that are to be added, by their entries.
    pub(super) additions: Vec<(TenantIndex, u32, Vec<Addition>)>,
    /// The numbers of rules: kept, installed and removed.
    pub(super) counts: (usize, usize, usize),
    /// The numbers of rules without Weir's mark, and of other installations.
    pub(super) foreign: usize,
    pub(super) left: BTreeMap<Installation, usize>,
    /// Messages of the switch that wait for the end of the reconciliation.
    pub(super) waiting: Vec<Vec<u8>>,
    pub(super) bytes: usize,
}

/// The steps, in their order.
pub(super) enum Step {
    /// 1. Groups and meters on the switch become what the tables say. Then the tables are filled from the store.
    GroupsAndMeters(StaleGroups, vec::IntoIter<(StoreKey, Vec<u8>)>),
    Restore(vec::IntoIter<(StoreKey, Vec<u8>)>),
    /// 2. The rules that the switch holds are read.
    Read,
    /// 3. If several entries could own a rule that the switch holds, the entry of the rule's cookie owns the rule.
    KeepOwners(usize),
    /// 4. Each rule that the switch holds is looked up in the tables.
    Learn(vec::IntoIter<ReportedRule>),
    /// 5. Rules that the switch does not hold are found.
    FindMissing(vec::IntoIter<Owner>),
    /// 6. Rules that may differ are compared with what the switch holds.
    Compare(vec::IntoIter<(TenantIndex, RuleKey)>, HashSet<(TenantIndex, RuleKey)>),
    /// 7. Rules that are in no table are deleted. Then Weir's own rules change.
    Delete(vec::IntoIter<(TenantIndex, Deletion)>),
    Own(OwnChanges),
    /// 8. Missing rules are added.
    Add(vec::IntoIter<(TenantIndex, u32, Vec<Addition>)>),
}

impl Reconciliation {
    /// Adds to the numbers of rules that are kept, installed and removed.
    pub(super) fn count(&mut self, kept: usize, installed: usize, removed: usize) {
        let (k, i, r) = self.counts;
        self.counts = (k + kept, i + installed, r + removed);
    }

    /// Appends a message of the switch that waits. Says false if more than 1 MiB waits.
    pub(super) fn wait(&mut self, message: &[u8]) -> bool {
        self.bytes += message.len();
        self.waiting.push(message.to_vec());
        self.bytes <= WAITING
    }
}
