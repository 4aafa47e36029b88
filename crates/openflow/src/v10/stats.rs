//! STATS_REQUEST and STATS_REPLY (specification 1.0.0, section 5.3.5).

use super::action::Action;
use super::flow_match::{Match, Wildcards};
use super::port::PortNo;
use crate::fault::{DecodeError, Part};
use crate::list::List;
use crate::text::{Name, Text};
use crate::wire::{Decode, Encode, Reader, pad, set_length};
use alloc::vec::Vec;

/// All tables, in a statistics request.
pub const TABLE_ALL: u8 = 0xff;
/// The emergency table.
pub const TABLE_EMERGENCY: u8 = 0xfe;

open_enum! {
    /// `enum ofp_stats_types`.
    pub struct StatsType(u16) {
        /// What the switch is.
        DESC = 0,
        /// Flow entries one by one.
        FLOW = 1,
        /// Flow entries summed up.
        AGGREGATE = 2,
        /// Tables.
        TABLE = 3,
        /// Ports.
        PORT = 4,
        /// Queues.
        QUEUE = 5,
        /// A vendor's own.
        VENDOR = 0xffff,
    }
}

flags! {
    /// Flags of a statistics request (none is defined) or reply.
    pub struct StatsFlags(u16) {
        /// More replies to this request follow.
        REPLY_MORE = 1 << 0,
    }
}

/// `struct ofp_stats_request`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StatsRequest<'a> {
    /// No flag is defined.
    pub flags: StatsFlags,
    /// What is asked for.
    pub body: StatsRequestBody<'a>,
}

/// What a statistics request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatsRequestBody<'a> {
    /// See [`StatsType::DESC`].
    Desc,
    /// See [`StatsType::FLOW`].
    Flow(FlowStatsRequest),
    /// See [`StatsType::AGGREGATE`].
    Aggregate(FlowStatsRequest),
    /// See [`StatsType::TABLE`].
    Table,
    /// See [`StatsType::PORT`].
    Port {
        /// The port, or `PortNo::NONE` for all.
        port_no: PortNo,
    },
    /// See [`StatsType::QUEUE`].
    Queue {
        /// The port, or `PortNo::ALL`.
        port_no: PortNo,
        /// The queue, or [`QUEUE_ALL`](super::QUEUE_ALL).
        queue_id: u32,
    },
    /// See [`StatsType::VENDOR`].
    Vendor {
        /// The vendor.
        vendor: u32,
        /// What the vendor defines.
        body: &'a [u8],
    },
    /// A type that the specification does not name.
    Unknown {
        /// The type.
        type_: u16,
        /// What follows the flags.
        body: &'a [u8],
    },
}

impl StatsRequest<'_> {
    /// The type of statistics that is asked for.
    pub const fn type_(&self) -> StatsType {
        match self.body {
            StatsRequestBody::Desc => StatsType::DESC,
            StatsRequestBody::Flow(_) => StatsType::FLOW,
            StatsRequestBody::Aggregate(_) => StatsType::AGGREGATE,
            StatsRequestBody::Table => StatsType::TABLE,
            StatsRequestBody::Port { .. } => StatsType::PORT,
            StatsRequestBody::Queue { .. } => StatsType::QUEUE,
            StatsRequestBody::Vendor { .. } => StatsType::VENDOR,
            StatsRequestBody::Unknown { type_, .. } => StatsType(type_),
        }
    }
}

impl<'a> From<StatsRequestBody<'a>> for StatsRequest<'a> {
    fn from(body: StatsRequestBody<'a>) -> Self {
        Self { flags: StatsFlags::NONE, body }
    }
}

impl<'a> Decode<'a> for StatsRequest<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let type_ = StatsType::read(r)?;
        let flags = StatsFlags::read(r)?;
        let body = match type_ {
            StatsType::DESC => StatsRequestBody::Desc,
            StatsType::FLOW => StatsRequestBody::Flow(Decode::read(r)?),
            StatsType::AGGREGATE => StatsRequestBody::Aggregate(Decode::read(r)?),
            StatsType::TABLE => StatsRequestBody::Table,
            StatsType::PORT => {
                let port_no = Decode::read(r)?;
                r.skip(6)?;
                StatsRequestBody::Port { port_no }
            }
            StatsType::QUEUE => {
                let port_no = Decode::read(r)?;
                r.skip(2)?;
                StatsRequestBody::Queue { port_no, queue_id: Decode::read(r)? }
            }
            StatsType::VENDOR => {
                StatsRequestBody::Vendor { vendor: Decode::read(r)?, body: r.take_rest() }
            }
            StatsType(type_) => StatsRequestBody::Unknown { type_, body: r.take_rest() },
        };
        Ok(Self { flags, body })
    }
}

