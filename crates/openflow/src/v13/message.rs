//! Every message of OpenFlow 1.3, read and written.

use super::controller::{AsyncConfig, RoleBody};
use super::flow::{FlowMod, FlowRemoved};
use super::group::GroupMod;
use super::meter::MeterMod;
use super::multipart::{MultipartReply, MultipartRequest};
use super::packet::{PacketIn, PacketOut};
use super::port::{PortMod, PortStatus};
use super::queue::{QueueGetConfigReply, QueueGetConfigRequest};
use super::switch::{Experimenter, FeaturesReply, SwitchConfig};
use super::table::TableMod;
use crate::error::Error;
use crate::fault::{DecodeError, Part, TooLong};
use crate::header::{Header, Version};
use crate::hello::Hello;
use crate::wire::{Decode, Encode, Reader};
use alloc::vec::Vec;

open_enum! {
    /// `enum ofp_type`.
    pub struct MessageType(u8) {
        /// Either side, first on the connection.
        HELLO = 0,
        /// Either side: a message failed.
        ERROR = 1,
        /// Either side: are you there?
        ECHO_REQUEST = 2,
        /// The answer, with the same data.
        ECHO_REPLY = 3,
        /// Either side: an experimenter's own message.
        EXPERIMENTER = 4,
        /// Controller: who are you?
        FEATURES_REQUEST = 5,
        /// Switch: datapath id and capabilities.
        FEATURES_REPLY = 6,
        /// Controller: how are you configured?
        GET_CONFIG_REQUEST = 7,
        /// Switch: fragment handling and miss_send_len.
        GET_CONFIG_REPLY = 8,
        /// Controller: be configured like this.
        SET_CONFIG = 9,
        /// Switch: a packet for the controller.
        PACKET_IN = 10,
        /// Switch: a flow entry is gone.
        FLOW_REMOVED = 11,
        /// Switch: a port came, went or changed.
        PORT_STATUS = 12,
        /// Controller: send this packet.
        PACKET_OUT = 13,
        /// Controller: change a flow table.
        FLOW_MOD = 14,
        /// Controller: change the group table.
        GROUP_MOD = 15,
        /// Controller: change a port's behaviour.
        PORT_MOD = 16,
        /// Controller: change a table's behaviour.
        TABLE_MOD = 17,
        /// Controller: statistics and descriptions.
        MULTIPART_REQUEST = 18,
        /// Switch: these, in one or several parts.
        MULTIPART_REPLY = 19,
        /// Controller: asks for a reply when all messages before this one are done.
        BARRIER_REQUEST = 20,
        /// Switch: it is.
        BARRIER_REPLY = 21,
        /// Controller: which queues has this port?
        QUEUE_GET_CONFIG_REQUEST = 22,
        /// Switch: these.
        QUEUE_GET_CONFIG_REPLY = 23,
        /// Controller: let me have this role.
        ROLE_REQUEST = 24,
        /// Switch: you have it.
        ROLE_REPLY = 25,
        /// Controller: which asynchronous messages do I get?
        GET_ASYNC_REQUEST = 26,
        /// Switch: these.
        GET_ASYNC_REPLY = 27,
        /// Controller: let me have these.
        SET_ASYNC = 28,
        /// Controller: change the meter table.
        METER_MOD = 29,
    }
}

impl MessageType {
    /// The type of the reply that a request of this type gets, if it gets one. An EXPERIMENTER message may or may not.
    pub const fn reply(self) -> Option<Self> {
        match self {
            Self::ECHO_REQUEST => Some(Self::ECHO_REPLY),
            Self::FEATURES_REQUEST => Some(Self::FEATURES_REPLY),
            Self::GET_CONFIG_REQUEST => Some(Self::GET_CONFIG_REPLY),
            Self::MULTIPART_REQUEST => Some(Self::MULTIPART_REPLY),
            Self::BARRIER_REQUEST => Some(Self::BARRIER_REPLY),
            Self::QUEUE_GET_CONFIG_REQUEST => Some(Self::QUEUE_GET_CONFIG_REPLY),
            Self::ROLE_REQUEST => Some(Self::ROLE_REPLY),
            Self::GET_ASYNC_REQUEST => Some(Self::GET_ASYNC_REPLY),
            _ => None,
        }
    }

