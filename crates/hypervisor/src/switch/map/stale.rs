//! Weir's own rules, groups and entries that are as an earlier policy or other ports needed them.

use crate::ids::TenantIndex;
use crate::south::installed::Owner;
use crate::store::Kind;
use alloc::vec;
use alloc::vec::Vec;
use compile::InfraRule;

/// A change of one rule of Weir's own on the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnChange {
    /// The rule is added, or replaces the rule in its place.
    Add,
    Remove,
}

/// Changes of Weir's own rules that are to be sent.
pub(crate) type OwnChanges = vec::IntoIter<(InfraRule, OwnChange)>;

/// Weir's own rules that are to be changed, then groups and then entries that are to be compiled again.
///
/// Entries are compiled in two passes. An entry that needs more rules than it has, or a rule that another entry has,
/// comes in the second pass. So no table has to hold more than before and after the change, and an entry finds a rule
/// free that another entry gives up.
pub(crate) struct Stale {
    own: OwnChanges,
    groups: StaleGroups,
    entries: vec::IntoIter<Owner>,
    second: Vec<Owner>,
    is_second: bool,
}

impl Stale {
    pub(crate) fn new(own: OwnChanges, groups: StaleGroups, entries: Vec<Owner>) -> Stale {
        Stale { own, groups, entries: entries.into_iter(), second: Vec::new(), is_second: false }
    }

    /// The changes of Weir's own rules, which come first.
    pub(crate) fn own_mut(&mut self) -> &mut OwnChanges {
        &mut self.own
    }

    /// The groups, which come before the entries that use them.
    pub(crate) fn groups_mut(&mut self) -> &mut StaleGroups {
        &mut self.groups
    }

    /// The next entry, if there is one.
    pub(crate) fn next(&mut self) -> Option<Owner> {
        if self.entries.len() == 0 {
            self.is_second = true;
            self.entries = core::mem::take(&mut self.second).into_iter();
        }
        self.entries.next()
    }

    /// Puts an entry off to the second pass. Says false in the second pass.
    pub(crate) fn put_off(&mut self, entry: Owner) -> bool {
        if !self.is_second {
            self.second.push(entry);
        }
        !self.is_second
    }
}

/// Groups and meters that are to be compiled again, one tenant after the other.
///
/// A tenant's groups come in two passes, too: a group can watch a group that comes later.
pub(crate) struct StaleGroups {
    tenants: vec::IntoIter<TenantIndex>,
    present: TenantIndex,
    numbers: vec::IntoIter<(Kind, u32)>,
    watching: Vec<u32>,
}

/// The next item of [`StaleGroups`].
pub(crate) enum NextGroup {
    /// The next tenant. The caller lists the tenant's groups and meters with [`StaleGroups::begin`].
    Tenant(TenantIndex),
    Number(TenantIndex, (Kind, u32)),
    /// A group that may watch other groups, once more after all groups of its tenant.
    Watching(TenantIndex, u32),
}

impl StaleGroups {
    pub(crate) fn new(tenants: Vec<TenantIndex>) -> StaleGroups {
        StaleGroups {
            tenants: tenants.into_iter(),
            present: TenantIndex(0),
            numbers: Vec::new().into_iter(),
            watching: Vec::new(),
        }
    }

    /// Begins with a tenant's groups, each after those that it names, and meters.
    pub(crate) fn begin(&mut self, tenant: TenantIndex, numbers: Vec<(Kind, u32)>) {
        (self.present, self.numbers) = (tenant, numbers.into_iter());
    }

    /// The present tenant's group may watch other groups.
    pub(crate) fn note_watching(&mut self, number: u32) {
        self.watching.push(number);
    }

    pub(crate) fn next(&mut self) -> Option<NextGroup> {
        if let Some(number) = self.numbers.next() {
            return Some(NextGroup::Number(self.present, number));
        }
        if let Some(number) = self.watching.pop() {
            return Some(NextGroup::Watching(self.present, number));
        }
        self.tenants.next().map(NextGroup::Tenant)
    }
}
