//! Emulates strangers at the port for switches. Some strangers send endless statistics, some report new ports all the
//! time, and some are silent.

use super::attack::Attack;
use super::frames::frames;
use super::orders::Orders;
use crate::conn::{Conn, Flushed};
use crate::plan::{Setup, Version};
use crate::switch::{Switch, hello};
use crate::wire::{HEADER_LEN, Types, be16, be32, kind, message, put32};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// The number of strangers of each kind that emulate a switch.
const SWITCHES: usize = 4;
/// The number of silent connections.
const SILENT: usize = 1024;
/// The number of silent connections that are made in one turn.
const SILENT_AT_ONCE: usize = 16;
/// The first stranger's datapath id, which no other switch has.
const FIRST_DPID: usize = 0x7000;
const MOST_UNSENT: usize = 256 << 10;
/// Entries of one part of an answer.
const ENTRIES: usize = 300;
/// PORT_STATUS messages in one turn.
const PORTS: u32 = 64;
const PAUSE: Duration = Duration::from_millis(100);
const CONNECTING: Duration = Duration::from_millis(20);

/// All strangers.
#[derive(Debug)]
pub(super) struct Strangers {
    address: SocketAddr,
    version: Version,
    switches: Vec<Stranger>,
    /// The wanted number of silent connections, and the existing connections.
    silent: (usize, Vec<TcpStream>),
    /// The time of the next check of the silent connections.
    look_at: Instant,
}

/// A stranger that emulates a switch.
#[derive(Debug)]
struct Stranger {
    switch: Switch,
    ports: bool,
    conn: Option<Conn>,
    dial_at: Instant,
    /// The statistics request that gets an endless answer.
    asked: Option<(u32, u16)>,
    introduced: bool,
    port: u32,
}

impl Strangers {
    pub(super) fn new(orders: &Orders) -> Self {
        let now = Instant::now();
        let kinds = [(Attack::EndlessStatistics, false), (Attack::NewPorts, true)];
        let kinds = kinds.into_iter().filter(|&(attack, _)| orders.attack.includes(attack));
        let each = kinds.flat_map(|(_, ports)| (0..SWITCHES).map(move |place| (ports, place)));
        let switches = each.map(|(ports, place)| Stranger {
            switch: stranger(&orders.setup, FIRST_DPID + place + if ports { SWITCHES } else { 0 }),
            ports,
            conn: None,
            dial_at: now,
            asked: None,
            introduced: false,
            port: 0,
        });
        let silent = if orders.attack.includes(Attack::Silent) { SILENT } else { 0 };
        Self {
            address: orders.switch_address,
            version: orders.setup.version,
            switches: switches.collect(),
            silent: (silent, Vec::new()),
            look_at: now,
        }
    }

    pub(super) fn turn(&mut self, now: Instant, scratch: &mut [u8]) -> u64 {
        let (address, version) = (self.address, self.version);
        let turns = self.switches.iter_mut().map(|it| it.turn(address, version, now, scratch));
        turns.sum::<u64>() + self.stay_silent(now)
    }

    fn stay_silent(&mut self, now: Instant) -> u64 {
        let (wanted, connections) = &mut self.silent;
        if *wanted == 0 {
            return 0;
        }
        if now >= self.look_at {
            self.look_at = now + PAUSE;
            let mut byte = [0];
            // Connections that the system has closed are made again.
            connections.retain(|stream| {
                matches!(stream.peek(&mut byte), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
                    || matches!(stream.peek(&mut byte), Ok(1..))
            });
        }
        let mut made = 0;
        while made < SILENT_AT_ONCE && connections.len() < *wanted {
            let Ok(stream) = TcpStream::connect_timeout(&self.address, CONNECTING) else { break };
            if stream.set_nonblocking(true).is_err() {
                break;
            }
            connections.push(stream);
            made += 1;
        }
        made as u64
    }
}

impl Stranger {
    fn turn(
        &mut self,
        address: SocketAddr,
        version: Version,
        now: Instant,
        scratch: &mut [u8],
    ) -> u64 {
        if self.conn.is_none() {
            return self.dial(address, version, now);
        }
        let is_open = self.read(version, scratch);
        let mut done = 0;
        if let Some(conn) = self.conn.as_mut().filter(|conn| conn.unsent() < MOST_UNSENT) {
            if let Some((xid, of)) = self.asked.filter(|_| !self.ports) {
                part(version, &mut conn.out, xid, of);
                done += 1;
            }
            if self.ports && self.introduced {
                for _ in 0..PORTS {
                    self.port = self.port % 0xfe00 + 1;
                    new_port(version, &self.switch, &mut conn.out, self.port);
                }
                done += u64::from(PORTS);
            }
        }
        let is_written = self.conn.as_mut().is_none_or(|conn| conn.flush() != Flushed::Closed);
        if !(is_open && is_written) {
            (self.conn, self.asked, self.introduced) = (None, None, false);
            self.dial_at = now + PAUSE;
        }
        done
    }

