//! The tenants on a switch, and indexes over tenants: those with a rule to take over, those that recover, those whose
//! entries end.

use super::replay::recovery::Recovery;
use super::tenant::Tenant;
use crate::buffers::Buffered;
use crate::ids::TenantIndex;
use crate::policy::{Policy, TenantId};
use crate::time::{Instant, earlier};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use compile::Wire;
use core::ops::{Index, IndexMut};
use hashbrown::HashMap;

/// See the module.
#[derive(Default)]
pub(crate) struct Tenants {
    all: Vec<Tenant>,
    by_id: HashMap<TenantId, TenantIndex>,
    /// Tenants of which an entry may take over a rule that another entry has given up.
    freed: BTreeSet<TenantIndex>,
    /// Tenants whose tables and the switch are brought together.
    recovering: BTreeSet<TenantIndex>,
    /// The tenant of each buffered packet, and the tenant's buffer id; by the switch's buffer id.
    buffered: HashMap<u32, (TenantIndex, u32)>,
    /// The earliest time at which an entry may end whose time Weir keeps.
    next_end: Option<Instant>,
    /// Whether the driver fetches changes of flow tables.
    tracks_flows: bool,
}

impl Index<TenantIndex> for Tenants {
    type Output = Tenant;

    #[inline]
    fn index(&self, at: TenantIndex) -> &Tenant {
        &self.all[at.0 as usize]
    }
}

impl IndexMut<TenantIndex> for Tenants {
    #[inline]
    fn index_mut(&mut self, at: TenantIndex) -> &mut Tenant {
        &mut self.all[at.0 as usize]
    }
}

impl Tenants {
    /// The number of present and earlier tenants. Places are kept, so that indices stay valid.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there was never a tenant.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The places of all tenants.
    pub(crate) fn indices(&self) -> impl Iterator<Item = TenantIndex> + use<> {
        (0..self.all.len() as u32).map(TenantIndex)
    }

