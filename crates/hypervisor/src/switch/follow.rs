//! Following changes of the policy and of the switch's ports.
//!
//! ```text
//!   handle_policy ─┐
//!                  ├─► upcoming ──(everything in the queues is safe)──► queues sent ─► in force ─► entries compiled again, in batches
//!   port_changed ──┘      └──────────────── requests of tenants wait ─────────────────────────────────────────────┘
//! ```
//! Requests that were checked under the old policy are sent before anything is done under the new policy, and no
//! request is sent before the store has it. So a change waits for one commit of the store.
//!
//! A tenant may have many groups and entries. One turn of the event loop compiles a batch of them again; then come
//! other switches. Until the last batch tenants' requests wait, all but ECHO and PACKET_OUT, so no request sees entries
//! of two policies. If a tenant's changes have to be replayed, the replay waits until all entries have followed.

use super::map::{Stale, StaleGroups};
use super::{Cause, Event, Switch};
use crate::flows::Flow;
use crate::ids::{ControllerIndex, TenantIndex};
use crate::north::Asynchronous;
use crate::policy::Policy;
use crate::port_desc::{PORT_MODIFY, changed_ports, write_port_status};
use crate::south::installed::Owner;
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use compile::{PhysicalPort, RuleKey};

/// The ports that a tenant sees. The switch itself reports changes of its ports, so for a slice the port numbers are
/// enough.
#[derive(PartialEq)]
enum Seen {
    Slice(Vec<u32>),
    /// The descriptions.
    Network(BTreeMap<u32, Vec<u8>>),
}

impl Switch {
    /// The policy has changed. Ownership, connections and tables follow when the store has all changes that were
    /// accepted under the old policy. If several policies come in a row, the newest counts. If
    /// [`is_turn_awaited`](Self::is_turn_awaited) says yes, some entries follow in further turns.
    pub fn handle_policy(&mut self, policy: Arc<Policy>, now: Instant) {
        if self.datapath.is_reconciling() {
            self.map.plan_policy(policy);
            return;
        }
        if !self.is_ready() {
            self.adopt(policy);
            return;
        }
        self.map.plan_policy(policy);
        self.follow(now);
        self.take_up_postponed(now);
    }

