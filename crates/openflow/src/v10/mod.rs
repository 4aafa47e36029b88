//! OpenFlow 1.0 (wire version 0x01, specification 1.0.0). Start at [`Message`].

mod action;
mod flow;
mod flow_match;
mod message;
mod packet;
mod port;
mod queue;
mod stats;
mod switch;

pub use crate::NO_BUFFER;
pub use crate::error::{Error, v10 as error};
pub use action::Action;
pub use flow::{FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowRemovedReason};
pub use flow_match::{Match, VLAN_NONE, Wildcards};
pub use message::{Message, MessageType};
pub use packet::{PacketIn, PacketInReason, PacketOut};
pub use port::{
    PhyPort, PortConfig, PortFeatures, PortMod, PortNo, PortReason, PortState, PortStatus,
};
pub use queue::{
    PacketQueue, QUEUE_ALL, QueueGetConfigReply, QueueGetConfigRequest, QueueProperty,
};
pub use stats::{
    AggregateStats, DescStats, FlowStats, FlowStatsRequest, PortStats, QueueStats, StatsFlags,
    StatsReply, StatsReplyBody, StatsRequest, StatsRequestBody, StatsType, TABLE_ALL,
    TABLE_EMERGENCY, TableStats,
};
pub use switch::{
    Capabilities, ConfigFlags, FeaturesReply, SupportedActions, SwitchConfig, Vendor,
};
