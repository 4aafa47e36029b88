//! Entries of later tables whose action sets send by shared edge ports, and those that leave a destination in the set for them.
//!
//! By a shared edge port leaves what is for one of the tenant's hosts. A set that is carried out behind a later table may hold
//! what tables before have left, so also another destination than that of the packet, of which the table knows nothing. In most
//! tables none is left: few controllers write addresses in a set and go on. So either kind of entry may be there, whichever
//! comes first, but not both where they meet.
//!
//! ```text
//!   table   the tenant writes                  then
//!   0       write output:1, goto 1             leaves no destination
//!   1       write output:7                     presumes that none is left: it sends to whom packets of the table are for
//!   0       write mod_dl_dst, goto 1           is refused now; also any other entry that leaves one to table 1
//!   0       write mod_dl_dst, goto 2           leaves it to those from table 2 on, in which nothing presumes
//! ```
//! An entry that writes a destination itself, or clears the set, presumes nothing. A change that is on its way may be taken
//! back. An entry that would not stand beside what then comes back [waits](crate::switch::Switch::postpone) until it is known.

use super::exits::needs_destination;
use super::group_in_set::Written;
use crate::flows::Flow;
use crate::ids::TenantIndex;
use crate::network::Network;
use crate::store::Kind;
use crate::switch::Switch;
use openflow::error::v13 as code;
use openflow::v13::{Action, FlowMod, Instruction};
use openflow::{ErrorCode, List};

/// From which table on packets may have in their sets a destination that an entry writes.
pub(crate) fn destination_left_from(instructions: &[u8]) -> Option<u8> {
    let Written { to, next, .. } = Written::by(List::parse(instructions).ok()?);
    next.filter(|_| to.is_some())
}

impl Switch {
    /// Whether an entry can stand only if no destination is left in the set, and none is.
    pub(super) fn presumes(
        &self,
        tenant: TenantIndex,
        network: &Network,
        flow: &Flow,
        instructions: List<'_, Instruction<'_>>,
    ) -> bool {
        let flows = &self.tenants[tenant.0 as usize].flows;
        self.has_to_presume(tenant, network, flow.table, instructions)
            && !flows.leave_a_destination_to(flow.table)
    }

    fn has_to_presume(
        &self,
        tenant: TenantIndex,
        network: &Network,
        table: u8,
        instructions: List<'_, Instruction<'_>>,
    ) -> bool {
        let Written { sent, to, cleared, next, .. } = Written::by(instructions);
        if table == 0 || cleared || to.is_some() || next.is_some() {
            return false;
        }
        match sent {
            Some(Action::Output { port, .. }) => needs_destination(network, port),
            Some(Action::Group(number)) => {
                let known = self.numbers(tenant, Kind::Group).get(number);
                known.is_some_and(|known| known.is_apart_by_destination())
            }
            _ => false,
        }
    }

    /// Whether an entry may leave this in the set: no other presumes that there is no destination.
    pub(crate) fn check_left_destination(
        &self,
        tenant: TenantIndex,
        flow: &Flow,
    ) -> Result<(), ErrorCode> {
        let flows = &self.tenants[tenant.0 as usize].flows;
        match destination_left_from(&flow.actions) {
            Some(table) if flows.presume_from(table) => Err(code::FLOW_MOD_FAILED_EPERM),
            _ => Ok(()),
        }
    }

    /// Whether an entry is asked for that could not stand beside one that a change on its way may bring back.
    pub(crate) fn waits_for_destinations(
        &self,
        tenant: TenantIndex,
        flow_mod: &FlowMod<'_>,
    ) -> bool {
        let Some(network) = self.tenants[tenant.0 as usize].network.as_deref() else {
            return false;
        };
        let changes = self.operations.values().filter(|operation| operation.tenant == tenant);
        let mut before = changes.flat_map(|operation| operation.flows_before());
        let instructions = flow_mod.instructions;
        if let Some(from) = destination_left_from(instructions.as_bytes()) {
            return before.any(|flow| flow.table >= from && flow.presumes());
        }
        let table = flow_mod.table_id;
        let leaves = |flow: &Flow| destination_left_from(&flow.actions);
        self.has_to_presume(tenant, network, table, instructions)
            && before.any(|flow| leaves(flow).is_some_and(|from| from <= table))
    }
}

#[cfg(test)]
mod tests {
    use super::super::set;
    use super::*;
    use alloc::vec::Vec;
    use openflow::ListBuf;
    use openflow::v13::{OxmField, PortNo};

    fn left(instructions: &[Instruction<'_>]) -> Option<u8> {
        let mut wire = Vec::new();
        instructions.iter().for_each(|it| it.write(&mut wire));
        destination_left_from(&wire)
    }

    #[test]
    fn what_is_written_and_not_carried_out_is_left() {
        let output = ListBuf::from([Action::Output { port: PortNo(1), max_len: 0 }]);
        let mut address = Vec::new();
        set(OxmField::ETH_DST, 0x0200_0000_1001, &mut address);
        let address = List::parse(&address).unwrap();
        let written = Instruction::WriteActions(address);
        let next = Instruction::GotoTable(3);
        assert_eq!(left(&[written, next]), Some(3));
        assert_eq!(left(&[Instruction::ClearActions, written, next]), Some(3));
        assert_eq!(left(&[Instruction::WriteActions(output.as_list()), next]), None);
        assert_eq!(left(&[Instruction::WriteActions(List::EMPTY), next]), None);
        assert_eq!(left(&[Instruction::ApplyActions(address), next]), None);
        assert_eq!(left(&[written]), None);
    }
}
