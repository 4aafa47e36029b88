//! Which exits an entry needs.
//!
//! In a list one stands in place of an output to a shared edge port, where packets are for many and do not all have one address:
//! their copies get each host's address in turn, and only a group gives the list its packet back as it was.
//!
//! ```text
//!   the tenant writes                     exits                (port 1 is a whole edge port, 7 and 8 are shared ones)
//!   flood, goto 1                         7, 8
//!   output:7                              –                    it is deferred
//!   in_port                               IN_PORT
//! ```
//! It depends on the network, which ports are shared. What [may need](by_exits) exits depends on the entry alone.

use super::deferred::Deferred;
use super::exits::{Output, ports_of};
use super::whole_set::{self, Written};
use crate::flows::Flow;
use crate::ids::TenantIndex;
use crate::network::{Entered, MULTICAST, Network};
use crate::switch::Switch;
use crate::v13::looks::Destination;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use flowspace::{Field, Match};
use openflow::v13::{Action, Instruction, PortNo};
use openflow::{List, Version};

/// The outputs in whose place there are exits, for one of a list that does not say for whom packets are.
pub(crate) fn outputs(network: &Network, listed: PortNo) -> Vec<Output> {
    let is_shared = |number: &u32| network.is_shared_edge(*number);
    match listed {
        PortNo::IN_PORT => {
            let is_there = ports_of(network, PortNo::IN_PORT).any(|it| is_shared(&it));
            is_there.then_some(PortNo::IN_PORT).into_iter().collect()
        }
        port => ports_of(network, port).filter(is_shared).map(PortNo).collect(),
    }
}

/// The outputs of an entry's lists that may send by exits, in whichever network: they do not say for whom packets are.
pub(crate) fn by_exits(table: u8, match_: &Match, instructions: &[u8]) -> BTreeSet<PortNo> {
    let mut by_exits = BTreeSet::new();
    let Ok(instructions) = List::<Instruction<'_>>::parse(instructions) else { return by_exits };
    let whole = whole_set::as_list(table == 0, instructions);
    let many = Match::ANY.with_masked(Field::DlDst, MULTICAST, MULTICAST);
    if !match_.overlaps(&many) {
        return by_exits;
    }
    let mut destination = Destination::of_match(match_);
    for action in lists(whole.as_deref(), instructions).into_iter().flatten() {
        destination.follow(&action);
        if let Action::Output { port, .. } = action
            && port != PortNo::CONTROLLER
            && !destination.is_told()
        {
            by_exits.insert(port);
        }
    }
    by_exits
}

/// What an entry applies: with its set, if that is `whole`.
pub(super) fn lists<'a>(
    whole: Option<&'a [u8]>,
    instructions: List<'a, Instruction<'a>>,
) -> Vec<List<'a, Action<'a>>> {
    match whole {
        Some(whole) => Vec::from([List::parse(whole).unwrap_or_default()]),
        None => {
            let lists = instructions.iter().filter_map(|instruction| match instruction {
                Instruction::ApplyActions(list) => Some(list),
                _ => None,
            });
            lists.collect()
        }
    }
}

impl Switch {
    /// The outputs for which there have to be exits so that an entry can stand.
    pub(crate) fn exits_for(
        &self,
        network: &Network,
        (table, match_): (u8, &Match),
        instructions: &[u8],
    ) -> BTreeSet<Output> {
        // It has to be able to stand with all ports in use.
        let network = network.open().unwrap_or(network);
        let by_exits = by_exits(table, match_, instructions);
        if by_exits.is_empty() || self.is_deferred(network, (table, match_), instructions) {
            return BTreeSet::new();
        }
        by_exits.into_iter().flat_map(|port| outputs(network, port)).collect()
    }

    /// Whether an entry can defer what it sends by shared ports. If it can for all ports of entry, it can for each.
    fn is_deferred(
        &self,
        network: &Network,
        (table, match_): (u8, &Match),
        instructions: &[u8],
    ) -> bool {
        let Ok(instructions) = List::<Instruction<'_>>::parse(instructions) else { return false };
        let whole = whole_set::as_list(table == 0, instructions);
        let lists = lists(whole.as_deref(), instructions);
        let has_set = whole.is_none() && Written::by(instructions).is_set;
        let entered = match match_.exact_value(Field::InPort) {
            Some(port) => Entered::Port(port as u32),
            None => Entered::Anywhere,
        };
        let packets = (entered, Destination::of_match(match_));
        let sets = (table == 0, has_set);
        let delivery = self.delivery_table();
        Deferred::of(network, packets, instructions, &lists, sets, delivery).is_some()
    }

    /// Whether groups, exits or meters decide what stands on the switch for an entry.
    pub(crate) fn uses_numbers(&self, tenant: TenantIndex, flow: &Flow) -> bool {
        let has_exits = || {
            let (network, at) =
                (&self.tenants[tenant.0 as usize].network, (flow.table, &flow.match_));
            let network = network.as_deref();
            network.is_some_and(|it| !self.exits_for(it, at, &flow.actions).is_empty())
        };
        self.version != Version::V1_0 && (flow.names_numbers() || has_exits())
    }
}
