//! What an operator is shown of a tenant's flow table, a page at a time.
//!
//! A page is bounded in entries and in bytes, so that asking for it takes little of a turn of the event loop, however large the
//! table is. The tenant is not charged: somebody else asks. Between two pages entries may come and go; those that stay are shown
//! once each, unless their cookies change.

use super::map::OwnChange;
use super::{Switch, Tenant};
use crate::cookie::Cookie;
use crate::flows::{Flow, Rule};
use crate::ids::TenantIndex;
use crate::messages;
use crate::policy::TenantId;
use crate::refusals::Refusal;
use crate::south::diff::{Change, Writing};
use alloc::vec::Vec;
use compile::InfraRule;
use openflow::{NO_BUFFER, Version};

/// Entries that a page has at most.
const ENTRIES: usize = 256;
/// Bytes of messages after which a page ends; one message has up to 64 KiB.
const BYTES: usize = 64 << 10;

/// Which side of a tenant's table is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The entries as the tenant wrote them.
    Tenant,
    /// The entries on the switch that stand for them.
    Switch,
}

/// Which datapath id an operator means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// The one that the tenant sees.
    ByTenant,
    /// The one that the switch has.
    BySwitch,
}

/// Where a page ends and the next one goes on: a tenant's cookie, the number of an entry, and how many of what stands for the
/// entry on the switch has been shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowPlace {
    /// The tenant's cookie.
    pub cookie: u64,
    /// The number of the entry.
    pub number: u32,
    /// How many of what stands for the entry.
    pub shown: u32,
}

/// Some entries of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowPage {
    /// The switch's datapath id as the tenant sees it.
    pub seen_as: u64,
    /// The version that is spoken.
    pub version: Version,
    /// One FLOW_MOD for each entry, which would add it.
    pub flow_mods: Vec<Vec<u8>>,
    /// Where to go on, if there is more.
    pub next: Option<FlowPlace>,
}

impl Switch {
    /// Whether this is the switch that is meant by a datapath id, and the tenant has a part of it.
    pub fn is_known(&self, tenant: TenantId, dpid: u64, known: Known) -> bool {
        let Some(at) = self.served_tenant(tenant) else { return false };
        match (known, self.datapath.joined()) {
            (Known::ByTenant, Some(joined)) => joined == dpid,
            // The whole of a big switch is another session.
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
        // More may be to be shown of the entry that a page ends with.
        let begin = after.map_or((0, 0), |place| (place.cookie, place.number));
        for (cookie, number) in state.flows.in_order(begin) {
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

    /// A tenant's last refused requests on this switch, the oldest first. Nothing of a member of a big switch: what the tenant
    /// asks of that is refused by the switch in front.
    pub fn refusals(&self, tenant: TenantId) -> impl Iterator<Item = &Refusal> {
        let at = self.served_tenant(tenant).filter(|_| !self.is_a_part(tenant));
        at.into_iter().flat_map(|at| self.tenants[at].refused.iter())
    }

    /// The same of all tenants.
    pub fn all_refusals(&self) -> impl Iterator<Item = (TenantId, &Refusal)> {
        let tenants = self.tenants.iter().filter(|tenant| tenant.terms.is_present());
        tenants.flat_map(|tenant| self.refusals(tenant.id).map(|refusal| (tenant.id, refusal)))
    }

    fn served_tenant(&self, tenant: TenantId) -> Option<TenantIndex> {
        self.tenant_of(tenant).filter(|at| self.is_served(*at))
    }

    /// Whether the tenant's switch lies on other switches as well.
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

    /// The FLOW_MOD that adds a rule of Weir's own.
    pub(crate) fn own_on_switch(&self, own: &InfraRule) -> Option<Vec<u8>> {
        let mut message = Vec::new();
        self.write_own(own, OwnChange::Add, &mut message).then_some(message)
    }
}
