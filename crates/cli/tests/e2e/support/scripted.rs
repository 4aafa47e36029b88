//! Scripted peers: an OpenFlow 1.0 switch and a controller that do only what the test makes them do.
//!
//! The peers write and read bytes by themselves and share no code with Weir, so that a mistake in Weir's codec cannot
//! hide in both ends. A thread per connection reads messages, answers standard requests (HELLO, ECHO, FEATURES, ...),
//! and keeps every message for the test. A test can hold back the answers to a type of message.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::PATIENCE;

pub const V10: u8 = 1;

pub const HELLO: u8 = 0;
pub const ERROR: u8 = 1;
pub const ECHO_REQUEST: u8 = 2;
pub const ECHO_REPLY: u8 = 3;
pub const VENDOR: u8 = 4;
pub const FEATURES_REQUEST: u8 = 5;
pub const FEATURES_REPLY: u8 = 6;
pub const GET_CONFIG_REQUEST: u8 = 7;
pub const GET_CONFIG_REPLY: u8 = 8;
pub const SET_CONFIG: u8 = 9;
pub const PACKET_IN: u8 = 10;
pub const PORT_STATUS: u8 = 12;
pub const PACKET_OUT: u8 = 13;
pub const FLOW_MOD: u8 = 14;
pub const STATS_REQUEST: u8 = 16;
pub const STATS_REPLY: u8 = 17;
pub const BARRIER_REQUEST: u8 = 18;
pub const BARRIER_REPLY: u8 = 19;

const HEADER: usize = 8;
const NO_BUFFER: u32 = 0xffff_ffff;
const NO_PORT: u16 = 0xffff;

/// One OpenFlow message as it was on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub version: u8,
    pub kind: u8,
    pub xid: u32,
    pub body: Vec<u8>,
}

impl Message {
    pub fn new(kind: u8, xid: u32, body: &[u8]) -> Message {
        Message { version: V10, kind, xid, body: body.to_vec() }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let length =
            u16::try_from(HEADER + self.body.len()).expect("a message of at most 65,535 bytes");
        let mut bytes = vec![self.version, self.kind];
        bytes.extend(length.to_be_bytes());
        bytes.extend(self.xid.to_be_bytes());
        bytes.extend(&self.body);
        bytes
    }

    /// Type and code of an ERROR.
    pub fn error(&self) -> (u16, u16) {
        assert_eq!(self.kind, ERROR, "{self:?}");
        (be16(&self.body, 0), be16(&self.body, 2))
    }
}

/// A connection whose messages are read all the time.
#[derive(Clone)]
pub struct Peer {
    stream: Arc<TcpStream>,
    shared: Arc<(Mutex<Inbox>, Condvar)>,
}

#[derive(Default)]
struct Inbox {
    messages: Vec<Message>,
    /// The index of the first unread message.
    read: usize,
    held: BTreeSet<u8>,
    deaf: bool,
    closed: bool,
}

type Answer = Box<dyn Fn(&Message) -> Option<Message> + Send>;

impl Peer {
    fn new(stream: TcpStream, answer: Answer) -> Peer {
        stream.set_nodelay(true).expect("TCP_NODELAY");
        let peer = Peer { stream: Arc::new(stream), shared: Arc::default() };
        let reader = peer.clone();
        thread::spawn(move || reader.read(&answer));
        peer
    }

    fn read(&self, answer: &Answer) {
        while let Some(message) = read_message(&self.stream) {
            let (inbox, arrived) = &*self.shared;
            let mut inbox = inbox.lock().expect("inbox");
            while inbox.deaf && !inbox.closed {
                inbox = arrived.wait(inbox).expect("inbox");
            }
            let held = inbox.held.contains(&message.kind);
            let reply = if held { None } else { answer(&message) };
            inbox.messages.push(message);
            arrived.notify_all();
            drop(inbox);
            if let Some(reply) = reply {
                self.send(&reply);
            }
        }
        self.shared.0.lock().expect("inbox").closed = true;
        self.shared.1.notify_all();
    }

    pub fn send(&self, message: &Message) {
        self.send_bytes(&message.bytes());
    }

