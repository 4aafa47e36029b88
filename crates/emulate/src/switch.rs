//! The emulated switch, without I/O and with a time that the caller gives.

use openflow::{Header, Version};

use crate::config::Config;
use crate::dispatch;
use crate::effects::{Effects, Event, Outcome, PortReason};
use crate::fault::Fault;
use crate::ports::{Port, PortConfig};
use crate::request::Request;
use crate::session::{Session, SessionId};
use crate::state::State;
use crate::table::{Flow, FlowTable};

/// An OpenFlow switch without sockets and without a clock.
///
/// Times are nanoseconds since any moment, and may not go back. The caller sends the bytes to the
/// controller that [`Switch::connect`], [`Switch::handle_message`], [`Switch::receive_packet`] and
/// [`Switch::tick`] append to `out`. A switch with several controllers has a session for each
/// controller: [`Switch::open_session`].
pub struct Switch {
    state: State,
}

impl Switch {
    /// Makes a switch without connections.
    pub fn new(config: Config) -> Switch {
        Switch { state: State::new(config) }
    }

    /// The datapath id.
    pub fn dpid(&self) -> u64 {
        self.state.config.dpid
    }

    /// The configuration of the switch.
    pub fn config(&self) -> &Config {
        &self.state.config
    }

    /// The ports by number.
    pub fn ports(&self) -> impl Iterator<Item = &Port> {
        self.state.ports()
    }

    /// The port of this number.
    pub fn port(&self, number: u32) -> Option<&Port> {
        self.state.port(number)
    }

    /// All flow entries with their tables.
    pub fn flows(&self) -> impl Iterator<Item = (u8, &Flow)> {
        self.state.flows()
    }

    /// Number of flow entries in all tables.
    pub fn flow_count(&self) -> usize {
        self.state.datapath.tables.iter().map(FlowTable::len).sum()
    }

    /// Number of groups (1.3).
    pub fn group_count(&self) -> usize {
        self.state.datapath.groups.len()
    }

    /// The planted faults.
    pub fn faults(&self) -> &[Fault] {
        self.state.faults.planted()
    }

    /// Replaces the planted faults. Their counters start again at zero.
    pub fn plant(&mut self, faults: Vec<Fault>) {
        self.state.plant(faults);
    }
}

/// Functions for a switch with one controller, which is the usual case.
impl Switch {
    /// Begins a connection to the controller, and appends HELLO. The switch deletes the state of an
    /// earlier connection, but keeps its flow tables.
    pub fn connect(&mut self, out: &mut Vec<u8>) {
        if let Some(place) = self.state.sessions.first_mut() {
            *place = Some(Session::new());
        }
        self.with_main(out, |switch| switch.state.greet(SessionId::MAIN));
    }

    /// The version that was negotiated with the controller.
    pub fn version(&self) -> Option<Version> {
        self.state.session_ref(SessionId::MAIN).and_then(|session| session.version)
    }

    /// Handles one whole OpenFlow message of the controller and appends the replies.
    pub fn handle_message(&mut self, now: u64, frame: &[u8], out: &mut Vec<u8>) -> Outcome {
        self.with_main(out, |switch| switch.handle_on(now, SessionId::MAIN, frame))
    }

    /// Processes a packet that arrives at a port. Appends PACKET_INs.
    pub fn receive_packet(
        &mut self,
        now: u64,
        in_port: u32,
        frame: &[u8],
        out: &mut Vec<u8>,
    ) -> Outcome {
        self.with_main(out, |switch| switch.receive(now, in_port, frame))
    }

    /// Advances the time: entries expire, and delayed replies are sent.
    pub fn tick(&mut self, now: u64, out: &mut Vec<u8>) -> Outcome {
        self.with_main(out, |switch| switch.advance(now))
    }

    /// Sets a port's link up or down. Appends PORT_STATUS if the state changes.
    pub fn set_port_up(&mut self, number: u32, up: bool, out: &mut Vec<u8>) {
        self.with_main(out, |switch| switch.set_link(number, up));
    }

    /// Adds a port, or replaces the port with the same number. Appends PORT_STATUS.
    pub fn add_port(&mut self, now: u64, port: PortConfig, out: &mut Vec<u8>) {
        self.with_main(out, |switch| switch.plug(now, port));
    }

    /// Removes a port. Appends PORT_STATUS if the port existed.
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
        if let Some(session) = self.state.session(SessionId::MAIN) {
            std::mem::swap(&mut session.out, out);
        }
    }
}

/// Functions for a switch with several controllers. Each controller has a session with its own
/// output.
impl Switch {
    /// Opens a session for a further controller. The output of the session contains the HELLO.
    pub fn open_session(&mut self) -> SessionId {
        let free =
            self.state.sessions.iter().skip(1).position(Option::is_none).map(|index| index + 1);
        let index = free.unwrap_or(self.state.sessions.len());
        match self.state.sessions.get_mut(index) {
            Some(place) => *place = Some(Session::new()),
            None => self.state.sessions.push(Some(Session::new())),
        }
        self.state.greet(SessionId(index));
        SessionId(index)
    }

