//! Queues and their configuration (specification 1.0.0, sections 5.2.2 and 5.3.4).

use super::port::PortNo;
use crate::fault::{DecodeError, Part};
use crate::list::List;
use crate::wire::{Decode, Encode, Reader, pad, pad_to_8, set_length};
use alloc::vec::Vec;

/// All queues of a port, in a statistics request (`OFPQ_ALL`).
pub const QUEUE_ALL: u32 = 0xffff_ffff;

/// `struct ofp_queue_get_config_request`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueueGetConfigRequest {
    /// The port to be asked; a physical one.
    pub port: PortNo,
}

layout!(QueueGetConfigRequest: Body { port, [2] });

/// `struct ofp_queue_get_config_reply`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueueGetConfigReply<'a> {
    /// The port that was asked.
    pub port: PortNo,
    /// Its queues.
    pub queues: List<'a, PacketQueue<'a>>,
}

layout!(QueueGetConfigReply<'a>: Body { port, [6], queues });

/// `struct ofp_packet_queue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketQueue<'a> {
    /// The queue's id on its port.
    pub queue_id: u32,
    /// What is set for it.
    pub properties: List<'a, QueueProperty<'a>>,
}

impl<'a> Decode<'a> for PacketQueue<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut r = r.element(Part::Queue, 4, 8, 8)?;
        let queue_id = u32::read(&mut r)?;
        r.skip(4)?;
        Ok(Self { queue_id, properties: List::read(&mut r)? })
    }
}

impl Encode for PacketQueue<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.queue_id.write(out);
        pad(out, 4);
        self.properties.write(out);
        set_length(out, start, 4);
    }
}

standalone!(PacketQueue<'a>: Queue);

/// One property of a queue, `struct ofp_queue_prop_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueueProperty<'a> {
    /// No property.
    None,
    /// The guaranteed rate in tenths of a percent; above 1000 it is off.
    MinRate(u16),
    /// A property that the specification does not name.
    Unknown {
        /// Its type.
        type_: u16,
        /// What follows the eight bytes of its header; written, it is filled up with zeros.
        body: &'a [u8],
    },
}

impl QueueProperty<'_> {
    const NONE: u16 = 0;
    const MIN_RATE: u16 = 1;

    const fn type_(&self) -> u16 {
        match self {
            Self::None => Self::NONE,
            Self::MinRate(_) => Self::MIN_RATE,
            Self::Unknown { type_, .. } => *type_,
        }
    }
}

impl<'a> Decode<'a> for QueueProperty<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut r = r.element(Part::Queue, 2, 8, 8)?;
        let type_ = u16::read(&mut r)?;
        r.skip(6)?;
        let property = match type_ {
            Self::NONE => Self::None,
            Self::MIN_RATE => {
                let rate = u16::read(&mut r)?;
                r.skip(6)?;
                Self::MinRate(rate)
            }
            type_ => Self::Unknown { type_, body: r.take_rest() },
        };
        r.finish()?;
        Ok(property)
    }
}

impl Encode for QueueProperty<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.type_().write(out);
        pad(out, 6);
        match self {
            Self::None => {}
            Self::MinRate(rate) => rate.write(out),
            Self::Unknown { body, .. } => body.write(out),
        }
        pad_to_8(out, start);
        set_length(out, start, 2);
    }
}

standalone!(QueueProperty<'a>: Queue);
