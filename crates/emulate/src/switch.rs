//! The emulated switch: sans-I/O, and with the caller's time.

use std::collections::{BTreeMap, VecDeque};

use hashbrown::HashMap;
use openflow::hello::{Hello, negotiate};
use openflow::{ErrorCode, Header, Version, VersionSet, error, frame};

use crate::buffers::Buffers;
use crate::datapath::{Command, Datapath, FlowRequest};
use crate::effects::{Effects, Event, Outcome, PortReason};
use crate::fault::{Fault, Faults};
use crate::groups::Groups;
use crate::meters::Meters;
use crate::ports::{Port, PortConfig};
use crate::refusal;
use crate::session::{Session, SessionId};
use crate::table::{Flow, FlowTable};
use crate::{v10, v13};

/// What a switch is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Datapath id.
    pub dpid: u64,
    /// The versions it speaks: 1.0, 1.3 or both.
    pub versions: VersionSet,
    /// Its ports.
    pub ports: Vec<PortConfig>,
    /// Number of flow tables, 1 to 254.
    pub n_tables: u8,
    /// How many packets it can keep for the controller; 0 sends every packet whole.
    pub n_buffers: u32,
    /// How many entries fit in each flow table.
    pub max_flows: usize,
    /// What DESC statistics say of its software.
    pub software: String,
    /// The faults planted from the start.
    pub faults: Vec<Fault>,
}

impl Config {
    /// A switch of both versions with ports 1 to `n_ports`, 16 tables, 256 buffers, a million flows.
    pub fn new(dpid: u64, n_ports: u32) -> Config {
        Config {
            dpid,
            versions: VersionSet::SUPPORTED,
            ports: (1..=n_ports).map(PortConfig::new).collect(),
            n_tables: 16,
            n_buffers: 256,
            max_flows: 1_000_000,
            software: concat!("weir-emulate ", env!("CARGO_PKG_VERSION")).to_owned(),
            faults: Vec::new(),
        }
    }
}

/// An OpenFlow switch without sockets and without a clock.
///
/// Times are nanoseconds since any moment, and may not go back. The caller carries bytes: what
/// [`Switch::connect`], [`Switch::handle_message`], [`Switch::receive_packet`] and [`Switch::tick`]
/// append to `out` is for the controller. A switch with several controllers has a session for each:
/// [`Switch::open_session`].
pub struct Switch {
    pub(crate) config: Config,
    pub(crate) datapath: Datapath,
    pub(crate) faults: Faults,
    /// The largest generation id that a controller used in a role request.
    pub(crate) generation: Option<u64>,
    sessions: Vec<Option<Session>>,
    /// FLOW_MODs that a lying switch has yet to apply: when, for whom, and the message.
    unapplied: VecDeque<(u64, SessionId, FlowRequest, Vec<u8>)>,
}

/// One message being handled: what its handler needs beside the switch.
pub(crate) struct Request<'a> {
    pub(crate) now: u64,
    pub(crate) session: SessionId,
    pub(crate) header: Header,
    pub(crate) frame: &'a [u8],
}

impl Switch {
    /// A switch that nobody is connected to.
    pub fn new(config: Config) -> Switch {
        let ports = config.ports.iter().map(|port| (port.number, Port::new(0, port.clone())));
        let faults = Faults::new(config.faults.clone());
        let datapath = Datapath {
            ports: ports.collect::<BTreeMap<_, _>>(),
            tables: (0..config.n_tables.clamp(1, 254))
                .map(|_| FlowTable::new(config.max_flows))
                .collect(),
            groups: Groups::default(),
            meters: Meters::new(),
            buffers: Buffers::new(config.n_buffers),
            stations: HashMap::new(),
            drops_changed_packets: faults.drops_changed_packets(),
        };
        Switch {
            datapath,
            faults,
            generation: None,
            sessions: vec![Some(Session::new())],
            unapplied: VecDeque::new(),
            config,
        }
    }

    /// The datapath id.
    pub fn dpid(&self) -> u64 {
        self.config.dpid
    }

    /// What the switch was made of.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The ports by number.
    pub fn ports(&self) -> impl Iterator<Item = &Port> {
        self.datapath.ports.values()
    }

    /// The port of this number.
    pub fn port(&self, number: u32) -> Option<&Port> {
        self.datapath.ports.get(&number)
    }

