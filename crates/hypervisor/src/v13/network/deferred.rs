//! Outputs to shared edge ports by entries that do not say for which host packets are: they are *deferred* to the
//! hypervisor's [table behind all others](crate::v13::delivery), which knows the tenant's hosts.
//!
//! ```text
//!   the tenant writes             on the switch (port 1 is a whole edge port, 7 and 8 are shared ones)
//!   output:7                      write metadata "7", GOTO the last table
//!   flood                         OUTPUT 1, write metadata "all", GOTO the last table
//!   output:7, mod_dl_dst          cannot be: the packet would leave changed
//!   output:7, goto 1              cannot be: there is one GOTO_TABLE
//! ```
//! What is deferred is done when all else is, so it can be only where nothing comes after that would be seen of it: no
//! change of the packet, no other table, and no action set but such as is [said as a list](super::whole_set). An entry that
//! may find in the set what earlier tables have left cannot defer either, for behind the last table that set is carried out on
//! a packet that may bear one host's address. So no tenant sees the metadata afterwards, and they may name the ports.
//!
//! An entry that cannot defer is refused.

use super::exits::{is_for_several, ports_of};
use super::follow;
use super::whole_set::Written;
use crate::network::{Entered, Network};
use crate::v13::delivery::Name;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use openflow::List;
use openflow::v13::{Action, Instruction, PortNo};

/// What becomes of an entry that defers all outputs that it has to; it may have none.
pub(super) struct Deferred {
    /// What its lists do at once.
    pub at_once: Vec<Vec<u8>>,
    pub named: Option<Named>,
}

/// What is deferred, and to which table.
pub(super) struct Named {
    name: Name,
    table: u8,
}

impl Deferred {
    /// `None` if there is one that the entry cannot defer. `lists` are what it applies, also of its set; `is_empty` says that
    /// nothing is in the set when it gets its packets, `has_set` that it leaves something there; `delivery` is the switch's last
    /// table, if outputs may be deferred to that.
    pub(super) fn of(
        network: &Network,
        packets: (Entered, Option<u128>),
        instructions: List<'_, Instruction<'_>>,
        lists: &[List<'_, Action<'_>>],
        (is_empty, has_set): (bool, bool),
        delivery: Option<u8>,
    ) -> Option<Deferred> {
        let Written { cleared, goes_on, .. } = Written::by(instructions);
        let can = (is_empty || cleared) && !goes_on && !has_set;
        let (entered, mut destination) = packets;
        let mut ports = Ports { network, entered, named: BTreeSet::new() };
        let mut at_once = Vec::new();
        for list in lists {
            at_once.push(ports.taken_from(&mut destination, *list)?);
        }
        if ports.named.is_empty() {
            return Some(Deferred { at_once, named: None });
        }
        let (name, table) = (ports.name()?, delivery.filter(|_| can)?);
        Some(Deferred { at_once, named: Some(Named { name, table }) })
    }
}

/// The ports to which outputs are deferred, as lists go on.
struct Ports<'a> {
    network: &'a Network,
    entered: Entered,
    named: BTreeSet<u32>,
}

impl Ports<'_> {
    /// What of a list is done at once.
    fn taken_from(
        &mut self,
        destination: &mut Option<u128>,
        list: List<'_, Action<'_>>,
    ) -> Option<Vec<u8>> {
        let mut at_once = Vec::new();
        for action in list {
            match action {
                Action::Output { port, .. } if destination.is_none() => {
                    self.output(port, action, &mut at_once)?;
                    continue;
                }
                Action::Output { .. } | Action::Group(_) => {}
                // The packet would leave changed, or by another queue.
                _ if !self.named.is_empty() => return None,
                _ => follow(destination, &action),
            }
            action.write(&mut at_once);
        }
        Some(at_once)
    }

    /// What of an OUTPUT is done at once.
    fn output(&mut self, port: PortNo, action: Action<'_>, at_once: &mut Vec<u8>) -> Option<()> {
        match port {
            port if is_for_several(port) => {
                // The shared ones among its ports are left out there ([`Packets::defers`](super::Packets)).
                for number in ports_of(self.network, port) {
                    self.defer(number)?;
                }
            }
            // Each host behind that port would have it, but for the one from which it came.
            PortNo::IN_PORT if self.may_have_come_by_shared_port() => return None,
            PortNo(number) if self.defer(number)? => return Some(()),
            _ => {}
        }
        action.write(at_once);
        Some(())
    }

    fn may_have_come_by_shared_port(&self) -> bool {
        match self.entered.port() {
            Some(number) => self.network.is_shared_edge(number),
            None => self.network.entries().any(|number| self.network.is_shared_edge(number)),
        }
    }

    /// Whether an output to a port is not done at once: then it is deferred, if any packet leaves by it. `None`: it would leave
    /// twice.
    fn defer(&mut self, number: u32) -> Option<bool> {
        if !self.network.is_shared_edge(number) {
            return Some(false);
        }
        let leaves = self.entered.port() != Some(number) && self.network.way_back(number).is_some();
        (!leaves || self.named.insert(number)).then_some(true)
    }

    /// How all of them are named: as one, or all that there are.
    fn name(&self) -> Option<Name> {
        if let (Some(&first), 1) = (self.named.first(), self.named.len()) {
            return Some(Name::Port(first));
        }
        // A packet is not sent back anyway.
        let mut all = Name::All.ports(self.network);
        all.retain(|number| self.entered.port() != Some(*number));
        self.named.iter().copied().eq(all).then_some(Name::All)
    }
}

impl Named {
    /// The instructions of such an entry. What the tenant itself writes to the metadata would be for tables that do not come.
    pub(super) fn written_with(&self, instructions: List<'_, Instruction<'_>>) -> Vec<u8> {
        let mut out = Vec::new();
        for instruction in instructions {
            match instruction {
                Instruction::WriteMetadata { .. } => {}
                // A switch may not tell of a list of which nothing is left.
                Instruction::ApplyActions(list) if list.is_empty() => {}
                other => other.write(&mut out),
            }
        }
        let (metadata, mask) = self.name.to_metadata();
        Instruction::WriteMetadata { metadata, mask }.write(&mut out);
        Instruction::GotoTable(self.table).write(&mut out);
        out
    }
}
