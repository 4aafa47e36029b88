//! Finds a tenant's entries by the ports that they send packets to. A controller that has seen a port go down deletes
//! the entries with this port as `out_port`; without the index Weir would examine all entries for each such request.

use super::entry::Flow;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use openflow::v13::PortNo;

/// Calls a function for each port that actions (1.0) or instructions (1.3) name as an output.
pub(crate) type Outputs = fn(&[u8], &mut dyn FnMut(PortNo));

/// The entries by output port.
#[derive(Debug)]
pub(super) struct ByOutput {
    outputs: Outputs,
    /// The last action lists and their outputs. Entries that follow each other often have the same actions, and a MODIFY
    /// of many entries replaces one list by another list.
    last: VecDeque<(Arc<[u8]>, Vec<PortNo>)>,
    /// Port and number of each entry, see [`key`].
    entries: BTreeSet<u64>,
}

impl ByOutput {
    /// The number of action lists whose outputs are kept.
    const LAST: usize = 2;

    pub(super) fn new(outputs: Outputs) -> ByOutput {
        ByOutput { outputs, last: VecDeque::new(), entries: BTreeSet::new() }
    }

    pub(super) fn insert(&mut self, id: u32, flow: &Flow) {
        let ByOutput { outputs, last, entries } = self;
        for port in ports(*outputs, last, &flow.actions) {
            entries.insert(key(*port, id));
        }
    }

    pub(super) fn remove(&mut self, id: u32, flow: &Flow) {
        let ByOutput { outputs, last, entries } = self;
        for port in ports(*outputs, last, &flow.actions) {
            entries.remove(&key(*port, id));
        }
    }

    /// The entries that send packets to a port, by ascending numbers.
    pub(super) fn of(&self, port: PortNo) -> impl Iterator<Item = u32> {
        // The lower half of a key is the number of the entry.
        self.entries.range(key(port, 0)..=key(port, u32::MAX)).map(|key| *key as u32)
    }
}

fn key(port: PortNo, id: u32) -> u64 {
    u64::from(port.0) << 32 | u64::from(id)
}

/// The outputs of an action list, each once, read only if the list is not one of the last lists.
fn ports<'a>(
    outputs: Outputs,
    last: &'a mut VecDeque<(Arc<[u8]>, Vec<PortNo>)>,
    actions: &Arc<[u8]>,
) -> &'a [PortNo] {
    let at = last.iter().position(|(known, _)| known == actions).unwrap_or_else(|| {
        let mut found = Vec::new();
        outputs(actions, &mut |port| found.push(port));
        // A list can name a port thousands of times.
        found.sort_unstable();
        found.dedup();
        last.truncate(ByOutput::LAST - 1);
        last.push_front((Arc::clone(actions), found));
        0
    });
    last.get(at).map_or(&[], |(_, ports)| ports)
}
