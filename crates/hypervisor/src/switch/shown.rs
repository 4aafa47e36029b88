//! A tenant's flow table for the operator, one page at a time.
//!
//! A page is bounded in entries and in bytes, so that a page takes little of a turn of the event loop, however large
//! the table is. The tenant is not charged, since the operator asks. Entries may be added or removed between two pages;
//! each of the other entries is shown once, unless its cookie changes.

use super::{Switch, Tenant};
use crate::cookie::Cookie;
use crate::flows::{Flow, Rule};
use crate::ids::TenantIndex;
use crate::messages;
use crate::policy::TenantId;
use crate::refusals::Refusal;
use crate::south::diff::{Change, Writing};
use alloc::vec::Vec;
use openflow::{NO_BUFFER, Version};

/// The most entries of a page.
const ENTRIES: usize = 256;
/// A page ends after this many bytes of messages; one message has up to 64 KiB.
const BYTES: usize = 64 << 10;

/// The side of a tenant's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The entries as the tenant wrote them.
    Tenant,
    /// The entries' rules on the switch.
    Switch,
}

/// The kind of datapath id that an operator names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// The datapath id that the tenant sees.
    ByTenant,
    /// The datapath id of the physical switch.
    BySwitch,
}

/// The end of a page, where the next page begins: a tenant's cookie, the number of an entry, and the number of the
/// entry's rules that were shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowPlace {
    /// The tenant's cookie.
    pub cookie: u64,
    /// The number of the entry.
    pub number: u32,
    /// The number of the entry's rules that were shown.
    pub shown: u32,
}

/// Some entries of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowPage {
    /// The switch's datapath id as the tenant sees it.
    pub seen_as: u64,
    /// The version of OpenFlow of the switch.
    pub version: Version,
    /// One FLOW_MOD for each entry, which adds the entry.
    pub flow_mods: Vec<Vec<u8>>,
    /// Where the next page begins, if there is one.
    pub next: Option<FlowPlace>,
}

impl Switch {
    /// Whether a datapath id means this switch, and the tenant has a part of it.
    pub fn is_known(&self, tenant: TenantId, dpid: u64, known: Known) -> bool {
        let Some(at) = self.served_tenant(tenant) else { return false };
        match (known, self.datapath.joined()) {
            (Known::ByTenant, Some(joined)) => joined == dpid,
            // The front of the big switch is another session.
            (Known::ByTenant, None) => !self.is_a_part(tenant) && self.datapath_of(at) == dpid,
            (Known::BySwitch, joins) => joins.is_none() && self.dpid() == dpid,
        }
    }

    /// A page of a tenant's table; `None` if the tenant has no part of the switch.
    pub fn flow_page(
        &self,
        tenant: TenantId,
        side: Side,
        after: Option<FlowPlace>,
    ) -> Option<FlowPage> {
        let at = self.served_tenant(tenant)?;
        let state = &self.tenants[at];
        let (version, seen_as) = (self.version(), self.datapath_of(at));
        let mut page = FlowPage { seen_as, version, flow_mods: Vec::new(), next: None };
        let (mut examined, mut bytes, mut reached) = (0, 0, after);
        // The page before may have ended within this entry.
        let begin = after.map_or((0, 0), |place| (place.cookie, place.number));
        for (cookie, number) in state.flows.in_order(begin.0, begin.1) {
            let Some(flow) = state.flows.get(number) else { continue };
            let is_first = (cookie, number) == begin;
            let shown = after.filter(|_| is_first).map_or(0, |place| place.shown);
            let all = if side == Side::Tenant { 1 } else { flow.rules.len() as u32 };
            for at in shown..all.max(shown + 1) {
                if examined >= ENTRIES || bytes >= BYTES {
                    page.next = reached;
                    return Some(page);
                }
                examined += 1;
                let message = match side {
                    Side::Tenant if at > 0 => None,
                    Side::Tenant => messages::as_written(self.wire, flow),
                    Side::Switch => {
                        let rule = flow.rules.get(at as usize);
                        rule.and_then(|rule| self.as_installed(state, number, flow, rule))
                    }
                };
                bytes += message.as_ref().map_or(0, Vec::len);
                page.flow_mods.extend(message);
                reached = Some(FlowPlace { cookie, number, shown: at + 1 });
            }
        }
        Some(page)
    }

    /// A tenant's last refused requests on this switch, the oldest first. None on a member of a big switch: the front
    /// keeps the tenant's refusals.
    pub fn refusals(&self, tenant: TenantId) -> impl Iterator<Item = &Refusal> {
        let at = self.served_tenant(tenant).filter(|_| !self.is_a_part(tenant));
        at.into_iter().flat_map(|at| self.tenants[at].refused.iter())
    }

    /// The last refused requests of all tenants.
    pub fn all_refusals(&self) -> impl Iterator<Item = (TenantId, &Refusal)> {
        let tenants = self.tenants.iter().filter(|tenant| tenant.terms.is_present());
        tenants.flat_map(|tenant| self.refusals(tenant.id).map(|refusal| (tenant.id, refusal)))
    }

    /// The place of a tenant that has a part of the switch.
    pub(super) fn served_tenant(&self, tenant: TenantId) -> Option<TenantIndex> {
        self.tenant_of(tenant).filter(|at| self.is_served(*at))
    }

    /// Whether the tenant's virtual switch lies on other physical switches as well.
    fn is_a_part(&self, tenant: TenantId) -> bool {
        let map = self.map.policy().maps.get(&self.dpid());
        map.and_then(|map| map.members.get(&tenant)).is_some_and(|member| member.shared_with)
    }

    pub(crate) fn as_installed(
        &self,
        state: &Tenant,
        number: u32,
        flow: &Flow,
        rule: &Rule,
    ) -> Option<Vec<u8>> {
        let writing = Writing {
            cookie: Cookie { tenant: state.id, number }.to_wire(self.settings.installation),
            change: Change::Add,
            buffer_id: NO_BUFFER,
            hard_timeout: flow.hard_timeout,
            resets_counts: false,
        };
        let mut message = Vec::new();
        let first_table = self.target().first_table();
        let written =
            messages::write_rule(self.wire, flow, rule, &writing, first_table, &mut message);
        written.is_ok().then_some(message)
    }
}
