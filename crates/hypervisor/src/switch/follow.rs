//! Following changes of the policy and of the switch's ports.
//!
//! ```text
//!   handle_policy ─┐
//!                  ├─► upcoming ──(everything in the queues is safe)──► queues sent ─► tables follow
//!   port_changed ──┘      └─► tenants are not read meanwhile
//! ```
//!
//! What was checked under the old policy has to be sent before anything that is done under the new one, and nothing may
//! be sent before the store has it. So a change waits until it has, which takes one commit, and tenants wait with it.

use super::{Event, Switch};
use crate::ids::TenantIndex;
use crate::north::Asynchronous;
use crate::policy::Policy;
use crate::port_desc::{PORT_MODIFY, write_port_status};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use compile::PhysicalPort;

/// OFPPR_ADD, OFPPR_DELETE and OFPPR_MODIFY, in both versions.
const PORT_ADD: u8 = 0;
const PORT_DELETE: u8 = 1;
/// No ports.
static NOTHING: BTreeMap<u32, Vec<u8>> = BTreeMap::new();

impl Switch {
    /// The policy has changed: tables, views and connections follow, as one step, once the store has everything that
    /// was accepted under the old one. Of several changes in a row the newest counts.
    pub fn handle_policy(&mut self, policy: Arc<Policy>, now: Instant) {
        if !self.is_ready() {
            self.adopt(policy);
            return;
        }
        self.map.plan_policy(policy);
        self.follow(now);
    }

    /// A port has come (or changed) or gone. Where FLOOD stands for a list of ports, the list follows.
    pub(crate) fn port_changed(&mut self, number: u32, port: Option<PhysicalPort>, now: Instant) {
        let before = self.datapath.set_port(number, port.clone());
        if self.has_told_too_much() {
            return;
        }
        self.report_port_change(number);
        let flooded =
            |port: &Option<PhysicalPort>| port.as_ref().is_some_and(|port| !port.no_flood);
        if self.is_ready()
            && (flooded(&before) != flooded(&port) || before.is_some() != port.is_some())
        {
            self.map.plan_ports();
            self.follow(now);
        }
    }

    /// Does what is due, if nothing in the queues waits for the store.
    pub(crate) fn follow(&mut self, now: Instant) {
        if !self.map.has_upcoming() {
            return;
        }
        self.end_all_bulk(now);
        if !self.session.is_safe(&self.journal) || self.tenants.is_any_recovering() {
            return;
        }
        self.flush(now);
        match self.map.take_upcoming() {
            Some(policy) => self.follow_policy(policy, now),
            None => self.resync(now),
        }
        self.take_over(now);
        for at in 0..self.tenants.len() {
            self.resume(TenantIndex(at as u32));
        }
        self.run(now);
    }

    fn follow_policy(&mut self, policy: Arc<Policy>, now: Instant) {
        let each = |switch: &Switch| (0..switch.tenants.len()).map(|at| TenantIndex(at as u32));
        let seen_before: Vec<BTreeMap<u32, Vec<u8>>> =
            each(self).map(|tenant| self.described_ports(tenant)).collect();
        let datapaths_before: Vec<u64> =
            each(self).map(|tenant| self.datapath_of(tenant)).collect();
        let served_before = self.served();
        self.adopt(policy);
        self.ask_description(now);
        let served = self.served();
        self.resync(now);
        for (at, served) in served.iter().enumerate() {
            let tenant = TenantIndex(at as u32);
            let id = self.tenants[at].id;
            let was = served_before.get(at).copied().unwrap_or(false);
            match (was, *served) {
                (false, true) => self.reports.push(Event::Serve(id)),
                (true, false) => self.reports.push(Event::Withdraw(id)),
                (true, true) if datapaths_before.get(at) != Some(&self.datapath_of(tenant)) => {
                    // To its controllers it is another switch.
                    self.reports.push(Event::Withdraw(id));
                    self.reports.push(Event::Serve(id));
                }
                (true, true) => {
                    let before = seen_before.get(at).unwrap_or(&NOTHING);
                    self.report_new_ports(tenant, before);
                }
                (false, false) => {}
            }
        }
    }

    /// Which tenants have a part of the switch.
    pub(super) fn served(&self) -> Vec<bool> {
        (0..self.tenants.len()).map(|at| self.is_served(TenantIndex(at as u32))).collect()
    }

    /// Whether a tenant has a part of the switch.
    pub(crate) fn is_served(&self, tenant: TenantIndex) -> bool {
        let space = self.map.ownership().space(tenant);
        let has_slice =
            space.is_some_and(|space| !space.write.is_empty() || !space.read.is_empty());
        let state = &self.tenants[tenant.0 as usize];
        state.terms.is_present() && (has_slice || state.network.is_some())
    }

    /// Tells a tenant how its ports differ from what they were. What the switch itself has changed in its ports, it
    /// has told; so of a slice's ports only those are named that came or went.
    fn report_new_ports(&mut self, tenant: TenantIndex, before: &BTreeMap<u32, Vec<u8>>) {
        let is_network = self.tenants[tenant.0 as usize].network.is_some();
        let after = self.described_ports(tenant);
        for (number, wire) in before {
            if !after.contains_key(number) {
                self.report_port(tenant, wire, PORT_DELETE);
            }
        }
        for (number, wire) in &after {
            match before.get(number) {
                None => self.report_port(tenant, wire, PORT_ADD),
                Some(known) if is_network && known != wire => {
                    self.report_port(tenant, wire, PORT_MODIFY);
                }
                Some(_) => {}
            }
        }
    }

    pub(crate) fn report_port(&mut self, tenant: TenantIndex, wire: &[u8], reason: u8) {
        let version = self.version();
        self.notify(tenant, Asynchronous::PortStatus(reason), |out| {
            write_port_status(version, reason, wire, out)
        });
    }
}
