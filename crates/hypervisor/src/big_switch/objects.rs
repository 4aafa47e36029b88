//! What the front has made beside entries: groups, meters, and the configuration of ports. Each stands on all members.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Objects that the front numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbered {
    Group,
    Meter,
}

/// See the module.
#[derive(Default)]
pub(super) struct Objects {
    /// The configuration of ports that the front has configured, by port.
    config: BTreeMap<u32, u32>,
    /// By number, the message that adds the group (1.3).
    groups: BTreeMap<u32, Vec<u8>>,
    meters: BTreeMap<u32, Vec<u8>>,
}

impl Objects {
    /// Groups, or meters: by number, the messages that add them.
    pub(super) fn of(&self, which: Numbered) -> &BTreeMap<u32, Vec<u8>> {
        match which {
            Numbered::Group => &self.groups,
            Numbered::Meter => &self.meters,
        }
    }

    fn of_mut(&mut self, which: Numbered) -> &mut BTreeMap<u32, Vec<u8>> {
        match which {
            Numbered::Group => &mut self.groups,
            Numbered::Meter => &mut self.meters,
        }
    }

    /// The message `add` adds a group or meter; without a message the group or meter is gone. Gives the message that added it before.
    pub(super) fn set(
        &mut self,
        which: Numbered,
        number: u32,
        add: Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        match add {
            Some(add) => self.of_mut(which).insert(number, add),
            None => self.of_mut(which).remove(&number),
        }
    }

    /// A member holds these groups or meters, and the front has not been connected yet.
    pub(super) fn adopt(&mut self, which: Numbered, held: &BTreeMap<u32, Vec<u8>>) {
        let table = self.of_mut(which);
        for (&number, add) in held {
            table.entry(number).or_insert_with(|| add.clone());
        }
    }

    /// The configuration of a port.
    pub(super) fn config(&self, port: u32) -> u32 {
        self.config.get(&port).copied().unwrap_or(0)
    }

    /// Sets the configuration of a port.
    pub(super) fn set_config(&mut self, port: u32, config: u32) {
        match config {
            0 => self.config.remove(&port),
            _ => self.config.insert(port, config),
        };
    }

    /// A member's port has this configuration, and the front has not been connected yet.
    pub(super) fn adopt_config(&mut self, port: u32, config: u32) {
        self.config.entry(port).or_insert(config);
    }

    /// All members are gone.
    pub(super) fn clear(&mut self) {
        self.config.clear();
        self.groups.clear();
        self.meters.clear();
    }
}
