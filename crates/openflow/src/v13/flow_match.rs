//! The match: a list of OXM fields, padded (specification 1.3.5, section 7.2.3.1).

use super::oxm::{Oxm, OxmField};
use super::port::PortNo;
use crate::fault::{DecodeError, Part};
use crate::list::{List, ListBuf};
use crate::wire::{Decode, Encode, Reader, pad_to_8, padding, set_length};
use alloc::vec::Vec;

/// `struct ofp_match` of type OXM. Without fields it matches every packet.
///
/// Read and written with its header and the padding behind it, a multiple of eight bytes. The fields are those on the
/// wire, in their order; whether one is repeated or lacks its prerequisite is not checked here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Match<'a> {
    /// The fields.
    pub fields: List<'a, Oxm<'a>>,
}

impl<'a> Match<'a> {
    const OXM: u16 = 1;

    /// The match that every packet meets.
    pub const ANY: Self = Self { fields: List::EMPTY };

    /// The first OPENFLOW_BASIC field of this kind.
    pub fn get(&self, field: OxmField) -> Option<Oxm<'a>> {
        self.fields.iter().find(|oxm| oxm.basic() == Some(field))
    }

    /// The ingress port, if the match says it.
    pub fn in_port(&self) -> Option<PortNo> {
        let value = self.get(OxmField::IN_PORT)?.value;
        Some(PortNo(u32::from_be_bytes(*value.first_chunk()?)))
    }
}

impl<'a> Decode<'a> for Match<'a> {
    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let offset = r.offset();
        let mut fields = r.element(Part::Match, 2, 4, 1)?;
        let length = fields.remaining();
        let type_ = u16::read(&mut fields)?;
        if type_ != Self::OXM {
            return Err(DecodeError::Type { part: Part::Match, offset, type_ });
        }
        fields.skip(2)?;
        let fields = List::read(&mut fields)?;
        r.sub(padding(length), Part::Match)?;
        Ok(Self { fields })
    }
}

impl Encode for Match<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        Self::OXM.write(out);
        0u16.write(out);
        self.fields.write(out);
        set_length(out, start, 2);
        pad_to_8(out, start);
    }
}

standalone!(Match<'a>: Match);

/// A match being built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchBuf {
    fields: ListBuf<Oxm<'static>>,
}

impl MatchBuf {
    /// The match that every packet meets.
    pub const fn new() -> Self {
        Self { fields: ListBuf::new() }
    }

    /// Adds any field.
    pub fn push(&mut self, oxm: Oxm<'_>) -> &mut Self {
        self.fields.push(oxm);
        self
    }

    /// Adds an OPENFLOW_BASIC field with an exact value: the low bytes of the number, as many as the field has.
    /// A field that the specification does not name gets all sixteen.
    pub fn exact(&mut self, field: OxmField, value: u128) -> &mut Self {
        let value = value.to_be_bytes();
        self.push(Oxm::exact(field, low_bytes(&value, field)))
    }

    /// Adds an OPENFLOW_BASIC field with a masked value: the low bytes of the numbers, as many as the field has.
    pub fn masked(&mut self, field: OxmField, value: u128, mask: u128) -> &mut Self {
        let (value, mask) = (value.to_be_bytes(), mask.to_be_bytes());
        self.push(Oxm::masked(field, low_bytes(&value, field), low_bytes(&mask, field)))
    }

    /// Removes all fields and keeps the memory.
    pub fn clear(&mut self) {
        self.fields.clear();
    }

    /// The match as message bodies hold it.
    pub fn as_match(&self) -> Match<'_> {
        Match { fields: self.fields.as_list() }
    }
}

fn low_bytes(number: &[u8; 16], field: OxmField) -> &[u8] {
    number.get(16 - field.value_len().unwrap_or(16)..).unwrap_or(number)
}
