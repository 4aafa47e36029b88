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
//! may find in the set what earlier tables have left cannot defer either, for behind the last table that set is carried out
//! on a packet that may bear one host's address. So no tenant sees the metadata afterwards, and they may name the ports.

use super::Packets;
use super::exits::{is_for_several, ports_of};
use super::group_in_set::Written;
use crate::network::{Entered, Network};
use crate::v13::delivery::Name;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use openflow::error::v13 as code;
use openflow::v13::{Action, Instruction, OxmField, PortNo};
use openflow::{ErrorCode, List};

/// The ports to which an entry's outputs are deferred.
pub(super) struct Deferred {
    /// Whether it can defer any; else they are left where they are, and refused there.
    can: bool,
    ports: BTreeSet<u32>,
    delivery: u8,
}

/// What is deferred, and to which table.
pub(super) struct Named {
    name: Name,
    table: u8,
}

impl Deferred {
    /// Nothing yet, of an entry of `table`; `is_list` says whether its set is said as a list, `delivery` is the switch's
    /// last table, if outputs may be deferred to that.
    pub(super) fn by(
        table: u8,
        instructions: List<'_, Instruction<'_>>,
        is_list: bool,
        delivery: Option<u8>,
    ) -> Deferred {
        let Written { cleared, goes_on, .. } = Written::by(instructions);
        let is_set = |it: Instruction<'_>| matches!(it, Instruction::WriteActions(_));
        let has_set = !is_list && instructions.iter().any(is_set);
        let can = delivery.is_some() && (table == 0 || cleared) && !goes_on && !has_set;
        Deferred { can, ports: BTreeSet::new(), delivery: delivery.unwrap_or_default() }
    }

    /// Whether outputs to shared ports are deferred that do not say for which host packets are.
    pub(super) fn can(&self) -> bool {
        self.can
    }

    /// What of a list is done at once.
    pub(super) fn taken_from(
        &mut self,
        network: &Network,
        packets: &Packets,
        list: List<'_, Action<'_>>,
    ) -> Result<Vec<u8>, ErrorCode> {
        if !self.can {
            return Ok(list.as_bytes().to_vec());
        }
        let &Packets { entered, mut dl_dst, .. } = packets;
        let mut at_once = Vec::new();
        for action in list {
            match action {
                Action::Output { port, .. } if dl_dst.is_none() => {
                    self.output(network, entered, (port, action), &mut at_once)?;
                    continue;
                }
                Action::Output { .. } | Action::Group(_) => {}
                // The packet would leave changed, or by another queue.
                _ if !self.ports.is_empty() => return Err(code::BAD_ACTION_BAD_OUT_PORT),
                Action::SetField(oxm) if oxm.basic() == Some(OxmField::ETH_DST) => {
                    dl_dst = oxm.number();
                }
                _ => {}
            }
            action.write(&mut at_once);
        }
        Ok(at_once)
    }

    /// What of an OUTPUT is done at once.
    fn output(
        &mut self,
        network: &Network,
        entered: Entered,
        (port, action): (PortNo, Action<'_>),
        at_once: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        if !is_for_several(port) {
            if !self.defer(network, entered, port.0)? {
                action.write(at_once);
            }
            return Ok(());
        }
        // The shared ones among its ports are left out there ([`Packets::defers`]).
        for number in ports_of(network, port) {
            self.defer(network, entered, number)?;
        }
        action.write(at_once);
        Ok(())
    }

    /// Whether an output to a port is not done at once: then it is deferred, if any packet leaves by it.
    fn defer(
        &mut self,
        network: &Network,
        entered: Entered,
        number: u32,
    ) -> Result<bool, ErrorCode> {
        if !network.is_shared_edge(number) {
            return Ok(false);
        }
        let leaves = entered != Entered::Port(number) && network.way_back(number).is_some();
        match leaves && !self.ports.insert(number) {
            // It would leave twice.
            true => Err(code::BAD_ACTION_BAD_OUT_PORT),
            false => Ok(true),
        }
    }

    /// What has been deferred, if anything: one port, or all.
    pub(super) fn name(
        &self,
        network: &Network,
        entered: Entered,
    ) -> Result<Option<Named>, ErrorCode> {
        let named = |name| Ok(Some(Named { name, table: self.delivery }));
        let Some(&first) = self.ports.first() else { return Ok(None) };
        if self.ports.len() == 1 {
            return named(Name::Port(first));
        }
        // A packet is not sent back anyway.
        let mut all = Name::All.ports(network);
        all.retain(|number| entered != Entered::Port(*number));
        match self.ports.iter().copied().eq(all) {
            true => named(Name::All),
            false => Err(code::BAD_ACTION_BAD_OUT_PORT),
        }
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
