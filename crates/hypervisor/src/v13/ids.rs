//! The ids of groups and meters on the switch (1.3) that are in use, and their tenants.
//!
//! An id is in use from when a change takes it until a barrier has shown that the group or meter is gone. Nothing is
//! sent or stored here: see [`crate::switch::v13`].

use crate::ids::TenantIndex;
use crate::policy::TenantId;
use crate::store::Kind;
use crate::time::{Duration, Instant};
use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, BTreeSet};

/// How long an egress group that nothing needs stays, at most twice.
const PATIENCE: Duration = Duration::from_secs(5);

/// Ids in use on the switch, by tenants, Weir or others.
#[derive(Default)]
pub(crate) struct Ids {
    used: BTreeSet<(Kind, u32)>,
    /// The tenant of each id that a tenant uses, or has used and that may still be on the switch.
    owned: BTreeMap<(Kind, u32), TenantIndex>,
    /// The same ids, by tenant.
    by_tenant: BTreeMap<TenantIndex, BTreeSet<(Kind, u32)>>,
    /// Groups and meters that are to be deleted, and their tenants. The store knows them.
    to_delete: BTreeMap<(Kind, u32), TenantId>,
    /// Whether something has ended that may have needed an egress group.
    may_be_unneeded: bool,
    /// When Weir looks for egress groups that nothing needs.
    collection_due: Option<Instant>,
}

impl Ids {
    /// The lowest free id of a group or meter: some switches allow only low numbers.
    pub(crate) fn lowest_free(&self, kind: Kind) -> u32 {
        let mut free = 1;
        for &(_, id) in self.used.range((kind, 0)..=(kind, u32::MAX)) {
            if id > free {
                break;
            }
            free = free.max(id.saturating_add(1));
        }
        free
    }

    /// A tenant uses these ids.
    pub(crate) fn take(
        &mut self,
        tenant: TenantIndex,
        kind: Kind,
        ids: impl IntoIterator<Item = u32>,
    ) {
        for id in ids {
            self.used.insert((kind, id));
            self.own(kind, id, tenant);
        }
    }

    fn own(&mut self, kind: Kind, id: u32, tenant: TenantIndex) {
        self.disown(kind, id);
        let key = (kind, id);
        self.owned.insert(key, tenant);
        self.by_tenant.entry(tenant).or_default().insert(key);
    }

    fn disown(&mut self, kind: Kind, id: u32) {
        let key = (kind, id);
        let before = self.owned.remove(&key);
        if let Some(keys) = before.and_then(|tenant| self.by_tenant.get_mut(&tenant)) {
            keys.remove(&key);
        }
    }

    /// The switch holds something under these ids.
    pub(crate) fn reserve<'a>(&mut self, kind: Kind, ids: impl IntoIterator<Item = &'a u32>) {
        self.used.extend(ids.into_iter().map(|id| (kind, *id)));
    }

    /// An id may be given out again.
    pub(crate) fn free(&mut self, kind: Kind, id: u32) {
        self.used.remove(&(kind, id));
        self.disown(kind, id);
    }

    /// The groups and meters on the switch that are a tenant's.
    pub(crate) fn of_tenant(&self, tenant: TenantIndex) -> impl Iterator<Item = (Kind, u32)> {
        self.by_tenant.get(&tenant).into_iter().flatten().copied()
    }

    /// The groups and meters on the switch that are any tenant's.
    pub(crate) fn of_tenants(&self) -> impl Iterator<Item = ((Kind, u32), TenantIndex)> {
        self.owned.iter().map(|(key, tenant)| (*key, *tenant))
    }

    /// Marks a group or meter as to be deleted. Returns whether the mark is new: the store has the group or meter under
    /// its first tenant.
    pub(crate) fn mark_for_deletion(&mut self, whose: TenantId, kind: Kind, id: u32) -> bool {
        match self.to_delete.entry((kind, id)) {
            Entry::Vacant(new) => {
                new.insert(whose);
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    /// Removes the mark of a group or meter. Returns the tenant of the mark.
    pub(crate) fn unmark_for_deletion(&mut self, kind: Kind, id: u32) -> Option<TenantId> {
        self.to_delete.remove(&(kind, id))
    }

    /// The store says that a group or meter is to be deleted; Weir deletes it for the tenant `by`.
    pub(crate) fn restore_deletion(
        &mut self,
        whose: TenantId,
        by: Option<TenantIndex>,
        kind: Kind,
        id: u32,
    ) {
        self.to_delete.insert((kind, id), whose);
        if let Some(tenant) = by {
            self.own(kind, id, tenant);
        }
        self.used.insert((kind, id));
    }

    // ---- Egress groups that nothing needs

    /// Something has ended that may have needed an egress group.
    pub(crate) fn note_unneeded(&mut self) {
        self.may_be_unneeded = true;
    }

    /// When Weir looks for egress groups that nothing needs.
    pub(crate) fn next_collection(&self) -> Option<Instant> {
        self.collection_due
    }

    /// The switch has no room: Weir looks for egress groups at once.
    pub(crate) fn hurry_collection(&mut self, now: Instant) {
        self.collection_due = Some(now);
    }

    /// Weir looks for egress groups now.
    pub(crate) fn begin_collection(&mut self) {
        (self.may_be_unneeded, self.collection_due) = (false, None);
    }

    /// Weir looks for egress groups after a while, if something has ended that may have needed one.
    pub(crate) fn plan_collection(&mut self, now: Instant) {
        if core::mem::take(&mut self.may_be_unneeded) && self.collection_due.is_none() {
            self.collection_due = Some(now + PATIENCE);
        }
    }
}

/// The most ids on the switch for the groups of one tenant.
pub(crate) const MAX_NUMBERS: usize = 4096;