impl Encode for StatsRequest<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        self.type_().write(out);
        self.flags.write(out);
        match self.body {
            StatsRequestBody::Desc | StatsRequestBody::Table => {}
            StatsRequestBody::Flow(body) | StatsRequestBody::Aggregate(body) => body.write(out),
            StatsRequestBody::Port { port_no } => {
                port_no.write(out);
                pad(out, 6);
            }
            StatsRequestBody::Queue { port_no, queue_id } => {
                port_no.write(out);
                pad(out, 2);
                queue_id.write(out);
            }
            StatsRequestBody::Vendor { vendor, body } => {
                vendor.write(out);
                body.write(out);
            }
            StatsRequestBody::Unknown { body, .. } => body.write(out),
        }
    }
}

standalone!(StatsRequest<'a>: Body);

/// `struct ofp_flow_stats_request` and `struct ofp_aggregate_stats_request`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowStatsRequest {
    /// Entries that this match covers.
    pub match_: Match,
    /// In this table, or [`TABLE_ALL`].
    pub table_id: u8,
    /// That output to this port; `PortNo::NONE` is no condition.
    pub out_port: PortNo,
}

/// All entries.
impl Default for FlowStatsRequest {
    fn default() -> Self {
        Self { match_: Match::ANY, table_id: TABLE_ALL, out_port: PortNo::NONE }
    }
}

layout!(FlowStatsRequest: Body { match_, table_id, [1], out_port });

/// `struct ofp_stats_reply`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StatsReply<'a> {
    /// Whether more parts follow.
    pub flags: StatsFlags,
    /// The statistics.
    pub body: StatsReplyBody<'a>,
}

/// What a statistics reply says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatsReplyBody<'a> {
    /// See [`StatsType::DESC`].
    Desc(DescStats<'a>),
    /// See [`StatsType::FLOW`].
    Flow(List<'a, FlowStats<'a>>),
    /// See [`StatsType::AGGREGATE`].
    Aggregate(AggregateStats),
    /// See [`StatsType::TABLE`].
    Table(List<'a, TableStats>),
    /// See [`StatsType::PORT`].
    Port(List<'a, PortStats>),
    /// See [`StatsType::QUEUE`].
    Queue(List<'a, QueueStats>),
    /// See [`StatsType::VENDOR`].
    Vendor {
        /// The vendor.
        vendor: u32,
        /// What the vendor defines.
        body: &'a [u8],
    },
    /// A type that the specification does not name.
    Unknown {
        /// The type.
        type_: u16,
        /// What follows the flags.
        body: &'a [u8],
    },
}

impl StatsReply<'_> {
    /// The type of the statistics.
    pub const fn type_(&self) -> StatsType {
        match self.body {
            StatsReplyBody::Desc(_) => StatsType::DESC,
            StatsReplyBody::Flow(_) => StatsType::FLOW,
            StatsReplyBody::Aggregate(_) => StatsType::AGGREGATE,
            StatsReplyBody::Table(_) => StatsType::TABLE,
            StatsReplyBody::Port(_) => StatsType::PORT,
            StatsReplyBody::Queue(_) => StatsType::QUEUE,
            StatsReplyBody::Vendor { .. } => StatsType::VENDOR,
            StatsReplyBody::Unknown { type_, .. } => StatsType(type_),
        }
    }
}

impl<'a> From<StatsReplyBody<'a>> for StatsReply<'a> {
    fn from(body: StatsReplyBody<'a>) -> Self {
        Self { flags: StatsFlags::NONE, body }
    }
}

impl<'a> Decode<'a> for StatsReply<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let type_ = StatsType::read(r)?;
        let flags = StatsFlags::read(r)?;
        let body = match type_ {
            StatsType::DESC => StatsReplyBody::Desc(Decode::read(r)?),
            StatsType::FLOW => StatsReplyBody::Flow(Decode::read(r)?),
            StatsType::AGGREGATE => StatsReplyBody::Aggregate(Decode::read(r)?),
            StatsType::TABLE => StatsReplyBody::Table(Decode::read(r)?),
            StatsType::PORT => StatsReplyBody::Port(Decode::read(r)?),
            StatsType::QUEUE => StatsReplyBody::Queue(Decode::read(r)?),
            StatsType::VENDOR => {
                StatsReplyBody::Vendor { vendor: Decode::read(r)?, body: r.take_rest() }
            }
            StatsType(type_) => StatsReplyBody::Unknown { type_, body: r.take_rest() },
        };
        Ok(Self { flags, body })
    }
}

impl Encode for StatsReply<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        self.type_().write(out);
        self.flags.write(out);
        match self.body {
            StatsReplyBody::Desc(body) => body.write(out),
            StatsReplyBody::Flow(list) => list.write(out),
            StatsReplyBody::Aggregate(body) => body.write(out),
            StatsReplyBody::Table(list) => list.write(out),
            StatsReplyBody::Port(list) => list.write(out),
            StatsReplyBody::Queue(list) => list.write(out),
            StatsReplyBody::Vendor { vendor, body } => {
                vendor.write(out);
                body.write(out);
            }
            StatsReplyBody::Unknown { body, .. } => body.write(out),
        }
    }
}