    /// Sends bytes. A closed connection is no failure here, because a test can ask [`Peer::is_closed`].
    pub fn send_bytes(&self, bytes: &[u8]) {
        let _ = (&*self.stream).write_all(bytes);
    }

    /// From now on the peer keeps messages of this type, and does not answer them.
    pub fn hold(&self, kind: u8) {
        self.shared.0.lock().expect("inbox").held.insert(kind);
    }

    /// From now on the peer reads nothing until the connection is closed, so the buffers of the connection fill.
    pub fn stop_reading(&self) {
        self.shared.0.lock().expect("inbox").deaf = true;
    }

    /// Waits for the next message of this type. Earlier messages count as read.
    pub fn expect(&self, kind: u8) -> Message {
        self.expect_where(kind, |_| true)
    }

    pub fn expect_reply(&self, kind: u8, xid: u32) -> Message {
        self.expect_where(kind, |message| message.xid == xid)
    }

    /// Whether this reply arrives before the connection ends.
    pub fn hears_reply(&self, kind: u8, xid: u32) -> bool {
        self.find(PATIENCE, |message| message.kind == kind && message.xid == xid).is_some()
    }

    /// Whether this reply has arrived. The function does not wait.
    pub fn has_reply(&self, kind: u8, xid: u32) -> bool {
        self.find(Duration::ZERO, |message| message.kind == kind && message.xid == xid).is_some()
    }

    pub fn expect_where(&self, kind: u8, wanted: impl Fn(&Message) -> bool) -> Message {
        let found = self.find(PATIENCE, |message| message.kind == kind && wanted(message));
        found.unwrap_or_else(|| panic!("no message of type {kind}; got {:?}", self.kinds()))
    }

    /// Returns the next message of this type, if a message arrives within this time.
    pub fn poll(&self, kind: u8, at_most: Duration) -> Option<Message> {
        self.find(at_most, |message| message.kind == kind)
    }

    /// Whether no message of this type arrives within this time.
    pub fn hears_no(&self, kind: u8, for_so_long: Duration) -> bool {
        self.poll(kind, for_so_long).is_none()
    }

    /// Waits for the other side to close the connection. Returns whether the connection is closed.
    pub fn is_closed(&self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        let (inbox, arrived) = &*self.shared;
        let mut inbox = inbox.lock().expect("inbox");
        while !inbox.closed {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { return false };
            inbox = arrived.wait_timeout(inbox, left).expect("inbox").0;
        }
        true
    }

    /// Whether the connection still works: an ECHO_REQUEST gets an ECHO_REPLY.
    pub fn answers_echo(&self, xid: u32) -> bool {
        self.send(&Message::new(ECHO_REQUEST, xid, b"still there?"));
        self.find(PATIENCE, |message| message.kind == ECHO_REPLY && message.xid == xid).is_some()
    }

    pub fn close(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        self.shared.0.lock().expect("inbox").deaf = false;
        self.shared.1.notify_all();
    }

    /// Returns the number of messages of this type so far.
    pub fn count(&self, kind: u8) -> usize {
        self.shared
            .0
            .lock()
            .expect("inbox")
            .messages
            .iter()
            .filter(|message| message.kind == kind)
            .count()
    }

    fn kinds(&self) -> Vec<u8> {
        self.shared.0.lock().expect("inbox").messages.iter().map(|message| message.kind).collect()
    }

    fn find(&self, at_most: Duration, wanted: impl Fn(&Message) -> bool) -> Option<Message> {
        let deadline = Instant::now() + at_most;
        let (inbox, arrived) = &*self.shared;
        let mut inbox = inbox.lock().expect("inbox");
        loop {
            let from = inbox.read;
            if let Some(index) = inbox.messages[from..].iter().position(&wanted) {
                inbox.read = from + index + 1;
                return Some(inbox.messages[from + index].clone());
            }
            if inbox.closed {
                return None;
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            inbox = arrived.wait_timeout(inbox, left).expect("inbox").0;
        }
    }
}

/// A switch with these ports that dials Weir, and answers the requests that every switch must answer.
pub struct Switch {
    pub peer: Peer,
}

impl Switch {
    pub fn connect(address: SocketAddr, dpid: u64, ports: &'static [u16]) -> Switch {
        let peer = Switch::peer(address, dpid, ports);
        peer.send(&Message::new(HELLO, 1, &[]));
        Switch { peer }
    }

