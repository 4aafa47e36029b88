//! Actions (specification 1.3.5, section 7.2.5).

use super::oxm::Oxm;
use super::port::PortNo;
use crate::fault::{DecodeError, Part};
use crate::wire::{Decode, Encode, Reader, pad_to_8, set_length};
use alloc::vec::Vec;

/// What to do with a packet, `struct ofp_action_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action<'a> {
    /// Send it out of a port.
    Output {
        /// The port.
        port: PortNo,
        /// How many bytes to send if the port is the controller.
        max_len: u16,
    },
    /// Copy the TTL outwards, from the next-to-outermost header to the outermost.
    CopyTtlOut,
    /// Copy the TTL inwards, from the outermost header to the next.
    CopyTtlIn,
    /// Set the MPLS TTL.
    SetMplsTtl(u8),
    /// Decrement the MPLS TTL.
    DecMplsTtl,
    /// Push a VLAN tag of this Ethernet type.
    PushVlan(u16),
    /// Pop the outer VLAN tag.
    PopVlan,
    /// Push an MPLS tag of this Ethernet type.
    PushMpls(u16),
    /// Pop the outer MPLS tag; what is below has this Ethernet type.
    PopMpls(u16),
    /// Use this queue when output to a port.
    SetQueue(u32),
    /// Process through this group.
    Group(u32),
    /// Set the IP TTL.
    SetNwTtl(u8),
    /// Decrement the IP TTL.
    DecNwTtl,
    /// Set a header field.
    SetField(Oxm<'a>),
    /// Push a PBB service tag of this Ethernet type.
    PushPbb(u16),
    /// Pop the outer PBB service tag.
    PopPbb,
    /// An experimenter's own action.
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

impl Action<'_> {
    const OUTPUT: u16 = 0;
    const COPY_TTL_OUT: u16 = 11;
    const COPY_TTL_IN: u16 = 12;
    const SET_MPLS_TTL: u16 = 15;
    const DEC_MPLS_TTL: u16 = 16;
    const PUSH_VLAN: u16 = 17;
    const POP_VLAN: u16 = 18;
    const PUSH_MPLS: u16 = 19;
    const POP_MPLS: u16 = 20;
    const SET_QUEUE: u16 = 21;
    const GROUP: u16 = 22;
    const SET_NW_TTL: u16 = 23;
    const DEC_NW_TTL: u16 = 24;
    const SET_FIELD: u16 = 25;
    const PUSH_PBB: u16 = 26;
    const POP_PBB: u16 = 27;
    const EXPERIMENTER: u16 = 0xffff;

    /// The action's number in `enum ofp_action_type`.
    pub const fn type_(&self) -> u16 {
        match self {
            Self::Output { .. } => Self::OUTPUT,
            Self::CopyTtlOut => Self::COPY_TTL_OUT,
            Self::CopyTtlIn => Self::COPY_TTL_IN,
            Self::SetMplsTtl(_) => Self::SET_MPLS_TTL,
            Self::DecMplsTtl => Self::DEC_MPLS_TTL,
            Self::PushVlan(_) => Self::PUSH_VLAN,
            Self::PopVlan => Self::POP_VLAN,
            Self::PushMpls(_) => Self::PUSH_MPLS,
            Self::PopMpls(_) => Self::POP_MPLS,
            Self::SetQueue(_) => Self::SET_QUEUE,
            Self::Group(_) => Self::GROUP,
            Self::SetNwTtl(_) => Self::SET_NW_TTL,
            Self::DecNwTtl => Self::DEC_NW_TTL,
            Self::SetField(_) => Self::SET_FIELD,
            Self::PushPbb(_) => Self::PUSH_PBB,
            Self::PopPbb => Self::POP_PBB,
            Self::Experimenter { .. } => Self::EXPERIMENTER,
            Self::Unknown { type_, .. } => *type_,
        }
    }
}

impl<'a> Decode<'a> for Action<'a> {
    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut r = r.element(Part::Action, 2, 8, 8)?;
        let type_ = u16::read(&mut r)?;
        r.skip(2)?;
        let action = Self::read_body(type_, &mut r)?;
        r.finish()?;
        Ok(action)
    }
}

