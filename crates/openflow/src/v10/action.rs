//! Actions (specification 1.0.0, section 5.2.4).

use super::port::PortNo;
use crate::fault::{DecodeError, Part};
use crate::wire::{Decode, Encode, Reader, pad, pad_to_8, set_length};
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
    /// Set the VLAN id, adding a tag if there is none.
    SetVlanVid(u16),
    /// Set the VLAN priority, adding a tag if there is none.
    SetVlanPcp(u8),
    /// Remove the VLAN tag.
    StripVlan,
    /// Set the Ethernet source.
    SetDlSrc([u8; 6]),
    /// Set the Ethernet destination.
    SetDlDst([u8; 6]),
    /// Set the IP source.
    SetNwSrc(u32),
    /// Set the IP destination.
    SetNwDst(u32),
    /// Set the IP type of service; DSCP in the upper six bits.
    SetNwTos(u8),
    /// Set the TCP/UDP source port, or ICMP type.
    SetTpSrc(u16),
    /// Set the TCP/UDP destination port, or ICMP code.
    SetTpDst(u16),
    /// Send it out of a port by way of a queue.
    Enqueue {
        /// The port.
        port: PortNo,
        /// The queue.
        queue_id: u32,
    },
    /// A vendor's own action.
    Vendor {
        /// The vendor.
        vendor: u32,
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
    const SET_VLAN_VID: u16 = 1;
    const SET_VLAN_PCP: u16 = 2;
    const STRIP_VLAN: u16 = 3;
    const SET_DL_SRC: u16 = 4;
    const SET_DL_DST: u16 = 5;
    const SET_NW_SRC: u16 = 6;
    const SET_NW_DST: u16 = 7;
    const SET_NW_TOS: u16 = 8;
    const SET_TP_SRC: u16 = 9;
    const SET_TP_DST: u16 = 10;
    const ENQUEUE: u16 = 11;
    const VENDOR: u16 = 0xffff;

    /// The action's number in `enum ofp_action_type`.
    pub const fn type_(&self) -> u16 {
        match self {
            Self::Output { .. } => Self::OUTPUT,
            Self::SetVlanVid(_) => Self::SET_VLAN_VID,
            Self::SetVlanPcp(_) => Self::SET_VLAN_PCP,
            Self::StripVlan => Self::STRIP_VLAN,
            Self::SetDlSrc(_) => Self::SET_DL_SRC,
            Self::SetDlDst(_) => Self::SET_DL_DST,
            Self::SetNwSrc(_) => Self::SET_NW_SRC,
            Self::SetNwDst(_) => Self::SET_NW_DST,
            Self::SetNwTos(_) => Self::SET_NW_TOS,
            Self::SetTpSrc(_) => Self::SET_TP_SRC,
            Self::SetTpDst(_) => Self::SET_TP_DST,
            Self::Enqueue { .. } => Self::ENQUEUE,
            Self::Vendor { .. } => Self::VENDOR,
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
            Self::OUTPUT => Self::Output { port: Decode::read(r)?, max_len: Decode::read(r)? },
            Self::SET_VLAN_VID => Self::SetVlanVid(padded(r, 2)?),
            Self::SET_VLAN_PCP => Self::SetVlanPcp(padded(r, 3)?),
            Self::STRIP_VLAN => {
                r.skip(4)?;
                Self::StripVlan
            }
            Self::SET_DL_SRC => Self::SetDlSrc(padded(r, 6)?),
            Self::SET_DL_DST => Self::SetDlDst(padded(r, 6)?),
            Self::SET_NW_SRC => Self::SetNwSrc(Decode::read(r)?),
            Self::SET_NW_DST => Self::SetNwDst(Decode::read(r)?),
            Self::SET_NW_TOS => Self::SetNwTos(padded(r, 3)?),
            Self::SET_TP_SRC => Self::SetTpSrc(padded(r, 2)?),
            Self::SET_TP_DST => Self::SetTpDst(padded(r, 2)?),
            Self::ENQUEUE => Self::Enqueue { port: padded(r, 6)?, queue_id: Decode::read(r)? },
            Self::VENDOR => Self::Vendor { vendor: Decode::read(r)?, body: r.take_rest() },
            type_ => Self::Unknown { type_, body: r.take_rest() },
        })
    }
}

fn padded<'a, T: Decode<'a>>(r: &mut Reader<'a>, padding: usize) -> Result<T, DecodeError> {
    let value = T::read(r)?;
    r.skip(padding)?;
    Ok(value)
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
            Self::SetVlanVid(value) | Self::SetTpSrc(value) | Self::SetTpDst(value) => {
                value.write(out)
            }
            Self::SetVlanPcp(value) | Self::SetNwTos(value) => value.write(out),
            Self::StripVlan => pad(out, 4),
            Self::SetDlSrc(address) | Self::SetDlDst(address) => address.write(out),
            Self::SetNwSrc(address) | Self::SetNwDst(address) => address.write(out),
            Self::Enqueue { port, queue_id } => {
                port.write(out);
                pad(out, 6);
                queue_id.write(out);
            }
            Self::Vendor { vendor, body } => {
                vendor.write(out);
                body.write(out);
            }
            Self::Unknown { body, .. } => body.write(out),
        }
        pad_to_8(out, start);
        set_length(out, start, 2);
    }
}

standalone!(Action<'a>: Action);
