//! A controller with planted behaviour. A test plants delays, rates and limits, so that the test knows the right result
//! of a benchmark.
//!
//! One thread accepts connections, and one thread reads from each switch. The state has one lock. The controller sleeps
//! a delay between the first and the last event of a measurement, so the measured time is never shorter than the delay.

use crate::common::read_frame;
use openflow::v10::{
    Action, FlowMod, FlowModCommand, Match, Message, PacketOut, PortNo, Wildcards,
};
use openflow::{Hello, ListBuf, Version, VersionSet};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The planted behaviour.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The number of connections that the controller accepts at once; it closes further connections.
    pub(crate) most_sessions: usize,
    /// Whether the controller requests features; without this it never completes a handshake.
    pub(crate) asks: bool,
    /// The controller probes for links whenever a switch connects and this number of switches is connected; 0 is never.
    pub(crate) discovers_at: usize,
    /// The time between the first returned probe and all other probes.
    pub(crate) discovery: Duration,
    /// The controller probes no links of switches with a higher dpid.
    pub(crate) most_discovered: u64,
    /// The time from a PORT_STATUS to the next probes.
    pub(crate) rediscovery: Duration,
    /// The handling of packets.
    pub(crate) forwards: Forwards,
    /// The time of each decision that installs an entry.
    pub(crate) decision: Duration,
    /// The largest number of entries that the controller installs.
    pub(crate) most_flows: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Forwards {
    /// Does nothing with packets.
    Not,
    /// Floods, without entries.
    Floods,
    /// Learns stations, and installs an entry for each pair.
    Learns,
    /// Forwards between two ports at each switch (dpid, port, port), in both directions; after a PORT_STATUS and this
    /// time, by the second list.
    Along(Vec<Hop>, Vec<Hop>, Duration),
}

pub(crate) type Hop = (u64, u16, u16);

impl Plan {
    /// A learning switch without discovery.
    pub(crate) fn learning() -> Self {
        Self {
            most_sessions: usize::MAX,
            asks: true,
            discovers_at: 0,
            discovery: Duration::ZERO,
            most_discovered: u64::MAX,
            rediscovery: Duration::ZERO,
            forwards: Forwards::Learns,
            decision: Duration::ZERO,
            most_flows: usize::MAX,
        }
    }

    /// A controller that starts discovery when this number of switches is connected, and does nothing else.
    pub(crate) fn discovering(switches: usize) -> Self {
        Self { discovers_at: switches, forwards: Forwards::Not, ..Self::learning() }
    }
}

/// The controller. Everything ends when this is dropped.
pub(crate) struct Planted {
    pub(crate) address: SocketAddr,
    brain: Arc<Brain>,
}

pub(crate) struct Brain {
    plan: Plan,
    state: Mutex<State>,
    /// Whether the controller has ended: it accepts no connections and does nothing.
    dead: AtomicBool,
    /// Whether the controller learns stations, but leaves decisions to another controller.
    passive: AtomicBool,
    flows: AtomicUsize,
    ended: AtomicBool,
}

#[derive(Default)]
struct State {
    sessions: BTreeMap<usize, Session>,
    stations: BTreeMap<(u64, [u8; 6]), u16>,
    /// Whether probes are in flight, and whether the first probe has come back.
    probing: (bool, bool),
    rerouted: bool,
}

struct Session {
    stream: TcpStream,
    dpid: Option<u64>,
    ports: Vec<u16>,
}