standalone!(StatsReply<'a>: Body);

/// `struct ofp_desc_stats`: what the switch is, in words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DescStats<'a> {
    /// Manufacturer.
    pub mfr_desc: Text<'a, 256>,
    /// Hardware.
    pub hw_desc: Text<'a, 256>,
    /// Software.
    pub sw_desc: Text<'a, 256>,
    /// Serial number.
    pub serial_num: Text<'a, 32>,
    /// This very datapath.
    pub dp_desc: Text<'a, 256>,
}

layout!(DescStats<'a>: Statistics { mfr_desc, hw_desc, sw_desc, serial_num, dp_desc });

/// `struct ofp_flow_stats`: one flow entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FlowStats<'a> {
    /// The table that it is in.
    pub table_id: u8,
    /// Its match.
    pub match_: Match,
    /// How long it has been there, in seconds.
    pub duration_sec: u32,
    /// And nanoseconds beyond.
    pub duration_nsec: u32,
    /// Its priority; without meaning if the match has no wildcards.
    pub priority: u16,
    /// Its idle time-out in seconds.
    pub idle_timeout: u16,
    /// Its hard time-out in seconds.
    pub hard_timeout: u16,
    /// Its cookie.
    pub cookie: u64,
    /// Packets that it matched.
    pub packet_count: u64,
    /// Bytes in them.
    pub byte_count: u64,
    /// What it does.
    pub actions: List<'a, Action<'a>>,
}

impl<'a> Decode<'a> for FlowStats<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut r = r.element(Part::Statistics, 0, 88, 8)?;
        let r = &mut r;
        r.skip(2)?;
        let table_id = Decode::read(r)?;
        r.skip(1)?;
        let match_ = Decode::read(r)?;
        let duration_sec = Decode::read(r)?;
        let duration_nsec = Decode::read(r)?;
        let priority = Decode::read(r)?;
        let idle_timeout = Decode::read(r)?;
        let hard_timeout = Decode::read(r)?;
        r.skip(6)?;
        Ok(Self {
            table_id,
            match_,
            duration_sec,
            duration_nsec,
            priority,
            idle_timeout,
            hard_timeout,
            cookie: Decode::read(r)?,
            packet_count: Decode::read(r)?,
            byte_count: Decode::read(r)?,
            actions: Decode::read(r)?,
        })
    }
}

impl Encode for FlowStats<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        pad(out, 2);
        self.table_id.write(out);
        pad(out, 1);
        self.match_.write(out);
        self.duration_sec.write(out);
        self.duration_nsec.write(out);
        self.priority.write(out);
        self.idle_timeout.write(out);
        self.hard_timeout.write(out);
        pad(out, 6);
        self.cookie.write(out);
        self.packet_count.write(out);
        self.byte_count.write(out);
        self.actions.write(out);
        set_length(out, start, 0);
    }
}

standalone!(FlowStats<'a>: Statistics);

/// `struct ofp_aggregate_stats_reply`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AggregateStats {
    /// Packets that the entries matched.
    pub packet_count: u64,
    /// Bytes in them.
    pub byte_count: u64,
    /// How many entries there are.
    pub flow_count: u32,
}

layout!(AggregateStats: Statistics { packet_count, byte_count, flow_count, [4] });

/// `struct ofp_table_stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TableStats {
    /// The table's number; packets see lower ones first.
    pub table_id: u8,
    /// Its name.
    pub name: Name<32>,
    /// The wildcards that it supports.
    pub wildcards: Wildcards,
    /// How many entries it can hold.
    pub max_entries: u32,
    /// How many it holds.
    pub active_count: u32,
    /// Packets that were looked up in it.
    pub lookup_count: u64,
    /// Packets that hit.
    pub matched_count: u64,
}

layout!(TableStats: Statistics {
    table_id, [3], name, wildcards, max_entries, active_count, lookup_count, matched_count,
});

/// `struct ofp_port_stats`. A counter that the port does not have is all ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PortStats {
    /// The port.
    pub port_no: PortNo,
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets dropped on receipt.
    pub rx_dropped: u64,
    /// Packets dropped on sending.
    pub tx_dropped: u64,
    /// Errors on receipt: at least the sum of the three below.
    pub rx_errors: u64,
    /// Errors on sending.
    pub tx_errors: u64,
    /// Frame alignment errors.
    pub rx_frame_err: u64,
    /// Packets lost to overrun.
    pub rx_over_err: u64,
    /// CRC errors.
    pub rx_crc_err: u64,
    /// Collisions.
    pub collisions: u64,
}

layout!(PortStats: Statistics {
    port_no, [6], rx_packets, tx_packets, rx_bytes, tx_bytes, rx_dropped, tx_dropped, rx_errors, tx_errors,
    rx_frame_err, rx_over_err, rx_crc_err, collisions,
});

/// `struct ofp_queue_stats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueueStats {
    /// The port.
    pub port_no: PortNo,
    /// The queue on it.
    pub queue_id: u32,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Packets dropped because the queue was full.
    pub tx_errors: u64,
}

layout!(QueueStats: Statistics { port_no, [2], queue_id, tx_bytes, tx_packets, tx_errors });
