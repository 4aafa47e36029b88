//! What happens to each message of the front and of the members.

use super::BigSwitch;
use super::wire::{self, Asked, Codes, Kind, Sent};
use crate::refusals::Verdict;
use crate::time::Instant;
use compile::{Reason, Refused};
use openflow::Header;

impl BigSwitch {
    pub(super) fn codes(&self) -> Codes {
        wire::codes(self.version)
    }

    /// The refusal of a request when no member is connected.
    pub(super) fn no_member(&self) -> Refused {
        Reason::NoMember.with(self.codes().not_now)
    }

    /// The refusal of a request with an answer that is too large.
    pub(super) fn too_large(&self) -> Refused {
        Reason::AnswerTooLarge.with(self.codes().too_much)
    }

    pub(super) fn front_message(&mut self, header: Header, frame: &[u8], now: Instant) {
        let xid = header.xid;
        match wire::kind(self.version, header.type_) {
            Kind::Echo => {
                let body = frame.get(Header::LEN..).unwrap_or_default();
                let reply = wire::bare(self.version, 3, xid, body);
                self.front.send(&reply);
            }
            Kind::FeaturesRequest => {
                match wire::write_features(
                    self.version,
                    self.key,
                    &self.features,
                    self.front.shown(),
                ) {
                    Some(mut reply) => {
                        openflow::frame::set_xid(&mut reply, xid);
                        self.front.send(&reply);
                    }
                    None => self.refuse(xid, self.too_large()),
                }
            }
            Kind::SetConfig => {
                self.front.set_config(header.type_, frame);
                for dpid in self.live() {
                    self.send(dpid, Sent::Plain(None), frame);
                }
            }
            Kind::PacketOut => self.packet_out(xid, frame),
            kind @ (Kind::FlowMod | Kind::GroupMod | Kind::MeterMod | Kind::PortMod) => {
                self.change(xid, kind, frame, now);
            }
            Kind::Vendor => match self.first() {
                Some(dpid) => self.send(dpid, Sent::Plain(Some(xid)), frame),
                None => self.refuse(xid, self.no_member()),
            },
            Kind::BarrierRequest => self.barrier(xid, now),
            Kind::Question => self.question(xid, frame, now),
            Kind::QueueRequest => self.ask(xid, Asked::One, frame, now),
            // HELLO, and answers that nobody has asked for: the front's session counts them, and they need no answer.
            Kind::Nothing | Kind::Error | Kind::Answer | Kind::BarrierReply | Kind::QueueReply => {}
            Kind::PacketIn | Kind::FlowRemoved | Kind::PortStatus | Kind::Other => {
                self.refuse(xid, self.codes().bad_request);
            }
        }
    }

    pub(super) fn member_message(&mut self, dpid: u64, header: Header, frame: &[u8], now: Instant) {
        match wire::kind(self.version, header.type_) {
            Kind::Echo => {
                let body = frame.get(Header::LEN..).unwrap_or_default();
                let reply = wire::bare(self.version, 3, header.xid, body);
                if let Some(member) = self.members.get_mut(&dpid) {
                    member.out.end().extend_from_slice(&reply);
                }
            }
            Kind::PacketIn => self.packet_in(dpid, frame),
            Kind::FlowRemoved => self.removed(dpid, frame, now),
            Kind::PortStatus => {
                self.port_status(dpid, frame);
                self.maybe_start(now);
            }
            Kind::Error => self.member_error(dpid, header, frame, now),
            Kind::Answer => self.answer(dpid, header, frame, now),
            Kind::BarrierReply => self.barrier_reply(dpid, header, now),
            Kind::QueueReply | Kind::Vendor => self.relay(dpid, header, frame, now),
            // Weir asks members for nothing else, and a controller need not answer other messages.
            _ => {}
        }
    }

    fn member_error(&mut self, dpid: u64, header: Header, frame: &[u8], now: Instant) {
        let body = frame.get(Header::LEN..).unwrap_or_default();
        let Ok(error) = openflow::error::Error::parse(body) else { return };
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
            Some(Sent::Flows | Sent::Groups | Sent::Meters | Sent::Ports) => {
                self.learned(dpid, now);
            }
            Some(Sent::Plain(None)) | None => {}
        }
    }
}