    /// [`Switch::connect`] of a switch that never answers messages of this type.
    pub fn holding(address: SocketAddr, dpid: u64, ports: &'static [u16], kind: u8) -> Switch {
        let peer = Switch::peer(address, dpid, ports);
        peer.hold(kind);
        peer.send(&Message::new(HELLO, 1, &[]));
        Switch { peer }
    }

    fn peer(address: SocketAddr, dpid: u64, ports: &'static [u16]) -> Peer {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).expect("connect to Weir");
        Peer::new(stream, Box::new(move |message| switch_answer(message, dpid, ports)))
    }

    /// Sends a PACKET_IN for a frame that missed the table. The switch keeps no copy of the frame.
    pub fn packet_in(&self, in_port: u16, frame: &[u8]) {
        let mut body = NO_BUFFER.to_be_bytes().to_vec();
        body.extend(u16::try_from(frame.len()).expect("a frame").to_be_bytes());
        body.extend(in_port.to_be_bytes());
        body.extend([0, 0]);
        body.extend(frame);
        self.peer.send(&Message::new(PACKET_IN, 0, &body));
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.peer.close();
    }
}

/// A tenant's controller that Weir dials, once for each switch.
pub struct Controller {
    pub address: SocketAddr,
    connections: Arc<(Mutex<Vec<Peer>>, Condvar)>,
    ended: Arc<AtomicBool>,
}

impl Controller {
    pub fn listen() -> Controller {
        Controller::listen_on(Ipv4Addr::LOCALHOST.into())
    }

    pub fn listen_on(host: IpAddr) -> Controller {
        let listener = TcpListener::bind((host, 0)).expect("bind to a free port");
        let address = listener.local_addr().expect("the port");
        let controller = Controller { address, connections: Arc::default(), ended: Arc::default() };
        let (connections, ended) = (controller.connections.clone(), controller.ended.clone());
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if ended.load(Ordering::Acquire) {
                    return;
                }
                let peer = Peer::new(stream, Box::new(controller_answer));
                peer.send(&Message::new(HELLO, 1, &[]));
                let (all, arrived) = &*connections;
                let mut all = all.lock().expect("connections");
                all.push(peer);
                arrived.notify_all();
            }
        });
        controller
    }

    /// The address, as in a tenant's `controllers`.
    pub fn name(&self) -> String {
        format!("tcp:{}", self.address)
    }

    /// Returns the connection for the `nth` switch, from 0, after the exchange of FEATURES.
    pub fn switch(&self, nth: usize) -> Peer {
        let peer = self.connection(nth);
        peer.send(&Message::new(FEATURES_REQUEST, 0xfea, &[]));
        peer.expect_reply(FEATURES_REPLY, 0xfea);
        peer
    }

    /// Returns the `nth` connection, from 0. The controller has sent only HELLO.
    pub fn connection(&self, nth: usize) -> Peer {
        let deadline = Instant::now() + PATIENCE;
        let (all, arrived) = &*self.connections;
        let mut all = all.lock().expect("connections");
        loop {
            if let Some(peer) = all.get(nth) {
                return peer.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "Weir did not connect for switch {nth}");
            all = arrived.wait_timeout(all, left).expect("connections").0;
        }
    }

    /// Returns how often Weir has connected so far.
    pub fn connections(&self) -> usize {
        self.connections.0.lock().expect("connections").len()
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        for peer in self.connections.0.lock().expect("connections").iter() {
            peer.close();
        }
        // The accepting thread reads `ended` only after the next connection.
        self.ended.store(true, Ordering::Release);
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }
}

/// Returns `None` when the connection has ended.
pub fn read_message(mut stream: &TcpStream) -> Option<Message> {
    let mut header = [0; HEADER];
    stream.read_exact(&mut header).ok()?;
    let length = usize::from(be16(&header, 2));
    let mut body = vec![0; length.checked_sub(HEADER)?];
    stream.read_exact(&mut body).ok()?;
    let xid = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    Some(Message { version: header[0], kind: header[1], xid, body })
}

