//! Arbitrary messages of OpenFlow 1.3.

use super::generate::{Generate, Source, unknown_type};
use crate::generated;
use openflow::Hello;
use openflow::v13::*;

generated!(newtypes
    PortNo, PortConfig, PortState, PortFeatures, PortReason, Capabilities, ConfigFlags, PacketInReason, FlowModCommand,
    FlowModFlags, FlowRemovedReason, GroupModCommand, GroupType, GroupCapabilities, MeterModCommand, MeterFlags, Role,
    MultipartFlags,
);

generated! {
    Experimenter<'s> { experimenter, exp_type, body }
    FeaturesReply { datapath_id, n_buffers, n_tables, auxiliary_id, capabilities, reserved }
    SwitchConfig { flags, miss_send_len }
    Match<'s> { ; fields: Oxm }
    PacketIn<'s> { buffer_id, total_len, reason, table_id, cookie, match_, data }
    PacketOut<'s> { buffer_id, in_port, data; actions: Action }
    FlowMod<'s> {
        cookie, cookie_mask, table_id, command, idle_timeout, hard_timeout, priority, buffer_id, out_port, out_group,
        flags, match_; instructions: Instruction
    }
    FlowRemoved<'s> {
        cookie, priority, reason, table_id, duration_sec, duration_nsec, idle_timeout, hard_timeout, packet_count,
        byte_count, match_,
    }
    Port {
        port_no, hw_addr, name, config, state, curr, advertised, supported, peer, curr_speed, max_speed,
    }
    PortStatus { reason, desc }
    PortMod { port_no, hw_addr, config, mask, advertise }
    GroupMod<'s> { command, type_, group_id; buckets: Bucket }
    Bucket<'s> { weight, watch_port, watch_group; actions: Action }
    GroupStats<'s> {
        group_id, ref_count, packet_count, byte_count, duration_sec, duration_nsec; bucket_stats: BucketCounter
    }
    BucketCounter { packet_count, byte_count }
    GroupDesc<'s> { type_, group_id; buckets: Bucket }
    GroupFeatures { types, capabilities, max_groups, actions }
    TableMod { table_id, config }
    MeterMod<'s> { command, flags, meter_id; bands: MeterBand }
    MeterStats<'s> {
        meter_id, flow_count, packet_in_count, byte_in_count, duration_sec, duration_nsec;
        band_stats: MeterBandCounter
    }
    MeterBandCounter { packet_band_count, byte_band_count }
    MeterConfig<'s> { flags, meter_id; bands: MeterBand }
    MeterFeatures { max_meter, band_types, capabilities, max_bands, max_color }
    RoleBody { role, generation_id }
    AsyncConfig { packet_in_mask, port_status_mask, flow_removed_mask }
    QueueGetConfigRequest { port }
    QueueGetConfigReply<'s> { port; queues: PacketQueue }
    PacketQueue<'s> { queue_id, port; properties: QueueProperty }
    MultipartRequest<'s> { flags, body }
    MultipartReply<'s> { flags, body }
    FlowStatsRequest<'s> { table_id, out_port, out_group, cookie, cookie_mask, match_ }
    FlowStats<'s> {
        table_id, duration_sec, duration_nsec, priority, idle_timeout, hard_timeout, flags, cookie, packet_count,
        byte_count, match_; instructions: Instruction
    }
    TableStats { table_id, active_count, lookup_count, matched_count }
    PortStats {
        port_no, rx_packets, tx_packets, rx_bytes, tx_bytes, rx_dropped, tx_dropped, rx_errors, tx_errors,
        rx_frame_err, rx_over_err, rx_crc_err, collisions, duration_sec, duration_nsec,
    }
    QueueStats { port_no, queue_id, tx_bytes, tx_packets, tx_errors, duration_sec, duration_nsec }
    TableFeatures<'s> {
        table_id, name, metadata_match, metadata_write, config, max_entries; properties: TableFeaturesProperty
    }
    ActionId<'s> { type_, body }
    InstructionId<'s> { type_, body }
}

