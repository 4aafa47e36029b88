//! Whether a packet's action set holds a group of the tenant's: a bit of the metadata says so.
//!
//! In a set a group counts before an output, whichever was written last (specification, section 5.10). An
//! [exit](super::exits) is a group on the switch, and written later would take the group's place. So an entry that adds an
//! output to what earlier tables have left is on the switch one for packets without a group and one for those with one:
//!
//! ```text
//!   table   the tenant writes         on the switch
//!   0       write group:1, goto 1     write GROUP 7, bit = 1
//!   1       write output:10           bit 0: write the exit          bit 1: nothing is written
//!   1       clear, goto 2             clear, bit = 0
//! ```
//! Each entry says by itself what it does to the bit, whatever others there are. Table 0 of the switch begins with 0. The bit is
//! the highest of those that would be the tenant's own: all above it say whose a packet is and by which port it came.

use super::buckets::destination_written;
use super::exits::sent_by;
use crate::v13::METADATA_GROUP;
use alloc::vec::Vec;
use openflow::List;
use openflow::v13::{Action, Instruction};

/// What an entry does to the action set, as far as packets leave by that.
#[derive(Default)]
pub(super) struct Written<'a> {
    /// Whether it writes anything there.
    pub is_set: bool,
    /// The action by which they leave.
    pub sent: Option<Action<'a>>,
    /// The destination that it gives them.
    pub to: Option<u128>,
    /// Whether nothing stays of what earlier tables have left.
    pub cleared: bool,
    /// The table that comes after.
    pub next: Option<u8>,
}

impl<'a> Written<'a> {
    pub(super) fn by(instructions: List<'a, Instruction<'a>>) -> Written<'a> {
        let mut written = Written::default();
        for instruction in instructions {
            match instruction {
                Instruction::WriteActions(actions) => {
                    written.is_set = true;
                    (written.sent, written.to) = (sent_by(actions), destination_written(actions));
                }
                Instruction::ClearActions => written.cleared = true,
                Instruction::GotoTable(table) => written.next = Some(table),
                _ => {}
            }
        }
        written
    }

    /// The packets that an entry tells apart, by the bit: `None` stands for all. `is_empty` says that nothing is in the set
    /// when it gets them.
    pub(super) fn told_apart(&self, is_empty: bool) -> &'static [Option<bool>] {
        let adds = !is_empty && !self.cleared;
        match self.sent {
            Some(Action::Output { .. }) if adds => &[Some(false), Some(true)],
            _ => &[None],
        }
    }

    /// What later tables have to find in the bit, if it changes.
    fn bit(&self) -> Option<bool> {
        match self.sent {
            _ if self.next.is_none() => None,
            Some(Action::Group(_)) => Some(true),
            _ => self.cleared.then_some(false),
        }
    }

    /// The instructions of such an entry, which also write the bit.
    pub(super) fn with_bit(&self, instructions: List<'_, Instruction<'_>>) -> Vec<u8> {
        let Some(bit) = self.bit() else { return instructions.as_bytes().to_vec() };
        let value = if bit { METADATA_GROUP } else { 0 };
        let mut out = Vec::new();
        let mut is_written = false;
        for instruction in instructions {
            match instruction {
                Instruction::WriteMetadata { metadata, mask } => {
                    // What the tenant says of bits outside its mask means nothing.
                    let metadata = metadata & mask | value;
                    Instruction::WriteMetadata { metadata, mask: mask | METADATA_GROUP }
                        .write(&mut out);
                    is_written = true;
                }
                other => other.write(&mut out),
            }
        }
        if !is_written {
            Instruction::WriteMetadata { metadata: value, mask: METADATA_GROUP }.write(&mut out);
        }
        out
    }
}
