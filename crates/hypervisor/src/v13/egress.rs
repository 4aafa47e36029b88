//! The table before the last, the hypervisor's own for networks on Open vSwitch: by it packets leave by shared edge ports, and are
//! counted on their way.
//!
//! A switch counts by its own ports, for everybody, and what an entry or a group counts it may have sent by other ports as
//! well, or not at all, since a packet does not go back where it came from. So on a switch that knows Open vSwitch's action
//! `resubmit`, an OUTPUT to a shared edge port is one to this table, with the virtual port's number in place of the port of entry:
//! in lists, in buckets, in the [last table](super::delivery), and in PACKET_OUTs, which write the metadata first. Here it
//! is known by what it came (the metadata) and by what it leaves.
//!
//! ```text
//!   priority    in_port   metadata                      does
//!   HERE        port      tenant                        OUTPUT
//!   CAME        port      tenant, the port itself       –             it is not sent back
//!               port      tenant, a port beside it      OUTPUT IN_PORT
//!               0         tenant, the port itself       OUTPUT IN_PORT
//!   TAGGED      port      tenant, a link                OUTPUT        the bytes are counted with the link's tag
//! ```
//! Counters are the tenant's: [`crate::tally`] takes the link's tag out of the bytes. What has crossed a big switch leaves by an
//! entry of table 0, which counts the same.

use super::{METADATA_OWN, METADATA_PORT, METADATA_TENANT, metadata_at, metadata_of};
use crate::network::{Network, at_port, in_16_bits, is_entry};
use crate::policy::TenantId;
use crate::switch::{Own, Switch};
use crate::tally::{Counted, Direction, LONGER};
use alloc::vec::Vec;
use fabric::embedding::PortKind;
use flowspace::Field;
use openflow::nicira::{NICIRA, Resubmit};
use openflow::v13::{Action, Instruction, OxmField, PortNo};
use openflow::{List, Version};

/// Wherever packets came from.
const HERE: u16 = 1;
/// By an edge port of which it matters.
const CAME: u16 = 2;
/// By a link, whose tag was in front.
const TAGGED: u16 = LONGER;

/// In place of a port's number: back by the port of entry.
const BACK: u16 = 0;

/// What Open vSwitch calls itself in DESC statistics.
const OPEN_VSWITCH: &str = "Open vSwitch";

/// Where packets are sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    Port(PortNo),
    /// This table, under this number.
    Table(u8, u16),
}

impl Target {
    /// Appends the action.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        match self {
            Target::Port(port) => Action::Output { port, max_len: 0 }.write(out),
            Target::Table(table, in_port) => {
                let body = &Resubmit { in_port, table }.body();
                Action::Experimenter { experimenter: NICIRA, body }.write(out);
            }
        }
    }
}

/// Whether an action sends a packet by a port.
pub(crate) fn is_output(action: &Action<'_>) -> bool {
    matches!(action, Action::Output { .. }) || Resubmit::of_v13(action).is_some()
}

/// Whether a switch whose make is described so knows `resubmit`.
pub(crate) fn is_known_to(hw_desc: &str) -> bool {
    hw_desc == OPEN_VSWITCH
}

impl Switch {
    /// The table, if the switch can have it; on [1.0](crate::v10::egress) it is the last.
    pub(crate) fn egress_table(&self) -> Option<u8> {
        let last = match self.version {
            _ if !self.resubmits || self.joins.is_some() => None,
            Version::V1_0 => self.features.n_tables.checked_sub(1),
            _ => self.delivery_table(),
        };
        let table = last?.checked_sub(if self.version == Version::V1_0 { 0 } else { 1 })?;
        Some(table).filter(|table| *table > self.first_table())
    }

    /// Whether what leaves by a port is counted here: it is one of these, and on this switch.
    pub(crate) fn counts_sent(&self, network: &Network, number: u32) -> bool {
        match self.version {
            Version::V1_0 => crate::v10::egress::counts(network, number),
            _ => self.egress_table().is_some() && is_here(network, number),
        }
    }

    /// Where packets are sent for a virtual port that is at `port` of the switch.
    pub(crate) fn to_port(&self, network: &Network, number: u32, port: PortNo) -> Target {
        self.to(network, number, in_16_bits(number), port)
    }