impl<'s> Generate<'s> for Oxm<'s> {
    fn generate(source: &mut Source<'s>) -> Self {
        let (class, experimenter) = match source.below(8) {
            0 => (OxmClass::EXPERIMENTER, Some(source.any())),
            1 => (OxmClass(source.any::<u16>() & 0x7fff), None),
            _ => (OxmClass::OPENFLOW_BASIC, None),
        };
        let field = OxmField(source.any::<u8>() & 0x7f);
        let length = match field.value_len() {
            Some(length) if class == OxmClass::OPENFLOW_BASIC => length,
            _ => usize::from(source.below(40)),
        };
        let value = source.filled(length);
        let mask = (source.below(2) == 1).then(|| source.filled(length));
        Self { class, field, experimenter, value, mask }
    }
}

impl<'s> Generate<'s> for OxmId {
    fn generate(source: &mut Source<'s>) -> Self {
        source.any::<Oxm<'s>>().id()
    }
}

impl<'s> Generate<'s> for Action<'s> {
    fn generate(source: &mut Source<'s>) -> Self {
        match source.below(18) {
            0 => Self::Output { port: source.any(), max_len: source.any() },
            1 => Self::CopyTtlOut,
            2 => Self::CopyTtlIn,
            3 => Self::SetMplsTtl(source.any()),
            4 => Self::DecMplsTtl,
            5 => Self::PushVlan(source.any()),
            6 => Self::PopVlan,
            7 => Self::PushMpls(source.any()),
            8 => Self::PopMpls(source.any()),
            9 => Self::SetQueue(source.any()),
            10 => Self::Group(source.any()),
            11 => Self::SetNwTtl(source.any()),
            12 => Self::DecNwTtl,
            13 => Self::SetField(source.any()),
            14 => Self::PushPbb(source.any()),
            15 => Self::PopPbb,
            16 => Self::Experimenter { experimenter: source.any(), body: source.aligned(0) },
            _ => Self::Unknown { type_: unknown_type(source), body: source.aligned(4) },
        }
    }
}

impl<'s> Generate<'s> for Instruction<'s> {
    fn generate(source: &mut Source<'s>) -> Self {
        match source.below(8) {
            0 => Self::GotoTable(source.any()),
            1 => Self::WriteMetadata { metadata: source.any(), mask: source.any() },
            2 => Self::WriteActions(source.list::<Action<'_>>()),
            3 => Self::ApplyActions(source.list::<Action<'_>>()),
            4 => Self::ClearActions,
            5 => Self::Meter(source.any()),
            6 => Self::Experimenter { experimenter: source.any(), body: source.aligned(0) },
            _ => Self::Unknown { type_: unknown_type(source), body: source.aligned(4) },
        }
    }
}

impl<'s> Generate<'s> for MeterBand<'s> {
    fn generate(source: &mut Source<'s>) -> Self {
        let (rate, burst_size) = (source.any(), source.any());
        match source.below(4) {
            0 => Self::Drop { rate, burst_size },
            1 => Self::DscpRemark { rate, burst_size, prec_level: source.any() },
            2 => Self::Experimenter {
                rate,
                burst_size,
                experimenter: source.any(),
                body: source.aligned(0),
            },
            _ => Self::Unknown {
                type_: unknown_type(source),
                rate,
                burst_size,
                body: source.aligned(4),
            },
        }
    }
}

impl<'s> Generate<'s> for QueueProperty<'s> {
    fn generate(source: &mut Source<'s>) -> Self {
        match source.below(4) {
            0 => Self::MinRate(source.any()),
            1 => Self::MaxRate(source.any()),
            2 => Self::Experimenter { experimenter: source.any(), body: source.aligned(0) },
            _ => Self::Unknown { type_: unknown_type(source), body: source.aligned(0) },
        }
    }
}

