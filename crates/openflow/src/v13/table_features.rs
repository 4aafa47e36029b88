//! What the tables of a pipeline can do (specification 1.3.5, section 7.3.5.5).

use super::action::ActionId;
use super::instruction::InstructionId;
use super::oxm::OxmId;
use crate::fault::{DecodeError, Part};
use crate::list::List;
use crate::text::Name;
use crate::wire::{Decode, Encode, Reader, pad, pad_to_8, padding, set_length};
use alloc::vec::Vec;

/// `struct ofp_table_features`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TableFeatures<'a> {
    /// The table.
    pub table_id: u8,
    /// Its name.
    pub name: Name<32>,
    /// The bits of metadata that it can match.
    pub metadata_match: u64,
    /// The bits of metadata that it can write.
    pub metadata_write: u64,
    /// Deprecated bits; nothing is defined.
    pub config: u32,
    /// How many entries it can hold.
    pub max_entries: u32,
    /// The rest.
    pub properties: List<'a, TableFeaturesProperty<'a>>,
}

impl<'a> Decode<'a> for TableFeatures<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut r = r.element(Part::TableFeatures, 0, 64, 8)?;
        r.skip(2)?;
        let table_id = Decode::read(&mut r)?;
        r.skip(5)?;
        Ok(Self {
            table_id,
            name: Decode::read(&mut r)?,
            metadata_match: Decode::read(&mut r)?,
            metadata_write: Decode::read(&mut r)?,
            config: Decode::read(&mut r)?,
            max_entries: Decode::read(&mut r)?,
            properties: Decode::read(&mut r)?,
        })
    }
}

impl Encode for TableFeatures<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        pad(out, 2);
        self.table_id.write(out);
        pad(out, 5);
        self.name.write(out);
        self.metadata_match.write(out);
        self.metadata_write.write(out);
        self.config.write(out);
        self.max_entries.write(out);
        self.properties.write(out);
        set_length(out, start, 0);
    }
}