    /// All flow entries with their tables.
    pub fn flows(&self) -> impl Iterator<Item = (u8, &Flow)> {
        let tables = (0u8..).zip(&self.datapath.tables);
        tables.flat_map(|(id, table)| table.iter().map(move |flow| (id, flow)))
    }

    /// Number of flow entries in all tables.
    pub fn flow_count(&self) -> usize {
        self.datapath.tables.iter().map(FlowTable::len).sum()
    }

    /// The faults in force.
    pub fn faults(&self) -> &[Fault] {
        self.faults.planted()
    }

    /// Replaces the planted faults; their counts begin anew.
    pub fn plant(&mut self, faults: Vec<Fault>) {
        self.faults = Faults::new(faults);
        self.datapath.drops_changed_packets = self.faults.drops_changed_packets();
    }
}

/// The one controller, which is the usual case.
impl Switch {
    /// A connection to the controller begins: appends HELLO. State of an earlier one is forgotten;
    /// the flow tables stay.
    pub fn connect(&mut self, out: &mut Vec<u8>) {
        if let Some(place) = self.sessions.first_mut() {
            *place = Some(Session::new());
        }
        self.with_main(out, |switch| switch.greet(SessionId::MAIN));
    }

    /// The version agreed on with the controller.
    pub fn version(&self) -> Option<Version> {
        self.session_ref(SessionId::MAIN).and_then(|session| session.version)
    }

    /// Handles one whole OpenFlow message of the controller and appends the answers.
    pub fn handle_message(&mut self, now: u64, frame: &[u8], out: &mut Vec<u8>) -> Outcome {
        self.with_main(out, |switch| switch.handle_on(now, SessionId::MAIN, frame))
    }

    /// A packet arrives at a port. PACKET_INs are appended.
    pub fn receive_packet(
        &mut self,
        now: u64,
        in_port: u32,
        frame: &[u8],
        out: &mut Vec<u8>,
    ) -> Outcome {
        self.with_main(out, |switch| switch.receive(now, in_port, frame))
    }

    /// Time passes: entries expire, delayed answers leave.
    pub fn tick(&mut self, now: u64, out: &mut Vec<u8>) -> Outcome {
        self.with_main(out, |switch| switch.advance(now))
    }

    /// A port's link goes up or down; appends PORT_STATUS if that is a change.
    pub fn set_port_up(&mut self, number: u32, up: bool, out: &mut Vec<u8>) {
        self.with_main(out, |switch| switch.set_link(number, up));
    }

    /// Adds a port, in place of one with its number; appends PORT_STATUS.
    pub fn add_port(&mut self, now: u64, port: PortConfig, out: &mut Vec<u8>) {
        self.with_main(out, |switch| switch.plug(now, port));
    }

    /// Removes a port; appends PORT_STATUS if there was one.
    pub fn remove_port(&mut self, number: u32, out: &mut Vec<u8>) {
        self.with_main(out, |switch| switch.unplug(number));
    }

    /// Lends the caller's buffer to the main session for the time of `work`.
    fn with_main<T>(&mut self, out: &mut Vec<u8>, work: impl FnOnce(&mut Switch) -> T) -> T {
        self.swap_main_output(out);
        let result = work(self);
        self.swap_main_output(out);
        result
    }

    fn swap_main_output(&mut self, out: &mut Vec<u8>) {
        if let Some(session) = self.session(SessionId::MAIN) {
            std::mem::swap(&mut session.out, out);
        }
    }
}

/// Several controllers: each has a session with its own output.
impl Switch {
    /// A further controller connects; its HELLO waits in its output.
    pub fn open_session(&mut self) -> SessionId {
        let free = self.sessions.iter().skip(1).position(Option::is_none).map(|index| index + 1);
        let index = free.unwrap_or(self.sessions.len());
        match self.sessions.get_mut(index) {
            Some(place) => *place = Some(Session::new()),
            None => self.sessions.push(Some(Session::new())),
        }
        self.greet(SessionId(index));
        SessionId(index)
    }

    /// A controller is gone. The main session then waits for [`Switch::connect`], others are over.
    pub fn close_session(&mut self, id: SessionId) {
        if let Some(place) = self.sessions.get_mut(id.0) {
            *place = (id == SessionId::MAIN).then(Session::new);
        }
    }

