//! What packets look like, as far as a group may have a [form](super::groups) of its own for them: by which port they came,
//! and which tag they bear.

use crate::network::{Entered, Entrance};

/// Packets for which a group may have a form of its own; by default those for which it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Look {
    /// They came by this port, at this port of the switch.
    pub came: Option<Entrance>,
    pub bears: Bears,
}

/// Whether packets bear a VLAN tag, where that says what becomes of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Bears {
    #[default]
    NoTag,
    Tag,
}

impl Look {
    pub(crate) fn new(entered: Entered, bears: Bears) -> Look {
        let came = match entered {
            Entered::Way(came) => Some(came),
            // Where it mattered, it would be known.
            Entered::Anywhere | Entered::Port(_) | Entered::Nowhere => None,
        };
        Look { came, bears }
    }

    /// How its packets have come.
    pub(crate) fn entered(self) -> Entered {
        self.came.map_or(Entered::Nowhere, Entered::Way)
    }
}

impl Bears {
    /// As it is stored.
    pub(super) fn to_number(self) -> u32 {
        match self {
            Bears::NoTag => 0,
            Bears::Tag => 1,
        }
    }

    pub(super) fn from_number(number: u32) -> Option<Bears> {
        match number {
            0 => Some(Bears::NoTag),
            1 => Some(Bears::Tag),
            _ => None,
        }
    }
}
