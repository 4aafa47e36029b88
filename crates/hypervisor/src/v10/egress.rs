//! The last table, the hypervisor's own for networks on Open vSwitch: by it packets leave by shared edge ports, and are counted on
//! their way, as on [1.3](crate::v13::egress).
//!
//! OpenFlow 1.0 has no metadata, but each of a tenant's entries is for one port of entry, so that it is known where it is
//! written how packets came. What an entry here has to know of that is in the number that it sees as the port of entry, beside
//! the switch's port by which they are to leave; whose they are, by their destination.
//!
//! ```text
//!   in_port                        dl_dst     does
//!   port                           a host's   OUTPUT
//!   port, from a link              a host's   OUTPUT             the bytes are counted with the link's tag
//!   port, back                     a host's   OUTPUT IN_PORT
//!   port, back, from a link        a host's   OUTPUT IN_PORT     likewise
//! ```
//! FLOW_MODs name a table by an extension of Open vSwitch's, which is turned on when the switch has said what it is.

use crate::network::{Network, WayOut, Wire, at_port, is_entry, number_of};
use crate::policy::TenantId;
use crate::switch::Own;
use crate::tally::{Counted, Direction, LONGER};
use alloc::vec::Vec;
use fabric::PortNumber;
use fabric::embedding::PortKind;
use flowspace::{Field, Match, port_from_v10, port_to_v10};
use openflow::nicira::{FLOW_MOD_TABLE_ID, NICIRA, Resubmit};
use openflow::v10::{Action, Message, PortNo, Vendor};

/// Ports of the switch that have a number here: below this. In place of 0, which is none, it is LOCAL.
const PORTS: u16 = 0x3f00;
/// Beside the port: packets came from a link, with its tag in addition to their own.
const FROM_LINK: u16 = 1 << 14;
/// Beside the port: they are to go back by it.
const BACK: u16 = 1 << 15;

/// Priority of entries for packets that are as long as they came.
const AS_LONG: u16 = 1;

/// What packets are like that leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    /// They came with a link's tag in addition to their own.
    pub is_longer: bool,
    /// They go back where they came from.
    pub is_back: bool,
}

/// Where packets are sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    Port(PortNo),
    Table(Resubmit),
}

impl Target {
    /// Appends the action.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        match self {
            Target::Port(port) => Action::Output { port, max_len: 0 }.write(out),
            Target::Table(resubmit) => {
                Action::Vendor { vendor: NICIRA, body: &resubmit.body() }.write(out);
            }
        }
    }
}

/// The message that lets FLOW_MODs name a table.
pub(crate) fn let_name_tables() -> Vec<u8> {
    let mut message = Vec::new();
    let body = &FLOW_MOD_TABLE_ID;
    // It fits: it is a few words.
    let _ = Message::Vendor(Vendor { vendor: NICIRA, body }).write(0, &mut message);
    message
}

/// Whether what leaves by a virtual port is counted here.
pub(crate) fn counts(network: &Network, number: u32) -> bool {
    network.egress.is_some() && ports(network).any(|(it, _)| it == number)
}

/// Where packets are sent that leave so, for one of the tenant's hosts if it is by a shared edge port; `None` if 1.0 cannot say
/// the switch's port.
pub(super) fn target(network: &Network, way: &WayOut<'_>, leaving: Leaving) -> Option<Target> {
    let is_shared_edge = way.wire == Wire::Plain && !way.hosts.is_empty();
    let in_port = name(way.port, leaving).filter(|_| is_shared_edge);
    match (network.egress, in_port) {
        (Some(table), Some(in_port)) => Some(Target::Table(Resubmit { in_port, table })),
        _ if leaving.is_back => Some(Target::Port(PortNo::IN_PORT)),
        _ => Some(Target::Port(PortNo(port_to_v10(way.port)?))),
    }
}

/// What the table has to hold for a tenant.
pub(super) fn entries(id: TenantId, network: &Network) -> Vec<Own> {
    let mut wanted = Vec::new();
    let Some(table) = network.egress else { return wanted };
    // Whatever is configured of ports: nothing is sent here for one that is closed.
    let network = network.open().unwrap_or(network);
    let has_links = network.ports.keys().any(|number| network.is_tagged(*number));
    for (number, port) in ports(network).filter(|(number, _)| network.way_back(*number).is_some()) {
        for (is_longer, is_back) in [(false, false), (true, false), (false, true), (true, true)] {
            let Some(name) = name(port, Leaving { is_longer, is_back }) else { continue };
            if is_longer && !has_links {
                continue;
            }
            let mut actions = Vec::new();
            let to = if is_back { PortNo::IN_PORT.0 } else { port_to_v10(port).unwrap_or(0) };
            Action::Output { port: PortNo(to), max_len: 0 }.write(&mut actions);
            let priority = if is_longer { LONGER } else { AS_LONG };
            for host in network.hosts_behind(number) {
                let match_ = at_port(port_from_v10(name)).with(Field::DlDst, number_of(*host));
                let counted = Counted::new(id, number, Direction::Sent);
                wanted.push(Own { table, match_, priority, actions: actions.clone(), counted });
            }
        }
    }
    wanted
}

/// What to ask for, to hear what an entry has counted of which this is the match: the table, and a match that several may have in
/// common.
pub(super) fn question(network: &Network, match_: &Match) -> Option<(u8, Match)> {
    let is_here = match_.get(Field::VlanVid).1 == 0;
    match is_here {
        true => Some((network.egress?, match_.without(Field::InPort))),
        false => Some((0, *match_)),
    }
}

/// The shared edge ports at this switch that have numbers here, and the switch's ports.
fn ports(network: &Network) -> impl Iterator<Item = (u32, u32)> + '_ {
    network.shared_edges().filter_map(|number| {
        let port = network.ports.get(&number).filter(|port| is_entry(port))?;
        let PortKind::Edge { port, .. } = port.kind else { return None };
        name(port.get(), Leaving { is_longer: false, is_back: false })?;
        Some((number, port.get()))
    })
}

/// How the table is told by which port packets are to leave, and how they came.
fn name(port: u32, leaving: Leaving) -> Option<u16> {
    let port = match port {
        port if port == PortNumber::LOCAL.get() => 0,
        port => u16::try_from(port).ok().filter(|port| *port < PORTS)?,
    };
    let from_link = if leaving.is_longer { FROM_LINK } else { 0 };
    let back = if leaving.is_back { BACK } else { 0 };
    Some(port | from_link | back)
}