    /// Whether the message is a reply to a request.
    pub const fn is_reply(self) -> bool {
        matches!(
            self,
            Self::ECHO_REPLY
                | Self::FEATURES_REPLY
                | Self::GET_CONFIG_REPLY
                | Self::MULTIPART_REPLY
                | Self::BARRIER_REPLY
                | Self::QUEUE_GET_CONFIG_REPLY
                | Self::ROLE_REPLY
                | Self::GET_ASYNC_REPLY
        )
    }

    /// Whether the message changes the switch or sends packets. A switch refuses such a message from a slave
    /// (specification 1.3.5, section 6.3.5).
    pub const fn changes_the_switch(self) -> bool {
        matches!(
            self,
            Self::PACKET_OUT
                | Self::FLOW_MOD
                | Self::GROUP_MOD
                | Self::PORT_MOD
                | Self::TABLE_MOD
                | Self::METER_MOD
        )
    }
}

/// A message of OpenFlow 1.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// See [`MessageType::HELLO`].
    Hello(Hello<'a>),
    /// See [`MessageType::ERROR`].
    Error(Error<'a>),
    /// See [`MessageType::ECHO_REQUEST`].
    EchoRequest(&'a [u8]),
    /// See [`MessageType::ECHO_REPLY`].
    EchoReply(&'a [u8]),
    /// See [`MessageType::EXPERIMENTER`].
    Experimenter(Experimenter<'a>),
    /// See [`MessageType::FEATURES_REQUEST`].
    FeaturesRequest,
    /// See [`MessageType::FEATURES_REPLY`].
    FeaturesReply(FeaturesReply),
    /// See [`MessageType::GET_CONFIG_REQUEST`].
    GetConfigRequest,
    /// See [`MessageType::GET_CONFIG_REPLY`].
    GetConfigReply(SwitchConfig),
    /// See [`MessageType::SET_CONFIG`].
    SetConfig(SwitchConfig),
    /// See [`MessageType::PACKET_IN`].
    PacketIn(PacketIn<'a>),
    /// See [`MessageType::FLOW_REMOVED`].
    FlowRemoved(FlowRemoved<'a>),
    /// See [`MessageType::PORT_STATUS`].
    PortStatus(PortStatus),
    /// See [`MessageType::PACKET_OUT`].
    PacketOut(PacketOut<'a>),
    /// See [`MessageType::FLOW_MOD`].
    FlowMod(FlowMod<'a>),
    /// See [`MessageType::GROUP_MOD`].
    GroupMod(GroupMod<'a>),
    /// See [`MessageType::PORT_MOD`].
    PortMod(PortMod),
    /// See [`MessageType::TABLE_MOD`].
    TableMod(TableMod),
    /// See [`MessageType::MULTIPART_REQUEST`].
    MultipartRequest(MultipartRequest<'a>),
    /// See [`MessageType::MULTIPART_REPLY`].
    MultipartReply(MultipartReply<'a>),
    /// See [`MessageType::BARRIER_REQUEST`].
    BarrierRequest,
    /// See [`MessageType::BARRIER_REPLY`].
    BarrierReply,
    /// See [`MessageType::QUEUE_GET_CONFIG_REQUEST`].
    QueueGetConfigRequest(QueueGetConfigRequest),
    /// See [`MessageType::QUEUE_GET_CONFIG_REPLY`].
    QueueGetConfigReply(QueueGetConfigReply<'a>),
    /// See [`MessageType::ROLE_REQUEST`].
    RoleRequest(RoleBody),
    /// See [`MessageType::ROLE_REPLY`].
    RoleReply(RoleBody),
    /// See [`MessageType::GET_ASYNC_REQUEST`].
    GetAsyncRequest,
    /// See [`MessageType::GET_ASYNC_REPLY`].
    GetAsyncReply(AsyncConfig),
    /// See [`MessageType::SET_ASYNC`].
    SetAsync(AsyncConfig),
    /// See [`MessageType::METER_MOD`].
    MeterMod(MeterMod<'a>),
    /// A type that the specification does not name.
    Unknown {
        /// The type.
        type_: u8,
        /// Everything behind the header.
        body: &'a [u8],
    },
}

impl<'a> Message<'a> {
    /// Reads one whole frame.
    ///
    /// # Errors
    /// The frame is not as long as its header says, is of another version, or its body is not well-formed.
    pub fn parse(frame: &'a [u8]) -> Result<(Header, Self), DecodeError> {
        let header = Header::parse_whole(frame)?;
        if header.version != Version::V1_3 {
            return Err(DecodeError::Version { version: header.version.0 });
        }
        let mut reader =
            Reader::at(frame.get(Header::LEN..).unwrap_or_default(), Header::LEN, Part::Body);
        let message = Self::read_body(MessageType(header.type_), &mut reader)?;
        reader.finish()?;
        Ok((header, message))
    }

    fn read_body(type_: MessageType, r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(match type_ {
            MessageType::HELLO => Self::Hello(Decode::read(r)?),
            MessageType::ERROR => Self::Error(Decode::read(r)?),
            MessageType::ECHO_REQUEST => Self::EchoRequest(r.take_rest()),
            MessageType::ECHO_REPLY => Self::EchoReply(r.take_rest()),
            MessageType::EXPERIMENTER => Self::Experimenter(Decode::read(r)?),
            MessageType::FEATURES_REQUEST => Self::FeaturesRequest,
            MessageType::FEATURES_REPLY => Self::FeaturesReply(Decode::read(r)?),
            MessageType::GET_CONFIG_REQUEST => Self::GetConfigRequest,
            MessageType::GET_CONFIG_REPLY => Self::GetConfigReply(Decode::read(r)?),
            MessageType::SET_CONFIG => Self::SetConfig(Decode::read(r)?),
            MessageType::PACKET_IN => Self::PacketIn(Decode::read(r)?),
            MessageType::FLOW_REMOVED => Self::FlowRemoved(Decode::read(r)?),
            MessageType::PORT_STATUS => Self::PortStatus(Decode::read(r)?),
            MessageType::PACKET_OUT => Self::PacketOut(Decode::read(r)?),
            MessageType::FLOW_MOD => Self::FlowMod(Decode::read(r)?),
            MessageType::GROUP_MOD => Self::GroupMod(Decode::read(r)?),
            MessageType::PORT_MOD => Self::PortMod(Decode::read(r)?),
            MessageType::TABLE_MOD => Self::TableMod(Decode::read(r)?),
            MessageType::MULTIPART_REQUEST => Self::MultipartRequest(Decode::read(r)?),
            MessageType::MULTIPART_REPLY => Self::MultipartReply(Decode::read(r)?),
            MessageType::BARRIER_REQUEST => Self::BarrierRequest,
            MessageType::BARRIER_REPLY => Self::BarrierReply,
            MessageType::QUEUE_GET_CONFIG_REQUEST => Self::QueueGetConfigRequest(Decode::read(r)?),
            MessageType::QUEUE_GET_CONFIG_REPLY => Self::QueueGetConfigReply(Decode::read(r)?),
            MessageType::ROLE_REQUEST => Self::RoleRequest(Decode::read(r)?),
            MessageType::ROLE_REPLY => Self::RoleReply(Decode::read(r)?),
            MessageType::GET_ASYNC_REQUEST => Self::GetAsyncRequest,
            MessageType::GET_ASYNC_REPLY => Self::GetAsyncReply(Decode::read(r)?),
            MessageType::SET_ASYNC => Self::SetAsync(Decode::read(r)?),
            MessageType::METER_MOD => Self::MeterMod(Decode::read(r)?),
            MessageType(type_) => Self::Unknown { type_, body: r.take_rest() },
        })
    }

    /// The message's type.
    pub const fn type_(&self) -> MessageType {
        match self {
            Self::Hello(_) => MessageType::HELLO,
            Self::Error(_) => MessageType::ERROR,
            Self::EchoRequest(_) => MessageType::ECHO_REQUEST,
            Self::EchoReply(_) => MessageType::ECHO_REPLY,
            Self::Experimenter(_) => MessageType::EXPERIMENTER,
            Self::FeaturesRequest => MessageType::FEATURES_REQUEST,
            Self::FeaturesReply(_) => MessageType::FEATURES_REPLY,
            Self::GetConfigRequest => MessageType::GET_CONFIG_REQUEST,
            Self::GetConfigReply(_) => MessageType::GET_CONFIG_REPLY,
            Self::SetConfig(_) => MessageType::SET_CONFIG,
            Self::PacketIn(_) => MessageType::PACKET_IN,
            Self::FlowRemoved(_) => MessageType::FLOW_REMOVED,
            Self::PortStatus(_) => MessageType::PORT_STATUS,
            Self::PacketOut(_) => MessageType::PACKET_OUT,
            Self::FlowMod(_) => MessageType::FLOW_MOD,
            Self::GroupMod(_) => MessageType::GROUP_MOD,
            Self::PortMod(_) => MessageType::PORT_MOD,
            Self::TableMod(_) => MessageType::TABLE_MOD,
            Self::MultipartRequest(_) => MessageType::MULTIPART_REQUEST,
            Self::MultipartReply(_) => MessageType::MULTIPART_REPLY,
            Self::BarrierRequest => MessageType::BARRIER_REQUEST,
            Self::BarrierReply => MessageType::BARRIER_REPLY,
            Self::QueueGetConfigRequest(_) => MessageType::QUEUE_GET_CONFIG_REQUEST,
            Self::QueueGetConfigReply(_) => MessageType::QUEUE_GET_CONFIG_REPLY,
            Self::RoleRequest(_) => MessageType::ROLE_REQUEST,
            Self::RoleReply(_) => MessageType::ROLE_REPLY,
            Self::GetAsyncRequest => MessageType::GET_ASYNC_REQUEST,
            Self::GetAsyncReply(_) => MessageType::GET_ASYNC_REPLY,
            Self::SetAsync(_) => MessageType::SET_ASYNC,
            Self::MeterMod(_) => MessageType::METER_MOD,
            Self::Unknown { type_, .. } => MessageType(*type_),
        }
    }

    /// Appends the whole frame.
    ///
    /// # Errors
    /// The frame would be longer than 65,535 bytes; nothing was appended.
    pub fn write(&self, xid: u32, out: &mut Vec<u8>) -> Result<(), TooLong> {
        crate::frame::write(Version::V1_3, self.type_().0, xid, out, |out| self.write_body(out))
    }

    fn write_body(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello(body) => Encode::write(body, out),
            Self::Error(body) => Encode::write(body, out),
            Self::EchoRequest(body) | Self::EchoReply(body) => Encode::write(body, out),
            Self::Experimenter(body) => Encode::write(body, out),
            Self::FeaturesReply(body) => Encode::write(body, out),
            Self::GetConfigReply(body) | Self::SetConfig(body) => Encode::write(body, out),
            Self::PacketIn(body) => Encode::write(body, out),
            Self::FlowRemoved(body) => Encode::write(body, out),
            Self::PortStatus(body) => Encode::write(body, out),
            Self::PacketOut(body) => Encode::write(body, out),
            Self::FlowMod(body) => Encode::write(body, out),
            Self::GroupMod(body) => Encode::write(body, out),
            Self::PortMod(body) => Encode::write(body, out),
            Self::TableMod(body) => Encode::write(body, out),
            Self::MultipartRequest(body) => Encode::write(body, out),
            Self::MultipartReply(body) => Encode::write(body, out),
            Self::QueueGetConfigRequest(body) => Encode::write(body, out),
            Self::QueueGetConfigReply(body) => Encode::write(body, out),
            Self::RoleRequest(body) | Self::RoleReply(body) => Encode::write(body, out),
            Self::GetAsyncReply(body) | Self::SetAsync(body) => Encode::write(body, out),
            Self::MeterMod(body) => Encode::write(body, out),
            Self::FeaturesRequest
            | Self::GetConfigRequest
            | Self::BarrierRequest
            | Self::BarrierReply
            | Self::GetAsyncRequest => {}
            Self::Unknown { body, .. } => Encode::write(body, out),
        }
    }
}

message_body! { V1_3:
    Experimenter<'_> => EXPERIMENTER,
    FeaturesReply => FEATURES_REPLY,
    PacketIn<'_> => PACKET_IN,
    FlowRemoved<'_> => FLOW_REMOVED,
    PortStatus => PORT_STATUS,
    PacketOut<'_> => PACKET_OUT,
    FlowMod<'_> => FLOW_MOD,
    GroupMod<'_> => GROUP_MOD,
    PortMod => PORT_MOD,
    TableMod => TABLE_MOD,
    MultipartRequest<'_> => MULTIPART_REQUEST,
    MultipartReply<'_> => MULTIPART_REPLY,
    QueueGetConfigRequest => QUEUE_GET_CONFIG_REQUEST,
    QueueGetConfigReply<'_> => QUEUE_GET_CONFIG_REPLY,
    MeterMod<'_> => METER_MOD,
}
