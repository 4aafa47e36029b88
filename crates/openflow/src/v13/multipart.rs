//! MULTIPART_REQUEST and MULTIPART_REPLY (specification 1.3.5, section 7.3.5). What is in them stands in `stats`,
//! `group`, `meter`, `table_features` and `port`.

use super::group::{GroupDesc, GroupFeatures, GroupStats};
use super::meter::{MeterConfig, MeterFeatures, MeterStats};
use super::port::{Port, PortNo};
use super::stats::{
    AggregateStats, DescStats, FlowStats, FlowStatsRequest, PortStats, QueueStats, TableStats,
};
use super::table_features::TableFeatures;
use crate::fault::DecodeError;
use crate::list::List;
use crate::wire::{Decode, Encode, Reader, pad};
use alloc::vec::Vec;

open_enum! {
    /// `enum ofp_multipart_type`.
    pub struct MultipartType(u16) {
        /// What the switch is.
        DESC = 0,
        /// Flow entries one by one.
        FLOW = 1,
        /// Flow entries summed up.
        AGGREGATE = 2,
        /// Tables.
        TABLE = 3,
        /// Port counters.
        PORT_STATS = 4,
        /// Queues.
        QUEUE = 5,
        /// Group counters.
        GROUP = 6,
        /// Groups and their buckets.
        GROUP_DESC = 7,
        /// What the switch's groups can do.
        GROUP_FEATURES = 8,
        /// Meter counters.
        METER = 9,
        /// Meters and their bands.
        METER_CONFIG = 10,
        /// What the switch's meters can do.
        METER_FEATURES = 11,
        /// What the tables can do.
        TABLE_FEATURES = 12,
        /// Ports.
        PORT_DESC = 13,
        /// An experimenter's own.
        EXPERIMENTER = 0xffff,
    }
}

flags! {
    /// Flags of a multipart request or reply.
    pub struct MultipartFlags(u16) {
        /// More parts of this request or reply follow.
        MORE = 1 << 0,
    }
}

/// `struct ofp_multipart_request`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MultipartRequest<'a> {
    /// Whether more parts follow.
    pub flags: MultipartFlags,
    /// What is asked for.
    pub body: MultipartRequestBody<'a>,
}

/// What a multipart request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MultipartRequestBody<'a> {
    /// See [`MultipartType::DESC`].
    Desc,
    /// See [`MultipartType::FLOW`].
    Flow(FlowStatsRequest<'a>),
    /// See [`MultipartType::AGGREGATE`].
    Aggregate(FlowStatsRequest<'a>),
    /// See [`MultipartType::TABLE`].
    Table,
    /// See [`MultipartType::PORT_STATS`].
    PortStats {
        /// The port, or `PortNo::ANY`.
        port_no: PortNo,
    },
    /// See [`MultipartType::QUEUE`].
    Queue {
        /// The port, or `PortNo::ANY`.
        port_no: PortNo,
        /// The queue, or [`QUEUE_ALL`](super::QUEUE_ALL).
        queue_id: u32,
    },
    /// See [`MultipartType::GROUP`].
    Group {
        /// The group, or [`GROUP_ALL`](super::GROUP_ALL).
        group_id: u32,
    },
    /// See [`MultipartType::GROUP_DESC`].
    GroupDesc,
    /// See [`MultipartType::GROUP_FEATURES`].
    GroupFeatures,
    /// See [`MultipartType::METER`].
    Meter {
        /// The meter, or [`METER_ALL`](super::METER_ALL).
        meter_id: u32,
    },
    /// See [`MultipartType::METER_CONFIG`].
    MeterConfig {
        /// The meter, or [`METER_ALL`](super::METER_ALL).
        meter_id: u32,
    },
    /// See [`MultipartType::METER_FEATURES`].
    MeterFeatures,
    /// See [`MultipartType::TABLE_FEATURES`]. Empty it asks; otherwise it sets.
    TableFeatures(List<'a, TableFeatures<'a>>),
    /// See [`MultipartType::PORT_DESC`].
    PortDesc,
    /// See [`MultipartType::EXPERIMENTER`].
    Experimenter {
        /// The experimenter.
        experimenter: u32,
        /// The experimenter's own type.
        exp_type: u32,
        /// What the experimenter defines.
        body: &'a [u8],
    },
    /// A type that the specification does not name.
    Unknown {
        /// The type.
        type_: u16,
        /// What follows the flags and their padding.
        body: &'a [u8],
    },
}

impl MultipartRequest<'_> {
    /// The type of what is asked for.
    pub const fn type_(&self) -> MultipartType {
        match self.body {
            MultipartRequestBody::Desc => MultipartType::DESC,
            MultipartRequestBody::Flow(_) => MultipartType::FLOW,
            MultipartRequestBody::Aggregate(_) => MultipartType::AGGREGATE,
            MultipartRequestBody::Table => MultipartType::TABLE,
            MultipartRequestBody::PortStats { .. } => MultipartType::PORT_STATS,
            MultipartRequestBody::Queue { .. } => MultipartType::QUEUE,
            MultipartRequestBody::Group { .. } => MultipartType::GROUP,
            MultipartRequestBody::GroupDesc => MultipartType::GROUP_DESC,
            MultipartRequestBody::GroupFeatures => MultipartType::GROUP_FEATURES,
            MultipartRequestBody::Meter { .. } => MultipartType::METER,
            MultipartRequestBody::MeterConfig { .. } => MultipartType::METER_CONFIG,
            MultipartRequestBody::MeterFeatures => MultipartType::METER_FEATURES,
            MultipartRequestBody::TableFeatures(_) => MultipartType::TABLE_FEATURES,
            MultipartRequestBody::PortDesc => MultipartType::PORT_DESC,
            MultipartRequestBody::Experimenter { .. } => MultipartType::EXPERIMENTER,
            MultipartRequestBody::Unknown { type_, .. } => MultipartType(type_),
        }
    }
}

