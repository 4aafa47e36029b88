//! Every message of the front and of the members has its place here.

use super::member::Progress;
use super::operation::Asked;
use super::wire::{Kind, Sent};
use super::{BigSwitch, Event, wire};
use crate::refusals::Verdict;
use crate::time::Instant;
use compile::{Reason, Refused};
use openflow::{ErrorCode, Header, Version};

/// Codes that differ between the versions.
pub(super) struct Codes {
    pub(super) bad_request: ErrorCode,
    pub(super) not_now: ErrorCode,
    pub(super) unknown_buffer: ErrorCode,
    pub(super) too_much: ErrorCode,
}

impl BigSwitch {
    pub(super) fn codes(&self) -> Codes {
        use openflow::error::{v10, v13};
        match self.version {
            Version::V1_0 => Codes {
                bad_request: v10::BAD_REQUEST_BAD_TYPE,
                not_now: v10::BAD_REQUEST_EPERM,
                unknown_buffer: v10::BAD_REQUEST_BUFFER_UNKNOWN,
                too_much: v10::BAD_REQUEST_BAD_LEN,
            },
            _ => Codes {
                bad_request: v13::BAD_REQUEST_BAD_TYPE,
                not_now: v13::BAD_REQUEST_EPERM,
                unknown_buffer: v13::BAD_REQUEST_BUFFER_UNKNOWN,
                too_much: v13::BAD_REQUEST_MULTIPART_BUFFER_OVERFLOW,
            },
        }
    }

    /// The refusal where no member is there to ask.
    pub(super) fn no_member(&self) -> Refused {
        Reason::NoMember.with(self.codes().not_now)
    }

    /// The refusal of an answer for which messages have no room.
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
                    self.send(dpid, Sent::Own(None), frame);
                }
            }
            Kind::PacketOut => self.packet_out(xid, frame),
            Kind::FlowMod => self.flow_mod(xid, frame, now),
            Kind::GroupMod => self.group_mod(xid, frame),
            Kind::MeterMod => self.meter_mod(xid, frame),
            Kind::PortMod => self.port_mod(xid, frame),
            Kind::Vendor => match self.first() {
                Some(dpid) => self.send(dpid, Sent::Plain(xid), frame),
                None => self.refuse(xid, self.no_member()),
            },
            Kind::BarrierRequest => self.ask(xid, Asked::Barrier, frame, now),
            Kind::Question => self.question(xid, frame, now),
            Kind::QueueRequest => self.ask(xid, Asked::One, frame, now),
            // Answers to what was not asked, and HELLO: counted by the front's session, and in need of no answer.
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
            // Nothing else is asked of members, and a controller owes them nothing.
            _ => {}
        }
    }

    fn member_error(&mut self, dpid: u64, header: Header, frame: &[u8], now: Instant) {
        let body = frame.get(Header::LEN..).unwrap_or_default();
        let Ok(error) = openflow::error::Error::parse(body) else { return };
        let Some(member) = self.members.get_mut(&dpid) else { return };
        let number = member.number(header.xid);
        let Some(what) = member.sent.remove(&number) else { return };
        let verdict = Verdict::of_error(&error);
        match what {
            Sent::Change(operation) => self.change_refused(operation, dpid, verdict, now),
            Sent::Plain(xid) => self.refuse(xid, verdict),
            Sent::Part(ask) => self.ask_refused(ask, dpid, verdict, now),
            Sent::Own(Some(rule)) => self.not_brought(rule, dpid, now),
            Sent::Again(rule) => self.do_without(rule, dpid),
            // A member that has come during the change which is undone need not have it.
            Sent::Undo(rule) if member.is_settling || member.filled_during.is_some() => {
                self.do_without(rule, dpid);
            }
            Sent::Undo(rule) => self.not_taken_back(rule, now),
            Sent::TakenBack(last) => self.taken_back(last, dpid, now),
            Sent::IdleCheck(cookie) => self.idle_checked(cookie, dpid, &[], now),
            // Not every switch has groups or meters: then there are none.
            Sent::Flows | Sent::Groups | Sent::Meters | Sent::Ports => self.learned(dpid, now),
            Sent::Sweep => self.sweep_again(dpid),
            Sent::Settled => self.settled(dpid, now),
            Sent::Filled => {
                let why = "it does not say when it has done what it was told";
                self.events.push_back(Event::CloseMember(dpid, why));
            }
            Sent::Own(None) => member.lacks |= member.progress == Progress::Filling,
        }
    }

    /// One of the questions about what a member holds is answered in full.
    pub(super) fn learned(&mut self, dpid: u64, now: Instant) {
        let Some(member) = self.members.get_mut(&dpid) else { return };
        if let Progress::Learning(open) = member.progress {
            member.progress = Progress::Learning(open.saturating_sub(1));
            if open <= 1 {
                self.fill(dpid, now);
            }
        }
    }

    /// A member holds what it should: its ports come up.
    pub(super) fn filled(&mut self, dpid: u64, now: Instant) {
        if let Some(member) = self.members.get_mut(&dpid) {
            member.progress = Progress::Up;
        }
        self.report_ports();
        self.maybe_start(now);
    }
}
