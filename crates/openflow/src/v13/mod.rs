//! OpenFlow 1.3 (wire version 0x04, specification 1.3.5). Start at [`Message`].

mod action;
mod controller;
mod flow;
mod flow_match;
mod group;
mod instruction;
mod message;
mod meter;
mod multipart;
mod oxm;
mod packet;
mod port;
mod queue;
mod stats;
mod switch;
mod table;
mod table_features;

pub use crate::NO_BUFFER;
pub use crate::error::{Error, v13 as error};
pub use action::{Action, ActionId};
pub use controller::{AsyncConfig, Role, RoleBody};
pub use flow::{FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowRemovedReason};
pub use flow_match::{Match, MatchBuf};
pub use group::{
    Bucket, BucketCounter, GROUP_ALL, GROUP_ANY, GROUP_MAX, GroupCapabilities, GroupDesc,
    GroupFeatures, GroupMod, GroupModCommand, GroupStats, GroupType,
};
pub use instruction::{Instruction, InstructionId};
pub use message::{Message, MessageType};
pub use meter::{
    METER_ALL, METER_CONTROLLER, METER_MAX, METER_SLOWPATH, MeterBand, MeterBandCounter,
    MeterConfig, MeterFeatures, MeterFlags, MeterMod, MeterModCommand, MeterStats,
};
pub use multipart::{
    MultipartFlags, MultipartReply, MultipartReplyBody, MultipartRequest, MultipartRequestBody,
    MultipartType,
};
pub use oxm::{Oxm, OxmClass, OxmField, OxmId, VLAN_NONE, VLAN_PRESENT};
pub use packet::{CONTROLLER_NO_BUFFER, PacketIn, PacketInReason, PacketOut};
pub use port::{
    Port, PortConfig, PortFeatures, PortMod, PortNo, PortReason, PortState, PortStatus,
};
pub use queue::{
    PacketQueue, QUEUE_ALL, QueueGetConfigReply, QueueGetConfigRequest, QueueProperty,
};
pub use stats::{
    AggregateStats, DescStats, FlowStats, FlowStatsRequest, PortStats, QueueStats, TableStats,
};
pub use switch::{Capabilities, ConfigFlags, Experimenter, FeaturesReply, SwitchConfig};
pub use table::{TABLE_ALL, TABLE_MAX, TableMod};
pub use table_features::{TableFeatures, TableFeaturesProperty};
