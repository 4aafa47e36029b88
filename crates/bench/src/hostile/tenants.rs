//! Emulates hostile tenants. Their controllers request much work, add rules without end, do not read, connect and
//! disconnect, or connect in large numbers.

use super::attack::Attack;
use super::frames::frames;
use super::orders::Orders;
use crate::Error;
use crate::conn::{Conn, Flushed};
use crate::load::Kind;
use crate::plan::{Setup, Version};
use crate::switch::hello;
use crate::system::all_controllers;
use crate::template::Template;
use crate::wire::{HEADER_LEN, Types, be32, kind, message, put32};
use rustix::process::{Resource, getrlimit};
use std::net::TcpListener;
use std::time::Duration;

/// Requests of each hostile tenant per second.
const RATE: f64 = 100.0;
/// The most bytes that may wait in one connection.
const MOST_UNSENT: usize = 64 << 10;
/// The most connections that one tenant accepts in a turn.
const ACCEPTED: usize = 64;
/// The most controllers of each hostile tenant.
const CONTROLLERS: u64 = 100;
/// Descriptors of this process that are not for hostile controllers.
const OTHER_DESCRIPTORS: u64 = 256;
/// The length of a rule that fills the store, in bytes.
const LONG_RULE: usize = 4 << 10;
const FEATURES_XID: u32 = 1;
const LOADED_XID: u32 = 2;
const ATTACK_XID: u32 = 3;

/// One hostile tenant.
#[derive(Debug)]
pub(super) struct Tenant {
    version: Version,
    /// The listeners of the tenant's controllers: the first controller, and the controllers that accept only in an
    /// attack.
    listeners: Vec<TcpListener>,
    attack: Attack,
    /// The message of the attack.
    message: Vec<u8>,
    /// The number of the next rule of an attack that adds rules.
    next_rule: u32,
    rule: Template,
    rules: u32,
    sessions: Vec<Session>,
    /// Whether the tenant's rules were acknowledged once, or the tenant has no rules to add.
    is_ready: bool,
    sent: u64,
}

/// A connection of the system under test to this tenant.
#[derive(Debug)]
struct Session {
    conn: Conn,
    /// The number of sent rules; `None` before the handshake is complete.
    loaded: Option<u32>,
}