standalone!(TableFeatures<'a>: TableFeatures);

/// One property, `struct ofp_table_feature_prop_*`. Those with `Miss` are about the table-miss entry where it differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableFeaturesProperty<'a> {
    /// Instructions.
    Instructions(List<'a, InstructionId<'a>>),
    /// Instructions of the table-miss entry.
    InstructionsMiss(List<'a, InstructionId<'a>>),
    /// Tables that a goto can name.
    NextTables(&'a [u8]),
    /// Tables that a goto of the table-miss entry can name.
    NextTablesMiss(&'a [u8]),
    /// Actions of write-actions.
    WriteActions(List<'a, ActionId<'a>>),
    /// Actions of write-actions of the table-miss entry.
    WriteActionsMiss(List<'a, ActionId<'a>>),
    /// Actions of apply-actions.
    ApplyActions(List<'a, ActionId<'a>>),
    /// Actions of apply-actions of the table-miss entry.
    ApplyActionsMiss(List<'a, ActionId<'a>>),
    /// Fields that can be matched.
    Match(List<'a, OxmId>),
    /// Fields that can be left out.
    Wildcards(List<'a, OxmId>),
    /// Fields that write-actions can set.
    WriteSetField(List<'a, OxmId>),
    /// Fields that write-actions of the table-miss entry can set.
    WriteSetFieldMiss(List<'a, OxmId>),
    /// Fields that apply-actions can set.
    ApplySetField(List<'a, OxmId>),
    /// Fields that apply-actions of the table-miss entry can set.
    ApplySetFieldMiss(List<'a, OxmId>),
    /// A property that the specification does not name, or an experimenter's (types 0xfffe and 0xffff), which begins
    /// with the experimenter and the experimenter's type.
    Unknown {
        /// The type.
        type_: u16,
        /// What follows type and length, without padding.
        body: &'a [u8],
    },
}

impl TableFeaturesProperty<'_> {
    const INSTRUCTIONS: u16 = 0;
    const INSTRUCTIONS_MISS: u16 = 1;
    const NEXT_TABLES: u16 = 2;
    const NEXT_TABLES_MISS: u16 = 3;
    const WRITE_ACTIONS: u16 = 4;
    const WRITE_ACTIONS_MISS: u16 = 5;
    const APPLY_ACTIONS: u16 = 6;
    const APPLY_ACTIONS_MISS: u16 = 7;
    const MATCH: u16 = 8;
    const WILDCARDS: u16 = 10;
    const WRITE_SETFIELD: u16 = 12;
    const WRITE_SETFIELD_MISS: u16 = 13;
    const APPLY_SETFIELD: u16 = 14;
    const APPLY_SETFIELD_MISS: u16 = 15;

    /// The property's number in `enum ofp_table_feature_prop_type`.
    pub const fn type_(&self) -> u16 {
        match self {
            Self::Instructions(_) => Self::INSTRUCTIONS,
            Self::InstructionsMiss(_) => Self::INSTRUCTIONS_MISS,
            Self::NextTables(_) => Self::NEXT_TABLES,
            Self::NextTablesMiss(_) => Self::NEXT_TABLES_MISS,
            Self::WriteActions(_) => Self::WRITE_ACTIONS,
            Self::WriteActionsMiss(_) => Self::WRITE_ACTIONS_MISS,
            Self::ApplyActions(_) => Self::APPLY_ACTIONS,
            Self::ApplyActionsMiss(_) => Self::APPLY_ACTIONS_MISS,
            Self::Match(_) => Self::MATCH,
            Self::Wildcards(_) => Self::WILDCARDS,
            Self::WriteSetField(_) => Self::WRITE_SETFIELD,
            Self::WriteSetFieldMiss(_) => Self::WRITE_SETFIELD_MISS,
            Self::ApplySetField(_) => Self::APPLY_SETFIELD,
            Self::ApplySetFieldMiss(_) => Self::APPLY_SETFIELD_MISS,
            Self::Unknown { type_, .. } => *type_,
        }
    }
}

impl<'a> Decode<'a> for TableFeaturesProperty<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut body = r.element(Part::TableFeatures, 2, 4, 1)?;
        r.sub(padding(body.remaining()), Part::TableFeatures)?;
        let type_ = u16::read(&mut body)?;
        body.skip(2)?;
        let r = &mut body;
        Ok(match type_ {
            Self::INSTRUCTIONS => Self::Instructions(Decode::read(r)?),
            Self::INSTRUCTIONS_MISS => Self::InstructionsMiss(Decode::read(r)?),
            Self::NEXT_TABLES => Self::NextTables(Decode::read(r)?),
            Self::NEXT_TABLES_MISS => Self::NextTablesMiss(Decode::read(r)?),
            Self::WRITE_ACTIONS => Self::WriteActions(Decode::read(r)?),
            Self::WRITE_ACTIONS_MISS => Self::WriteActionsMiss(Decode::read(r)?),
            Self::APPLY_ACTIONS => Self::ApplyActions(Decode::read(r)?),
            Self::APPLY_ACTIONS_MISS => Self::ApplyActionsMiss(Decode::read(r)?),
            Self::MATCH => Self::Match(Decode::read(r)?),
            Self::WILDCARDS => Self::Wildcards(Decode::read(r)?),
            Self::WRITE_SETFIELD => Self::WriteSetField(Decode::read(r)?),
            Self::WRITE_SETFIELD_MISS => Self::WriteSetFieldMiss(Decode::read(r)?),
            Self::APPLY_SETFIELD => Self::ApplySetField(Decode::read(r)?),
            Self::APPLY_SETFIELD_MISS => Self::ApplySetFieldMiss(Decode::read(r)?),
            type_ => Self::Unknown { type_, body: r.take_rest() },
        })
    }
}

impl Encode for TableFeaturesProperty<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.type_().write(out);
        0u16.write(out);
        match self {
            Self::Instructions(list) | Self::InstructionsMiss(list) => list.write(out),
            Self::NextTables(tables) | Self::NextTablesMiss(tables) => tables.write(out),
            Self::WriteActions(list)
            | Self::WriteActionsMiss(list)
            | Self::ApplyActions(list)
            | Self::ApplyActionsMiss(list) => list.write(out),
            Self::Match(list)
            | Self::Wildcards(list)
            | Self::WriteSetField(list)
            | Self::WriteSetFieldMiss(list)
            | Self::ApplySetField(list)
            | Self::ApplySetFieldMiss(list) => list.write(out),
            Self::Unknown { body, .. } => body.write(out),
        }
        set_length(out, start, 2);
        pad_to_8(out, start);
    }
}

standalone!(TableFeaturesProperty<'a>: TableFeatures);