    /// All present and earlier tenants.
    pub(crate) fn iter(&self) -> core::slice::Iter<'_, Tenant> {
        self.all.iter()
    }

    /// See [`iter`](Self::iter).
    pub(crate) fn iter_mut(&mut self) -> core::slice::IterMut<'_, Tenant> {
        self.all.iter_mut()
    }

    /// The place of a tenant.
    #[inline]
    pub(crate) fn find(&self, id: TenantId) -> Option<TenantIndex> {
        self.by_id.get(&id).copied()
    }

    /// Makes places for new tenants of a policy, and marks the tenants that are not in the policy.
    pub(super) fn follow(&mut self, policy: &Policy, wire: Wire) {
        for tenant in &mut self.all {
            tenant.terms.forget();
        }
        for tenant in &policy.tenants {
            match self.by_id.get(&tenant.id) {
                Some(at) => self.all[at.0 as usize].configure(tenant),
                None => {
                    let at = TenantIndex(self.all.len() as u32);
                    let mut state = Tenant::new(tenant, wire);
                    state.flows.track(self.tracks_flows);
                    self.all.push(state);
                    self.by_id.insert(tenant.id, at);
                }
            }
        }
    }

    /// Whether the driver fetches changes of flow tables.
    pub(super) fn tracks_flows(&self) -> bool {
        self.tracks_flows
    }

    /// The driver fetches changes from now on, or no longer. At first all entries count as changed.
    pub(super) fn track_flows(&mut self, on: bool) {
        self.tracks_flows = on;
        for tenant in &mut self.all {
            tenant.flows.track(on);
        }
    }

    // ---- Rules that entries may take over

    /// If an entry of the tenant has given up a rule, another entry may take the rule over.
    pub(super) fn note_freed(&mut self, tenant: TenantIndex) {
        if self[tenant].flows.has_freed() {
            self.freed.insert(tenant);
        }
    }

    /// The tenant has no rule to take over any more.
    pub(super) fn forget_freed(&mut self, tenant: TenantIndex) {
        self.freed.remove(&tenant);
    }

    /// Takes the tenants whose entries may take over rules now. A tenant that is recovering or `busy` has to wait.
    pub(super) fn take_freed(&mut self, busy: impl Fn(TenantIndex) -> bool) -> Vec<TenantIndex> {
        let Tenants { all, freed, .. } = self;
        let is_free =
            |tenant: &TenantIndex| all[tenant.0 as usize].recovery.is_none() && !busy(*tenant);
        let taken: Vec<TenantIndex> = freed.iter().copied().filter(is_free).collect();
        for tenant in &taken {
            freed.remove(tenant);
        }
        taken
    }

    // ---- Recovery

    /// Begins or continues a recovery of a tenant.
    pub(super) fn recover(&mut self, tenant: TenantIndex) -> &mut Recovery {
        self.recovering.insert(tenant);
        self[tenant].recovery.get_or_insert_default()
    }

    /// A tenant's tables and the switch agree again: takes the recovery.
    pub(super) fn recovered(&mut self, tenant: TenantIndex) -> Option<Recovery> {
        self.recovering.remove(&tenant);
        self[tenant].recovery.take().map(|recovery| *recovery)
    }

    /// Whether any tenant is recovering.
    #[inline]
    pub(crate) fn is_any_recovering(&self) -> bool {
        !self.recovering.is_empty()
    }

    /// Tenants that are recovering.
    pub(super) fn recoveries(&mut self) -> impl Iterator<Item = (TenantIndex, &mut Recovery)> {
        (0..).map(TenantIndex).zip(&mut self.all).filter_map(|(tenant, state)| {
            let recovery = state.recovery.as_deref_mut()?;
            Some((tenant, recovery))
        })
    }

    // ---- Buffered packets

    /// The switch announces a packet with this buffer id: the id is no longer valid for the earlier packet.
    pub(super) fn forget_buffered(&mut self, physical: u32) {
        if let Some((tenant, number)) = self.buffered.remove(&physical) {
            self[tenant].packets.buffers_mut().take(number);
        }
    }

    /// Gives a tenant a buffer id for a packet that the switch buffers.
    pub(crate) fn give_buffered(&mut self, tenant: TenantIndex, buffered: Buffered) -> u32 {
        let (number, forgotten) = self[tenant].packets.buffers_mut().give(buffered);
        if let Some(forgotten) = forgotten {
            self.buffered.remove(&forgotten.physical);
        }
        self.buffered.insert(buffered.physical, (tenant, number));
        number
    }

    /// Uses a tenant's buffer id up.
    pub(crate) fn take_buffered(&mut self, tenant: TenantIndex, number: u32) -> Option<Buffered> {
        let taken = self[tenant].packets.buffers_mut().take(number)?;
        self.buffered.remove(&taken.physical);
        Some(taken)
    }

    /// Makes a tenant's buffer id valid again that was not used.
    pub(super) fn give_buffered_back(
        &mut self,
        tenant: TenantIndex,
        number: u32,
        buffered: Buffered,
    ) {
        if self[tenant].packets.buffers_mut().give_back(number, buffered) {
            self.buffered.insert(buffered.physical, (tenant, number));
        }
    }

    // ---- Entries of which Weir keeps the time

    /// An entry has changed. If the entry has no rule on the switch, Weir keeps its time-outs.
    pub(super) fn keep_time(&mut self, tenant: TenantIndex, number: u32, now: Instant) {
        let Tenant { flows, timeouts, .. } = &mut self[tenant];
        let end = flows.get(number).and_then(|flow| timeouts.keep(number, flow, now));
        end.into_iter().for_each(|at| self.note_end(at));
    }

    /// Notes that Weir has to look at an entry at this time.
    pub(super) fn note_end(&mut self, at: Instant) {
        self.next_end = earlier(self.next_end, Some(at));
    }

    /// Weir has looked at all entries whose time had come.
    pub(super) fn find_next_end(&mut self) {
        self.next_end = self.all.iter().filter_map(|tenant| tenant.timeouts.next_end()).min();
    }

    /// The earliest time at which Weir has to look at an entry.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.next_end
    }
}
