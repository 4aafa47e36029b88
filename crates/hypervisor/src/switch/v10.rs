//! Slices on OpenFlow 1.0: every message type, in each direction, has its place here.

mod network_packet;
pub(super) mod packet;
pub(super) mod ports;
mod statistics;
mod switch;

use super::{Request, Switch};
use crate::time::Instant;
use crate::v10::unreadable;
use compile::Refused;
use openflow::error::v10 as code;
use openflow::v10::MessageType;
use openflow::{ErrorCode, Header, frame};

impl Switch {
    /// From a controller.
    pub(crate) fn controller_message_v10(&mut self, request: Request<'_>) -> Result<(), Refused> {
        match MessageType(request.header.type_) {
            MessageType::PACKET_OUT => self.packet_out_v10(&request),
            MessageType::FLOW_MOD => self.flow_mod(&request),
            MessageType::ECHO_REQUEST => {
                self.reply(&request, |_, out| {
                    frame::write(
                        request.header.version,
                        MessageType::ECHO_REPLY.0,
                        request.header.xid,
                        out,
                        |out| out.extend_from_slice(request.body()),
                    )
                });
                Ok(())
            }
            MessageType::BARRIER_REQUEST
            | MessageType::FEATURES_REQUEST
            | MessageType::GET_CONFIG_REQUEST
                if !request.body().is_empty() =>
            {
                Err(code::BAD_REQUEST_BAD_LEN.into())
            }
            MessageType::BARRIER_REQUEST => {
                self.forward_barrier(&request);
                Ok(())
            }
            MessageType::STATS_REQUEST => self.statistics_v10(&request),
            MessageType::FEATURES_REQUEST => self.features_v10(&request),
            MessageType::GET_CONFIG_REQUEST => self.get_config_v10(&request),
            MessageType::SET_CONFIG => self.set_config_v10(&request),
            MessageType::PORT_MOD => self.port_mod_v10(&request),
            MessageType::QUEUE_GET_CONFIG_REQUEST => self.queue_config_v10(&request),
            MessageType::VENDOR => self.vendor_v10(&request),
            // Sessions begin before the core hears of them, keepalives are the driver's, and what a controller makes of
            // our messages is its own affair: all three are counted and need no answer.
            MessageType::HELLO | MessageType::ECHO_REPLY | MessageType::ERROR => Ok(()),
            _ => Err(code::BAD_REQUEST_BAD_TYPE.into()),
        }
    }

    /// From the switch.
    pub(crate) fn switch_message_v10(
        &mut self,
        header: Header,
        frame: &[u8],
        now: Instant,
    ) -> Result<(), ErrorCode> {
        let body = frame.get(Header::LEN..).unwrap_or_default();
        match MessageType(header.type_) {
            MessageType::PACKET_IN => self.packet_in_v10(frame, now),
            MessageType::ECHO_REQUEST => {
                self.session.answer_echo(header, body);
                Ok(())
            }
            MessageType::BARRIER_REPLY => self.barrier_reply(header.xid, now),
            MessageType::STATS_REPLY => self.statistics_reply_v10(header.xid, body, now),
            MessageType::FLOW_REMOVED => self.flow_removed(body, now),
            MessageType::PORT_STATUS => self.port_status_v10(body, now),
            MessageType::ERROR => {
                let error = openflow::error::Error::parse(body).map_err(unreadable)?;
                self.switch_error(header.xid, &error, now);
                Ok(())
            }
            MessageType::QUEUE_GET_CONFIG_REPLY => {
                self.queue_config_reply_v10(header.xid, frame, now)
            }
            MessageType::VENDOR => self.relay_experimenter(header.xid, frame, now),
            MessageType::HELLO
            | MessageType::ECHO_REPLY
            | MessageType::FEATURES_REPLY
            | MessageType::GET_CONFIG_REPLY => Ok(()),
            _ => Err(code::BAD_REQUEST_BAD_TYPE),
        }
    }
}
