//! Changes of tenants' virtual flow tables, for a program that follows flows through the network.
//!
//! Tracking is off by default. If it is on, each table keeps the numbers of changed entries, each number once, so the
//! waiting changes are never more than the tables hold. Entries of a tenant's network name the ports of the network.

use super::Switch;
use crate::flows::Flow;
use crate::ids::TenantIndex;
use crate::named::groups_of;
use crate::policy::TenantId;
use crate::store::Kind;
use alloc::boxed::Box;
use alloc::vec::Vec;
use flowspace::Match;

/// An entry that was added, changed or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowChange {
    /// The tenant.
    pub tenant: TenantId,
    /// The number of the entry among the tenant's entries on this switch.
    pub number: u32,
    /// The present entry; `None` if it was removed.
    pub entry: Option<FlowEntry>,
}

/// An entry as its tenant wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowEntry {
    /// The tenant's table; 0 on OpenFlow 1.0.
    pub table: u8,
    /// The higher priority wins.
    pub priority: u16,
    /// The packets that match.
    pub match_: Match,
    /// Actions (1.0) or instructions (1.3), on the wire.
    pub actions: Box<[u8]>,
    /// The groups that the actions name (1.3), as the bodies of GROUP_MODs.
    pub groups: Vec<(u32, Box<[u8]>)>,
}

impl Switch {
    /// Turns the tracking of changes on or off. When tracking begins, all entries count as changed.
    pub fn track_flows(&mut self, on: bool) {
        self.tenants.track_flows(on);
    }

    /// The changes since the last call.
    pub fn take_flow_changes(&mut self) -> Vec<FlowChange> {
        let mut changes = Vec::new();
        if !self.tenants.tracks_flows() {
            return changes;
        }
        for at in self.tenants.indices() {
            let touched = self.tenants[at].flows.take_touched();
            let tenant = &self.tenants[at];
            changes.extend(touched.into_iter().map(|number| {
                let flow = tenant.flows.get(number).filter(|_| tenant.terms.is_present());
                let entry = flow.map(|flow| self.entry(at, flow));
                FlowChange { tenant: tenant.id, number, entry }
            }));
        }
        changes
    }

    fn entry(&self, tenant: TenantIndex, flow: &Flow) -> FlowEntry {
        let mut groups = Vec::new();
        if self.semantics().has_groups {
            for number in groups_of(&flow.actions) {
                if let Some(known) = self.numbers(tenant, Kind::Group).get(number) {
                    groups.push((number, known.body.clone()));
                }
            }
        }
        FlowEntry {
            table: flow.table,
            priority: flow.priority,
            match_: flow.match_.to_match(),
            actions: (*flow.actions).into(),
            groups,
        }
    }
}
