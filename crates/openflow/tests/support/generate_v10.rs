//! Arbitrary messages of OpenFlow 1.0.

use super::generate::{Generate, Source, unknown_type};
use crate::generated;
use openflow::Hello;
use openflow::v10::*;

generated!(newtypes
    PortNo, PortConfig, PortState, PortFeatures, PortReason, Capabilities, SupportedActions, ConfigFlags, Wildcards,
    PacketInReason, FlowModCommand, FlowModFlags, FlowRemovedReason, StatsFlags,
);

generated! {
    PhyPort { port_no, hw_addr, name, config, state, curr, advertised, supported, peer }
    FeaturesReply<'s> { datapath_id, n_buffers, n_tables, capabilities, actions; ports: PhyPort }
    SwitchConfig { flags, miss_send_len }
    Vendor<'s> { vendor, body }
    PacketIn<'s> { buffer_id, total_len, in_port, reason, data }
    PacketOut<'s> { buffer_id, in_port, data; actions: Action }
    Match {
        wildcards, in_port, dl_src, dl_dst, dl_vlan, dl_vlan_pcp, dl_type, nw_tos, nw_proto, nw_src, nw_dst, tp_src,
        tp_dst,
    }
    FlowMod<'s> {
        match_, cookie, command, idle_timeout, hard_timeout, priority, buffer_id, out_port, flags; actions: Action
    }
    FlowRemoved {
        match_, cookie, priority, reason, duration_sec, duration_nsec, idle_timeout, packet_count, byte_count,
    }
    PortStatus { reason, desc }
    PortMod { port_no, hw_addr, config, mask, advertise }
    QueueGetConfigRequest { port }
    QueueGetConfigReply<'s> { port; queues: PacketQueue }
    PacketQueue<'s> { queue_id; properties: QueueProperty }
    StatsRequest<'s> { flags, body }
    FlowStatsRequest { match_, table_id, out_port }
    StatsReply<'s> { flags, body }
    DescStats<'s> { mfr_desc, hw_desc, sw_desc, serial_num, dp_desc }
    FlowStats<'s> {
        table_id, match_, duration_sec, duration_nsec, priority, idle_timeout, hard_timeout, cookie, packet_count,
        byte_count; actions: Action
    }
    AggregateStats { packet_count, byte_count, flow_count }
    TableStats { table_id, name, wildcards, max_entries, active_count, lookup_count, matched_count }
    PortStats {
        port_no, rx_packets, tx_packets, rx_bytes, tx_bytes, rx_dropped, tx_dropped, rx_errors, tx_errors,
        rx_frame_err, rx_over_err, rx_crc_err, collisions,
    }
    QueueStats { port_no, queue_id, tx_bytes, tx_packets, tx_errors }
}

impl<'s> Generate<'s> for Action<'s> {
    fn generate(source: &mut Source<'s>) -> Self {
        match source.below(14) {
            0 => Self::Output { port: source.any(), max_len: source.any() },
            1 => Self::SetVlanVid(source.any()),
            2 => Self::SetVlanPcp(source.any()),
            3 => Self::StripVlan,
            4 => Self::SetDlSrc(source.any()),
            5 => Self::SetDlDst(source.any()),
            6 => Self::SetNwSrc(source.any()),
            7 => Self::SetNwDst(source.any()),
            8 => Self::SetNwTos(source.any()),
            9 => Self::SetTpSrc(source.any()),
            10 => Self::SetTpDst(source.any()),
            11 => Self::Enqueue { port: source.any(), queue_id: source.any() },
            12 => Self::Vendor { vendor: source.any(), body: source.aligned(0) },
            _ => Self::Unknown { type_: unknown_type(source), body: source.aligned(4) },
        }
    }
}

impl<'s> Generate<'s> for QueueProperty<'s> {
    fn generate(source: &mut Source<'s>) -> Self {
        match source.below(3) {
            0 => Self::None,
            1 => Self::MinRate(source.any()),
            _ => Self::Unknown { type_: unknown_type(source), body: source.aligned(0) },
        }
    }
}

impl<'s> Generate<'s> for StatsRequestBody<'s> {
    fn generate(source: &mut Source<'s>) -> Self {
        match source.below(8) {
            0 => Self::Desc,
            1 => Self::Flow(source.any()),
            2 => Self::Aggregate(source.any()),
            3 => Self::Table,
            4 => Self::Port { port_no: source.any() },
            5 => Self::Queue { port_no: source.any(), queue_id: source.any() },
            6 => Self::Vendor { vendor: source.any(), body: source.any() },
            _ => Self::Unknown { type_: unknown_type(source), body: source.any() },
        }
    }
}

impl<'s> Generate<'s> for StatsReplyBody<'s> {
    fn generate(source: &mut Source<'s>) -> Self {
        match source.below(8) {
            0 => Self::Desc(source.any()),
            1 => Self::Flow(source.list::<FlowStats<'_>>()),
            2 => Self::Aggregate(source.any()),
            3 => Self::Table(source.list::<TableStats>()),
            4 => Self::Port(source.list::<PortStats>()),
            5 => Self::Queue(source.list::<QueueStats>()),
            6 => Self::Vendor { vendor: source.any(), body: source.any() },
            _ => Self::Unknown { type_: unknown_type(source), body: source.any() },
        }
    }
}

impl<'s> Generate<'s> for Message<'s> {
    fn generate(source: &mut Source<'s>) -> Self {
        match source.below(23) {
            0 => Self::Hello(Hello { body: source.any() }),
            1 => Self::Error(source.any()),
            2 => Self::EchoRequest(source.any()),
            3 => Self::EchoReply(source.any()),
            4 => Self::Vendor(source.any()),
            5 => Self::FeaturesRequest,
            6 => Self::FeaturesReply(source.any()),
            7 => Self::GetConfigRequest,
            8 => Self::GetConfigReply(source.any()),
            9 => Self::SetConfig(source.any()),
            10 => Self::PacketIn(source.any()),
            11 => Self::FlowRemoved(source.any()),
            12 => Self::PortStatus(source.any()),
            13 => Self::PacketOut(source.any()),
            14 => Self::FlowMod(source.any()),
            15 => Self::PortMod(source.any()),
            16 => Self::StatsRequest(source.any()),
            17 => Self::StatsReply(source.any()),
            18 => Self::BarrierRequest,
            19 => Self::BarrierReply,
            20 => Self::QueueGetConfigRequest(source.any()),
            21 => Self::QueueGetConfigReply(source.any()),
            _ => Self::Unknown { type_: 0x80 | source.any::<u8>(), body: source.any() },
        }
    }
}
