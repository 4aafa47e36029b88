//! Infrastructure rules: Weir's own rules that identify the owner of packets, pass packets through for networks, and
//! drop packets at closed ports.
//!
//! On 1.3 the infrastructure rules are the rules of table 0 and of the [last table](crate::last_table). Table 0 writes
//! the owner of a packet to the metadata, and sends the packet to that tenant's tables. On 1.0 the infrastructure rules
//! pass packets through, and drop packets at closed ports.

use crate::ids::TenantIndex;
use crate::last_table;
use crate::metadata::{self, controller_label};
use crate::network::{Network, at_hop, at_port, number_of};
use crate::ownership::{Ownership, overlaps_anothers, reserved};
use crate::rule::{CountedPort, InfraRule};
use crate::target::Target;
use crate::wire::Wire;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use fabric::embedding::{Exit, PortKind, SwitchMap, Transit, VirtualPort};
use fabric::{TenantId, lldp};
use flowspace::field::VLAN_PRESENT;
use flowspace::{Field, Match, MatchIndex};
use openflow::v13::{CONTROLLER_NO_BUFFER, Instruction, PortNo};
use openflow::{ErrorCode, List};

/// Packets with a label, above all other rules: this includes a tenant's own link probes.
const LABELLED: u16 = u16::MAX;
/// Frames of known hosts at an edge port that several networks share. No link ends at such a port.
const HOSTS: u16 = u16::MAX - 1;
/// All packets that enter at an edge port of a network.
const EDGES: u16 = u16::MAX - 2;
/// Above all rules for slices: Weir's own link probes, and tenants' link probes that must not match any tenant's entry.
const PROBES: u16 = u16::MAX - 3;
/// Packets with a label at a port where no link uses this label.
const STRAY: u16 = u16::MAX - 4;
/// The highest priority of rules for slices.
const HIGHEST: u16 = u16::MAX - 16;
/// Below all rules for slices: link probes that enter where LLDP has no owner.
const STRANDED: u16 = 0;
/// Transit and closed ports on 1.0: no tenant's entry has a higher priority.
const ABOVE_TENANTS: u16 = u16::MAX;

/// All bits of a hardware address.
const ADDRESS: u128 = 0xffff_ffff_ffff;

/// The input of the infrastructure rules.
pub struct Infra<'a> {
    /// The switch.
    pub target: Target,
    /// The parts of the networks on the switch.
    pub map: Option<&'a SwitchMap>,
    /// VLAN ids that are reserved for labels.
    pub labels: Option<&'a RangeInclusive<u16>>,
    /// The owners of packets and ports.
    pub ownership: &'a Ownership,
    /// All tenants, as [`TenantIndex`] counts them.
    pub tenants: Vec<InfraTenant<'a>>,
}

/// The data of a tenant that the infrastructure rules depend on.
#[derive(Clone, Copy)]
pub struct InfraTenant<'a> {
    /// The tenant's number.
    pub id: TenantId,
    /// The tenant's network on this switch.
    pub network: Option<&'a Network>,
    /// The network's ports that are down because the switch refuses their rules (1.3).
    pub refused_ports: &'a BTreeSet<u32>,
}

