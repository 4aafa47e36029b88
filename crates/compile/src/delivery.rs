//! Delivery by the last table: outputs to shared edge ports by entries that do not name a destination host (1.3).
//!
//! ```text
//!   the tenant writes             on the switch (port 1 is a whole edge port, 7 and 8 are shared ones)
//!   output:7                      write metadata "7", GOTO the last table
//!   flood                         OUTPUT 1, write metadata "all", GOTO the last table
//!   output:7, mod_dl_dst          refused: the packet would leave changed
//!   output:7, goto 1              refused: there is one GOTO_TABLE
//! ```
//! The last table acts after all other tables. So an entry can leave an output to the last table only if nothing after
//! the output would show in the packet: no change of the packet, no other table, and no action set except a set that is
//! [written as a list](crate::action_set). The entry also cannot leave an output to the last table if the set may have
//! actions of earlier tables: the switch would carry out that set on a packet that may have one host's address. No
//! tenant sees the metadata after the last table, so the metadata may name the ports.

use crate::action_set::Program;
use crate::class::PacketClass;
use crate::metadata::{self, from_16_bits, to_16_bits};
use crate::network::Network;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use openflow::List;
use openflow::v13::{self, Instruction, PortNo};

/// The value for all shared ports in the metadata: higher than each port number.
const ALL: u64 = 1 << 16;

/// The shared edge ports by which packets leave from the last table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selector {
    /// This port.
    Port(u32),
    /// All shared edge ports.
    All,
}

impl Selector {
    /// The selector as bits of the metadata, with the mask.
    pub fn to_metadata(self) -> (u64, u64) {
        let value = match self {
            Selector::Port(number) => to_16_bits(number).map_or(0, u64::from),
            Selector::All => ALL,
        };
        (value, metadata::OWN)
    }

    /// The selector that these metadata have: the inverse of `to_metadata`.
    pub fn from_metadata(metadata: u64) -> Selector {
        match metadata & metadata::OWN {
            ALL => Selector::All,
            number => Selector::Port(from_16_bits(number as u16)),
        }
    }

    /// The selected ports by which packets can leave.
    pub fn ports(self, network: &Network) -> Vec<u32> {
        let is_meant = |number: &u32| self == Selector::All || self == Selector::Port(*number);
        let is_open = |number: &u32| network.egress_back(*number).is_some();
        network.shared_edges().filter(is_meant).filter(is_open).collect()
    }
}

/// An entry whose outputs to shared ports, if any, are left to the last table.
pub struct Delivery {
    /// The actions that the entry's lists carry out at once.
    pub at_once: Vec<Vec<u8>>,
    /// The part of the last table, and the number of that table.
    pub later: Option<Later>,
}

/// The part of the last table.
pub struct Later {
    selector: Selector,
    table: u8,
}

impl Delivery {
    /// `None` if the entry has an output that cannot be left to the last table. `lists`: the applied lists, with the
    /// set if the set is written as a list. `is_empty`: the set is empty before the entry. `leaves_set`: the set is not
    /// empty after the entry. `last_table`: the switch's last table, if this table is Weir's.
    pub fn of(
        network: &Network,
        class: &PacketClass,
        program: &Program<'_>,
        lists: &[List<'_, v13::Action<'_>>],
        is_empty: bool,
        leaves_set: bool,
        last_table: Option<u8>,
    ) -> Option<Delivery> {
        let can = (is_empty || program.clears) && !program.goes_on && !leaves_set;
        let mut ports = Ports { network, class: class.clone(), selected: BTreeSet::new() };
        let mut at_once = Vec::new();
        for list in lists {
            at_once.push(ports.take_from(*list)?);
        }
        if ports.selected.is_empty() {
            return Some(Delivery { at_once, later: None });
        }
        let (selector, table) = (ports.selector()?, last_table.filter(|_| can)?);
        Some(Delivery { at_once, later: Some(Later { selector, table }) })
    }
}

/// Collects the ports whose outputs are left to the last table.
struct Ports<'a> {
    network: &'a Network,
    class: PacketClass,
    selected: BTreeSet<u32>,
}

impl Ports<'_> {
    /// The actions of a list that are carried out at once.
    fn take_from(&mut self, list: List<'_, v13::Action<'_>>) -> Option<Vec<u8>> {
        let mut at_once = Vec::new();
        for action in list {
            match action {
                v13::Action::Output { port, .. } if self.class.destination.is_none() => {
                    self.output(port, action, &mut at_once)?;
                    continue;
                }
                v13::Action::Output { .. } | v13::Action::Group(_) => {}
                // The packet would leave changed, or by another queue.
                _ if !self.selected.is_empty() => return None,
                _ => self.class.follow(&action),
            }
            action.write(&mut at_once);
        }
        Some(at_once)
    }

    /// The part of an OUTPUT that is carried out at once.
    fn output(
        &mut self,
        port: PortNo,
        action: v13::Action<'_>,
        at_once: &mut Vec<u8>,
    ) -> Option<()> {
        match port {
            PortNo::FLOOD | PortNo::ALL => {
                // The list leaves the shared ones among these out: see `ListWriter::delivering_later`.
                for number in self.network.ports().keys() {
                    self.select(*number)?;
                }
            }
            // Each host behind the ingress port would have to get the packet, except the host that sent the packet.
            PortNo::IN_PORT if self.may_have_come_by_shared_port() => return None,
            PortNo(number) if self.select(number)? => return Some(()),
            _ => {}
        }
        action.write(at_once);
        Some(())
    }

    fn may_have_come_by_shared_port(&self) -> bool {
        match self.class.ingress.port() {
            Some(number) => self.network.is_shared_edge(number),
            None => self.network.ingress_ports().any(|number| self.network.is_shared_edge(number)),
        }
    }

    /// Whether an output to a port is left to the last table (if packets can leave by the port at all). `None`: packets
    /// would leave twice.
    fn select(&mut self, number: u32) -> Option<bool> {
        if !self.network.is_shared_edge(number) {
            return Some(false);
        }
        let leaves =
            self.class.ingress.port() != Some(number) && self.network.egress_back(number).is_some();
        (!leaves || self.selected.insert(number)).then_some(true)
    }

    /// The selector for all collected ports: one port, or all shared ports.
    fn selector(&self) -> Option<Selector> {
        if let (Some(&first), 1) = (self.selected.first(), self.selected.len()) {
            return Some(Selector::Port(first));
        }
        // The ingress port makes no difference: the switch does not send a packet back.
        let mut all = Selector::All.ports(self.network);
        all.retain(|number| self.class.ingress.port() != Some(*number));
        self.selected.iter().copied().eq(all).then_some(Selector::All)
    }
}

impl Later {
    /// The instructions of the entry on the switch, without the tenant's own metadata: no table of the tenant follows.
    pub fn appended_to(&self, instructions: List<'_, Instruction<'_>>) -> Vec<u8> {
        let mut out = Vec::new();
        for instruction in instructions {
            match instruction {
                Instruction::WriteMetadata { .. } => {}
                // A switch may not report an empty list.
                Instruction::ApplyActions(list) if list.is_empty() => {}
                other => other.write(&mut out),
            }
        }
        let (metadata, mask) = self.selector.to_metadata();
        Instruction::WriteMetadata { metadata, mask }.write(&mut out);
        Instruction::GotoTable(self.table).write(&mut out);
        out
    }
}
