//! The switch's last table (1.3). In networks this table belongs to Weir, and carries out the outputs to shared edge
//! ports that entries [leave to the last table](crate::delivery). A unicast frame for one of the tenant's hosts goes to
//! that host, a broadcast or multicast frame goes to each of these hosts, and all other frames are dropped.
//!
//! ```text
//!   priority    metadata                in_port   eth_dst      does
//!   ANY_PORT    tenant, selector        any       a host's     OUTPUT
//!               tenant, selector        any       multicast    for each host: its address, OUTPUT
//!   HAIRPIN     tenant, port, selector  one       as above     the same but for hosts at that port; IN_PORT where that leads
//!                                                              back
//! ```
//! On a big switch a host may be behind a port of another member. Then the frame gets the label of the tunnel to that
//! port before the OUTPUT, and the other member sends the frame out by this label alone.
//!
//! Each selector has its rules, independent of the tenant's entries. So the rules change with the map and the
//! configuration of the ports, like table 0, and no change of a tenant waits for such a rule. Hosts of other tenants
//! add no rules.

use crate::delivery::Selector;
use crate::list::send_labelled;
use crate::metadata;
use crate::network::{Encapsulation, IngressPort, MULTICAST, Network, at_port, number_of};
use crate::rule::InfraRule;
use crate::wire::Wire;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use fabric::{MacAddress, TenantId};
use flowspace::{Field, Match};
use openflow::List;
use openflow::v13::{Instruction, PortNo};

/// Rules for all ingress ports.
const ANY_PORT: u16 = 1;
/// Rules for packets that may have to leave by their physical ingress port.
const HAIRPIN: u16 = 2;

/// Appends the rules of the last table for a tenant.
pub fn rules(table: u8, id: TenantId, network: &Network, rules: &mut Vec<InfraRule>) {
    let ports = Selector::All.ports(network);
    let all = (ports.len() > 1).then_some(Selector::All);
    for selector in ports.into_iter().map(Selector::Port).chain(all) {
        let ports = selector.ports(network);
        let mut selected = Selected { table, id, network, selector, rules: &mut *rules };
        selected.add(&ports, None, ANY_PORT);
        let hairpins: BTreeSet<IngressPort> =
            ports.iter().flat_map(|port| network.hairpins(*port)).collect();
        for ingress in hairpins {
            selected.add(&ports, Some(ingress), HAIRPIN);
        }
    }
}

/// The tenant of a rule of this table, and the ports by which the packets leave.
pub fn selected_by(rule: &InfraRule) -> Option<(TenantId, Selector)> {
    let metadata = rule.match_.get(Field::Metadata).0 as u64;
    (rule.table > 0).then(|| (metadata::tenant(metadata), Selector::from_metadata(metadata)))
}

/// Rules for one selector.
struct Selected<'a> {
    table: u8,
    id: TenantId,
    network: &'a Network,
    selector: Selector,
    rules: &'a mut Vec<InfraRule>,
}

impl Selected<'_> {
    /// Adds the rules that send to the hosts behind these ports, except the ingress port.
    fn add(&mut self, ports: &[u32], ingress: Option<IngressPort>, priority: u16) {
        let mut hosts: BTreeMap<MacAddress, Vec<u8>> = BTreeMap::new();
        for &number in ports.iter().filter(|port| ingress.map(|it| it.port) != Some(**port)) {
            let Some(egress) = self.network.egress_back(number) else { continue };
            let is_back = ingress.is_some_and(|it| it.at == egress.port);
            let port = if is_back { PortNo::IN_PORT } else { PortNo(egress.port) };
            for host in egress.hosts {
                let out = hosts.entry(*host).or_default();
                // 1.3 can name each port.
                let _ = match egress.encapsulation {
                    Encapsulation::None => Wire::V13.output(port, 0, out),
                    Encapsulation::Label { label, .. } => send_labelled(label.get(), port, out),
                };
            }
        }
        let mut to_each = Vec::new();
        for (host, sends) in hosts {
            let address = number_of(host);
            let is_for = |match_: Match| match_.with(Field::DlDst, address);
            self.rule(ingress, priority, is_for, &sends);
            Wire::V13.set_destination(address, &mut to_each);
            to_each.extend(sends);
        }
        if !to_each.is_empty() {
            let is_for = |match_: Match| match_.with_masked(Field::DlDst, MULTICAST, MULTICAST);
            self.rule(ingress, priority, is_for, &to_each);
        }
    }

    fn rule(
        &mut self,
        ingress: Option<IngressPort>,
        priority: u16,
        is_for: impl Fn(Match) -> Match,
        actions: &[u8],
    ) {
        let (selector, selected) = self.selector.to_metadata();
        let (own, mask) = match ingress {
            Some(it) => (metadata::of_port(self.id, it.port), metadata::PORT),
            None => (metadata::of_tenant(self.id), metadata::TENANT),
        };
        let metadata = (u128::from(own | selector), u128::from(mask | selected));
        let here = ingress.map_or(Match::ANY, |it| at_port(it.at));
        let match_ = is_for(here.with_masked(Field::Metadata, metadata.0, metadata.1));
        let mut instructions = Vec::new();
        Instruction::ApplyActions(List::parse(actions).unwrap_or_default())
            .write(&mut instructions);
        let (table, actions) = (self.table, instructions);
        self.rules.push(InfraRule { table, match_, priority, actions, counted: None });
    }
}