    /// A port was added, changed or removed. Where a list of ports stands for FLOOD, the list follows.
    pub(crate) fn port_changed(&mut self, number: u32, port: Option<PhysicalPort>, now: Instant) {
        let before = self.datapath.set_port(number, port.clone());
        if self.has_exceeded_a_bound() {
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

    /// Puts a new policy or changed ports into force, if no message in the queues waits for the store.
    pub(crate) fn follow(&mut self, now: Instant) {
        let is_busy = self.datapath.is_reconciling() || self.operations.has_any_bulk();
        if !self.map.has_upcoming() || self.map.is_stale() || is_busy {
            return;
        }
        if !self.session.is_safe(&self.journal) || self.tenants.is_any_recovering() {
            return;
        }
        self.flush(now);
        match self.map.take_upcoming() {
            Some(policy) => self.follow_policy(policy, now),
            None => self.resync(now),
        }
        self.take_over(now);
        self.run(now);
    }

    fn follow_policy(&mut self, policy: Arc<Policy>, now: Instant) {
        let seen = |at| (self.is_served(at), self.datapath_of(at), self.seen_ports(at));
        let before: Vec<(bool, u64, Seen)> = self.tenants.indices().map(seen).collect();
        self.adopt(policy);
        self.ask_description(now);
        self.resync(now);
        for tenant in self.tenants.indices() {
            let id = self.tenants[tenant].id;
            let is_served = self.is_served(tenant);
            match before.get(tenant.0 as usize) {
                Some((true, ..)) if !is_served => self.reports.push(Event::Withdraw(id)),
                Some((true, datapath, _)) if *datapath != self.datapath_of(tenant) => {
                    // The switch has another datapath id for the tenant's controllers.
                    self.reports.push(Event::Withdraw(id));
                    self.reports.push(Event::Serve(id));
                }
                Some((true, _, seen)) => self.report_new_ports(tenant, seen),
                _ if is_served => self.reports.push(Event::Serve(id)),
                _ => {}
            }
        }
    }

    /// The policy or the ports have changed: a first batch of Weir's own rules, groups and entries follows now.
    fn resync(&mut self, now: Instant) {
        let own = self.own_changes().into_iter();
        let groups = self.all_groups();
        self.map.set_stale(Stale::new(own, groups, self.all_entries()));
        self.compile_stale(now);
    }

    /// The groups and meters of all tenants, which are to be compiled again.
    pub(super) fn all_groups(&self) -> StaleGroups {
        let tenants = self.tenants.indices();
        StaleGroups::new(tenants.filter(|_| self.semantics().has_groups).collect())
    }

    /// The next batch of Weir's own rules, groups and entries follows.
    pub(super) fn continue_following(&mut self, now: Instant) {
        self.compile_stale(now);
        self.follow(now);
    }

    /// Changes Weir's own rules, then compiles groups and entries again: at most a batch in all, and fewer if that
    /// changes many rules.
    fn compile_stale(&mut self, now: Instant) {
        let Some(mut stale) = self.map.take_stale() else { return };
        let mut most = self.settings.batch;
        self.own_rules_follow(stale.own_mut(), &mut most, now);
        let mut changed = self.settings.batch - most;
        self.groups_follow(stale.groups_mut(), &mut most, now);
        let (mut tenant, mut keys) = (TenantIndex(0), Vec::new());
        for _ in 0..most {
            let next = stale.next();
            if next.is_none_or(|it| it.tenant != tenant) {
                changed += keys.len();
                self.mend(&Cause::own(tenant, now), core::mem::take(&mut keys));
            }
            let Some(entry) = next else { return self.all_follow(now) };
            tenant = entry.tenant;
            self.compile_entry(&mut stale, entry, &mut keys, now);
            if changed + keys.len() >= most {
                break;
            }
        }
        changed += keys.len();
        self.mend(&Cause::own(tenant, now), keys);
        if changed > 0 {
            // The reply confirms this batch alone: to confirm all of a large table at once takes long.
            self.session.send_barrier(now);
        }
        self.map.set_stale(stale);
    }

    /// Compiles an entry again. Appends the rules that may have to change on the switch.
    fn compile_entry(
        &mut self,
        stale: &mut Stale,
        entry: Owner,
        keys: &mut Vec<RuleKey>,
        now: Instant,
    ) {
        let Owner { tenant, number } = entry;
        let cause = Cause::own(tenant, now);
        let state = &self.tenants[tenant];
        let Some(flow) = state.flows.get(number) else { return };
        let planned = match state.terms.is_present() {
            true => self.plan(tenant, flow).ok(),
            false => None,
        };
        let wanted =
            planned.map(|rules| Flow { rules, shadowed: Default::default(), ..flow.clone() });
        let collides = wanted.as_ref().is_some_and(|it| state.flows.collides(number, it));
        let grows = wanted.as_ref().is_some_and(|it| it.planned() > flow.planned());
        if (collides || grows) && stale.put_off(entry) {
            return;
        }
        let Some(wanted) = wanted.filter(|_| !collides) else {
            self.give_up(&cause, number);
            return;
        };
        let wanted = state.flows.placed(number, wanted);
        if !wanted.has_same_rules(flow) {
            keys.extend(flow.keys().chain(wanted.keys()));
            self.put_flow(&cause, number, wanted);
        }
    }

    /// All entries follow the policy in force. Waiting requests are examined again.
    fn all_follow(&mut self, now: Instant) {
        self.sweep_all_numbers(now);
        for tenant in self.tenants.indices() {
            self.tenants[tenant].backlog.note_decided();
            self.resume(tenant);
        }
    }

    /// A tenant's weight on the switch. A tenant that has no part of the switch has the weight 0.
    pub(super) fn weight(&self, tenant: TenantIndex) -> u32 {
        if self.is_served(tenant) { self.tenants[tenant].terms.weight } else { 0 }
    }

    /// Whether a tenant has a part of the switch.
    pub(crate) fn is_served(&self, tenant: TenantIndex) -> bool {
        let space = self.map.ownership().space(tenant);
        let has_slice =
            space.is_some_and(|space| !space.write.is_empty() || !space.read.is_empty());
        let state = &self.tenants[tenant];
        state.terms.is_present() && (has_slice || state.network.is_some())
    }

    fn seen_ports(&self, tenant: TenantIndex) -> Seen {
        match self.tenants[tenant].network {
            Some(_) => Seen::Network(self.described_ports(tenant)),
            None => Seen::Slice(self.slice_ports(tenant).collect()),
        }
    }

    /// Reports to a tenant the ports that a new policy has added, removed or changed.
    fn report_new_ports(&mut self, tenant: TenantIndex, before: &Seen) {
        if self.seen_ports(tenant) == *before {
            return;
        }
        let is_network = self.tenants[tenant].network.is_some();
        let after = self.described_ports(tenant);
        let described = |port: &u32| Some((*port, self.described_port(tenant, *port)?));
        let before = match before {
            Seen::Network(ports) => ports.clone(),
            Seen::Slice(ports) => ports.iter().filter_map(described).collect(),
        };
        for (reason, wire) in changed_ports(&before, &after) {
            if is_network || reason != PORT_MODIFY {
                self.report_port(tenant, None, wire, reason);
            }
        }
    }

    /// Sends a PORT_STATUS to a tenant's controllers, except to the controller `doer`.
    pub(crate) fn report_port(
        &mut self,
        tenant: TenantIndex,
        doer: Option<ControllerIndex>,
        wire: &[u8],
        reason: u8,
    ) {
        let version = self.version();
        self.notify_others(tenant, doer, Asynchronous::PortStatus(reason), |out| {
            write_port_status(version, reason, wire, out)
        });
    }
}
