//! Finds a tenant's entries by the ports that they send packets to. A controller that has seen a port go down deletes
//! the entries with this port as `out_port`; without the index Weir would examine all entries for each such request.

use super::entry::Flow;
use alloc::collections::BTreeSet;
use openflow::v13::PortNo;

/// Reads the ports that actions (1.0) or instructions (1.3) name as outputs.
pub(crate) type Outputs = fn(&[u8], &mut dyn FnMut(PortNo));

/// The entries by output port.
#[derive(Debug)]
pub(super) struct ByOutput {
    outputs: Outputs,
    entries: BTreeSet<(u32, u32)>,
}

impl ByOutput {
    pub(super) fn new(outputs: Outputs) -> ByOutput {
        ByOutput { outputs, entries: BTreeSet::new() }
    }

    pub(super) fn insert(&mut self, id: u32, flow: &Flow) {
        (self.outputs)(&flow.actions, &mut |port| {
            self.entries.insert((port.0, id));
        });
    }

    pub(super) fn remove(&mut self, id: u32, flow: &Flow) {
        (self.outputs)(&flow.actions, &mut |port| {
            self.entries.remove(&(port.0, id));
        });
    }

    /// The entries that send packets to a port, by ascending numbers.
    pub(super) fn of(&self, port: PortNo) -> impl Iterator<Item = u32> {
        self.entries.range((port.0, 0)..=(port.0, u32::MAX)).map(|(_, id)| *id)
    }
}