impl Planted {
    pub(crate) fn start(plan: Plan) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let brain = Arc::new(Brain {
            plan,
            state: Mutex::default(),
            dead: AtomicBool::new(false),
            passive: AtomicBool::new(false),
            flows: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&brain);
        std::thread::spawn(move || {
            for (id, stream) in listener.incoming().enumerate() {
                if accepting.ended.load(SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { return };
                if accepting.dead.load(SeqCst) {
                    continue;
                }
                let brain = Arc::clone(&accepting);
                std::thread::spawn(move || brain.serve(id, stream));
            }
        });
        Self { address, brain }
    }

    pub(crate) fn brain(&self) -> Arc<Brain> {
        Arc::clone(&self.brain)
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        self.brain.ended.store(true, SeqCst);
        self.brain.set_dead(true);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

impl Brain {
    /// Ends all sessions and refuses new sessions; or accepts sessions again.
    pub(crate) fn set_dead(&self, dead: bool) {
        self.dead.store(dead, SeqCst);
        if dead {
            let mut state = self.state.lock().unwrap();
            for session in std::mem::take(&mut state.sessions).into_values() {
                let _ = session.stream.shutdown(Shutdown::Both);
            }
            *state = State::default();
        }
    }

    /// Leaves decisions to another controller, or makes decisions.
    pub(crate) fn set_passive(&self, passive: bool) {
        self.passive.store(passive, SeqCst);
    }

    /// Installs one entry at a switch, like an order of a northbound interface.
    pub(crate) fn install(&self, dpid: u64, source: [u8; 6], destination: [u8; 6], port: u16) {
        let wildcards = Wildcards::ALL.without(Wildcards::DL_SRC | Wildcards::DL_DST);
        let match_ = Match { wildcards, dl_src: source, dl_dst: destination, ..Match::ANY };
        let state = self.state.lock().unwrap();
        self.add(&state, dpid, match_, port);
    }

    /// The number of switches whose features the controller knows.
    pub(crate) fn switches(&self) -> usize {
        self.state.lock().unwrap().sessions.values().filter(|s| s.dpid.is_some()).count()
    }

    fn serve(&self, id: usize, mut stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let own = stream.try_clone().unwrap();
        {
            let mut state = self.state.lock().unwrap();
            if state.sessions.len() >= self.plan.most_sessions {
                return;
            }
            let session = Session { stream: own, dpid: None, ports: Vec::new() };
            state.sessions.insert(id, session);
            let mut hello = Vec::new();
            Hello::write_message(VersionSet::only(Version::V1_0), 1, &mut hello).unwrap();
            if self.plan.asks {
                Message::FeaturesRequest.write(2, &mut hello).unwrap();
            }
            let _ = stream.write_all(&hello);
        }
        while let Some(frame) = read_frame(&mut stream) {
            self.hear(id, &frame);
        }
        self.state.lock().unwrap().sessions.remove(&id);
    }

    fn hear(&self, id: usize, frame: &[u8]) {
        match Message::parse(frame) {
            Ok((_, Message::FeaturesReply(body))) => {
                let ports = body.ports.iter().map(|port| port.port_no.0).collect();
                let mut state = self.state.lock().unwrap();
                let Some(session) = state.sessions.get_mut(&id) else { return };
                (session.dpid, session.ports) = (Some(body.datapath_id), ports);
                state.rerouted = false;
                drop(state);
                if self.plan.discovers_at != 0 && self.switches() >= self.plan.discovers_at {
                    self.probe(true);
                }
            }
            Ok((header, Message::EchoRequest(data))) => {
                self.say(id, Message::EchoReply(data), header.xid);
            }
            Ok((_, Message::PacketIn(body))) if body.data.get(12..14) == Some(&LLDP) => {
                let mut state = self.state.lock().unwrap();
                if state.probing == (true, false) {
                    state.probing = (true, true);
                    drop(state);
                    std::thread::sleep(self.plan.discovery);
                    self.probe(false);
                }
            }
            Ok((_, Message::PacketIn(body))) => self.forward(id, body.in_port.0, body.data),
            Ok((_, Message::PortStatus(_))) => self.changed(),
            _ => {}
        }
    }

    /// Sends a probe out of one port only, or out of all ports. Probes to hosts do not come back.
    fn probe(&self, first: bool) {
        let mut state = self.state.lock().unwrap();
        if first {
            state.probing = (true, false);
        }
        let mut lldp = [0; 60];
        lldp[12..14].copy_from_slice(&LLDP);
        // Port 2 leads to a neighbour in every topology of the tests.
        let number = |session: &Session| match first {
            true => vec![2],
            false => session.ports.clone(),
        };
        let known = state
            .sessions
            .values()
            .filter(|session| session.dpid.is_some_and(|dpid| dpid <= self.plan.most_discovered));
        for session in known.take(if first { 1 } else { usize::MAX }) {
            for port in number(session) {
                write(session, packet_out(PortNo::NONE.0, port, &lldp), 3);
            }
        }
    }

    fn changed(&self) {
        if self.plan.discovers_at != 0 {
            std::thread::sleep(self.plan.rediscovery);
            self.probe(false);
        }
        let Forwards::Along(_, second, after) = &self.plan.forwards else { return };
        let first_time = !std::mem::replace(&mut self.state.lock().unwrap().rerouted, true);
        if first_time {
            std::thread::sleep(*after);
            self.route(second);
        }
    }

    fn route(&self, hops: &[Hop]) {
        let state = self.state.lock().unwrap();
        for &(dpid, a, b) in hops {
            for (from, to) in [(a, b), (b, a)] {
                let wildcards = Wildcards::ALL.without(Wildcards::IN_PORT);
                let match_ = Match { wildcards, in_port: PortNo(from), ..Match::ANY };
                self.add(&state, dpid, match_, to);
            }
        }
    }

    fn forward(&self, id: usize, in_port: u16, data: &[u8]) {
        let mac = |at: usize| <[u8; 6]>::try_from(&data[at..at + 6]).unwrap();
        let (destination, source) = (mac(0), mac(6));
        let mut state = self.state.lock().unwrap();
        let Some(dpid) = state.sessions.get(&id).and_then(|session| session.dpid) else { return };
        let mut out_port = PortNo::FLOOD.0;
        match &self.plan.forwards {
            Forwards::Not => return,
            Forwards::Floods => {}
            // A miss from the time before the rules may be read after the path has changed. Such a miss must not change
            // the path back.
            Forwards::Along(..) if state.rerouted => return,
            Forwards::Along(first, ..) => {
                drop(state);
                return self.route(first);
            }
            Forwards::Learns => {
                state.stations.insert((dpid, source), in_port);
                if let Some(known) = state.stations.get(&(dpid, destination)) {
                    out_port = *known;
                }
            }
        }
        if self.passive.load(SeqCst) {
            return;
        }
        if out_port != PortNo::FLOOD.0 {
            drop(state);
            std::thread::sleep(self.plan.decision);
            self.install(dpid, source, destination, out_port);
            state = self.state.lock().unwrap();
        }
        if let Some(session) = state.sessions.get(&id) {
            write(session, packet_out(in_port, out_port, data), 4);
        }
    }

    fn add(&self, state: &State, dpid: u64, match_: Match, port: u16) {
        if self.flows.fetch_add(1, SeqCst) >= self.plan.most_flows {
            return;
        }
        let actions = ListBuf::from([Action::Output { port: PortNo(port), max_len: 0 }]);
        let command = FlowModCommand::ADD;
        let body = FlowMod { match_, command, actions: actions.as_list(), ..FlowMod::default() };
        let mut frame = Vec::new();
        Message::FlowMod(body).write(5, &mut frame).unwrap();
        for session in state.sessions.values().filter(|session| session.dpid == Some(dpid)) {
            let _ = (&session.stream).write_all(&frame);
        }
    }

    fn say(&self, id: usize, message: Message<'_>, xid: u32) {
        let mut frame = Vec::new();
        message.write(xid, &mut frame).unwrap();
        if let Some(session) = self.state.lock().unwrap().sessions.get(&id) {
            let _ = (&session.stream).write_all(&frame);
        }
    }
}

const LLDP: [u8; 2] = [0x88, 0xcc];

fn packet_out(in_port: u16, out_port: u16, data: &[u8]) -> Vec<u8> {
    let actions = ListBuf::from([Action::Output { port: PortNo(out_port), max_len: 0 }]);
    let in_port = PortNo(in_port);
    let body = PacketOut { in_port, actions: actions.as_list(), data, ..PacketOut::default() };
    let mut frame = Vec::new();
    Message::PacketOut(body).write(0, &mut frame).unwrap();
    frame
}

fn write(session: &Session, mut frame: Vec<u8>, xid: u32) {
    openflow::frame::set_xid(&mut frame, xid);
    // A closed session needs no message.
    let _ = (&session.stream).write_all(&frame);
}
