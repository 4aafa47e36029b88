//! Inside of the switch: from a message to its handler, and from what happened to the sessions.

use openflow::hello::{Hello, negotiate};
use openflow::{ErrorCode, Header, Version, error, frame};

use crate::datapath::{Command, FlowRequest};
use crate::effects::{Effects, Event, Outcome};
use crate::session::{Session, SessionId};
use crate::switch::Switch;
use crate::{refusal, v10, v13};

/// One message being handled: what its handler needs beside the switch.
pub(crate) struct Request<'a> {
    pub(crate) now: u64,
    pub(crate) session: SessionId,
    pub(crate) header: Header,
    pub(crate) frame: &'a [u8],
}

impl Switch {
    pub(crate) fn session(&mut self, id: SessionId) -> Option<&mut Session> {
        self.sessions.get_mut(id.0)?.as_mut()
    }

    pub(crate) fn session_ref(&self, id: SessionId) -> Option<&Session> {
        self.sessions.get(id.0)?.as_ref()
    }

    pub(crate) fn sessions_mut(&mut self) -> impl Iterator<Item = (SessionId, &mut Session)> {
        let sessions = self.sessions.iter_mut().enumerate();
        sessions.filter_map(|(index, session)| Some((SessionId(index), session.as_mut()?)))
    }

    /// Appends a whole answer through `write`. What does not fit in a message is not sent.
    pub(crate) fn reply<E>(
        &mut self,
        id: SessionId,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) {
        if let Some(session) = self.session(id) {
            // The writers leave the buffer as it was when they fail.
            let _ = write(&mut session.out);
        }
    }

    pub(crate) fn greet(&mut self, id: SessionId) {
        let versions = self.config.versions;
        let xid = self.session(id).map_or(0, Session::own_xid);
        self.reply(id, |out| Hello::write_message(versions, xid, out));
    }

    /// Handles a message; whether the connection must be cut.
    pub(crate) fn dispatch(&mut self, request: &Request<'_>, effects: &mut Effects) -> bool {
        let Some(version) = self.session_ref(request.session).and_then(|s| s.version) else {
            return self.first_message(request);
        };
        // Even one that cannot be read must not be answered by an ERROR.
        if request.header.type_ == error::Error::TYPE {
            return false;
        }
        if request.header.version != version {
            self.refuse(request, version, error::v13::BAD_REQUEST_BAD_VERSION);
            return false;
        }
        let is_for_switches = match version {
            Version::V1_0 => v10::is_for_switches(request.header.type_),
            _ => v13::is_for_switches(request.header.type_),
        };
        let result = match version {
            _ if !is_for_switches => Err(error::v13::BAD_REQUEST_BAD_TYPE),
            Version::V1_0 => v10::handle(self, request, effects),
            _ => v13::handle(self, request, effects),
        };
        if let Err(code) = result {
            self.refuse(request, version, code);
        }
        false
    }

    /// The first message must be a HELLO that offers a version in common.
    fn first_message(&mut self, request: &Request<'_>) -> bool {
        let offered = Hello::parse_frame(request.frame).ok();
        let agreed = offered.and_then(|(header, hello)| {
            negotiate(self.config.versions, header.version.0, hello.versions())
        });
        let Some(version) = agreed else {
            let version = self.config.versions.highest().unwrap_or(Version::V1_0);
            let data = b"no version in common";
            let error = error::Error { code: error::v13::HELLO_FAILED_INCOMPATIBLE, data };
            self.reply(request.session, |out| {
                error.write_message(version, request.header.xid, out)
            });
            return true;
        };
        if let Some(session) = self.session(request.session) {
            session.version = Some(version);
        }
        false
    }

    pub(crate) fn refuse(&mut self, request: &Request<'_>, version: Version, code: ErrorCode) {
        /// As much of the message as both versions ask for at least, and as Open vSwitch sends.
        const DATA: usize = 64;
        let data = request.frame.get(..DATA).unwrap_or(request.frame);
        let error = error::Error { code: refusal::for_version(code, version), data };
        let xid = request.header.xid;
        self.reply(request.session, |out| error.write_message(version, xid, out));
    }

