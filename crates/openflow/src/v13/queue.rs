//! Queues and their configuration (specification 1.3.5, sections 7.2.2 and 7.3.6).

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
    /// The port to be asked, or `PortNo::ANY`.
    pub port: PortNo,
}

layout!(QueueGetConfigRequest: Body { port, [4] });

/// `struct ofp_queue_get_config_reply`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueueGetConfigReply<'a> {
    /// The port that was asked.
    pub port: PortNo,
    /// Its queues.
    pub queues: List<'a, PacketQueue<'a>>,
}

layout!(QueueGetConfigReply<'a>: Body { port, [4], queues });

/// `struct ofp_packet_queue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketQueue<'a> {
    /// The queue's id on its port.
    pub queue_id: u32,
    /// The port.
    pub port: PortNo,
    /// What is set for it.
    pub properties: List<'a, QueueProperty<'a>>,
}

impl<'a> Decode<'a> for PacketQueue<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut r = r.element(Part::Queue, 8, 16, 8)?;
        let queue_id = Decode::read(&mut r)?;
        let port = Decode::read(&mut r)?;
        r.skip(8)?;
        Ok(Self { queue_id, port, properties: List::read(&mut r)? })
    }
}

impl Encode for PacketQueue<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.queue_id.write(out);
        self.port.write(out);
        pad(out, 8);
        self.properties.write(out);
        set_length(out, start, 8);
    }
}

standalone!(PacketQueue<'a>: Queue);

/// One property of a queue, `struct ofp_queue_prop_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueueProperty<'a> {
    /// The guaranteed rate in tenths of a percent; above 1000 it is off.
    MinRate(u16),
    /// The highest rate in tenths of a percent; above 1000 it is off.
    MaxRate(u16),
    /// An experimenter's own property.
    Experimenter {
        /// The experimenter.
        experimenter: u32,
        /// What follows; written, it is filled up with zeros.
        body: &'a [u8],
    },
    /// A property that the specification does not name.
    Unknown {
        /// Its type.
        type_: u16,
        /// What follows the eight bytes of its header; written, it is filled up with zeros.
        body: &'a [u8],
    },
}

impl QueueProperty<'_> {
    const MIN_RATE: u16 = 1;
    const MAX_RATE: u16 = 2;
    const EXPERIMENTER: u16 = 0xffff;

    const fn type_(&self) -> u16 {
        match self {
            Self::MinRate(_) => Self::MIN_RATE,
            Self::MaxRate(_) => Self::MAX_RATE,
            Self::Experimenter { .. } => Self::EXPERIMENTER,
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
            Self::MIN_RATE => Self::MinRate(rate(&mut r)?),
            Self::MAX_RATE => Self::MaxRate(rate(&mut r)?),
            Self::EXPERIMENTER => {
                let experimenter = Decode::read(&mut r)?;
                r.skip(4)?;
                Self::Experimenter { experimenter, body: r.take_rest() }
            }
            type_ => Self::Unknown { type_, body: r.take_rest() },
        };
        r.finish()?;
        Ok(property)
    }
}

fn rate(r: &mut Reader<'_>) -> Result<u16, DecodeError> {
    let rate = u16::read(r)?;
    r.skip(6)?;
    Ok(rate)
}

impl Encode for QueueProperty<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.type_().write(out);
        pad(out, 6);
        match self {
            Self::MinRate(rate) | Self::MaxRate(rate) => rate.write(out),
            Self::Experimenter { experimenter, body } => {
                experimenter.write(out);
                pad(out, 4);
                body.write(out);
            }
            Self::Unknown { body, .. } => body.write(out),
        }
        pad_to_8(out, start);
        set_length(out, start, 2);
    }
}

standalone!(QueueProperty<'a>: Queue);
