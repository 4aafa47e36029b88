//! PORT_MOD on a port of a tenant's own network.
//!
//! The virtual port belongs to the tenant. Its physical port may carry packets of other tenants, and of other ports of
//! the same tenant. So Weir does not change the switch's ports. The configuration changes the rules on the switch for
//! the tenant, and the messages to the tenant's controllers:
//!
//! ```text
//!   bit            of packets that come                              of packets that leave
//!   PORT_DOWN      dropped by an entry of the hypervisor's own       left out of the tenant's entries and groups
//!   NO_RECV        the same
//!   NO_FWD                                                           left out, as above
//!   NO_FLOOD                                                         left out where an entry says FLOOD (1.0)
//!   NO_PACKET_IN   a miss causes no PACKET_IN
//!   NO_STP         nothing: the switch takes no part in a
//!                  spanning tree (1.0)
//! ```
//! A change is all or nothing: Weir refuses it if one of the tenant's entries or groups could not be installed
//! afterwards. Like all changes, it goes through the tenant's queue, after the store has it.

use super::map::{OwnChange, Place, place};
use super::{Cause, Object, Request, Switch, Tried, in_turn};
use crate::flows::shared::collide;
use crate::flows::{Flow, Rule};
use crate::ids::TenantIndex;
use crate::messages;
use crate::port_desc::{PORT_MODIFY, PortChange};
use crate::store::{Kind, StoreKey, StoreOp};
use alloc::sync::Arc;
use alloc::vec::Vec;
use compile::{InfraRule, Network, Reason, Refused, RuleKey, entry, infra};
use flowspace::Field;
use hashbrown::{HashMap, HashSet};
use openflow::v10::{self, PortConfig, Wildcards};

impl Switch {
    /// Carries out a PORT_MOD of a tenant with a network here.
    pub(crate) fn configure_port(
        &mut self,
        request: &Request<'_>,
        change: &PortChange,
    ) -> Result<(), Refused> {
        let codes = &self.codes().port_mod;
        let (tenant, number) = (request.tenant, change.number);
        let state = &self.tenants[tenant];
        let Some(network) = state.network.clone() else { return Err(codes.bad_port.into()) };
        let port = network.ports().get(&number).ok_or(codes.bad_port)?;
        if port.mac != change.hw_addr {
            return Err(codes.bad_hw_addr.into());
        }
        let before = network.config(number);
        let config = PortConfig(before.0 & !change.mask.0 | change.config.0 & change.mask.0);
        if !self.semantics().port_config.contains(config) {
            return Err(Reason::PortConfig.with(codes.bad_config));
        }
        if change.advertises {
            return Err(Reason::PortAdvertises.with(codes.bad_advertise));
        }
        if config == before {
            return Ok(());
        }
        let map = self.map.policy().maps.get(&self.dpid());
        let member = map.and_then(|map| map.members.get(&state.id)).ok_or(codes.bad_port)?;
        // The controller that has sent the PORT_MOD gets no PORT_STATUS, as with Open vSwitch. A big switch gets one,
        // since it asks on behalf of other controllers.
        let doer = (!member.shared_with).then_some(request.controller);
        let after = Arc::new(state.ports.network_with(member, number, config));
        let refused = Reason::PortInUse.with(codes.not_permitted);
        let planned = self.planned(tenant, &network, &after, number).ok_or(refused)?;
        let groups = self.changed_groups(tenant, &network, &after).map_err(|_| refused)?;

        let key = StoreKey::new(state.id, Kind::Port, number);
        self.journal.push(match config.is_empty() {
            true => StoreOp::Delete(key),
            false => StoreOp::Put(key, config.0.to_be_bytes().to_vec()),
        });
        let state = &mut self.tenants[tenant];
        state.ports.configure(number, config);
        state.network = Some(after.clone());
        let cause = in_turn(tenant, request.now);
        self.replace_own(&cause, &network, &after, number);
        self.replace_rules(&cause, planned);
        for (number, message) in groups {
            let cause = self.begin_repair(&cause, Object::Number(Kind::Group, number));
            self.submit_number(&cause, &message);
        }
        // The barrier ends the change, even if no other message is sent. So later messages of the tenant, such as its
        // own barrier, wait until the store has the change, and the tenant cannot change ports faster than the store
        // works.
        self.submit_barrier(cause.tenant, None, self.journal.gate(), cause.now);
        if let Some(wire) = messages::port_of(self.wire, &after, number) {
            self.report_port(tenant, doer, &wire, PORT_MODIFY);
        }
        Ok(())
    }

    /// Takes the configurations of ports from the store.
    pub(super) fn restore_ports(&mut self, restored: &[(StoreKey, Vec<u8>)]) {
        for (key, bytes) in restored {
            let Some((Kind::Port, number)) = key.parts() else { continue };
            let config = bytes.first_chunk().map(|bytes| PortConfig(u32::from_be_bytes(*bytes)));
            let config = config.filter(|config| self.semantics().port_config.contains(*config));
            let tenant = self.tenant_of(key.tenant).map(|at| &mut self.tenants[at]);
            let has_port = |network: &Network| network.has_port(number);
            let tenant = tenant.filter(|it| it.network.as_deref().is_some_and(has_port));
            match (tenant, config) {
                (Some(tenant), Some(config)) => tenant.ports.configure(number, config),
                _ => self.journal.push(StoreOp::Delete(*key)),
            }
        }
        let map = self.map.policy().maps.get(&self.dpid());
        for tenant in self.tenants.iter_mut().filter(|tenant| tenant.ports.is_any_configured()) {
            let member = map.and_then(|map| map.members.get(&tenant.id));
            tenant.network = member.map(|member| Arc::new(tenant.ports.network(member)));
        }
    }

