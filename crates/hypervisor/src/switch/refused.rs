//! Weir's own rules that the switch refuses.
//!
//! Weir sends a refused rule once more, since the obstacle may be gone. What happens if the switch refuses the rule
//! again depends on the rule:
//!
//! - A rule that brings packets in by a port of a network, brings packets to hosts at a shared port (1.3), or leads
//!   packets out of a big switch with other members: the tenant's port is down, since no packet would enter or leave by
//!   it. The port stays down until the switch gets another map, or connects again.
//! - A rule for transit to another switch: the component that computes the maps has to find another path
//!   ([`Event::RefusedTransits`]).
//! - A rule that separates slices: the refusal is only counted.
//!
//! [`Event::RefusedPorts`] and [`Event::OwnRefused`] report refusals to the operator.

use super::map::OwnChange;
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
    /// Sends the message that adds a rule of Weir's own, as an operation.
    pub(super) fn submit_own(&mut self, cause: &Cause, tried: Tried, message: &[u8]) {
        let cause = self.begin_own(cause, What::Infra(Box::new(tried)));
        self.submit_change(&cause, message);
    }

    /// The switch has refused a rule of Weir's own.
    pub(super) fn own_entry_refused(&mut self, cause: &Cause, tried: Tried) {
        let tried_for = (tried.table, tried.match_, tried.priority);
        let is_it = |own: &&InfraRule| (own.table, own.match_, own.priority) == tried_for;
        // A rule that is no longer needed may be missing.
        let Some(own) = self.map.infra().iter().find(is_it).cloned() else { return };
        if !tried.again {
            if let Some(message) = self.write_own(&own, OwnChange::Add) {
                let cause = Cause::own(cause.tenant, cause.now);
                self.submit_own(&cause, Tried { again: true, ..tried }, &message);
            }
            return;
        }
        if self.map.note_infra_refused() {
            let InfraRule { match_, priority, .. } = own;
            self.reports.push(Event::OwnRefused { match_: Box::new(match_), priority });
        }
        let mut ports = self.ports_of(&own);
        if own.table == 0
            && let Some(transit) = self.transit_by(&own.match_)
        {
            match transit.leaves_by {
                Some((id, port)) => ports.extend(self.tenant_of(id).map(|tenant| (tenant, port))),
                None => self.map.refuse_transit(transit),
            }
        }
        for (tenant, port) in ports {
            if self.tenants[tenant].ports.refuse(port) {
                self.map.note_port_refused();
            }
        }
    }

    /// The transit whose rule has this match: to another switch, or out of a big switch.
    fn transit_by(&self, match_: &Match) -> Option<Transit> {
        let mut transits = self.map.policy().maps.get(&self.dpid())?.transit.iter();
        transits.find(|it| at_hop(&it.from) == *match_).copied()
    }

    /// The ports that need a rule. A rule of 1.0 names no port.
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

    /// Reports all refusals since the last report, and takes the refused ports down: the policy is followed again, with
    /// these ports down.
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

    /// There is another map: all rules are tried again.
    pub(super) fn forget_refused(&mut self) {
        self.map.forget_reported();
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