    /// Closes the session of a controller. The main session then waits for [`Switch::connect`].
    /// Other sessions end.
    pub fn close_session(&mut self, id: SessionId) {
        if let Some(place) = self.state.sessions.get_mut(id.0) {
            *place = (id == SessionId::MAIN).then(Session::new);
        }
    }

    /// The bytes to send to this controller. The caller takes the bytes out.
    pub fn output(&mut self, id: SessionId) -> Option<&mut Vec<u8>> {
        self.state.session(id).map(|session| &mut session.out)
    }

    /// Handles a message as [`Switch::handle_message`] does, for any session. Messages for other
    /// controllers wait in the outputs of their sessions.
    pub fn handle_on(&mut self, now: u64, id: SessionId, frame: &[u8]) -> Outcome {
        let mut effects = Effects::default();
        self.state.apply_due(now, &mut effects);
        let Some(session) = self.state.session(id) else { return Outcome::default() };
        session.release(now);
        let start = session.out.len();
        let Ok(header) = Header::parse_whole(frame) else {
            return Outcome { disconnect: true, ..Outcome::default() };
        };
        let mut disconnect = false;
        if !self.state.faults.swallows(header.type_) {
            let request = Request { now, session: id, header, frame };
            disconnect = dispatch::handle(&mut self.state, &request, &mut effects);
        }
        disconnect |= self.state.spoil_reply(now, id, start);
        Outcome { disconnect, ..dispatch::deliver(&mut self.state, Some(id), effects) }
    }

    /// Processes a packet as [`Switch::receive_packet`] does, with the PACKET_INs in the outputs of
    /// the sessions.
    pub fn receive(&mut self, now: u64, in_port: u32, frame: &[u8]) -> Outcome {
        let mut effects = Effects::default();
        self.state.apply_due(now, &mut effects);
        self.state.datapath.expire(now, &mut effects);
        self.state.datapath.receive(now, in_port, frame, &mut effects);
        dispatch::deliver(&mut self.state, None, effects)
    }

    /// Advances the time as [`Switch::tick`] does, for all sessions.
    pub fn advance(&mut self, now: u64) -> Outcome {
        let mut effects = Effects::default();
        self.state.apply_due(now, &mut effects);
        self.state.datapath.expire(now, &mut effects);
        for session in self.state.sessions.iter_mut().flatten() {
            session.release(now);
        }
        dispatch::deliver(&mut self.state, None, effects)
    }

    /// The earliest time at which [`Switch::tick`] may have work, ns. The time can be too early,
    /// but never too late.
    pub fn next_deadline(&self) -> Option<u64> {
        let expiries = self.state.datapath.tables.iter().filter_map(FlowTable::next_expiry);
        let delayed =
            self.state.sessions.iter().flatten().filter_map(|s| s.later.front()).map(|(at, _)| *at);
        let unapplied = self.state.unapplied.front().map(|(at, ..)| *at);
        expiries.chain(delayed).chain(unapplied).min()
    }

    /// Sets a link up or down as [`Switch::set_port_up`] does, for all sessions.
    pub fn set_link(&mut self, number: u32, up: bool) {
        let mut effects = Effects::default();
        if let Some(port) = self.state.datapath.ports.get_mut(&number)
            && port.link_up != up
        {
            port.link_up = up;
            let event = Event::PortStatus { reason: PortReason::Modify, port: port.clone() };
            effects.events.push(event);
        }
        dispatch::deliver(&mut self.state, None, effects);
    }

    /// Sets the [`port_config`](crate::port_config) bits of a port, as a local administrator does. The switch sends no
    /// PORT_STATUS.
    pub fn set_port_config(&mut self, number: u32, bits: u32) {
        if let Some(port) = self.state.datapath.ports.get_mut(&number) {
            port.config = bits;
        }
    }

    /// Adds a port as [`Switch::add_port`] does, for all sessions.
    pub fn plug(&mut self, now: u64, port: PortConfig) {
        let port = Port::new(now, port);
        self.state.datapath.ports.insert(port.made.number, port.clone());
        let event = Event::PortStatus { reason: PortReason::Add, port };
        dispatch::deliver(
            &mut self.state,
            None,
            Effects { events: vec![event], ..Effects::default() },
        );
    }

    /// Removes a port as [`Switch::remove_port`] does, for all sessions.
    pub fn unplug(&mut self, number: u32) {
        if let Some(port) = self.state.datapath.ports.remove(&number) {
            self.state.datapath.stations.retain(|_, known| *known != number);
            let event = Event::PortStatus { reason: PortReason::Delete, port };
            dispatch::deliver(
                &mut self.state,
                None,
                Effects { events: vec![event], ..Effects::default() },
            );
        }
    }
}