    /// The entries that get other rules. `None` if such an entry cannot be installed.
    fn planned(
        &self,
        tenant: TenantIndex,
        before: &Network,
        after: &Network,
        number: u32,
    ) -> Option<HashMap<u32, Vec<Rule>>> {
        let flows = &self.tenants[tenant].flows;
        let leaving = PortConfig::PORT_DOWN | PortConfig::NO_FWD | PortConfig::NO_FLOOD;
        let changed = PortConfig(before.config(number).0 ^ after.config(number).0);
        let leaves = changed.intersects(leaving);
        let is_changed = before.admits(number) != after.admits(number);
        let mut planned = HashMap::new();
        for (at, flow) in flows.iter() {
            let sends = leaves && messages::names_port(self.wire, &flow.actions, number);
            // Without metadata, an entry has rules for each ingress.
            let is_by_ingress = !self.target().has_metadata();
            let comes = is_changed && is_by_ingress && depends_on_ingress(flow, number);
            if sends || comes {
                let (cx, match_) = (self.context_in(tenant, Some(after)), flow.match_.to_match());
                let rules = entry::compile(&cx, &flow.spec(&match_)).ok()?;
                if rules != flow.rules {
                    planned.insert(at, rules);
                }
            }
        }
        (!collide(flows, &planned)).then_some(planned)
    }

    /// Weir's own rules for packets that enter or leave by the port follow.
    fn replace_own(&mut self, cause: &Cause, before: &Network, after: &Network, number: u32) {
        let own = |network: &Network| self.own_of_port(cause.tenant, network, number);
        let (before, after) = (own(before), own(after));
        // A port may have rules for many hosts.
        let there: HashMap<Place<'_>, &InfraRule> =
            before.iter().map(|own| (place(own), own)).collect();
        let wanted: HashSet<Place<'_>> = after.iter().map(place).collect();
        let is_new = |own: &&InfraRule| there.get(&place(own)) != Some(own);
        let added: Vec<&InfraRule> = after.iter().filter(is_new).collect();
        let gone: Vec<&InfraRule> =
            before.iter().filter(|own| !wanted.contains(&place(own))).collect();
        self.map.change_infra(&gone, &added);
        gone.iter().for_each(|own| self.submit_own_entry(cause, own, OwnChange::Remove));
        added.iter().for_each(|own| self.submit_own_entry(cause, own, OwnChange::Add));
    }

    fn own_of_port(&self, tenant: TenantIndex, network: &Network, number: u32) -> Vec<InfraRule> {
        let id = self.tenants[tenant].id;
        infra::rules_of_port(&self.target(), id, network, number)
    }

    fn submit_own_entry(&mut self, cause: &Cause, own: &InfraRule, change: OwnChange) {
        let Some(message) = self.write_own(own, change) else { return };
        match change {
            OwnChange::Remove => self.submit_change(cause, &message),
            OwnChange::Add => self.submit_own(cause, Tried::new(own), &message),
        }
    }

    /// Entries get other rules, as a part of the operation if there is one, else by an operation of Weir's own for each
    /// entry. All removed rules are sent first: an entry may get a rule that another entry gives up.
    pub(crate) fn replace_rules(&mut self, cause: &Cause, planned: HashMap<u32, Vec<Rule>>) {
        let mut replaced: Vec<(u32, Flow, Flow)> = Vec::new();
        for (number, rules) in planned {
            let state = &mut self.tenants[cause.tenant];
            let Some(before) = state.flows.remove(number) else { continue };
            // Shadowed rules stay shadowed, so the order in which entries are restored does not matter.
            let shadowed = before.shadowed.iter().map(|rule| &rule.match_wire);
            let shadowed: HashSet<_> = shadowed.cloned().collect();
            let mut after = Flow { rules, shadowed: Default::default(), ..before.clone() };
            let is_shadowed = |rule: &mut Rule| shadowed.contains(&rule.match_wire);
            after.shadowed.extend(after.rules.extract_if(.., is_shadowed));
            replaced.push((number, before, after));
        }
        replaced.sort_unstable_by_key(|(number, ..)| *number);
        let mut keys: Vec<RuleKey> =
            replaced.iter().flat_map(|(_, before, _)| before.keys()).collect();
        for (number, _, after) in replaced {
            let state = &mut self.tenants[cause.tenant];
            let after = state.flows.placed(number, after);
            keys.extend(after.keys());
            state.flows.put(number, after);
            state.flows.count_change();
            self.tenants.keep_time(cause.tenant, number, cause.now);
            self.tenants.note_freed(cause.tenant);
        }
        self.mend(cause, keys);
    }
}

/// Whether the rules of a 1.0 entry depend on whether a port admits packets. If the port drops all packets, only
/// entries of the highest priority have other rules; an entry without wildcards always has the highest priority.
fn depends_on_ingress(flow: &Flow, number: u32) -> bool {
    let only = flow.match_.to_match().exact_value(Field::InPort);
    if only.is_some_and(|only| only != u128::from(number)) {
        return false;
    }
    let arrival =
        Wildcards::IN_PORT | Wildcards::DL_SRC | Wildcards::DL_VLAN | Wildcards::DL_VLAN_PCP;
    let is_whole = |match_: v10::Match| match_.wildcards.without(arrival).is_empty();
    flow.priority == u16::MAX || v10::Match::parse(&flow.match_wire).is_ok_and(is_whole)
}
