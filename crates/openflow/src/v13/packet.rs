//! PACKET_IN and PACKET_OUT (specification 1.3.5, sections 7.4.1 and 7.3.7).

use super::action::Action;
use super::flow_match::Match;
use super::port::PortNo;
use crate::NO_BUFFER;
use crate::fault::{DecodeError, Part};
use crate::list::List;
use crate::wire::{Decode, Encode, Reader, pad};
use alloc::vec::Vec;

/// The `max_len` that sends the whole packet to the controller without buffering it (`OFPCML_NO_BUFFER`).
pub const CONTROLLER_NO_BUFFER: u16 = 0xffff;

open_enum! {
    /// Why a packet comes to the controller.
    pub struct PacketInReason(u8) {
        /// The table-miss entry sent it.
        NO_MATCH = 0,
        /// An action sent it.
        ACTION = 1,
        /// Its TTL is invalid.
        INVALID_TTL = 2,
    }
}

/// `struct ofp_packet_in`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketIn<'a> {
    /// Where the switch keeps the packet, or [`NO_BUFFER`].
    pub buffer_id: u32,
    /// The packet's full length; `data` may be shorter.
    pub total_len: u16,
    /// Why it comes.
    pub reason: PacketInReason,
    /// The table that it was looked up in.
    pub table_id: u8,
    /// The cookie of the entry that sent it, or all ones.
    pub cookie: u64,
    /// The packet's context: ingress port, metadata.
    pub match_: Match<'a>,
    /// The frame from its Ethernet header on.
    pub data: &'a [u8],
}

impl<'a> Decode<'a> for PacketIn<'a> {
    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let [b0, b1, b2, b3, t0, t1, reason, table_id, c0, c1, c2, c3, c4, c5, c6, c7] =
            r.array::<16>()?;
        let match_ = Match::read(r)?;
        r.skip(2)?;
        Ok(Self {
            buffer_id: u32::from_be_bytes([b0, b1, b2, b3]),
            total_len: u16::from_be_bytes([t0, t1]),
            reason: PacketInReason(reason),
            table_id,
            cookie: u64::from_be_bytes([c0, c1, c2, c3, c4, c5, c6, c7]),
            match_,
            data: r.take_rest(),
        })
    }
}

impl Encode for PacketIn<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        self.buffer_id.write(out);
        self.total_len.write(out);
        self.reason.write(out);
        self.table_id.write(out);
        self.cookie.write(out);
        self.match_.write(out);
        pad(out, 2);
        self.data.write(out);
    }
}

standalone!(PacketIn<'a>: Body);

/// `struct ofp_packet_out`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketOut<'a> {
    /// The packet in the switch to send, or [`NO_BUFFER`] for `data`.
    pub buffer_id: u32,
    /// The port that the packet counts as having come in on, or `PortNo::CONTROLLER`.
    pub in_port: PortNo,
    /// What to do with it; nothing drops it.
    pub actions: List<'a, Action<'a>>,
    /// The packet, if it is not buffered.
    pub data: &'a [u8],
}

impl Default for PacketOut<'_> {
    fn default() -> Self {
        Self { buffer_id: NO_BUFFER, in_port: PortNo::CONTROLLER, actions: List::EMPTY, data: &[] }
    }
}

impl<'a> Decode<'a> for PacketOut<'a> {
    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let [b0, b1, b2, b3, p0, p1, p2, p3, l0, l1, ..] = r.array::<16>()?;
        let mut actions = r.sub(u16::from_be_bytes([l0, l1]).into(), Part::Action)?;
        Ok(Self {
            buffer_id: u32::from_be_bytes([b0, b1, b2, b3]),
            in_port: PortNo(u32::from_be_bytes([p0, p1, p2, p3])),
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
        pad(out, 6);
        self.actions.write(out);
        self.data.write(out);
    }
}

standalone!(PacketOut<'a>: Body);
