//! Which exits an entry needs.
//!
//! In an action set that may be merged an exit stands in place of the output that counts. In a list one stands in place of an
//! output to a shared edge port, where packets are for many and do not all have one address: their copies get each host's
//! address in turn, and only a group gives the list its packet back as it was.
//!
//! ```text
//!   the tenant writes                     exits                (port 1 is a whole edge port, 7 and 8 are shared ones)
//!   write output:1, goto 1                1
//!   write output:7, in a later table      7
//!   write output:7, goto 1                7
//!   flood, goto 1                         7, 8
//!   output:7                              –                    it is deferred
//!   in_port                               IN_PORT
//! ```
//! It depends on the network, which ports are shared. What [may need](ByExit) exits depends on the entry alone.

use super::deferred::Deferred;
use super::exits::{Output, output, ports_of};
use super::group_in_set::Written;
use super::whole_set;
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

/// What an entry may send by exits, in whichever network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ByExit {
    /// The output of a set.
    Set(Output),
    /// An output of a list that does not say for whom packets are.
    Listed(PortNo),
}

impl ByExit {
    /// The outputs in whose place there are exits.
    pub(crate) fn outputs(self, network: &Network) -> Vec<Output> {
        let is_shared = |number: &u32| network.is_shared_edge(*number);
        match self {
            ByExit::Set(output) => Vec::from([output]),
            ByExit::Listed(PortNo::IN_PORT) => {
                let is_there = ports_of(network, PortNo::IN_PORT).any(|it| is_shared(&it));
                is_there.then_some((PortNo::IN_PORT, 0)).into_iter().collect()
            }
            ByExit::Listed(port) => ports_of(network, port)
                .filter(is_shared)
                .map(|number| (PortNo(number), 0))
                .collect(),
        }
    }
}

/// What an entry may send by exits.
pub(crate) fn by_exits(table: u8, match_: &Match, instructions: &[u8]) -> BTreeSet<ByExit> {
    let mut by_exits = BTreeSet::new();
    let Ok(instructions) = List::<Instruction<'_>>::parse(instructions) else { return by_exits };
    let whole = whole_set::as_list(table == 0, instructions);
    let sent = Written::by(instructions).sent;
    if let (Some(Action::Output { port, max_len }), None) = (sent, &whole) {
        by_exits.insert(ByExit::Set(output(port, max_len)));
    }
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
            by_exits.insert(ByExit::Listed(port));
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
        let is_listed = |it: &ByExit| matches!(it, ByExit::Listed(_));
        let is_deferred = || self.is_deferred(network, (table, match_), instructions);
        let is_deferred = by_exits.iter().any(is_listed) && is_deferred();
        let needed = by_exits.into_iter().filter(|it| !(is_deferred && is_listed(it)));
        needed.flat_map(|it| it.outputs(network)).collect()
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