    /// The same for those that came by it.
    pub(crate) fn back_to_port(&self, network: &Network, number: u32, port: PortNo) -> Target {
        self.to(network, number, Some(BACK), port)
    }

    fn to(&self, network: &Network, number: u32, name: Option<u16>, port: PortNo) -> Target {
        match (self.egress_table(), name) {
            (Some(table), Some(name)) if is_here(network, number) => Target::Table(table, name),
            _ => Target::Port(port),
        }
    }

    /// What the table has to hold for a tenant.
    pub(crate) fn add_egress(&self, id: TenantId, network: &Network, wanted: &mut Vec<Own>) {
        let Some(table) = self.egress_table() else { return };
        // Whatever is configured of ports: nothing is sent here for one that is closed.
        let network = network.open().unwrap_or(network);
        for number in network.shared_edges().filter(|number| is_here(network, *number)) {
            add_port(table, id, network, number, wanted);
        }
    }

    /// Appends what says to the table of a packet out of a controller's hands that it came by this port, or by none.
    pub(crate) fn enter_egress(
        &self,
        id: TenantId,
        network: &Network,
        came: Option<u32>,
        out: &mut Vec<u8>,
    ) {
        if !network.shared_edges().any(|number| self.counts_sent(network, number)) {
            return;
        }
        // It bears no link's tag, so by which link does not matter, unless it has to go back that way.
        let matters = |number: &u32| {
            !network.is_tagged(*number) || network.entrances_beside(*number).next().is_some()
        };
        let metadata = came.filter(matters).map_or(metadata_of(id), |came| metadata_at(id, came));
        super::network::set(OxmField::METADATA, metadata.into(), out);
    }
}

fn add_port(table: u8, id: TenantId, network: &Network, number: u32, wanted: &mut Vec<Own>) {
    let (Some(way), Some(name)) = (network.way_back(number), in_16_bits(number)) else { return };
    let counted = Counted::new(id, number, Direction::Sent);
    let mut add = |name: u16, came: Option<u32>, priority, to: Option<PortNo>| {
        let (metadata, mask) = match came {
            Some(came) => (metadata_at(id, came), METADATA_PORT),
            None => (metadata_of(id), METADATA_TENANT),
        };
        let match_ = at_port(crate::network::from_16_bits(name)).with_masked(
            Field::Metadata,
            metadata.into(),
            mask.into(),
        );
        let mut actions = Vec::new();
        if let Some(port) = to {
            let mut list = Vec::new();
            Target::Port(port).write(&mut list);
            Instruction::ApplyActions(List::parse(&list).unwrap_or_default()).write(&mut actions);
        }
        let counted = counted.filter(|_| to.is_some());
        wanted.push(Own { table, match_, priority, actions, counted });
    };
    add(name, None, HERE, Some(PortNo(way.port)));
    add(name, Some(number), CAME, None);
    add(BACK, Some(number), CAME, Some(PortNo::IN_PORT));
    for (&other, port) in network.ports.iter().filter(|(other, _)| **other != number) {
        let to = Some(PortNo(way.port));
        match &port.kind {
            PortKind::Edge { port, .. } if port.get() == way.port => {
                add(name, Some(other), CAME, Some(PortNo::IN_PORT));
            }
            // No link ends at an edge.
            PortKind::Link { .. } => add(name, Some(other), TAGGED, to),
            PortKind::Edge { .. } | PortKind::Remote { .. } => {}
        }
    }
}

/// Whether a shared edge port is at this switch.
fn is_here(network: &Network, number: u32) -> bool {
    network.ports.get(&number).is_some_and(is_entry) && network.is_shared_edge(number)
}

/// Whether an entry is of this table, and not of the [last](super::delivery), where ports are named in the metadata.
pub(crate) fn has(own: &Own) -> bool {
    own.table > 0 && own.match_.get(Field::Metadata).1 & u128::from(METADATA_OWN) == 0
}

/// Whether packets do not leave if the switch does not have an entry of this table; they may only be miscounted.
pub(crate) fn is_needed(own: &Own) -> bool {
    let mut back = Vec::new();
    Target::Port(PortNo::IN_PORT).write(&mut back);
    own.priority == HERE || own.actions.ends_with(&back)
}
