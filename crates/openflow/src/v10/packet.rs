//! PACKET_IN and PACKET_OUT (specification 1.0.0, sections 5.3.6 and 5.4.1): the two messages that come by the
//! million, so their fixed part is read with one check.

use super::action::Action;
use super::port::PortNo;
use crate::NO_BUFFER;
use crate::fault::{DecodeError, Part};
use crate::list::List;
use crate::wire::{Decode, Encode, Reader, pad};
use alloc::vec::Vec;

open_enum! {
    /// Why a packet comes to the controller.
    pub struct PacketInReason(u8) {
        /// No flow entry matched.
        NO_MATCH = 0,
        /// An action sent it.
        ACTION = 1,
    }
}

/// `struct ofp_packet_in`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketIn<'a> {
    /// Where the switch keeps the packet, or [`NO_BUFFER`].
    pub buffer_id: u32,
    /// The packet's full length; `data` may be shorter.
    pub total_len: u16,
    /// The port that it came in on.
    pub in_port: PortNo,
    /// Why it comes.
    pub reason: PacketInReason,
    /// The frame from its Ethernet header on.
    pub data: &'a [u8],
}

impl<'a> Decode<'a> for PacketIn<'a> {
    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let [b0, b1, b2, b3, t0, t1, p0, p1, reason, _] = r.array::<10>()?;
        Ok(Self {
            buffer_id: u32::from_be_bytes([b0, b1, b2, b3]),
            total_len: u16::from_be_bytes([t0, t1]),
            in_port: PortNo(u16::from_be_bytes([p0, p1])),
            reason: PacketInReason(reason),
            data: r.take_rest(),
        })
    }
}

impl Encode for PacketIn<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        self.buffer_id.write(out);
        self.total_len.write(out);
        self.in_port.write(out);
        self.reason.write(out);
        pad(out, 1);
        self.data.write(out);
    }
}

standalone!(PacketIn<'a>: Body);

/// `struct ofp_packet_out`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketOut<'a> {
    /// The packet in the switch to send, or [`NO_BUFFER`] for `data`.
    pub buffer_id: u32,
    /// The port that the packet counts as having come in on, or `PortNo::NONE`.
    pub in_port: PortNo,
    /// What to do with it; nothing drops it.
    pub actions: List<'a, Action<'a>>,
    /// The packet, if it is not buffered.
    pub data: &'a [u8],
}

impl Default for PacketOut<'_> {
    fn default() -> Self {
        Self { buffer_id: NO_BUFFER, in_port: PortNo::NONE, actions: List::EMPTY, data: &[] }
    }
}

impl<'a> Decode<'a> for PacketOut<'a> {
    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let [b0, b1, b2, b3, p0, p1, l0, l1] = r.array::<8>()?;
        let mut actions = r.sub(u16::from_be_bytes([l0, l1]).into(), Part::Action)?;
        Ok(Self {
            buffer_id: u32::from_be_bytes([b0, b1, b2, b3]),
            in_port: PortNo(u16::from_be_bytes([p0, p1])),
            actions: List::read(&mut actions)?,
            data: r.take_rest(),
        })
    }
}

impl Encode for PacketOut<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        self.buffer_id.write(out);
        self.in_port.write(out);
        // A list that does not fit into 16 bits makes the frame too long, which is refused as a whole.
        u16::try_from(self.actions.as_bytes().len()).unwrap_or(u16::MAX).write(out);
        self.actions.write(out);
        self.data.write(out);
    }
}

standalone!(PacketOut<'a>: Body);