impl<'s> Generate<'s> for TableFeaturesProperty<'s> {
    fn generate(source: &mut Source<'s>) -> Self {
        match source.below(15) {
            0 => Self::Instructions(source.list::<InstructionId<'_>>()),
            1 => Self::InstructionsMiss(source.list::<InstructionId<'_>>()),
            2 => Self::NextTables(source.any()),
            3 => Self::NextTablesMiss(source.any()),
            4 => Self::WriteActions(source.list::<ActionId<'_>>()),
            5 => Self::WriteActionsMiss(source.list::<ActionId<'_>>()),
            6 => Self::ApplyActions(source.list::<ActionId<'_>>()),
            7 => Self::ApplyActionsMiss(source.list::<ActionId<'_>>()),
            8 => Self::Match(source.list::<OxmId>()),
            9 => Self::Wildcards(source.list::<OxmId>()),
            10 => Self::WriteSetField(source.list::<OxmId>()),
            11 => Self::WriteSetFieldMiss(source.list::<OxmId>()),
            12 => Self::ApplySetField(source.list::<OxmId>()),
            13 => Self::ApplySetFieldMiss(source.list::<OxmId>()),
            _ => Self::Unknown { type_: unknown_type(source), body: source.any() },
        }
    }
}

impl<'s> Generate<'s> for MultipartRequestBody<'s> {
    fn generate(source: &mut Source<'s>) -> Self {
        match source.below(16) {
            0 => Self::Desc,
            1 => Self::Flow(source.any()),
            2 => Self::Aggregate(source.any()),
            3 => Self::Table,
            4 => Self::PortStats { port_no: source.any() },
            5 => Self::Queue { port_no: source.any(), queue_id: source.any() },
            6 => Self::Group { group_id: source.any() },
            7 => Self::GroupDesc,
            8 => Self::GroupFeatures,
            9 => Self::Meter { meter_id: source.any() },
            10 => Self::MeterConfig { meter_id: source.any() },
            11 => Self::MeterFeatures,
            12 => Self::TableFeatures(source.list::<TableFeatures<'_>>()),
            13 => Self::PortDesc,
            14 => Self::Experimenter {
                experimenter: source.any(),
                exp_type: source.any(),
                body: source.any(),
            },
            _ => Self::Unknown { type_: unknown_type(source), body: source.any() },
        }
    }
}

impl<'s> Generate<'s> for MultipartReplyBody<'s> {
    fn generate(source: &mut Source<'s>) -> Self {
        match source.below(16) {
            0 => Self::Desc(source.any()),
            1 => Self::Flow(source.list::<FlowStats<'_>>()),
            2 => Self::Aggregate(source.any()),
            3 => Self::Table(source.list::<TableStats>()),
            4 => Self::PortStats(source.list::<PortStats>()),
            5 => Self::Queue(source.list::<QueueStats>()),
            6 => Self::Group(source.list::<GroupStats<'_>>()),
            7 => Self::GroupDesc(source.list::<GroupDesc<'_>>()),
            8 => Self::GroupFeatures(source.any()),
            9 => Self::Meter(source.list::<MeterStats<'_>>()),
            10 => Self::MeterConfig(source.list::<MeterConfig<'_>>()),
            11 => Self::MeterFeatures(source.any()),
            12 => Self::TableFeatures(source.list::<TableFeatures<'_>>()),
            13 => Self::PortDesc(source.list::<Port>()),
            14 => Self::Experimenter {
                experimenter: source.any(),
                exp_type: source.any(),
                body: source.any(),
            },
            _ => Self::Unknown { type_: unknown_type(source), body: source.any() },
        }
    }
}

impl<'s> Generate<'s> for Message<'s> {
    fn generate(source: &mut Source<'s>) -> Self {
        match source.below(31) {
            0 => Self::Hello(Hello { body: source.any() }),
            1 => Self::Error(source.any()),
            2 => Self::EchoRequest(source.any()),
            3 => Self::EchoReply(source.any()),
            4 => Self::Experimenter(source.any()),
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
            15 => Self::GroupMod(source.any()),
            16 => Self::PortMod(source.any()),
            17 => Self::TableMod(source.any()),
            18 => Self::MultipartRequest(source.any()),
            19 => Self::MultipartReply(source.any()),
            20 => Self::BarrierRequest,
            21 => Self::BarrierReply,
            22 => Self::QueueGetConfigRequest(source.any()),
            23 => Self::QueueGetConfigReply(source.any()),
            24 => Self::RoleRequest(source.any()),
            25 => Self::RoleReply(source.any()),
            26 => Self::GetAsyncRequest,
            27 => Self::GetAsyncReply(source.any()),
            28 => Self::SetAsync(source.any()),
            29 => Self::MeterMod(source.any()),
            _ => Self::Unknown { type_: 0x80 | source.any::<u8>(), body: source.any() },
        }
    }
}