impl<'a> Action<'a> {
    fn read_body(type_: u16, r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(match type_ {
            Self::OUTPUT => Self::Output { port: Decode::read(r)?, max_len: padded(r, 6)? },
            Self::COPY_TTL_OUT => nothing(r, Self::CopyTtlOut)?,
            Self::COPY_TTL_IN => nothing(r, Self::CopyTtlIn)?,
            Self::SET_MPLS_TTL => Self::SetMplsTtl(padded(r, 3)?),
            Self::DEC_MPLS_TTL => nothing(r, Self::DecMplsTtl)?,
            Self::PUSH_VLAN => Self::PushVlan(padded(r, 2)?),
            Self::POP_VLAN => nothing(r, Self::PopVlan)?,
            Self::PUSH_MPLS => Self::PushMpls(padded(r, 2)?),
            Self::POP_MPLS => Self::PopMpls(padded(r, 2)?),
            Self::SET_QUEUE => Self::SetQueue(Decode::read(r)?),
            Self::GROUP => Self::Group(Decode::read(r)?),
            Self::SET_NW_TTL => Self::SetNwTtl(padded(r, 3)?),
            Self::DEC_NW_TTL => nothing(r, Self::DecNwTtl)?,
            Self::SET_FIELD => Self::SetField(set_field(r)?),
            Self::PUSH_PBB => Self::PushPbb(padded(r, 2)?),
            Self::POP_PBB => nothing(r, Self::PopPbb)?,
            Self::EXPERIMENTER => {
                Self::Experimenter { experimenter: Decode::read(r)?, body: r.take_rest() }
            }
            type_ => Self::Unknown { type_, body: r.take_rest() },
        })
    }
}

fn padded<'a, T: Decode<'a>>(r: &mut Reader<'a>, padding: usize) -> Result<T, DecodeError> {
    let value = T::read(r)?;
    r.skip(padding)?;
    Ok(value)
}

fn nothing<'a>(r: &mut Reader<'a>, action: Action<'a>) -> Result<Action<'a>, DecodeError> {
    r.skip(4)?;
    Ok(action)
}

/// One field, and padding up to the end of the action, of which there are never eight bytes or more.
fn set_field<'a>(r: &mut Reader<'a>) -> Result<Oxm<'a>, DecodeError> {
    let mut field = r.sub(r.remaining(), Part::SetField)?;
    let oxm = Oxm::read(&mut field)?;
    field.skip(field.remaining().min(7))?;
    field.finish()?;
    Ok(oxm)
}

impl Encode for Action<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.type_().write(out);
        0u16.write(out);
        match self {
            Self::Output { port, max_len } => {
                port.write(out);
                max_len.write(out);
            }
            Self::SetMplsTtl(ttl) | Self::SetNwTtl(ttl) => ttl.write(out),
            Self::PushVlan(type_)
            | Self::PushMpls(type_)
            | Self::PopMpls(type_)
            | Self::PushPbb(type_) => {
                type_.write(out);
            }
            Self::SetQueue(id) | Self::Group(id) => id.write(out),
            Self::SetField(oxm) => oxm.write(out),
            Self::CopyTtlOut
            | Self::CopyTtlIn
            | Self::DecMplsTtl
            | Self::PopVlan
            | Self::DecNwTtl
            | Self::PopPbb => {}
            Self::Experimenter { experimenter, body } => {
                experimenter.write(out);
                body.write(out);
            }
            Self::Unknown { body, .. } => body.write(out),
        }
        // The shortest action has eight bytes, so this also writes the padding of those that say nothing.
        pad_to_8(out, start);
        set_length(out, start, 2);
    }
}

standalone!(Action<'a>: Action);

/// An action without what it does, as `TABLE_FEATURES` lists it: four bytes, or more for an experimenter's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ActionId<'a> {
    /// The action's number in `enum ofp_action_type`.
    pub type_: u16,
    /// What follows type and length; for an experimenter's action it begins with the experimenter.
    pub body: &'a [u8],
}

impl<'a> Decode<'a> for ActionId<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut r = r.element(Part::TableFeatures, 2, 4, 1)?;
        let type_ = Decode::read(&mut r)?;
        r.skip(2)?;
        Ok(Self { type_, body: r.take_rest() })
    }
}

impl Encode for ActionId<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.type_.write(out);
        0u16.write(out);
        self.body.write(out);
        set_length(out, start, 2);
    }
}

standalone!(ActionId<'a>: TableFeatures);