impl<'a> From<MultipartRequestBody<'a>> for MultipartRequest<'a> {
    fn from(body: MultipartRequestBody<'a>) -> Self {
        Self { flags: MultipartFlags::NONE, body }
    }
}

impl<'a> Decode<'a> for MultipartRequest<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let type_ = MultipartType::read(r)?;
        let flags = MultipartFlags::read(r)?;
        r.skip(4)?;
        let body = match type_ {
            MultipartType::DESC => MultipartRequestBody::Desc,
            MultipartType::FLOW => MultipartRequestBody::Flow(Decode::read(r)?),
            MultipartType::AGGREGATE => MultipartRequestBody::Aggregate(Decode::read(r)?),
            MultipartType::TABLE => MultipartRequestBody::Table,
            MultipartType::PORT_STATS => {
                MultipartRequestBody::PortStats { port_no: PortNo(padded_id(r)?) }
            }
            MultipartType::QUEUE => MultipartRequestBody::Queue {
                port_no: Decode::read(r)?,
                queue_id: Decode::read(r)?,
            },
            MultipartType::GROUP => MultipartRequestBody::Group { group_id: padded_id(r)? },
            MultipartType::GROUP_DESC => MultipartRequestBody::GroupDesc,
            MultipartType::GROUP_FEATURES => MultipartRequestBody::GroupFeatures,
            MultipartType::METER => MultipartRequestBody::Meter { meter_id: padded_id(r)? },
            MultipartType::METER_CONFIG => {
                MultipartRequestBody::MeterConfig { meter_id: padded_id(r)? }
            }
            MultipartType::METER_FEATURES => MultipartRequestBody::MeterFeatures,
            MultipartType::TABLE_FEATURES => MultipartRequestBody::TableFeatures(Decode::read(r)?),
            MultipartType::PORT_DESC => MultipartRequestBody::PortDesc,
            MultipartType::EXPERIMENTER => MultipartRequestBody::Experimenter {
                experimenter: Decode::read(r)?,
                exp_type: Decode::read(r)?,
                body: r.take_rest(),
            },
            MultipartType(type_) => MultipartRequestBody::Unknown { type_, body: r.take_rest() },
        };
        Ok(Self { flags, body })
    }
}

/// A port, group or meter number with four bytes of padding.
fn padded_id(r: &mut Reader<'_>) -> Result<u32, DecodeError> {
    let id = u32::read(r)?;
    r.skip(4)?;
    Ok(id)
}