impl Infra<'_> {
    /// The rules.
    pub fn rules(&self) -> Vec<InfraRule> {
        match self.target.wire {
            // For a big switch, table 0 is on its members.
            Wire::V13 if self.target.is_joined => Vec::new(),
            Wire::V13 => self.rules_v13(),
            Wire::V10 => self.rules_v10(),
        }
    }

    fn rules_v10(&self) -> Vec<InfraRule> {
        let Some(map) = self.map else { return Vec::new() };
        // 1.0 cannot name each port.
        let passing = map.transit.iter().filter_map(|it| {
            Some(rule(at_hop(&it.from), ABOVE_TENANTS, passing(Wire::V10, it).ok()?))
        });
        let networks = self.tenants.iter().filter_map(|tenant| tenant.network);
        let closed = networks
            .flat_map(|network| network.ingress_ports().flat_map(|port| closed(network, port)));
        passing.chain(closed).collect()
    }

    /// Table 0: the ranks of flowspace entries as priorities, as few as needed.
    fn rules_v13(&self) -> Vec<InfraRule> {
        let frames = Match::exact(Field::DlType, u128::from(lldp::ETHERTYPE));
        let (own, guests) = (octets(lldp::PROBE_SOURCE), octets(lldp::GUEST_SOURCE));
        let probes = frames.with_masked(Field::DlSrc, own, !(own ^ guests) & ADDRESS);
        let mut to_weir = Vec::new();
        // 1.3 can name each port.
        let _ = Wire::V13.output(PortNo::CONTROLLER, CONTROLLER_NO_BUFFER, &mut to_weir);
        let to_weir = applied(&to_weir);
        let probe = |(match_, priority)| rule(match_, priority, to_weir.clone());
        let mut rules: Vec<InfraRule> = [(probes, PROBES), (frames, STRANDED)].map(probe).into();
        self.add_networks(&mut rules);
        let mut priority = HIGHEST;
        let mut level = MatchIndex::default();
        let ranked = self.ownership.slices();
        for (rank, (match_, tenant)) in (0..).zip(ranked) {
            // A new level begins if an entry overlaps an entry of another tenant in the current level.
            if overlaps_anothers(&level, ranked, match_, *tenant) {
                priority = priority.saturating_sub(1).max(STRANDED + 1);
                level = MatchIndex::default();
            }
            level.insert(0, match_, rank);
            let metadata = metadata::of_tenant(self.id(*tenant));
            let mut instructions = Vec::new();
            Instruction::WriteMetadata { metadata, mask: metadata::TENANT }
                .write(&mut instructions);
            Instruction::GotoTable(1).write(&mut instructions);
            rules.push(rule(*match_, priority, instructions));
        }
        rules
    }

    fn id(&self, tenant: TenantIndex) -> TenantId {
        self.tenants[tenant.0 as usize].id
    }

    /// Adds the rules by which packets of networks enter and pass through.
    fn add_networks(&self, rules: &mut Vec<InfraRule>) {
        let Some(map) = self.map else { return };
        for (&id, member) in &map.members {
            let tenant = self.tenants.iter().find(|tenant| tenant.id == id);
            let network = tenant.and_then(|tenant| tenant.network);
            let is_refused =
                |number: &u32| tenant.is_some_and(|it| it.refused_ports.contains(number));
            for (&number, port) in member.ports.iter().filter(|(number, _)| !is_refused(number)) {
                let admits = network.is_none_or(|it| it.admits(number));
                add_port(id, number, port, admits, rules);
            }
            if let Some(label) = controller_label(self.labels, id) {
                rules.push(from_controller(id, label));
            }
            if let (Some(network), Some(table)) = (network, self.target.delivery_table()) {
                last_table::rules(table, id, network, rules);
            }
        }
        for transit in &map.transit {
            // 1.3 can name each port.
            let actions = passing(Wire::V13, transit).unwrap_or_default();
            rules.push(rule(at_hop(&transit.from), LABELLED, applied(&actions)));
        }
        let strays = self.labels.map(reserved).unwrap_or_default();
        rules.extend(strays.into_iter().map(|match_| rule(match_, STRAY, Vec::new())));
    }
}

/// The rules about one port of a network.
pub fn rules_of_port(
    target: &Target,
    id: TenantId,
    network: &Network,
    number: u32,
) -> Vec<InfraRule> {
    if target.wire == Wire::V10 {
        return closed(network, number);
    }
    let mut rules = Vec::new();
    if let Some(port) = network.ports().get(&number) {
        add_port(id, number, port, network.admits(number), &mut rules);
        if let Some(table) = target.delivery_table() {
            last_table::rules(table, id, network, &mut rules);
        }
    }
    rules
}

/// The tenant and the virtual port of a rule of table 0, if the rule is for one port (1.3).
pub fn port_of(rule: &InfraRule) -> Option<(TenantId, u32)> {
    let instructions = List::<Instruction<'_>>::parse(&rule.actions).ok()?;
    let written = instructions.iter().find_map(|instruction| match instruction {
        Instruction::WriteMetadata { metadata, mask: metadata::PORT } => {
            Some((metadata::tenant(metadata), metadata::port(metadata)))
        }
        _ => None,
    });
    let counted = || rule.counted.map(|it| (it.tenant, it.port));
    written.filter(|(_, port)| *port != metadata::NO_PORT).or_else(counted)
}