    /// What is to be sent to this controller; the caller takes it.
    pub fn output(&mut self, id: SessionId) -> Option<&mut Vec<u8>> {
        self.session(id).map(|session| &mut session.out)
    }

    /// As [`Switch::handle_message`], for any session. News for other controllers waits in theirs.
    pub fn handle_on(&mut self, now: u64, id: SessionId, frame: &[u8]) -> Outcome {
        let mut effects = Effects::default();
        self.apply_due(now, &mut effects);
        let Some(session) = self.session(id) else { return Outcome::default() };
        session.release(now);
        let start = session.out.len();
        let Ok(header) = Header::parse_whole(frame) else {
            return Outcome { disconnect: true, ..Outcome::default() };
        };
        let mut disconnect = false;
        if !self.faults.swallows(header.type_) {
            let request = Request { now, session: id, header, frame };
            disconnect = self.dispatch(&request, &mut effects);
        }
        disconnect |= self.spoil_reply(now, id, start);
        Outcome { disconnect, ..self.deliver(id, effects) }
    }

    /// As [`Switch::receive_packet`], with the PACKET_INs in the sessions' outputs.
    pub fn receive(&mut self, now: u64, in_port: u32, frame: &[u8]) -> Outcome {
        let mut effects = Effects::default();
        self.apply_due(now, &mut effects);
        self.datapath.expire(now, &mut effects);
        self.datapath.receive(now, in_port, frame, &mut effects);
        self.deliver_to_all(effects)
    }

    /// As [`Switch::tick`], for all sessions.
    pub fn advance(&mut self, now: u64) -> Outcome {
        let mut effects = Effects::default();
        self.apply_due(now, &mut effects);
        self.datapath.expire(now, &mut effects);
        for session in self.sessions.iter_mut().flatten() {
            session.release(now);
        }
        self.deliver_to_all(effects)
    }

    /// When [`Switch::tick`] may next have something to do, ns. It can be early, never late.
    pub fn next_deadline(&self) -> Option<u64> {
        let expiries = self.datapath.tables.iter().filter_map(FlowTable::next_expiry);
        let delayed =
            self.sessions.iter().flatten().filter_map(|s| s.later.front()).map(|(at, _)| *at);
        let unapplied = self.unapplied.front().map(|(at, ..)| *at);
        expiries.chain(delayed).chain(unapplied).min()
    }

    /// As [`Switch::set_port_up`], for all sessions.
    pub fn set_link(&mut self, number: u32, up: bool) {
        let mut effects = Effects::default();
        if let Some(port) = self.datapath.ports.get_mut(&number)
            && port.link_up != up
        {
            port.link_up = up;
            let event = Event::PortStatus { reason: PortReason::Modify, port: port.clone() };
            effects.events.push(event);
        }
        self.deliver_to_all(effects);
    }

    /// As [`Switch::add_port`], for all sessions.
    pub fn plug(&mut self, now: u64, port: PortConfig) {
        let port = Port::new(now, port);
        self.datapath.ports.insert(port.made.number, port.clone());
        let event = Event::PortStatus { reason: PortReason::Add, port };
        self.deliver_to_all(Effects { events: vec![event], ..Effects::default() });
    }

    /// As [`Switch::remove_port`], for all sessions.
    pub fn unplug(&mut self, number: u32) {
        if let Some(port) = self.datapath.ports.remove(&number) {
            self.datapath.stations.retain(|_, known| *known != number);
            let event = Event::PortStatus { reason: PortReason::Delete, port };
            self.deliver_to_all(Effects { events: vec![event], ..Effects::default() });
        }
    }
}

/// Inside.
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

    fn greet(&mut self, id: SessionId) {
        let versions = self.config.versions;
        let xid = self.session(id).map_or(0, Session::own_xid);
        self.reply(id, |out| Hello::write_message(versions, xid, out));
    }

    /// Handles a message; whether the connection must be cut.
    fn dispatch(&mut self, request: &Request<'_>, effects: &mut Effects) -> bool {
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
    fn apply_due(&mut self, now: u64, effects: &mut Effects) {
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
    fn spoil_reply(&mut self, now: u64, id: SessionId, start: usize) -> bool {
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

    fn deliver_to_all(&mut self, effects: Effects) -> Outcome {
        self.deliver_except(None, effects)
    }

    fn deliver(&mut self, cause: SessionId, effects: Effects) -> Outcome {
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
