//! Entries whose action sets send by shared edge ports, and those that give packets another destination.
//!
//! By a shared edge port leaves what is for one of the tenant's hosts. A set is carried out behind the last table: it may hold
//! what tables before have left in it, so also another destination than that of the packet, and later tables may change that of
//! either. Of all this the table that writes the set knows nothing. Few controllers do so. So either kind of entry may be there,
//! whichever comes first, but not both where they meet.
//!
//! ```text
//!   table   the tenant writes                  then
//!   0       write output:1, goto 1             says nothing of destinations
//!   1       write output:7                     presumes that none is left: it sends to whom packets of the table are for
//!   0       write mod_dl_dst, goto 1           is refused now; also any other entry that leaves one to table 1
//!   0       write mod_dl_dst, goto 2           leaves it to those from table 2 on, in which nothing presumes
//!   0       write output:7, goto 3             presumes that it stays as it is from table 3 on
//!   3       mod_dl_dst, output:1               is refused now; also any other entry of table 3 and behind that writes one
//!   2       mod_dl_dst, output:1               is on none of its packets' way
//! ```
//! An entry that writes a destination itself, or clears the set, does not presume that none is left; one that goes to no other
//! table does not presume that none changes it; one that clears the set may write any. A change that is on its way may be taken
//! back. An entry that would not stand beside what then comes back [waits](crate::switch::Switch::postpone) until it is known.

use super::exits::needs_destination;
use super::group_in_set::Written;
use super::needed;
use crate::flows::{Flow, Presumes};
use crate::ids::TenantIndex;
use crate::network::Network;
use crate::store::Kind;
use crate::switch::Switch;
use openflow::error::v13 as code;
use openflow::v13::{Action, FlowMod, Instruction, OxmField};
use openflow::{ErrorCode, List};

/// What an entry does to the destinations of packets that other entries may have in their sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gives {
    /// From which table on packets may have in their sets a destination that it writes.
    pub left_from: Option<u8>,
    /// Whether they may have another than before.
    pub changes: bool,
}

/// The table to which packets go on.
pub(crate) fn next_table(instructions: &[u8]) -> Option<u8> {
    Written::by(List::parse(instructions).ok()?).next
}

impl Gives {
    pub(crate) fn by(instructions: &[u8]) -> Gives {
        let Ok(instructions) = List::parse(instructions) else { return Gives::default() };
        let Written { to, next, cleared, .. } = Written::by(instructions);
        let applied = || needed::lists(None, instructions).into_iter().flatten();
        let changes = !cleared && (to.is_some() || applied().any(is_to_destination));
        Gives { left_from: next.filter(|_| to.is_some()), changes }
    }
}

fn is_to_destination(action: Action<'_>) -> bool {
    matches!(action, Action::SetField(oxm) if oxm.basic() == Some(OxmField::ETH_DST))
}

impl Presumes {
    /// Whether an entry of a table that presumes this cannot stand beside one of another that does that.
    fn is_contradicted(self, table: u8, (other, gives): (u8, Gives)) -> bool {
        let is_left = gives.left_from.is_some_and(|from| from <= table);
        let is_changed = self.unchanged_from.is_some_and(|from| gives.changes && from <= other);
        self.none_left && is_left || is_changed
    }
}

impl Switch {
    /// What an entry presumes of others that is so.
    pub(super) fn presumes(
        &self,
        tenant: TenantIndex,
        network: &Network,
        flow: &Flow,
        instructions: List<'_, Instruction<'_>>,
    ) -> Presumes {
        let wanted = self.has_to_presume(tenant, network, flow.table, instructions);
        let destinations = self.tenants[tenant.0 as usize].flows.destinations();
        Presumes {
            none_left: wanted.none_left && !destinations.are_left_to(flow.table),
            unchanged_from: wanted.unchanged_from.filter(|from| !destinations.change_from(*from)),
        }
    }