    /// Does a FLOW_MOD now, or queues it if the switch lies about barriers.
    pub(crate) fn flow_mod(
        &mut self,
        request: &Request<'_>,
        flow: FlowRequest,
        effects: &mut Effects,
    ) -> Result<(), ErrorCode> {
        let adds = flow.command == Command::Add || flow.modify_adds && flow.command.is_modify();
        if adds && self.faults.refuses_addition() {
            return Err(error::v13::FLOW_MOD_FAILED_TABLE_FULL);
        }
        match self.faults.flow_mod_delay() {
            None => self.datapath.flow_mod(request.now, &flow, effects),
            Some(delay) => {
                let due = request.now.saturating_add(delay);
                self.unapplied.push_back((due, request.session, flow, request.frame.to_vec()));
                Ok(())
            }
        }
    }

    /// Applies the FLOW_MODs that a lying switch put off until now.
    pub(crate) fn apply_due(&mut self, now: u64, effects: &mut Effects) {
        while self.unapplied.front().is_some_and(|(due, ..)| *due <= now) {
            let Some((due, session, flow, frame)) = self.unapplied.pop_front() else { return };
            let result = self.datapath.flow_mod(due, &flow, effects);
            if let Err(code) = result
                && let Ok(header) = Header::parse(&frame)
            {
                let request = Request { now, session, header, frame: &frame };
                self.refuse(&request, header.version, code);
            }
        }
    }

    /// Spoils the answer that begins at `start` of the output, as planted; whether to cut.
    pub(crate) fn spoil_reply(&mut self, now: u64, id: SessionId, start: usize) -> bool {
        let Some(session) = self.sessions.get_mut(id.0).and_then(Option::as_mut) else {
            return false;
        };
        let spoiled = self.faults.spoil(session.out.len() > start);
        if spoiled.wrong_xid
            && let Some(answer) = session.out.get_mut(start..)
            && let Some(xid) = frame::xid(answer)
        {
            frame::set_xid(answer, xid ^ 0x5a5a_5a5a);
        }
        if spoiled.twice {
            session.out.extend_from_within(start..);
        }
        if spoiled.cut {
            let half = start + (session.out.len() - start).div_ceil(2);
            session.out.truncate(half);
            return true;
        }
        session.out.extend_from_slice(&spoiled.garbage);
        if let Some((_, interval)) = self.faults.statistics_pace() {
            postpone_statistics(session, now, start, interval);
        }
        false
    }

    pub(crate) fn deliver_to_all(&mut self, effects: Effects) -> Outcome {
        self.deliver_except(None, effects)
    }

    pub(crate) fn deliver(&mut self, cause: SessionId, effects: Effects) -> Outcome {
        self.deliver_except(Some(cause), effects)
    }

    /// Writes the news to the sessions that want them. A controller is not told what it did to a
    /// port itself.
    fn deliver_except(&mut self, cause: Option<SessionId>, effects: Effects) -> Outcome {
        let mut packet_ins = 0;
        let somebody_speaks_v10 =
            self.sessions.iter().flatten().any(|session| session.version == Some(Version::V1_0));
        for event in effects.events {
            let buffer = match &event {
                Event::PacketIn(packet) if packet.implicit_miss && !somebody_speaks_v10 => continue,
                Event::PacketIn(packet) if packet.max_len != Some(u16::MAX) => {
                    self.datapath.buffers.store(packet.in_port, &packet.frame)
                }
                _ => None,
            };
            for (id, session) in self.sessions_mut() {
                if Some(id) == cause && matches!(event, Event::PortStatus { .. }) {
                    continue;
                }
                let written = match session.version {
                    None => false,
                    Some(Version::V1_0) => v10::announce(session, &event, buffer),
                    Some(_) => v13::announce(session, &event, buffer),
                };
                packet_ins += u32::from(written && matches!(event, Event::PacketIn(_)));
            }
        }
        Outcome { sent: effects.sent, packet_ins, disconnect: false }
    }
}

/// Takes the statistics replies behind `start` out of the output, to leave one after another.
fn postpone_statistics(session: &mut Session, now: u64, start: usize, interval: u64) {
    let answers = session.out.split_off(start);
    let mut rest = answers.as_slice();
    let mut due = session.later.back().map_or(now, |(at, _)| (*at).max(now));
    while let Ok(Some(length)) = frame::next(rest) {
        let (message, others) = rest.split_at(length);
        rest = others;
        if is_statistics_reply(message) {
            due = due.saturating_add(interval);
            session.later.push_back((due, message.to_vec()));
        } else {
            session.out.extend_from_slice(message);
        }
    }
    session.out.extend_from_slice(rest);
}

fn is_statistics_reply(message: &[u8]) -> bool {
    matches!(
        (frame::version(message), frame::type_(message)),
        (Some(Version::V1_0), Some(17)) | (Some(Version::V1_3), Some(19))
    )
}
