//! A big switch: one virtual switch on several physical switches, its members.
//!
//! Each member has a [`Switch`](crate::Switch), which shows its controller all ports of the tenant's switch: tunnels
//! lead to the ports on other members. A [`BigSwitch`] is the controller of all these `Switch`es. Between the tenant's
//! controllers and the
//! `BigSwitch` is one more `Switch`, the *front*. The front has a datapath id of [a special range](is_key), and all of the front
//! belongs to one tenant. The front has the roles, fairness, limits, replays, virtual tables and the state that
//! survives a restart.
//!
//! ```text
//!                                          ┌──▶ Switch (physical 1) ──▶ switch 1
//!   controllers ──▶ Switch (front) ──▶ BigSwitch
//!                                          └──▶ Switch (physical 2) ──▶ switch 2
//! ```
//!
//! Changes of tables or ports go to all members (`log`), all or nothing. Statistics requests go to all members, and the
//! answers are added up (`statistics`). Packets go to the member that has their port (`ports`). An ERROR carries the
//! member that refused, and the reason ([`carried`](crate::refusals)): the front keeps both for the tenant. This module
//! does no I/O: bytes go in through `handle_*` and come out of the outboxes.

mod buffered;
mod change;
mod difference;
mod entries;
mod fill;
mod front;
mod leaving;
mod log;
mod member;
mod ports;
mod request;
mod session;
mod statistics;
mod tables;
mod wire;

use crate::messages;
use crate::outbox::Outbox;
pub use crate::policy::big_switches::{Plan, is_key, key, plans};
use crate::semantics::Semantics;
use crate::south::features::{Connected, Features};
use crate::time::Instant;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use buffered::Buffered;
use change::{Ask, Log};
use compile::{PhysicalPort, Wire};
use leaving::AllLeaving;
use member::{Member, Progress};
use openflow::v13::{MessageType, Port};
use openflow::{Header, Version};
use session::Front;
use tables::Tables;
use wire::Sent;

/// Bytes that may wait for the front or for a member before nothing more is read.
const MEMBER_BYTES: usize = 1 << 20;

/// What the driver has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Enough members are connected: connect the big switch to its front, as a switch with this FEATURES_REPLY.
    Start(Vec<u8>),
    /// No member is left: close the connection to the front.
    Stop,
    /// This member cannot take part: close its connection.
    CloseMember(u64, &'static str),
    /// The big switch has this many ports, more than a FEATURES_REPLY of 1.0 has room for. Nobody gets to see the big
    /// switch.
    TooManyPorts(usize),
}

/// One virtual switch on several physical ones. See the module.
pub struct BigSwitch {
    key: u64,
    wire: Wire,
    plan: Plan,
    members: BTreeMap<u64, Member>,
    front: Front,
    features: Features,
    /// What the big switch is to have, after all changes of the log.
    desired: Tables,
    log: Log,
    /// Members that are asked whether their copy of an entry is idle.
    checks: BTreeMap<u64, BTreeSet<u64>>,
    leaving: AllLeaving,
    asks: BTreeMap<u64, Ask>,
    next_ask: u64,
    /// Packets that members keep.
    buffered: Buffered,
    events: VecDeque<Event>,
}

impl BigSwitch {
    /// A big switch with nobody connected.
    pub fn new(key: u64, plan: Plan, version: Version) -> BigSwitch {
        BigSwitch {
            key,
            wire: Wire::of(version),
            plan,
            members: BTreeMap::new(),
            front: Front::default(),
            features: Features::default(),
            desired: Tables::default(),
            log: Log::default(),
            checks: BTreeMap::new(),
            leaving: AllLeaving::default(),
            asks: BTreeMap::new(),
            next_ask: 0,
            buffered: Buffered::default(),
            events: VecDeque::new(),
        }
    }

    /// The version that all members speak.
    pub fn version(&self) -> Version {
        Semantics::of(self.wire).version
    }

    /// Whether no member is connected.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// What the driver has to do.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Bytes for the front.
    pub fn front_outbox(&mut self) -> &mut Outbox {
        self.front.outbox()
    }

    /// Bytes for a member.
    pub fn member_outbox(&mut self, dpid: u64) -> Option<&mut Outbox> {
        self.members.get_mut(&dpid).map(|member| &mut member.out)
    }

    /// Whether the driver should read from the front: not too many bytes wait for the front or for a member.
    pub fn wants_front(&self) -> bool {
        // A front that is away takes no messages. The front comes back when the members have answered, so Weir reads
        // their answers in any case.
        !self.front.is_started()
            || self.front.waiting() < MEMBER_BYTES
                && self.front.bytes_held_back() < MEMBER_BYTES
                && self.members.values().all(|member| member.out.len() < MEMBER_BYTES)
    }

    /// Whether the driver should read from members: not too many bytes wait for the front.
    pub fn wants_members(&self) -> bool {
        self.front.waiting() < MEMBER_BYTES
    }