    fn dial(&mut self, address: SocketAddr, version: Version, now: Instant) -> u64 {
        if now < self.dial_at {
            return 0;
        }
        self.dial_at = now + PAUSE;
        let stream = TcpStream::connect_timeout(&address, CONNECTING);
        let conn = stream.and_then(|stream| Conn::new(stream, true, None));
        self.conn = conn.ok().map(|mut conn| {
            hello(version, &mut conn.out);
            conn
        });
        u64::from(self.conn.is_some())
    }

    fn read(&mut self, version: Version, scratch: &mut [u8]) -> bool {
        let Self { switch, ports, conn, asked, introduced, .. } = self;
        let Some(conn) = conn else { return true };
        frames(conn, scratch, |frame, out| {
            let message_type = frame.get(1).copied().unwrap_or(0);
            if message_type == Types::of(version).stats_request && !*ports {
                let xid = be32(frame, 4).unwrap_or(0);
                *asked = Some((xid, be16(frame, HEADER_LEN).unwrap_or(0)));
                return;
            }
            *introduced |= message_type == kind::FEATURES_REQUEST;
            let _ = switch.handle(frame, out);
        })
    }
}

fn stranger(setup: &Setup, dpid: usize) -> Switch {
    // An emulated switch's datapath id is one more than its place.
    Switch::new(setup, dpid - 1)
}

/// One part of an answer, with the flag that more parts follow.
fn part(version: Version, out: &mut Vec<u8>, xid: u32, of: u16) {
    let mut body = of.to_be_bytes().to_vec();
    body.extend_from_slice(&[0, 1]);
    let is_v13 = version == Version::V1_3;
    if is_v13 {
        body.extend_from_slice(&[0; 4]);
    }
    let entry = match (of, is_v13) {
        (1, false) => vec_of(88, 88),
        // A flow with an empty match.
        (1, true) => {
            let mut entry = vec_of(56, 56);
            if let Some(place) = entry.get_mut(48..52) {
                place.copy_from_slice(&[0, 1, 0, 4]);
            }
            entry
        }
        (3, false) => vec_of(64, 0),
        (3, true) => vec_of(24, 0),
        (13, true) => vec_of(64, 0),
        (4, true) => vec_of(112, 0),
        _ => vec_of(104, 0),
    };
    for number in 1..=ENTRIES as u32 {
        let start = body.len();
        body.extend_from_slice(&entry);
        match (of, is_v13) {
            // Each port has another number.
            (4, false) => put32(&mut body, start, number << 16),
            (4 | 13, true) => put32(&mut body, start, number),
            _ => {}
        }
    }
    message(out, version, Types::of(version).stats_reply, xid, &body);
}

/// Zeros, with the length at the start if the format has a length there.
fn vec_of(length: usize, shown: u16) -> Vec<u8> {
    let mut bytes = vec![0; length];
    if let Some(place) = bytes.get_mut(..2) {
        place.copy_from_slice(&shown.to_be_bytes());
    }
    bytes
}

/// PORT_STATUS: a port was added.
fn new_port(version: Version, switch: &Switch, out: &mut Vec<u8>, number: u32) {
    let mut body = vec![0; 8];
    body.extend_from_slice(&switch.port(number as u16));
    message(out, version, kind::PORT_STATUS, 0, &body);
}
