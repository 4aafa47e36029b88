//! Statistics of flow entries, tables, ports and queues (specification 1.3.5, sections 7.3.5.1 to 7.3.5.4, 7.3.5.6,
//! 7.3.5.8). Those of groups and meters stand with them.

use super::flow::FlowModFlags;
use super::flow_match::Match;
use super::group::GROUP_ANY;
use super::instruction::Instruction;
use super::port::PortNo;
use super::table::TABLE_ALL;
use crate::fault::{DecodeError, Part};
use crate::list::List;
use crate::wire::{Decode, Encode, Reader, pad, set_length};
use alloc::vec::Vec;

pub use crate::v10::{AggregateStats, DescStats};

/// `struct ofp_flow_stats_request` and `struct ofp_aggregate_stats_request`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowStatsRequest<'a> {
    /// Entries in this table, or [`TABLE_ALL`].
    pub table_id: u8,
    /// That output to this port; `PortNo::ANY` is no condition.
    pub out_port: PortNo,
    /// That use this group; [`GROUP_ANY`] is no condition.
    pub out_group: u32,
    /// Whose cookie is this one,
    pub cookie: u64,
    /// in these bits.
    pub cookie_mask: u64,
    /// That this match covers.
    pub match_: Match<'a>,
}

/// All entries.
impl Default for FlowStatsRequest<'_> {
    fn default() -> Self {
        Self {
            table_id: TABLE_ALL,
            out_port: PortNo::ANY,
            out_group: GROUP_ANY,
            cookie: 0,
            cookie_mask: 0,
            match_: Match::ANY,
        }
    }
}

layout!(FlowStatsRequest<'a>: Body { table_id, [3], out_port, out_group, [4], cookie, cookie_mask, match_ });

/// `struct ofp_flow_stats`: one flow entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FlowStats<'a> {
    /// The table that it is in.
    pub table_id: u8,
    /// How long it has been there, in seconds.
    pub duration_sec: u32,
    /// And nanoseconds beyond.
    pub duration_nsec: u32,
    /// Its priority.
    pub priority: u16,
    /// Its idle time-out in seconds.
    pub idle_timeout: u16,
    /// Its hard time-out in seconds.
    pub hard_timeout: u16,
    /// The flags that it was added with.
    pub flags: FlowModFlags,
    /// Its cookie.
    pub cookie: u64,
    /// Packets that it matched.
    pub packet_count: u64,
    /// Bytes in them.
    pub byte_count: u64,
    /// Its match.
    pub match_: Match<'a>,
    /// What it does.
    pub instructions: List<'a, Instruction<'a>>,
}

impl<'a> Decode<'a> for FlowStats<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut r = r.element(Part::Statistics, 0, 56, 8)?;
        let r = &mut r;
        r.skip(2)?;
        let table_id = Decode::read(r)?;
        r.skip(1)?;
        let duration_sec = Decode::read(r)?;
        let duration_nsec = Decode::read(r)?;
        let priority = Decode::read(r)?;
        let idle_timeout = Decode::read(r)?;
        let hard_timeout = Decode::read(r)?;
        let flags = Decode::read(r)?;
        r.skip(4)?;
        Ok(Self {
            table_id,
            duration_sec,
            duration_nsec,
            priority,
            idle_timeout,
            hard_timeout,
            flags,
            cookie: Decode::read(r)?,
            packet_count: Decode::read(r)?,
            byte_count: Decode::read(r)?,
            match_: Decode::read(r)?,
            instructions: Decode::read(r)?,
        })
    }
}

impl Encode for FlowStats<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        pad(out, 2);
        self.table_id.write(out);
        pad(out, 1);
        self.duration_sec.write(out);
        self.duration_nsec.write(out);
        self.priority.write(out);
        self.idle_timeout.write(out);
        self.hard_timeout.write(out);
        self.flags.write(out);
        pad(out, 4);
        self.cookie.write(out);
        self.packet_count.write(out);
        self.byte_count.write(out);
        self.match_.write(out);
        self.instructions.write(out);
        set_length(out, start, 0);
    }
}

standalone!(FlowStats<'a>: Statistics);

/// `struct ofp_table_stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TableStats {
    /// The table's number; packets see lower ones first.
    pub table_id: u8,
    /// How many entries it holds.
    pub active_count: u32,
    /// Packets that were looked up in it.
    pub lookup_count: u64,
    /// Packets that hit.
    pub matched_count: u64,
}

layout!(TableStats: Statistics { table_id, [3], active_count, lookup_count, matched_count });

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
    /// How long the port has been there, in seconds.
    pub duration_sec: u32,
    /// And nanoseconds beyond.
    pub duration_nsec: u32,
}

layout!(PortStats: Statistics {
    port_no, [4], rx_packets, tx_packets, rx_bytes, tx_bytes, rx_dropped, tx_dropped, rx_errors, tx_errors,
    rx_frame_err, rx_over_err, rx_crc_err, collisions, duration_sec, duration_nsec
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
    /// How long the queue has been there, in seconds.
    pub duration_sec: u32,
    /// And nanoseconds beyond.
    pub duration_nsec: u32,
}

layout!(QueueStats: Statistics {
    port_no, queue_id, tx_bytes, tx_packets, tx_errors, duration_sec, duration_nsec
});
