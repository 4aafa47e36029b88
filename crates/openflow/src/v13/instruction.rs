//! Instructions (specification 1.3.5, section 7.2.4).

use super::action::Action;
use crate::fault::{DecodeError, Part};
use crate::list::List;
use crate::wire::{Decode, Encode, Reader, pad, pad_to_8, set_length};
use alloc::vec::Vec;

/// What a flow entry does, `struct ofp_instruction_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instruction<'a> {
    /// Go on in a later table.
    GotoTable(u8),
    /// Change the metadata that later tables see.
    WriteMetadata {
        /// The new bits.
        metadata: u64,
        /// Which bits change.
        mask: u64,
    },
    /// Put actions into the action set.
    WriteActions(List<'a, Action<'a>>),
    /// Do actions at once, in order.
    ApplyActions(List<'a, Action<'a>>),
    /// Empty the action set.
    ClearActions,
    /// Direct the packet to a meter.
    Meter(u32),
    /// An experimenter's own instruction.
    Experimenter {
        /// The experimenter.
        experimenter: u32,
        /// What follows, a multiple of eight bytes; written, it is filled up with zeros.
        body: &'a [u8],
    },
    /// A type that the specification does not name.
    Unknown {
        /// The type.
        type_: u16,
        /// What follows type and length: four bytes more than a multiple of eight; written, it is filled up with zeros.
        body: &'a [u8],
    },
}

impl Instruction<'_> {
    const GOTO_TABLE: u16 = 1;
    const WRITE_METADATA: u16 = 2;
    const WRITE_ACTIONS: u16 = 3;
    const APPLY_ACTIONS: u16 = 4;
    const CLEAR_ACTIONS: u16 = 5;
    const METER: u16 = 6;
    const EXPERIMENTER: u16 = 0xffff;

    /// The instruction's number in `enum ofp_instruction_type`.
    pub const fn type_(&self) -> u16 {
        match self {
            Self::GotoTable(_) => Self::GOTO_TABLE,
            Self::WriteMetadata { .. } => Self::WRITE_METADATA,
            Self::WriteActions(_) => Self::WRITE_ACTIONS,
            Self::ApplyActions(_) => Self::APPLY_ACTIONS,
            Self::ClearActions => Self::CLEAR_ACTIONS,
            Self::Meter(_) => Self::METER,
            Self::Experimenter { .. } => Self::EXPERIMENTER,
            Self::Unknown { type_, .. } => *type_,
        }
    }
}

impl<'a> Decode<'a> for Instruction<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut r = r.element(Part::Instruction, 2, 8, 8)?;
        let type_ = u16::read(&mut r)?;
        r.skip(2)?;
        let instruction = match type_ {
            Self::GOTO_TABLE => {
                let table_id = Decode::read(&mut r)?;
                r.skip(3)?;
                Self::GotoTable(table_id)
            }
            Self::WRITE_METADATA => {
                r.skip(4)?;
                Self::WriteMetadata { metadata: Decode::read(&mut r)?, mask: Decode::read(&mut r)? }
            }
            Self::WRITE_ACTIONS => Self::WriteActions(actions(&mut r)?),
            Self::APPLY_ACTIONS => Self::ApplyActions(actions(&mut r)?),
            Self::CLEAR_ACTIONS => {
                r.skip(4)?;
                Self::ClearActions
            }
            Self::METER => Self::Meter(Decode::read(&mut r)?),
            Self::EXPERIMENTER => {
                Self::Experimenter { experimenter: Decode::read(&mut r)?, body: r.take_rest() }
            }
            type_ => Self::Unknown { type_, body: r.take_rest() },
        };
        r.finish()?;
        Ok(instruction)
    }
}

fn actions<'a>(r: &mut Reader<'a>) -> Result<List<'a, Action<'a>>, DecodeError> {
    r.skip(4)?;
    List::read(r)
}

impl Encode for Instruction<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.type_().write(out);
        0u16.write(out);
        match self {
            Self::GotoTable(table_id) => table_id.write(out),
            Self::WriteMetadata { metadata, mask } => {
                pad(out, 4);
                metadata.write(out);
                mask.write(out);
            }
            Self::WriteActions(actions) | Self::ApplyActions(actions) => {
                pad(out, 4);
                actions.write(out);
            }
            Self::ClearActions => {}
            Self::Meter(meter_id) => meter_id.write(out),
            Self::Experimenter { experimenter, body } => {
                experimenter.write(out);
                body.write(out);
            }
            Self::Unknown { body, .. } => body.write(out),
        }
        // The shortest instruction has eight bytes, so this also writes the padding of those that say nothing.
        pad_to_8(out, start);
        set_length(out, start, 2);
    }
}

standalone!(Instruction<'a>: Instruction);

/// An instruction without what it does, as `TABLE_FEATURES` lists it: four bytes, or more for an experimenter's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InstructionId<'a> {
    /// The instruction's number in `enum ofp_instruction_type`.
    pub type_: u16,
    /// What follows type and length; for an experimenter's instruction it begins with the experimenter.
    pub body: &'a [u8],
}

impl<'a> Decode<'a> for InstructionId<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut r = r.element(Part::TableFeatures, 2, 4, 1)?;
        let type_ = Decode::read(&mut r)?;
        r.skip(2)?;
        Ok(Self { type_, body: r.take_rest() })
    }
}

impl Encode for InstructionId<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.type_.write(out);
        0u16.write(out);
        self.body.write(out);
        set_length(out, start, 2);
    }
}

standalone!(InstructionId<'a>: TableFeatures);