/// The tenant to whose tables a rule of table 0 sends packets (1.3).
pub fn leads_to(rule: &InfraRule) -> Option<TenantId> {
    let instructions = List::<Instruction<'_>>::parse(&rule.actions).ok()?;
    instructions.iter().find_map(|instruction| match instruction {
        Instruction::WriteMetadata { metadata, .. } => Some(metadata::tenant(metadata)),
        _ => None,
    })
}

/// The rule for packets that a controller sends into the tables without an ingress port.
fn from_controller(id: TenantId, label: u16) -> InfraRule {
    let match_ =
        at_port(PortNo::CONTROLLER.0).with(Field::VlanVid, u128::from(label) | VLAN_PRESENT);
    let mut pop = Vec::new();
    Wire::V13.pop_vlan(&mut pop);
    rule(match_, LABELLED, entering(id, metadata::NO_PORT, &pop))
}

/// Adds the rules by which packets enter by one port of a network, or are dropped there.
fn add_port(
    id: TenantId,
    number: u32,
    port: &VirtualPort,
    admits: bool,
    rules: &mut Vec<InfraRule>,
) {
    if !port.up {
        return;
    }
    // For a whole edge port the tenant gets the switch's own counters.
    let counts = CountedPort::new(id, number);
    let mut add = |match_, priority, actions: &[u8], counted| {
        // Without a dropping rule, the packets that the port does not let in would reach a slice.
        let instructions = if admits { entering(id, number, actions) } else { Vec::new() };
        rules.push(InfraRule { counted, ..rule(match_, priority, instructions) });
    };
    match &port.kind {
        PortKind::Edge { port, hosts } if hosts.is_empty() => {
            add(at_port(port.get()), EDGES, &[], None);
        }
        PortKind::Edge { port, hosts } => {
            for host in hosts {
                let match_ = at_port(port.get()).with(Field::DlSrc, number_of(*host));
                add(match_, HOSTS, &[], counts);
            }
        }
        PortKind::Link { receives, .. } => {
            let mut pop = Vec::new();
            Wire::V13.pop_vlan(&mut pop);
            receives.iter().for_each(|hop| add(at_hop(hop), LABELLED, &pop, counts));
        }
        PortKind::Remote { .. } => {}
    }
}

/// The instructions that let packets in by a port, after these actions.
fn entering(id: TenantId, number: u32, actions: &[u8]) -> Vec<u8> {
    let mut out = if actions.is_empty() { Vec::new() } else { applied(actions) };
    let metadata = metadata::of_port(id, number);
    Instruction::WriteMetadata { metadata, mask: metadata::PORT }.write(&mut out);
    Instruction::GotoTable(1).write(&mut out);
    out
}

/// The actions for transit packets. The error is for a port that 1.0 cannot name.
fn passing(wire: Wire, transit: &Transit) -> Result<Vec<u8>, ErrorCode> {
    let mut actions = Vec::new();
    let port = match transit.to {
        Exit::Next(hop) => {
            wire.set_vlan(hop.tag.get(), &mut actions);
            hop.port
        }
        Exit::Edge(port) => {
            wire.pop_vlan(&mut actions);
            port
        }
    };
    let is_back = port == transit.from.port;
    let port = if is_back { PortNo::IN_PORT } else { PortNo(port.get()) };
    wire.output(port, 0, &mut actions)?;
    Ok(actions)
}

/// The rules that drop the packets of a closed port (1.0).
fn closed(network: &Network, port: u32) -> Vec<InfraRule> {
    if network.admits(port) {
        return Vec::new();
    }
    let drop = |match_| rule(match_, ABOVE_TENANTS, Vec::new());
    network.incoming(port).into_iter().map(|incoming| drop(incoming.match_)).collect()
}

fn rule(match_: Match, priority: u16, actions: Vec<u8>) -> InfraRule {
    InfraRule { table: 0, match_, priority, actions, counted: None }
}

fn applied(actions: &[u8]) -> Vec<u8> {
    let mut instructions = Vec::new();
    Instruction::ApplyActions(List::parse(actions).unwrap_or_default()).write(&mut instructions);
    instructions
}

fn octets(address: [u8; 6]) -> u128 {
    address.iter().fold(0, |number, octet| number << 8 | u128::from(*octet))
}