impl Encode for MultipartRequest<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        self.type_().write(out);
        self.flags.write(out);
        pad(out, 4);
        match self.body {
            MultipartRequestBody::Desc
            | MultipartRequestBody::Table
            | MultipartRequestBody::GroupDesc
            | MultipartRequestBody::GroupFeatures
            | MultipartRequestBody::MeterFeatures
            | MultipartRequestBody::PortDesc => {}
            MultipartRequestBody::Flow(body) | MultipartRequestBody::Aggregate(body) => {
                body.write(out)
            }
            MultipartRequestBody::PortStats { port_no: PortNo(id) }
            | MultipartRequestBody::Group { group_id: id }
            | MultipartRequestBody::Meter { meter_id: id }
            | MultipartRequestBody::MeterConfig { meter_id: id } => {
                id.write(out);
                pad(out, 4);
            }
            MultipartRequestBody::Queue { port_no, queue_id } => {
                port_no.write(out);
                queue_id.write(out);
            }
            MultipartRequestBody::TableFeatures(list) => list.write(out),
            MultipartRequestBody::Experimenter { experimenter, exp_type, body } => {
                experimenter.write(out);
                exp_type.write(out);
                body.write(out);
            }
            MultipartRequestBody::Unknown { body, .. } => body.write(out),
        }
    }
}

standalone!(MultipartRequest<'a>: Body);

/// `struct ofp_multipart_reply`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MultipartReply<'a> {
    /// Whether more parts follow.
    pub flags: MultipartFlags,
    /// The answer.
    pub body: MultipartReplyBody<'a>,
}

