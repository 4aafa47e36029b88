//! The state of one tenant on one switch.

mod backlog;
mod packets;
mod ports;
mod terms;

use super::counts::port_counts::PortCounts;
use super::logged::Logged;
use super::replay::recovery::Recovery;
use super::timeouts::states::Timeouts;
use crate::counters::Counters;
use crate::flows::FlowTable;
use crate::messages;
use crate::north::Connections;
use crate::policy;
use crate::policy::TenantId;
use crate::refusals::{Refusals, Verdict};
use crate::south::pending::Origin;
use crate::time::Instant;
use crate::v13::numbers::GroupsAndMeters;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use backlog::Backlog;
use compile::{Network, Wire};
use packets::Packets;
use ports::Ports;
use terms::Terms;

/// One tenant on one switch.
pub(crate) struct Tenant {
    pub(super) id: TenantId,
    /// The terms in the policy. A tenant that is no longer in the policy keeps its place, so that indices stay valid.
    pub(super) terms: Terms,
    /// The tenant's network on this switch. `None` for a tenant with a slice.
    pub(super) network: Option<Arc<Network>>,
    /// What Weir knows of the tenant's ports, other than the map.
    pub(super) ports: Ports,
    /// The counts of the network's ports (1.3).
    pub(super) counts: PortCounts,
    pub(super) controllers: Connections,
    /// The tenant's requests in flight.
    pub(super) log: VecDeque<Logged>,
    /// The recovery, while the tenant's tables and the switch are brought together.
    pub(super) recovery: Option<Box<Recovery>>,
    /// Requests that Weir has accepted and not finished.
    pub(super) backlog: Backlog,
    pub(super) flows: FlowTable,
    /// The time-outs of the entries.
    pub(super) timeouts: Timeouts,
    pub(super) numbers: GroupsAndMeters,
    /// Packets on their way to the tenant's controllers.
    pub(super) packets: Packets,
    pub(super) counters: Counters,
    /// The tenant's last refused requests.
    pub(super) refused: Refusals,
}

impl Tenant {
    /// A tenant that is new on the switch.
    pub(crate) fn new(tenant: &policy::Tenant, wire: Wire) -> Tenant {
        Tenant {
            id: tenant.id,
            terms: Terms::new(tenant),
            network: None,
            ports: Default::default(),
            counts: Default::default(),
            controllers: Default::default(),
            log: Default::default(),
            recovery: None,
            backlog: Default::default(),
            flows: FlowTable::new(messages::outputs(wire)),
            timeouts: Default::default(),
            numbers: Default::default(),
            packets: Default::default(),
            counters: Default::default(),
            refused: Default::default(),
        }
    }

    /// Takes the tenant's terms from a new policy.
    pub(crate) fn configure(&mut self, tenant: &policy::Tenant) {
        self.terms = Terms::new(tenant);
    }

    /// Counts and keeps a refused request.
    pub(crate) fn refuse(&mut self, origin: &Origin, verdict: Verdict, now: Instant) {
        self.counters.refuse(verdict.refused.code());
        self.refused.add(origin, verdict, now);
    }

    /// Whether the tenant gets one more PACKET_IN now: the rates allow it, and a controller is there. Counts a
    /// PACKET_IN that the tenant does not get.
    pub(crate) fn takes_packet_in(&mut self, now: Instant) -> bool {
        if !self.packets.admit(self.terms.limits.packet_in, now) {
            self.counters.limited += 1;
            return false;
        }
        if self.controllers.is_empty() {
            self.counters.absent += 1;
            return false;
        }
        true
    }
}