fn switch_answer(request: &Message, dpid: u64, ports: &[u16]) -> Option<Message> {
    const BAD_REQUEST: u16 = 1;
    const BAD_VENDOR: u16 = 3;
    let (kind, body) = match request.kind {
        ECHO_REQUEST => (ECHO_REPLY, request.body.clone()),
        FEATURES_REQUEST => (FEATURES_REPLY, features(dpid, ports)),
        GET_CONFIG_REQUEST => (GET_CONFIG_REPLY, vec![0, 0, 0, 128]),
        BARRIER_REQUEST => (BARRIER_REPLY, Vec::new()),
        STATS_REQUEST => (STATS_REPLY, statistics(be16(&request.body, 0))),
        VENDOR => (ERROR, [BAD_REQUEST.to_be_bytes(), BAD_VENDOR.to_be_bytes()].concat()),
        _ => return None,
    };
    Some(Message::new(kind, request.xid, &body))
}

fn controller_answer(request: &Message) -> Option<Message> {
    (request.kind == ECHO_REQUEST).then(|| Message::new(ECHO_REPLY, request.xid, &request.body))
}

/// The body of a FEATURES_REPLY (OpenFlow 1.0 section 5.3.1): one table, all actions, statistics of flows, tables and
/// ports.
fn features(dpid: u64, ports: &[u16]) -> Vec<u8> {
    let mut body = dpid.to_be_bytes().to_vec();
    body.extend(256u32.to_be_bytes());
    body.extend([1, 0, 0, 0]);
    body.extend(0x07u32.to_be_bytes());
    body.extend(0x0fffu32.to_be_bytes());
    for port in ports {
        body.extend(port.to_be_bytes());
        body.extend([0x02, 0, 0, 0, 0, u8::try_from(*port).expect("a small port")]);
        let mut name = format!("eth{port}").into_bytes();
        name.resize(16, 0);
        body.extend(name);
        body.extend([0; 24]);
    }
    body
}

/// The body of a STATS_REPLY (OpenFlow 1.0 section 5.3.5): empty statistics of the right length.
fn statistics(kind: u16) -> Vec<u8> {
    const DESCRIPTION: u16 = 0;
    const AGGREGATE: u16 = 2;
    let length = match kind {
        DESCRIPTION => 3 * 256 + 32 + 256,
        AGGREGATE => 24,
        _ => 0,
    };
    let mut body = kind.to_be_bytes().to_vec();
    body.extend([0, 0]);
    body.resize(4 + length, 0);
    body
}

/// The body of a FLOW_MOD that adds an entry from `in_port` to `out_port`, without other match fields.
pub fn add_flow(in_port: u16, out_port: u16, priority: u16, cookie: u64) -> Vec<u8> {
    const ALL_BUT_IN_PORT: u32 = 0x003f_fffe;
    let mut body = ALL_BUT_IN_PORT.to_be_bytes().to_vec();
    body.extend(in_port.to_be_bytes());
    body.resize(40, 0);
    body.extend(cookie.to_be_bytes());
    body.extend([0; 6]); // ADD, no timeouts
    body.extend(priority.to_be_bytes());
    body.extend(NO_BUFFER.to_be_bytes());
    body.extend(NO_PORT.to_be_bytes());
    body.extend([0, 0]);
    body.extend(output(out_port));
    body
}

/// The body of a PACKET_OUT of a whole frame.
pub fn packet_out(in_port: u16, out_port: u16, frame: &[u8]) -> Vec<u8> {
    let action = output(out_port);
    let mut body = NO_BUFFER.to_be_bytes().to_vec();
    body.extend(in_port.to_be_bytes());
    body.extend(u16::try_from(action.len()).expect("a length").to_be_bytes());
    body.extend(action);
    body.extend(frame);
    body
}

fn output(port: u16) -> [u8; 8] {
    let [high, low] = port.to_be_bytes();
    [0, 0, 0, 8, high, low, 0xff, 0xff]
}

/// A UDP frame of 60 bytes without checksums, which no test reads.
pub fn frame(source: Ipv4Addr, destination: Ipv4Addr) -> Vec<u8> {
    let mut frame = vec![0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 0x08, 0x00];
    frame.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend(source.octets());
    frame.extend(destination.octets());
    frame.extend([0x10, 0, 0x20, 0, 0, 26, 0, 0]);
    frame.resize(60, 0);
    frame
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
