//! Dispatch: which function handles each type of message from the front and from the members.

use super::BigSwitch;
use super::wire::{self, Sent};
use crate::messages;
use crate::refusals::Verdict;
use crate::semantics::Semantics;
use crate::time::Instant;
use alloc::vec::Vec;
use compile::{Reason, Refused};
use openflow::Header;
use openflow::error::v13 as code;
use openflow::v13::MessageType;

impl BigSwitch {
    /// The refusal of a request when no member is connected.
    pub(super) fn no_member(&self) -> Refused {
        Reason::NoMember.with(code::BAD_REQUEST_EPERM)
    }

    /// The refusal of a request with an answer that is too large.
    pub(super) fn too_large(&self) -> Refused {
        Reason::AnswerTooLarge.with(Semantics::of(self.wire).codes.too_much)
    }

    pub(super) fn front_message(&mut self, header: Header, frame: &[u8], now: Instant) {
        let xid = header.xid;
        match messages::type_in_v13(self.wire, header.type_) {
            MessageType::ECHO_REQUEST => self.front.send(&self.echo_reply(xid, frame)),
            MessageType::FEATURES_REQUEST => match self.features_reply(xid, self.front.shown()) {
                Some(reply) => self.front.send(&reply),
                None => self.refuse(xid, self.too_large()),
            },
            MessageType::SET_CONFIG | MessageType::SET_ASYNC => {
                self.front.set_config(header.type_, frame);
                for dpid in self.live() {
                    self.send(dpid, Sent::Plain(None), frame);
                }
            }
            MessageType::PACKET_OUT => self.packet_out(xid, frame),
            type_ @ (MessageType::FLOW_MOD
            | MessageType::GROUP_MOD
            | MessageType::METER_MOD
            | MessageType::PORT_MOD) => self.change(xid, type_, frame, now),
            MessageType::EXPERIMENTER => match self.first() {
                Some(dpid) => self.send(dpid, Sent::Plain(Some(xid)), frame),
                None => self.refuse(xid, self.no_member()),
            },
            MessageType::BARRIER_REQUEST => self.barrier(xid, now),
            MessageType::MULTIPART_REQUEST => self.question(xid, frame, now),
            MessageType::QUEUE_GET_CONFIG_REQUEST => self.ask(xid, None, frame, now),
            // HELLO, and answers that nobody has asked for: the front's session counts them, and they need no answer.
            MessageType::HELLO
            | MessageType::ECHO_REPLY
            | MessageType::ERROR
            | MessageType::MULTIPART_REPLY
            | MessageType::BARRIER_REPLY
            | MessageType::QUEUE_GET_CONFIG_REPLY => {}
            _ => self.refuse(xid, code::BAD_REQUEST_BAD_TYPE),
        }
    }

    fn echo_reply(&self, xid: u32, request: &[u8]) -> Vec<u8> {
        wire::bare(self.wire, MessageType::ECHO_REPLY.0, xid, wire::body(request))
    }

    pub(super) fn member_message(&mut self, dpid: u64, header: Header, frame: &[u8], now: Instant) {
        match messages::type_in_v13(self.wire, header.type_) {
            MessageType::ECHO_REQUEST => {
                let reply = self.echo_reply(header.xid, frame);
                if let Some(member) = self.members.get_mut(&dpid) {
                    member.out.end().extend_from_slice(&reply);
                }
            }
            MessageType::PACKET_IN => self.packet_in(dpid, frame),
            MessageType::FLOW_REMOVED => self.removed(dpid, wire::body(frame), now),
            MessageType::PORT_STATUS => {
                self.port_status(dpid, wire::body(frame));
                self.maybe_start(now);
            }
            MessageType::ERROR => self.member_error(dpid, header, frame, now),
            MessageType::MULTIPART_REPLY => self.answer(dpid, header, frame, now),
            MessageType::BARRIER_REPLY => self.barrier_reply(dpid, header, now),
            MessageType::QUEUE_GET_CONFIG_REPLY | MessageType::EXPERIMENTER => {
                self.relay(dpid, header, frame, now);
            }
            // Weir asks members for nothing else, and a controller need not answer other messages.
            _ => {}
        }
    }

    fn member_error(&mut self, dpid: u64, header: Header, frame: &[u8], now: Instant) {
        let Ok(error) = openflow::error::Error::parse(wire::body(frame)) else { return };
        let verdict = Verdict::of_error(&error);
        if self.write_refused(dpid, header.xid, verdict, now) {
            return;
        }
        let sent = self.members.get_mut(&dpid).and_then(|member| member.sent(header.xid, true));
        match sent {
            Some(Sent::Plain(Some(xid))) => self.refuse(xid, verdict),
            Some(Sent::Part(ask)) => self.ask_refused(ask, verdict),
            Some(Sent::IdleCheck(cookie)) => self.idle_checked(cookie, dpid, &[], now),
            // A switch without groups or meters refuses the question: then it has none.
            Some(Sent::Own(_)) => self.learned(dpid, now),
            Some(Sent::Plain(None)) | None => {}
        }
    }
}
