//! Passes each message to its handler, and sends each event to the sessions of the controllers.

use openflow::hello::{Hello, negotiate};
use openflow::{Version, error};

use crate::effects::{Effects, Event, Outcome};
use crate::request::Request;
use crate::session::SessionId;
use crate::state::State;
use crate::{v10, v13};

/// Handles a message. Returns whether the switch must close the connection.
pub(crate) fn handle(switch: &mut State, request: &Request<'_>, effects: &mut Effects) -> bool {
    let Some(version) = switch.session_ref(request.session).and_then(|s| s.version) else {
        return first_message(switch, request);
    };
    // The switch must not answer an ERROR by an ERROR, even if the ERROR cannot be decoded.
    if request.header.type_ == error::Error::TYPE {
        return false;
    }
    if request.header.version != version {
        switch.refuse(request, version, error::v13::BAD_REQUEST_BAD_VERSION);
        return false;
    }
    let is_for_switches = match version {
        Version::V1_0 => v10::is_for_switches(request.header.type_),
        _ => v13::is_for_switches(request.header.type_),
    };
    let result = match version {
        _ if !is_for_switches => Err(error::v13::BAD_REQUEST_BAD_TYPE),
        Version::V1_0 => v10::handle(switch, request, effects),
        _ => v13::handle(switch, request, effects),
    };
    if let Err(code) = result {
        switch.refuse(request, version, code);
    }
    false
}

/// The first message must be a HELLO that offers a version in common.
fn first_message(switch: &mut State, request: &Request<'_>) -> bool {
    let offered = Hello::parse_frame(request.frame).ok();
    let agreed = offered.and_then(|(header, hello)| {
        negotiate(switch.config.versions, header.version.0, hello.versions())
    });
    let Some(version) = agreed else {
        let version = switch.config.versions.highest().unwrap_or(Version::V1_0);
        let data = b"no version in common";
        let error = error::Error { code: error::v13::HELLO_FAILED_INCOMPATIBLE, data };
        switch.reply(request.session, |out| error.write_message(version, request.header.xid, out));
        return true;
    };
    if let Some(session) = switch.session(request.session) {
        session.version = Some(version);
    }
    false
}

/// Writes the events to the sessions that want them. A controller gets no PORT_STATUS for its own
/// PORT_MOD.
pub(crate) fn deliver(switch: &mut State, cause: Option<SessionId>, effects: Effects) -> Outcome {
    let mut packet_ins = 0;
    let somebody_speaks_v10 =
        switch.sessions.iter().flatten().any(|session| session.version == Some(Version::V1_0));
    for event in effects.events {
        let buffer = match &event {
            Event::PacketIn(packet) if packet.implicit_miss && !somebody_speaks_v10 => continue,
            Event::PacketIn(packet) if packet.max_len != Some(u16::MAX) => {
                switch.datapath.buffers.store(packet.in_port, &packet.frame)
            }
            _ => None,
        };
        for (id, session) in switch.sessions_mut() {
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
