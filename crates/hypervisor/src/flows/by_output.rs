//! Finds a tenant's entries by the ports that they send packets to. A controller that has seen a port go down deletes
//! the entries with this port as `out_port`; without the index Weir would examine all entries for each such request.
//!
//! ADD is the most frequent change, so an entry is only appended to the list of its port, and a removed entry stays in
//! the list until a third of the list is removed entries. The caller examines each entry that the index names in any
//! case.

use super::entry::Flow;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use hashbrown::HashMap;
use openflow::v13::PortNo;

/// Calls a function for each port that actions (1.0) or instructions (1.3) name as an output.
pub(crate) type Outputs = fn(&[u8], &mut dyn FnMut(PortNo));

/// The entries by output port.
#[derive(Debug)]
pub(super) struct ByOutput {
    outputs: Outputs,
    /// The last action lists and their outputs. Entries that follow each other often have the same actions, and a
    /// MODIFY of many entries replaces one list by another list.
    last: VecDeque<(Arc<[u8]>, Vec<PortNo>)>,
    ports: HashMap<PortNo, Entries>,
}

impl ByOutput {
    /// The number of action lists whose outputs are kept.
    const LAST: usize = 2;

    pub(super) fn new(outputs: Outputs) -> ByOutput {
        ByOutput { outputs, last: VecDeque::new(), ports: HashMap::default() }
    }

    pub(super) fn insert(&mut self, id: u32, flow: &Flow) {
        let ByOutput { outputs, last, ports } = self;
        for port in outputs_of(*outputs, last, &flow.actions) {
            ports.entry(*port).or_default().added.push(id);
        }
    }

    pub(super) fn remove(&mut self, id: u32, flow: &Flow) {
        let ByOutput { outputs, last, ports } = self;
        for port in outputs_of(*outputs, last, &flow.actions) {
            if let Some(entries) = ports.get_mut(port) {
                entries.removed.push(id);
                entries.compact();
                if entries.added.is_empty() {
                    ports.remove(port);
                }
            }
        }
    }

    /// The entries that send packets to a port, in no particular order. Some of these entries may have been removed, or
    /// may send packets to other ports now, and an entry may be named twice.
    pub(super) fn of(&self, port: PortNo) -> impl Iterator<Item = u32> {
        self.ports.get(&port).into_iter().flat_map(|entries| &entries.added).copied()
    }
}

/// The entries of one port.
#[derive(Debug, Default)]
struct Entries {
    /// The numbers of all entries that were added since the last compaction.
    added: Vec<u32>,
    /// Those of them that were removed since then. An entry that is added again is in `added` once more.
    removed: Vec<u32>,
}

impl Entries {
    /// The number of removed entries that are always tolerated.
    const TOLERATED: usize = 32;

    /// Takes the removed entries out of the list, if these are many.
    fn compact(&mut self) {
        let Entries { added, removed } = self;
        let left = added.len().saturating_sub(removed.len());
        if left > 0 && removed.len() <= left / 2 + Entries::TOLERATED {
            return;
        }
        added.sort_unstable();
        removed.sort_unstable();
        let mut removed_ids = removed.iter().copied().peekable();
        added.retain(|id| removed_ids.next_if(|removed| removed == id).is_none());
        added.shrink_to(2 * added.len());
        removed.clear();
    }
}

/// The outputs of an action list, each once, read only if the list is not one of the last lists.
fn outputs_of<'a>(
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