    fn has_to_presume(
        &self,
        tenant: TenantIndex,
        network: &Network,
        table: u8,
        instructions: List<'_, Instruction<'_>>,
    ) -> Presumes {
        let Written { sent, to, cleared, next, .. } = Written::by(instructions);
        let needs_destination = match sent {
            Some(Action::Output { port, .. }) => needs_destination(network, port),
            Some(Action::Group(number)) => {
                let known = self.numbers(tenant, Kind::Group).get(number);
                known.is_some_and(|known| known.is_apart_by_destination())
            }
            _ => false,
        };
        match needs_destination {
            true => {
                Presumes { none_left: table != 0 && !cleared && to.is_none(), unchanged_from: next }
            }
            false => Presumes::default(),
        }
    }

    /// Whether an entry may do to destinations what it does: no other presumes that none does.
    pub(crate) fn check_presumed(&self, tenant: TenantIndex, flow: &Flow) -> Result<(), ErrorCode> {
        let destinations = self.tenants[tenant.0 as usize].flows.destinations();
        match destinations.let_stand(flow.table, Gives::by(&flow.actions)) {
            true => Ok(()),
            false => Err(code::FLOW_MOD_FAILED_EPERM),
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
        let (table, instructions) = (flow_mod.table_id, flow_mod.instructions);
        let gives = Gives::by(instructions.as_bytes());
        let presumes = self.has_to_presume(tenant, network, table, instructions);
        let before = || {
            let changes = self.operations.values().filter(|operation| operation.tenant == tenant);
            changes.flat_map(|operation| operation.flows_before())
        };
        // Most entries do neither, and there may be many changes on their way.
        gives != Gives::default()
            && before().any(|flow| flow.presumes().is_contradicted(flow.table, (table, gives)))
            || presumes != Presumes::default()
                && before().any(|flow| {
                    presumes.is_contradicted(table, (flow.table, Gives::by(&flow.actions)))
                })
    }
}

#[cfg(test)]
mod tests {
    use super::super::set;
    use super::*;
    use alloc::vec::Vec;
    use openflow::ListBuf;
    use openflow::v13::PortNo;

    #[test]
    fn what_is_written_and_not_carried_out_is_left() {
        let output = ListBuf::from([Action::Output { port: PortNo(1), max_len: 0 }]);
        let output = Instruction::WriteActions(output.as_list());
        let mut address = Vec::new();
        set(OxmField::ETH_DST, 0x0200_0000_1001, &mut address);
        let address = List::parse(&address).unwrap();
        let (written, applied) =
            (Instruction::WriteActions(address), Instruction::ApplyActions(address));
        let (next, clear) = (Instruction::GotoTable(3), Instruction::ClearActions);
        let nothing = Instruction::WriteActions(List::EMPTY);
        for (instructions, left_from, changes) in [
            (&[written, next][..], Some(3), true),
            (&[clear, written, next], Some(3), false),
            (&[output, next], None, false),
            (&[nothing, next], None, false),
            (&[applied, next], None, true),
            (&[applied, output], None, true),
            (&[applied, clear], None, false),
            (&[written], None, true),
            (&[], None, false),
        ] {
            let mut wire = Vec::new();
            instructions.iter().for_each(|it| it.write(&mut wire));
            assert_eq!(Gives::by(&wire), Gives { left_from, changes }, "{instructions:?}");
        }
    }

    #[test]
    fn only_what_is_on_the_way_contradicts() {
        let left = |from| Gives { left_from: Some(from), changes: false };
        let changes = Gives { left_from: None, changes: true };
        let none_left = Presumes { none_left: true, unchanged_from: None };
        let unchanged = Presumes { none_left: false, unchanged_from: Some(3) };
        assert!(none_left.is_contradicted(2, (0, left(2))));
        assert!(!none_left.is_contradicted(2, (0, left(3))));
        assert!(!none_left.is_contradicted(2, (2, changes)));
        assert!(unchanged.is_contradicted(1, (3, changes)));
        assert!(!unchanged.is_contradicted(1, (2, changes)));
        assert!(!unchanged.is_contradicted(1, (0, left(1))));
    }
}