impl Tenant {
    /// Makes tenant `index`, counted from 0. The first tenant is the quiet tenant.
    pub(super) fn new(orders: &Orders, index: usize, listeners: Vec<TcpListener>) -> Self {
        let attack = orders.attack.of_tenant(index);
        let rule = Template::new(Kind::FlowMod, &orders.setup, index);
        Self {
            version: orders.setup.version,
            listeners,
            attack,
            message: request(attack, &orders.setup, &rule),
            next_rule: 1,
            rule,
            rules: if attack.needs_rules() { orders.rules } else { 0 },
            sessions: Vec::new(),
            is_ready: false,
            sent: 0,
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Does the due work; `since` is the time since the start of the attack. Returns the number of attacks.
    pub(super) fn turn(&mut self, since: Option<Duration>, scratch: &mut [u8]) -> u64 {
        let mut done = self.accept(since.is_some());
        let due = since.map_or(0, |since| (since.as_secs_f64() * RATE) as u64);
        let reads = !(self.attack == Attack::SlowReaders && since.is_some());
        let mut sessions = std::mem::take(&mut self.sessions);
        sessions.retain_mut(|session| {
            let is_open = !reads || self.read(session, scratch);
            self.load(session);
            if since.is_some() {
                done += self.ask(session, due);
            }
            is_open && session.conn.flush() != Flushed::Closed
        });
        self.sessions = sessions;
        // A message that could not be sent in time is not sent later.
        self.sent = self.sent.max(due);
        done
    }

    fn accept(&mut self, attacks: bool) -> u64 {
        let closes = attacks && self.attack == Attack::HelloAndClose;
        if closes {
            self.sessions.clear();
        }
        // All controllers except the first accept connections only during the attack.
        let listening = if attacks { self.listeners.len() } else { 1 };
        let mut done = 0;
        let accepted = self.listeners.iter().take(listening).flat_map(|listener| {
            std::iter::from_fn(|| listener.accept().ok()).map(|(stream, _)| stream)
        });
        for stream in accepted.take(ACCEPTED) {
            let Ok(mut conn) = Conn::new(stream, true, None) else { continue };
            hello(self.version, &mut conn.out);
            if closes {
                conn.flush();
            } else {
                self.sessions.push(Session { conn, loaded: None });
            }
            let is_attack = closes || (attacks && self.attack == Attack::ManyControllers);
            done += u64::from(is_attack);
        }
        done
    }

    /// Reads the arrived bytes. False at the end.
    fn read(&mut self, session: &mut Session, scratch: &mut [u8]) -> bool {
        let version = self.version;
        let mut is_ready = self.is_ready;
        let Session { conn, loaded } = session;
        let is_open = frames(conn, scratch, |frame, out| {
            let xid = be32(frame, 4).unwrap_or(0);
            let body = frame.get(HEADER_LEN..).unwrap_or_default();
            match frame.get(1).copied() {
                Some(kind::HELLO) => {
                    message(out, version, kind::FEATURES_REQUEST, FEATURES_XID, &[])
                }
                Some(kind::ECHO_REQUEST) => message(out, version, kind::ECHO_REPLY, xid, body),
                Some(kind::FEATURES_REPLY) if loaded.is_none() => *loaded = Some(0),
                Some(t) if t == Types::of(version).barrier_reply && xid == LOADED_XID => {
                    is_ready = true
                }
                _ => {}
            }
        });
        self.is_ready = is_ready;
        is_open
    }

    /// Adds the rules that the attack needs, and sends a BARRIER_REQUEST after the rules.
    fn load(&mut self, session: &mut Session) {
        let Some(loaded) = session.loaded.as_mut().filter(|loaded| **loaded <= self.rules) else {
            return;
        };
        let ((rule, place), out) = (self.rule.flow_mod(), &mut session.conn.out);
        while *loaded < self.rules && out.len() < MOST_UNSENT {
            let start = out.len();
            out.extend_from_slice(rule);
            put32(out, start + place, *loaded + 1);
            *loaded += 1;
        }
        if *loaded == self.rules {
            *loaded += 1;
            message(out, self.version, Types::of(self.version).barrier_request, LOADED_XID, &[]);
        }
    }

    /// Sends the due messages of the attack.
    fn ask(&mut self, session: &mut Session, due: u64) -> u64 {
        if self.message.is_empty() || session.loaded.is_none_or(|loaded| loaded <= self.rules) {
            return 0;
        }
        // A tenant that does not read, or adds rules, sends as many requests as the system accepts.
        let adds = self.attack.is_against_rules();
        let is_unbounded = adds || self.attack == Attack::SlowReaders;
        let wanted = if is_unbounded { u64::MAX } else { due - self.sent.min(due) };
        let mut asked = 0;
        while asked < wanted && session.conn.unsent() < MOST_UNSENT {
            if adds {
                put32(&mut self.message, self.rule.flow_mod().1, self.next_rule);
                self.next_rule = self.next_rule.wrapping_add(1);
            }
            session.conn.out.extend_from_slice(&self.message);
            asked += 1;
        }
        asked
    }
}

/// One message of an attack; empty if the attack has no message.
fn request(attack: Attack, setup: &Setup, rule: &Template) -> Vec<u8> {
    let version = setup.version;
    let (add, place) = rule.flow_mod();
    let mut out = Vec::new();
    match attack {
        Attack::ModifyAll => flow_mod(version, &mut out, MODIFY, 0),
        Attack::DeleteCookie => flow_mod(version, &mut out, DELETE, UNKNOWN),
        Attack::CheckOverlap | Attack::DeleteNothing => {
            // A rule of the tenant with a unique destination.
            out.extend_from_slice(add);
            put32(&mut out, place, 0x0c00_0001);
            let (command_at, flags_at) = match version {
                // The places after header, match and cookie, and after header, cookie, mask and table.
                Version::V1_0 => (HEADER_LEN + 40 + 8 + 1, HEADER_LEN + 40 + 8 + 15),
                Version::V1_3 => (HEADER_LEN + 17, HEADER_LEN + 37),
            };
            let (at, value) = match attack {
                Attack::CheckOverlap => (flags_at, CHECK_OVERLAP),
                _ => (command_at, DELETE),
            };
            if let Some(place) = out.get_mut(at) {
                *place = value;
            }
        }
        Attack::FillStore | Attack::FillTable => {
            out.extend_from_slice(add);
            if attack == Attack::FillStore {
                lengthen(version, &mut out);
            }
        }
        Attack::SlowReaders => {
            message(&mut out, version, kind::ECHO_REQUEST, ATTACK_XID, &[0; 1024])
        }
        _ => {}
    }
    put32(&mut out, 4, ATTACK_XID);
    out
}

/// Repeats the last action of a FLOW_MOD until the FLOW_MOD is long. In 1.3 the action is in the last instruction.
fn lengthen(version: Version, out: &mut Vec<u8>) {
    let (action_len, instruction_len) = match version {
        Version::V1_0 => (8, 0),
        Version::V1_3 => (16, 24),
    };
    let action = out.get(out.len().saturating_sub(action_len)..).unwrap_or_default().to_vec();
    let instruction_at = out.len().saturating_sub(instruction_len);
    while !action.is_empty() && out.len() < LONG_RULE {
        out.extend_from_slice(&action);
    }
    let lengths = [(2, out.len()), (instruction_at + 2, out.len() - instruction_at)];
    for (at, length) in lengths.into_iter().take(if instruction_len == 0 { 1 } else { 2 }) {
        if let Some(place) = out.get_mut(at..at + 2) {
            place.copy_from_slice(&(length as u16).to_be_bytes());
        }
    }
}

/// The number of controllers of each hostile tenant in [`Attack::ManyControllers`], for this number of hostile tenants.
/// Each controller needs a descriptor to listen, and a descriptor for its connection.
pub(super) fn controllers_each(tenants: usize) -> usize {
    let limit = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let each = limit.saturating_sub(OTHER_DESCRIPTORS) / (tenants.max(1) as u64 * 2);
    each.clamp(1, CONTROLLERS) as usize
}

/// The listeners of all controllers of a tenant. `first` is the listener of the tenant's first controller.
///
/// # Errors
/// [`Error::Io`] naming the address.
pub(super) fn listeners(first: TcpListener, each: usize) -> Result<Vec<TcpListener>, Error> {
    let address = first.local_addr().map_err(Error::io("a controller's address"))?;
    let mut all = vec![first];
    for address in all_controllers(address, each).skip(1) {
        all.push(TcpListener::bind(address).map_err(Error::io(format!("controller {address}")))?);
    }
    for listener in &all {
        listener.set_nonblocking(true).map_err(Error::io("hostile tenants' sockets"))?;
    }
    Ok(all)
}

const MODIFY: u8 = 1;
const DELETE: u8 = 3;
const CHECK_OVERLAP: u8 = 2;
/// A cookie that no rule has. In 1.0, where a deletion has no cookie filter, a port to which no rule sends.
const UNKNOWN: u64 = 0x7777;

/// A FLOW_MOD for all of the tenant's rules, or for the rules with a cookie.
fn flow_mod(version: Version, out: &mut Vec<u8>, command: u8, cookie: u64) {
    let mut body = Vec::new();
    match version {
        Version::V1_0 => {
            // Everything is a wildcard; cookie, command, time-outs, priority, no buffer, out_port, flags.
            body.extend_from_slice(&0x003f_ffff_u32.to_be_bytes());
            body.resize(40 + 8, 0);
            body.extend_from_slice(&[0, command, 0, 0, 0, 0, 0, 100, 0xff, 0xff, 0xff, 0xff]);
            let out_port = if cookie == 0 { 0xffff } else { cookie as u16 };
            body.extend_from_slice(&out_port.to_be_bytes());
            body.extend_from_slice(&[0, 0]);
            // OUTPUT to port 1.
            body.extend_from_slice(&[0, 0, 0, 8, 0, 1, 0, 0]);
        }
        Version::V1_3 => {
            let mask = if cookie == 0 { 0 } else { u64::MAX };
            body.extend_from_slice(&cookie.to_be_bytes());
            body.extend_from_slice(&mask.to_be_bytes());
            // Table, command, time-outs, priority, no buffer, any port and group, flags, a match of everything.
            body.extend_from_slice(&[0, command, 0, 0, 0, 0, 0, 100, 0xff, 0xff, 0xff, 0xff]);
            body.extend_from_slice(&[0xff; 8]);
            body.extend_from_slice(&[0, 0, 0, 0, 0, 1, 0, 4, 0, 0, 0, 0]);
            if command == MODIFY {
                // APPLY_ACTIONS: OUTPUT to port 1.
                body.extend_from_slice(&[0, 4, 0, 24, 0, 0, 0, 0]);
                body.extend_from_slice(&[0, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
            }
        }
    }
    message(out, version, kind::FLOW_MOD, ATTACK_XID, &body);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Topology;

    /// In both versions attacks are whole messages of the right type.
    #[test]
    fn attack_messages_are_well_formed_in_both_openflow_versions() {
        for version in [Version::V1_0, Version::V1_3] {
            let setup = Setup { version, ..Setup::new(Topology::Direct, 20) };
            let rule = Template::new(Kind::FlowMod, &setup, 3);
            for attack in Attack::ALL {
                let bytes = request(attack, &setup, &rule);
                if bytes.is_empty() {
                    continue;
                }
                let decoded = openflow::Header::parse(&bytes).unwrap();
                assert_eq!(usize::from(decoded.length), bytes.len(), "{attack:?} {version:?}");
                assert_eq!(be32(&bytes, 4), Some(ATTACK_XID));
                let command = match version {
                    Version::V1_0 => bytes[HEADER_LEN + 49],
                    Version::V1_3 => bytes[HEADER_LEN + 17],
                };
                let expected = match attack {
                    Attack::ModifyAll => MODIFY,
                    Attack::DeleteNothing | Attack::DeleteCookie => DELETE,
                    _ => 0,
                };
                assert_eq!(command, expected, "{attack:?} {version:?}");
                // The lengths inside are right, too.
                match version {
                    Version::V1_0 => drop(openflow::v10::Message::parse(&bytes).unwrap()),
                    Version::V1_3 => drop(openflow::v13::Message::parse(&bytes).unwrap()),
                }
                let is_long = bytes.len() >= LONG_RULE;
                assert_eq!(is_long, attack == Attack::FillStore, "{attack:?} {version:?}");
            }
        }
    }
}