    /// When [`handle_timeout`](Self::handle_timeout) has to be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let may_start = self.may_start() && self.members_up() > 0;
        let start = self.front.starts_at().filter(|_| may_start);
        [start, self.leaving.ends()].into_iter().flatten().min()
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.report_late(now);
        self.maybe_start(now);
    }

    /// Another map: ports may be on other members. Connections of members that the map no longer has are closed.
    pub fn handle_plan(&mut self, plan: Plan, now: Instant) {
        if self.plan == plan {
            return;
        }
        self.plan = plan;
        let gone = self.members.keys().filter(|dpid| !self.plan.members.contains(dpid));
        for &dpid in gone {
            self.events.push_back(Event::CloseMember(dpid, "it is no part of the big switch"));
        }
        self.refill(now);
        self.report_ports();
        self.advance(now);
    }

    /// A member's session has connected with this FEATURES_REPLY. An earlier connection of the member is gone.
    pub fn member_connected(&mut self, dpid: u64, features: &[u8], now: Instant) {
        self.member_disconnected(dpid, now);
        let fits = self.plan.members.contains(&dpid)
            && openflow::frame::version(features) == Some(self.version());
        let connected = messages::connected(self.wire, wire::body(features)).ok();
        let Some(Connected { features: can, ports, .. }) = connected.filter(|_| fits) else {
            let why = "it speaks another version than the other members of the big switch";
            self.events.push_back(Event::CloseMember(dpid, why));
            return;
        };
        self.features = match self.members.is_empty() {
            true => can,
            false => Features {
                n_buffers: self.features.n_buffers.min(can.n_buffers),
                n_tables: self.features.n_tables.min(can.n_tables),
                capabilities: self.features.capabilities & can.capabilities,
                actions: self.features.actions & can.actions,
            },
        };
        self.front.member_connected(now);
        let port = |(number, port): (u32, PhysicalPort)| {
            Some((number, messages::read_port(self.wire, &port.description)?))
        };
        let ports = ports.into_iter().filter_map(port).collect();
        self.members.insert(dpid, Member::new(self.wire, ports));
    }

    /// A member's session is gone: the member's ports are down, and Weir waits for none of its answers.
    pub fn member_disconnected(&mut self, dpid: u64, now: Instant) {
        if self.members.remove(&dpid).is_none() {
            return;
        }
        self.buffered.forget_member(dpid);
        if self.members.is_empty() {
            self.forget();
            if self.front.stop() {
                self.events.push_back(Event::Stop);
            }
            return;
        }
        self.without(dpid, now);
        self.report_ports();
        self.maybe_start(now);
    }

    /// The front's connection is closed. Weir connects the front again when the results of all its changes are known.
    pub fn front_closed(&mut self, now: Instant) {
        self.front.closed((!self.members.is_empty()).then_some(now));
        self.asks.clear();
        self.forget_askers();
    }

    fn forget(&mut self) {
        self.desired.clear();
        self.log.forget();
        self.checks.clear();
        self.leaving.clear();
        self.asks.clear();
        self.front.forget();
        self.buffered.clear();
    }

    /// A member is lost: Weir waits for none of its answers.
    fn without(&mut self, dpid: u64, now: Instant) {
        let asks: Vec<u64> = self.asks.keys().copied().collect();
        for ask in asks {
            self.part_lost(ask, dpid, now);
        }
        self.counts_lost(dpid, now);
        self.advance(now);
    }

    /// Whether the front is away and no change is in flight.
    fn may_start(&self) -> bool {
        !self.front.is_started() && self.log.changes.is_empty() && !self.log.is_settling
    }

    fn members_up(&self) -> usize {
        let up = |member: &&Member| member.progress == Progress::Up;
        self.members.values().filter(up).count()
    }

    /// Shows the switch when all members are connected, or when Weir has waited long enough.
    fn maybe_start(&mut self, now: Instant) {
        if !self.may_start() {
            return;
        }
        let count = self.members_up();
        let all = self.plan.members.iter().all(|dpid| self.is_up(*dpid));
        let waited = self.front.has_waited(now);
        if count > 0 && (all || waited) {
            let ports = self.described();
            let Some(features) = self.features_reply(0, &ports) else {
                if self.front.note_too_many() {
                    self.events.push_back(Event::TooManyPorts(ports.len()));
                }
                return;
            };
            self.front.start(ports);
            self.events.push_back(Event::Start(features));
        }
    }

    /// The FEATURES_REPLY; `None` if it has no room for all ports (1.0).
    fn features_reply(&self, xid: u32, ports: &BTreeMap<u32, Port>) -> Option<Vec<u8>> {
        wire::features_reply(self.wire, xid, self.key, &self.features, ports)
    }

    fn is_up(&self, dpid: u64) -> bool {
        self.members.get(&dpid).is_some_and(|member| member.progress == Progress::Up)
    }

    /// Members that get each change.
    fn live(&self) -> Vec<u64> {
        let live = self.members.iter().filter(|(_, member)| member.is_live());
        live.map(|(&dpid, _)| dpid).collect()
    }

    /// Takes one whole message of a member.
    pub fn handle_member(&mut self, dpid: u64, frame: &[u8], now: Instant) {
        let Ok(header) = Header::parse(frame) else { return };
        if header.version != self.version() || !self.members.contains_key(&dpid) {
            return;
        }
        self.member_message(dpid, header, frame, now);
        self.advance(now);
    }

    /// Takes one whole message of the front.
    pub fn handle_front(&mut self, frame: &[u8], now: Instant) {
        let Ok(header) = Header::parse(frame) else { return };
        if header.version != self.version() {
            return;
        }
        if self.log.is_settling && header.type_ != MessageType::ECHO_REQUEST.0 {
            self.front.hold_back(frame);
            return;
        }
        self.front_message(header, frame, now);
        self.advance(now);
    }

    fn send(&mut self, dpid: u64, what: Sent, message: &[u8]) {
        if let Some(member) = self.members.get_mut(&dpid) {
            member.send(what, message);
        }
    }
}
