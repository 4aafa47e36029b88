//! Entries of the hypervisor's own that the switch refuses.
//!
//! One is tried once more, since what stood in its way may have gone. If it is refused again, and packets of a network were to
//! come in by it, to get to hosts at a shared port (1.3), or to leave a big switch that others are members of as well, then the
//! tenant's port is down: that is what it sees of a port by which nothing comes or goes. So it stays until the switch gets another map, or connects again. If packets of links were to pass through
//! by it, the part that draws the map has to lead them around ([`Event::RefusedTransits`]). Of others, by which slices are told apart, it is
//! only counted that they were refused. [`Event::RefusedPorts`] and [`Event::OwnRefused`] report it to the operator.

use super::{Cause, Event, Switch, Tenant, Tried, What};
use crate::ids::TenantIndex;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;
use compile::network::at_hop;
use compile::{InfraRule, infra, last_table};
use fabric::embedding::Transit;
use flowspace::Match;

impl Switch {
    /// Sends the message that brings an entry of the hypervisor's own, as an operation.
    pub(super) fn submit_own(&mut self, cause: &Cause, tried: Tried, message: &[u8]) {
        let cause = self.begin_own(cause, What::Infra(Box::new(tried)));
        self.submit_change(&cause, message);
    }

    /// The switch has refused one.
    pub(super) fn own_entry_refused(&mut self, cause: &Cause, tried: Tried) {
        let tried_for = (tried.table, tried.match_, tried.priority);
        let is_it = |own: &&InfraRule| (own.table, own.match_, own.priority) == tried_for;
        // If it is not wanted any more, that is as well.
        let Some(own) = self.map.infra().iter().find(is_it).cloned() else { return };
        if !tried.again {
            let mut message = Vec::new();
            if self.write_own(&own, tried.change, &mut message) {
                let cause = Cause::own(cause.tenant, cause.now);
                self.submit_own(&cause, Tried { again: true, ..tried }, &message);
            }
            return;
        }
        if self.map.note_infra_refused() {
            let InfraRule { match_, priority, .. } = own;
            self.reports.push(Event::OwnRefused { match_: Box::new(match_), priority });
        }
        if own.table == 0
            && let Some(transit) = self.transit_by(&own.match_)
        {
            self.transit_refused(transit);
        }
        for (tenant, port) in self.ports_of(&own) {
            self.refuse_port(tenant, port);
        }
    }

    fn transit_refused(&mut self, transit: Transit) {
        let Some((id, port)) = transit.leaves_by else {
            self.map.refuse_transit(transit);
            return;
        };
        if let Some(tenant) = self.tenant_of(id) {
            self.refuse_port(tenant, port);
        }
    }

    fn refuse_port(&mut self, tenant: TenantIndex, port: u32) {
        if self.tenants[tenant].ports.refuse(port) {
            self.map.note_port_refused();
        }
    }

    /// What passes through to another switch, or leaves a big switch, by an entry of this match.
    fn transit_by(&self, match_: &Match) -> Option<Transit> {
        let mut transits = self.map.policy().maps.get(&self.dpid())?.transit.iter();
        transits.find(|it| at_hop(&it.from) == *match_).copied()
    }

    /// The ports that an entry is about. Entries of 1.0 say of none.
    fn ports_of(&self, own: &InfraRule) -> Vec<(TenantIndex, u32)> {
        if let Some((id, name)) = last_table::selected_by(own)
            && let Some(tenant) = self.tenant_of(id)
        {
            let network = self.tenants[tenant].network.as_deref();
            let ports = network.map(|network| name.ports(network)).unwrap_or_default();
            return ports.into_iter().map(|port| (tenant, port)).collect();
        }
        let port = infra::port_of(own).and_then(|(id, port)| Some((self.tenant_of(id)?, port)));
        port.into_iter().collect()
    }

    /// Says what the switch has refused, all of it together, and brings its ports down: as if there were a map in which they are.
    pub(super) fn settle_refused(&mut self, now: Instant) {
        if !self.map.has_refused() || self.operations.has_infra() {
            return;
        }
        let (transits, has_ports) = self.map.take_refused();
        if !transits.is_empty() {
            self.reports.push(Event::RefusedTransits(transits));
        }
        if !has_ports {
            return;
        }
        self.report_refused_ports();
        self.map.plan_same_policy();
        self.follow(now);
    }

    /// There is another map: all entries are tried again.
    pub(super) fn forget_refused(&mut self) {
        self.map.forget_told();
        if self.tenants.iter().all(|tenant| tenant.ports.refused().is_empty()) {
            return;
        }
        self.tenants.iter_mut().for_each(|tenant| tenant.ports.forget_refused());
        self.report_refused_ports();
    }

    fn report_refused_ports(&mut self) {
        let of = |tenant: &Tenant| {
            let id = tenant.id;
            tenant.ports.refused().iter().map(move |&port| (id, port)).collect::<Vec<_>>()
        };
        self.reports.push_refused_ports(self.tenants.iter().flat_map(of).collect());
    }
}