/// What a multipart reply says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MultipartReplyBody<'a> {
    /// See [`MultipartType::DESC`].
    Desc(DescStats<'a>),
    /// See [`MultipartType::FLOW`].
    Flow(List<'a, FlowStats<'a>>),
    /// See [`MultipartType::AGGREGATE`].
    Aggregate(AggregateStats),
    /// See [`MultipartType::TABLE`].
    Table(List<'a, TableStats>),
    /// See [`MultipartType::PORT_STATS`].
    PortStats(List<'a, PortStats>),
    /// See [`MultipartType::QUEUE`].
    Queue(List<'a, QueueStats>),
    /// See [`MultipartType::GROUP`].
    Group(List<'a, GroupStats<'a>>),
    /// See [`MultipartType::GROUP_DESC`].
    GroupDesc(List<'a, GroupDesc<'a>>),
    /// See [`MultipartType::GROUP_FEATURES`].
    GroupFeatures(GroupFeatures),
    /// See [`MultipartType::METER`].
    Meter(List<'a, MeterStats<'a>>),
    /// See [`MultipartType::METER_CONFIG`].
    MeterConfig(List<'a, MeterConfig<'a>>),
    /// See [`MultipartType::METER_FEATURES`].
    MeterFeatures(MeterFeatures),
    /// See [`MultipartType::TABLE_FEATURES`].
    TableFeatures(List<'a, TableFeatures<'a>>),
    /// See [`MultipartType::PORT_DESC`].
    PortDesc(List<'a, Port>),
    /// See [`MultipartType::EXPERIMENTER`].
    Experimenter {
        /// The experimenter.
        experimenter: u32,
        /// The experimenter's own type.
        exp_type: u32,
        /// What the experimenter defines.
        body: &'a [u8],
    },
    /// A type that the specification does not name.
    Unknown {
        /// The type.
        type_: u16,
        /// What follows the flags and their padding.
        body: &'a [u8],
    },
}

impl MultipartReply<'_> {
    /// The type of the answer.
    pub const fn type_(&self) -> MultipartType {
        match self.body {
            MultipartReplyBody::Desc(_) => MultipartType::DESC,
            MultipartReplyBody::Flow(_) => MultipartType::FLOW,
            MultipartReplyBody::Aggregate(_) => MultipartType::AGGREGATE,
            MultipartReplyBody::Table(_) => MultipartType::TABLE,
            MultipartReplyBody::PortStats(_) => MultipartType::PORT_STATS,
            MultipartReplyBody::Queue(_) => MultipartType::QUEUE,
            MultipartReplyBody::Group(_) => MultipartType::GROUP,
            MultipartReplyBody::GroupDesc(_) => MultipartType::GROUP_DESC,
            MultipartReplyBody::GroupFeatures(_) => MultipartType::GROUP_FEATURES,
            MultipartReplyBody::Meter(_) => MultipartType::METER,
            MultipartReplyBody::MeterConfig(_) => MultipartType::METER_CONFIG,
            MultipartReplyBody::MeterFeatures(_) => MultipartType::METER_FEATURES,
            MultipartReplyBody::TableFeatures(_) => MultipartType::TABLE_FEATURES,
            MultipartReplyBody::PortDesc(_) => MultipartType::PORT_DESC,
            MultipartReplyBody::Experimenter { .. } => MultipartType::EXPERIMENTER,
            MultipartReplyBody::Unknown { type_, .. } => MultipartType(type_),
        }
    }
}

impl<'a> From<MultipartReplyBody<'a>> for MultipartReply<'a> {
    fn from(body: MultipartReplyBody<'a>) -> Self {
        Self { flags: MultipartFlags::NONE, body }
    }
}

impl<'a> Decode<'a> for MultipartReply<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let type_ = MultipartType::read(r)?;
        let flags = MultipartFlags::read(r)?;
        r.skip(4)?;
        let body = match type_ {
            MultipartType::DESC => MultipartReplyBody::Desc(Decode::read(r)?),
            MultipartType::FLOW => MultipartReplyBody::Flow(Decode::read(r)?),
            MultipartType::AGGREGATE => MultipartReplyBody::Aggregate(Decode::read(r)?),
            MultipartType::TABLE => MultipartReplyBody::Table(Decode::read(r)?),
            MultipartType::PORT_STATS => MultipartReplyBody::PortStats(Decode::read(r)?),
            MultipartType::QUEUE => MultipartReplyBody::Queue(Decode::read(r)?),
            MultipartType::GROUP => MultipartReplyBody::Group(Decode::read(r)?),
            MultipartType::GROUP_DESC => MultipartReplyBody::GroupDesc(Decode::read(r)?),
            MultipartType::GROUP_FEATURES => MultipartReplyBody::GroupFeatures(Decode::read(r)?),
            MultipartType::METER => MultipartReplyBody::Meter(Decode::read(r)?),
            MultipartType::METER_CONFIG => MultipartReplyBody::MeterConfig(Decode::read(r)?),
            MultipartType::METER_FEATURES => MultipartReplyBody::MeterFeatures(Decode::read(r)?),
            MultipartType::TABLE_FEATURES => MultipartReplyBody::TableFeatures(Decode::read(r)?),
            MultipartType::PORT_DESC => MultipartReplyBody::PortDesc(Decode::read(r)?),
            MultipartType::EXPERIMENTER => MultipartReplyBody::Experimenter {
                experimenter: Decode::read(r)?,
                exp_type: Decode::read(r)?,
                body: r.take_rest(),
            },
            MultipartType(type_) => MultipartReplyBody::Unknown { type_, body: r.take_rest() },
        };
        Ok(Self { flags, body })
    }
}

impl Encode for MultipartReply<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        self.type_().write(out);
        self.flags.write(out);
        pad(out, 4);
        match self.body {
            MultipartReplyBody::Desc(body) => body.write(out),
            MultipartReplyBody::Flow(list) => list.write(out),
            MultipartReplyBody::Aggregate(body) => body.write(out),
            MultipartReplyBody::Table(list) => list.write(out),
            MultipartReplyBody::PortStats(list) => list.write(out),
            MultipartReplyBody::Queue(list) => list.write(out),
            MultipartReplyBody::Group(list) => list.write(out),
            MultipartReplyBody::GroupDesc(list) => list.write(out),
            MultipartReplyBody::GroupFeatures(body) => body.write(out),
            MultipartReplyBody::Meter(list) => list.write(out),
            MultipartReplyBody::MeterConfig(list) => list.write(out),
            MultipartReplyBody::MeterFeatures(body) => body.write(out),
            MultipartReplyBody::TableFeatures(list) => list.write(out),
            MultipartReplyBody::PortDesc(list) => list.write(out),
            MultipartReplyBody::Experimenter { experimenter, exp_type, body } => {
                experimenter.write(out);
                exp_type.write(out);
                body.write(out);
            }
            MultipartReplyBody::Unknown { body, .. } => body.write(out),
        }
    }
}

standalone!(MultipartReply<'a>: Body);
