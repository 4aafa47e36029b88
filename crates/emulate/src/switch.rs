//! The emulated switch: sans-I/O, and with the caller's time.

use std::collections::BTreeSet;

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
/// Times are nanoseconds since any moment, and may not go back. The caller carries bytes: what
/// [`Switch::connect`], [`Switch::handle_message`], [`Switch::receive_packet`] and [`Switch::tick`]
/// append to `out` is for the controller. A switch with several controllers has a session for each:
/// [`Switch::open_session`].
pub struct Switch {
    state: State,
}

impl Switch {
    /// A switch that nobody is connected to.
    pub fn new(config: Config) -> Switch {
        Switch { state: State::new(config) }
    }

    /// The datapath id.
    pub fn dpid(&self) -> u64 {
        self.state.config.dpid
    }

    /// What the switch was made of.
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

    /// The faults in force.
    pub fn faults(&self) -> &[Fault] {
        self.state.faults.planted()
    }

    /// Replaces the planted faults; their counts begin again at zero.
    pub fn plant(&mut self, faults: Vec<Fault>) {
        self.state.plant(faults);
    }
}

/// The one controller, which is the usual case.
impl Switch {
    /// A connection to the controller begins: appends HELLO. State of an earlier one is forgotten;
    /// the flow tables stay.
    pub fn connect(&mut self, out: &mut Vec<u8>) {
        if let Some(place) = self.state.sessions.first_mut() {
            *place = Some(Session::new());
        }
        self.with_main(out, |switch| switch.state.greet(SessionId::MAIN));
    }

    /// The version agreed on with the controller.
    pub fn version(&self) -> Option<Version> {
        self.state.session_ref(SessionId::MAIN).and_then(|session| session.version)
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
        if let Some(session) = self.state.session(SessionId::MAIN) {
            std::mem::swap(&mut session.out, out);
        }
    }
}

/// Several controllers: each has a session with its own output.
impl Switch {
    /// A further controller connects; its HELLO waits in its output.
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

    /// A controller is gone. The main session then waits for [`Switch::connect`], others are over.
    pub fn close_session(&mut self, id: SessionId) {
        if let Some(place) = self.state.sessions.get_mut(id.0) {
            *place = (id == SessionId::MAIN).then(Session::new);
        }
    }

    /// What is to be sent to this controller; the caller takes it.
    pub fn output(&mut self, id: SessionId) -> Option<&mut Vec<u8>> {
        self.state.session(id).map(|session| &mut session.out)
    }

    /// As [`Switch::handle_message`], for any session. News for other controllers waits in theirs.
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

    /// As [`Switch::receive_packet`], with the PACKET_INs in the sessions' outputs.
    pub fn receive(&mut self, now: u64, in_port: u32, frame: &[u8]) -> Outcome {
        let mut effects = Effects::default();
        self.state.apply_due(now, &mut effects);
        self.state.datapath.expire(now, &mut effects);
        self.state.datapath.receive(now, in_port, frame, &mut effects);
        dispatch::deliver(&mut self.state, None, effects)
    }

    /// As [`Switch::tick`], for all sessions.
    pub fn advance(&mut self, now: u64) -> Outcome {
        let mut effects = Effects::default();
        self.state.apply_due(now, &mut effects);
        self.state.datapath.expire(now, &mut effects);
        for session in self.state.sessions.iter_mut().flatten() {
            session.release(now);
        }
        dispatch::deliver(&mut self.state, None, effects)
    }

    /// When [`Switch::tick`] may next have something to do, ns. It can be early, never late.
    pub fn next_deadline(&self) -> Option<u64> {
        let expiries = self.state.datapath.tables.iter().filter_map(FlowTable::next_expiry);
        let delayed =
            self.state.sessions.iter().flatten().filter_map(|s| s.later.front()).map(|(at, _)| *at);
        let unapplied = self.state.unapplied.front().map(|(at, ..)| *at);
        expiries.chain(delayed).chain(unapplied).min()
    }

    /// From now on NORMAL is a repeater: it learns nothing, and sends by all of these ports but the one that a packet came by.
    pub fn repeat_by(&mut self, ports: BTreeSet<u32>) {
        self.state.datapath.repeats = Some(ports);
    }

    /// As [`Switch::set_port_up`], for all sessions.
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

    /// Sets the [`port_config`](crate::port_config) bits of a port, as an administrator at the switch
    /// would: nobody is told.
    pub fn set_port_config(&mut self, number: u32, bits: u32) {
        if let Some(port) = self.state.datapath.ports.get_mut(&number) {
            port.config = bits;
        }
    }

    /// As [`Switch::add_port`], for all sessions.
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

    /// As [`Switch::remove_port`], for all sessions.
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
