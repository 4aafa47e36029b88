//! Table 0, the hypervisor's own: it says whose a packet is, and sends it to that tenant's tables.

use super::{
    METADATA_PORT, METADATA_TENANT, NO_PORT, metadata_at, metadata_of, port_in, tenant_in,
};
use crate::cookie::{Cookie, Installation};
use crate::lldp;
use crate::network::{at_hop, at_port, number_of};
use crate::policy::TenantId;
use crate::switch::{Own, OwnChange, Switch, number};
use crate::tally::Counted;
use alloc::vec::Vec;
use fabric::embedding::{Exit, PortKind, VirtualPort};
use flowspace::{Field, Match};
use openflow::v13::{
    Action, CONTROLLER_NO_BUFFER, FlowMod, FlowModCommand, Instruction, MatchBuf, PortNo,
};
use openflow::{List, ListBuf};

/// What bears a tag of a virtual link, above all: also a tenant's own link probes.
const TAGGED: u16 = u16::MAX;
/// Frames of known hosts at an edge port that several networks share: no link ends there.
const HOSTS: u16 = u16::MAX - 1;
/// Whatever comes in at an edge port of a network.
const EDGES: u16 = u16::MAX - 2;
/// Above all entries for slices: link probes of the hypervisor's own, and those of tenants that are to meet no tenant's entries.
const PROBES: u16 = u16::MAX - 3;
/// A tag where none should be.
const STRAY: u16 = u16::MAX - 4;
/// The highest priority of entries for tenants.
const HIGHEST: u16 = u16::MAX - 16;
/// Below all entries for slices: link probes that come in where LLDP is nobody's.
const STRANDED: u16 = 0;

/// All bits of a hardware address.
const ADDRESS: u128 = 0xffff_ffff_ffff;

impl Switch {
    /// What table 0 has to hold: the ranks of flowspace entries as priorities, as few as needed; and the
    /// [last](super::delivery).
    pub(crate) fn wanted_own_v13(&self) -> Vec<Own> {
        if self.joins.is_some() {
            // The members have table 0.
            return Vec::new();
        }
        let lldp = Match::exact(Field::DlType, u128::from(lldp::ETHERTYPE));
        let (own, guests) = (number(lldp::PROBE_SOURCE), number(lldp::GUEST_SOURCE));
        let probes = lldp.with_masked(Field::DlSrc, own, !(own ^ guests) & ADDRESS);
        let mut to_us = ListBuf::<Action<'static>>::new();
        to_us.push(Action::Output { port: PortNo::CONTROLLER, max_len: CONTROLLER_NO_BUFFER });
        let mut instructions = Vec::new();
        Instruction::ApplyActions(to_us.as_list()).write(&mut instructions);
        let to_us = |(match_, priority)| Own {
            table: 0,
            match_,
            priority,
            actions: instructions.clone(),
            counted: None,
        };
        let mut wanted: Vec<Own> = [(probes, PROBES), (lldp, STRANDED)].map(to_us).into();
        self.add_networks(&mut wanted);
        let mut priority = HIGHEST;
        let mut level: Vec<usize> = Vec::new();
        let ranked = self.view.slices();
        for (rank, (match_, tenant)) in ranked.iter().enumerate() {
            // A new level begins where an entry overlaps one of another tenant in the level before it.
            let collides = level
                .iter()
                .any(|&other| ranked[other].1 != *tenant && ranked[other].0.overlaps(match_));
            if collides {
                priority = priority.saturating_sub(1).max(STRANDED + 1);
                level.clear();
            }
            level.push(rank);
            let id = self.tenants[tenant.0 as usize].id;
            let mut instructions = Vec::new();
            Instruction::WriteMetadata { metadata: metadata_of(id), mask: METADATA_TENANT }
                .write(&mut instructions);
            Instruction::GotoTable(1).write(&mut instructions);
            let match_ = *match_;
            wanted.push(Own { table: 0, match_, priority, actions: instructions, counted: None });
        }
        wanted
    }

    /// How packets of networks come in, and pass through.
    fn add_networks(&self, wanted: &mut Vec<Own>) {
        let Some(map) = self.policy.maps.get(&self.dpid) else { return };
        for (id, member) in &map.members {
            let tenant = self.tenant_of(*id).and_then(|at| self.tenants.get(at.0 as usize));
            let network = tenant.and_then(|tenant| tenant.network.as_deref());
            let is_refused =
                |number: &u32| tenant.is_some_and(|it| it.refused_ports.contains(number));
            for (&number, port) in member.ports.iter().filter(|(number, _)| !is_refused(number)) {
                let admits = network.is_none_or(|it| it.admits(number));
                add_port(*id, number, port, admits, wanted);
            }
            if let Some(tag) = self.entering_tag(*id) {
                wanted.push(from_controller(*id, tag));
            }
            if let Some(network) = network {
                self.add_deliveries(*id, network, wanted);
            }
        }
        for transit in &map.transit {
            let mut actions = Vec::new();
            let port = match transit.to {
                Exit::Next(hop) => {
                    super::network::wires::set_vlan(hop.tag.get(), &mut actions);
                    hop.port
                }
                Exit::Edge(port) => {
                    Action::PopVlan.write(&mut actions);
                    port
                }
            };
            let back = port == transit.from.port;
            let port = if back { PortNo::IN_PORT } else { PortNo(port.get()) };
            Action::Output { port, max_len: 0 }.write(&mut actions);
            let mut instructions = Vec::new();
            Instruction::ApplyActions(List::parse(&actions).unwrap_or_default())
                .write(&mut instructions);
            let match_ = at_hop(&transit.from);
            let (priority, actions) = (TAGGED, instructions);
            wanted.push(Own { table: 0, match_, priority, actions, counted: None });
        }
        for match_ in crate::view::reserved(&self.policy) {
            let (priority, actions) = (STRAY, Vec::new());
            wanted.push(Own { table: 0, match_, priority, actions, counted: None });
        }
    }

