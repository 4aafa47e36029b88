//! Adds and deletes rules, each for one sender and one receiver ([`crate::Kind::FlowChange`]).
//!
//! The first [`RULES`] messages of a stream add its rules. From then on, each rule in turn is deleted and added again,
//! so that every message changes the table, and the number of rules stays the same. A rule that is added again sends by
//! the other of two ports. If the configuration of a hypervisor has the hosts ([`hosts`]), the hypervisor has to follow
//! as many flows as there are rules. The residual bandwidth of the links at the ports then changes with every message.

use crate::plan::{Setup, Slicing};

/// Rules of one stream.
pub(crate) const RULES: u32 = 500;
/// Hosts that send: in the tenant's network, from its first address on.
const SENDERS: u32 = 25;
/// Hosts that receive: 11.0.0.1 and on.
const RECEIVERS: u32 = RULES / SENDERS;
const ADD: u8 = 0;
const DELETE_STRICT: u8 = 4;

/// The effect of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The rule's source.
    pub(crate) source: [u8; 4],
    /// The rule's destination.
    pub(crate) destination: [u8; 4],
    /// The command of the FLOW_MOD.
    pub(crate) command: u8,
    /// The port by which the rule sends, of the two ports.
    pub(crate) out: usize,
}

/// The effect of message `sequence` of a stream.
pub(crate) fn change(network: [u8; 4], sequence: u32) -> Change {
    let (number, command, out) = match sequence.checked_sub(RULES) {
        None => (sequence, ADD, 0),
        Some(later) => {
            let (round, number) = (later / 2 / RULES, later / 2 % RULES);
            let command = if later % 2 == 0 { DELETE_STRICT } else { ADD };
            (number, command, (round as usize + 1) % 2)
        }
    };
    let (source, destination) = (sender(network, number / RECEIVERS), receiver(number % RECEIVERS));
    Change { source, destination, command, out }
}

/// A tenant's hosts, the last bytes of the hosts' hardware addresses, and whether each host sends.
pub(crate) fn hosts(setup: &Setup, tenant: usize) -> impl Iterator<Item = ([u8; 4], u8, bool)> {
    let (network, _) = Slicing::source_network(tenant, setup.tenants);
    let senders = (0..SENDERS).map(move |number| (sender(network, number), number as u8, true));
    let receivers =
        (0..RECEIVERS).map(|number| (receiver(number), (SENDERS + number) as u8, false));
    senders.chain(receivers)
}

fn sender(network: [u8; 4], number: u32) -> [u8; 4] {
    (u32::from_be_bytes(network) + 1 + number).to_be_bytes()
}

fn receiver(number: u32) -> [u8; 4] {
    (0x0b00_0001 + number).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Topology;
    use std::collections::{BTreeMap, BTreeSet};

    /// Every message changes the table. All rules are between hosts, and at any time at most one rule is missing.
    #[test]
    fn after_all_rules_are_added_each_flow_mod_deletes_or_re_adds_a_rule() {
        let setup = Setup::new(Topology::Direct, 2);
        let ours: BTreeSet<_> = hosts(&setup, 1).map(|(address, ..)| address).collect();
        assert_eq!(ours.len(), (SENDERS + RECEIVERS) as usize);
        let mut table = BTreeSet::new();
        let mut sends_by = BTreeMap::new();
        for sequence in 0..6 * RULES {
            let Change { source, destination, command, out } = change([10, 2, 0, 0], sequence);
            let rule = (source, destination);
            assert!(
                ours.contains(&source) && ours.contains(&destination) && source[..2] == [10, 2]
            );
            let changes = match command {
                ADD => table.insert(rule) && sends_by.insert(rule, out) != Some(out),
                _ => table.remove(&rule),
            };
            assert!(changes, "message {sequence} changes nothing");
            assert!(sequence < RULES || table.len() >= RULES as usize - 1);
        }
    }
}