    /// The tag that says of a packet out of a controller's hands whose it is, on its way into the tables: it bears one of those that
    /// are reserved for links, at a port where no link ends. `None` for a tenant whose number is beyond them.
    pub(crate) fn entering_tag(&self, id: TenantId) -> Option<u16> {
        let tags = self.policy.tags.as_ref()?;
        let tag = tags.start().checked_add(id.0.checked_sub(1)?)?;
        tags.contains(&tag).then_some(tag)
    }
}

/// How packets come in that a controller sends into the tables and does not say to have come by a port.
fn from_controller(id: TenantId, tag: u16) -> Own {
    let match_ = at_port(PortNo::CONTROLLER.0)
        .with(Field::VlanVid, u128::from(tag) | flowspace::field::VLAN_PRESENT);
    let (mut strip, mut actions) = (Vec::new(), Vec::new());
    Action::PopVlan.write(&mut strip);
    enter(id, NO_PORT, &strip, &mut actions);
    Own { table: 0, match_, priority: TAGGED, actions, counted: None }
}

/// How packets come in by one port of a network, or are dropped there.
pub(crate) fn add_port(
    id: TenantId,
    number: u32,
    port: &VirtualPort,
    admits: bool,
    wanted: &mut Vec<Own>,
) {
    if !port.up {
        return;
    }
    // Of a port that is the tenant's whole the switch's own counts are told.
    let counts = Counted::new(id, number);
    let mut add = |match_, priority, actions: &[u8], counted| {
        let mut instructions = Vec::new();
        // What the port does not let in stays the tenant's: without an entry it would be a slice's.
        if admits {
            enter(id, number, actions, &mut instructions);
        }
        wanted.push(Own { table: 0, match_, priority, actions: instructions, counted });
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
            let mut strip = Vec::new();
            Action::PopVlan.write(&mut strip);
            receives.iter().for_each(|hop| add(at_hop(hop), TAGGED, &strip, counts));
        }
        PortKind::Remote { .. } => {}
    }
}

/// Appends what lets packets in by a port, with these actions before.
fn enter(id: TenantId, number: u32, actions: &[u8], out: &mut Vec<u8>) {
    if !actions.is_empty() {
        Instruction::ApplyActions(List::parse(actions).unwrap_or_default()).write(out);
    }
    let metadata = metadata_at(id, number);
    Instruction::WriteMetadata { metadata, mask: METADATA_PORT }.write(out);
    Instruction::GotoTable(1).write(out);
}

/// Whose port an entry is about, if it is about one.
pub(crate) fn port_of(own: &Own) -> Option<(TenantId, u32)> {
    let instructions = List::<Instruction<'_>>::parse(&own.actions).ok()?;
    let written = instructions.iter().find_map(|instruction| match instruction {
        Instruction::WriteMetadata { metadata, mask: METADATA_PORT } => {
            Some((TenantId((metadata >> 48) as u16), port_in(metadata)))
        }
        _ => None,
    });
    let counted = || own.counted.map(|it| (it.tenant, it.port));
    let written = written.filter(|(_, port)| *port != NO_PORT);
    written.or_else(counted)
}

/// An entry's cookie: where it counts for no port, it says all the same to whose tables it leads, as for a port 0, which there is not.
fn cookie_of(own: &Own, by: Installation) -> u64 {
    let leads_to = || {
        let instructions = List::<Instruction<'_>>::parse(&own.actions).ok()?;
        instructions.iter().find_map(|instruction| match instruction {
            Instruction::WriteMetadata { metadata, .. } => Some(tenant_in(metadata)),
            _ => None,
        })
    };
    match leads_to().filter(|_| own.table == 0 && own.counted.is_none()) {
        Some(TenantId(tenant)) => {
            Cookie { tenant: Cookie::OWN, number: u32::from(tenant) << 16 }.to_wire(by)
        }
        None => own.cookie(by),
    }
}

/// Appends the FLOW_MOD that adds or removes an entry of the hypervisor's own. False for a match that 1.3 cannot say.
pub(crate) fn write_entry(
    own: &Own,
    by: Installation,
    change: OwnChange,
    out: &mut Vec<u8>,
) -> bool {
    let mut fields = MatchBuf::new();
    let added = || List::parse(&own.actions).unwrap_or_default();
    let (command, instructions) = match change {
        OwnChange::Add => (FlowModCommand::ADD, added()),
        OwnChange::Remove => (FlowModCommand::DELETE_STRICT, List::EMPTY),
    };
    own.match_.to_v13(&mut fields).is_ok()
        && FlowMod {
            cookie: cookie_of(own, by),
            table_id: own.table,
            command,
            priority: own.priority,
            match_: fields.as_match(),
            instructions,
            ..FlowMod::default()
        }
        .write_message(0, out)
        .is_ok()
}
