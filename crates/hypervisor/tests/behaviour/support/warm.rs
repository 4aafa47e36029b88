//! A core that forwards, with cheap models of the switch and the controllers, to count allocations and measure time.

use super::packets::packet_in;
use super::world::{LLDP_KEY, drain, frames, shake_hands};
use super::{packet, policy, request};
use fabric::embedding::{Hop, Member, PortKind, SwitchMap, Tag, VirtualPort};
use fabric::{Dpid, PortNumber};
use hypervisor::{ControllerIndex, Instant, Policy, Settings, Switch, TenantId};
use openflow::{NO_BUFFER, Version, frame};
use std::sync::Arc;
use std::time::Duration;

/// A core with a driver that does not allocate memory.
pub struct WarmCore {
    switch: Switch,
    controllers: Vec<ControllerIndex>,
    pub now: u64,
    /// A BARRIER_REQUEST, from which the replies to the core's own barriers are made.
    answer: Vec<u8>,
    pub south: u64,
    pub north: u64,
    /// The messages of the core to controllers, if the test collects these messages.
    pub said: Option<Vec<u8>>,
    /// The switch refuses every second entry that is added.
    pub refuses: bool,
    /// The switch refuses one FLOW_MOD, after this number of other FLOW_MODs.
    pub refuses_after: Option<u32>,
    /// The longest time that one call into the core took, if it is measured. All tenants wait for a call. Reading the
    /// clock takes a quarter of the time of a PACKET_OUT.
    pub longest: Option<Duration>,
    /// The switch to which the core has connected, and whether the switch gets and answers all messages.
    emulated: emulate::Switch,
    pub answers: bool,
}

impl WarmCore {
    pub fn new(version: Version, tenants: u16, mode: Mode) -> WarmCore {
        let mut core = WarmCore::of(version, 1, Arc::new(policy_of(tenants, mode, 0)));
        let connect = |n| core.switch.controller_connected(TenantId(n)).unwrap();
        core.controllers = (1..=tenants).map(connect).collect();
        core
    }

    /// A core for this switch, without controllers.
    pub fn of(version: Version, dpid: u64, policy: Arc<Policy>) -> WarmCore {
        let mut emulated = emulate::Switch::new(emulate::Config {
            versions: openflow::VersionSet::only(version),
            ..emulate::Config::new(dpid, 30)
        });
        let features = shake_hands(&mut emulated, version);
        let (settings, stored, now) = (Settings::default(), Vec::new(), Instant(0));
        let switch = Switch::new(&features, policy, settings, LLDP_KEY, stored, true, now);
        let mut switch = switch.unwrap();
        while !switch.switch_outbox().is_empty() {
            let mut out = Vec::new();
            for message in frames(&drain(switch.switch_outbox())) {
                emulated.handle_message(0, &message, &mut out);
            }
            for message in frames(&out) {
                switch.handle_switch_message(&message, Instant(1_000));
            }
        }
        assert!(switch.is_ready());
        WarmCore {
            switch,
            controllers: Vec::new(),
            now: 2_000,
            answer: request(version, 0, "barrier"),
            south: 0,
            north: 0,
            said: None,
            refuses: false,
            refuses_after: None,
            longest: None,
            emulated,
            answers: false,
        }
    }

    /// A controller of this tenant connects. With `takes` the controller is a big switch, and the messages of the core
    /// are collected.
    pub fn connect(&mut self, tenant: TenantId, takes: bool) {
        let controller = match takes {
            true => self.switch.joint_connected(tenant),
            false => self.switch.controller_connected(tenant),
        };
        self.controllers.push(controller.unwrap());
        self.said = takes.then(Vec::new);
    }

    /// For each tenant a PACKET_IN of the switch and a PACKET_OUT of its controller.
    pub fn messages(version: Version, tenants: u16, mode: Mode) -> Vec<(Vec<u8>, Vec<u8>)> {
        let names = (1..=tenants).map(|n| (n, format!("10.{n}.0.1>10.9.0.1")));
        let pair = |(n, name): (u16, String)| {
            let outputs = if mode == Mode::Slices { "output:2,output:3" } else { "output:2" };
            let words = format!("out in_port=1 actions={outputs} data={name}");
            let out = request(version, 7, &words);
            let came = match mode {
                Mode::Slices => (1, Some(1 << 48)),
                Mode::Networks => (n, Some(u64::from(n) << 48 | 1 << 32)),
            };
            (packet_in(version, NO_BUFFER, came, &packet(&name)), out)
        };
        names.map(pair).collect()
    }

    /// Sends each message once.
    pub fn round(&mut self, messages: &[(Vec<u8>, Vec<u8>)]) {
        for (at, (packet_in, packet_out)) in messages.iter().enumerate() {
            self.up(packet_in);
            self.down(at, packet_out);
        }
    }

    /// An operator traces a packet that enters by a port of the switch. Returns the number of steps.
    pub fn trace(&self, port: u32, frame: &[u8]) -> usize {
        let packet = self.switch.entrance_of_switch(1, port, frame).unwrap();
        self.switch.passage(&packet).steps.len()
    }

    /// The switch sends a message.
    pub fn up(&mut self, message: &[u8]) {
        self.switch.handle_switch_message(message, Instant(self.now));
        self.carry();
    }

    /// The controller of a tenant sends a message.
    pub fn down(&mut self, tenant: usize, message: &[u8]) {
        self.say(tenant, message);
        self.carry();
    }

    /// The controller of a tenant sends a message. The driver does no other work before the next message.
    pub fn say(&mut self, tenant: usize, message: &[u8]) {
        let controller = self.controllers[tenant];
        self.timed(|switch, now| {
            switch.handle_controller_message(controller, message, now);
        });
    }

    /// The controller of a tenant sends a message as soon as the core reads from the controller.
    pub fn say_when_read(&mut self, tenant: usize, message: &[u8]) {
        while !self.switch.wants_read(self.controllers[tenant]) {
            self.now += 100_000;
            self.carry();
        }
        self.say(tenant, message);
    }

    /// The tenants' networks are placed again: each link has a label that is `offset` higher than at first.
    pub fn relabel(&mut self, offset: u16) {
        let policy = policy_of(self.controllers.len() as u16, Mode::Networks, offset);
        self.timed(|switch, now| switch.handle_policy(Arc::new(policy), now));
        self.carry();
    }

    /// One call into the core.
    fn timed<T>(&mut self, call: impl FnOnce(&mut Switch, Instant) -> T) -> T {
        let began = self.longest.map(|_| std::time::Instant::now());
        let result = call(&mut self.switch, Instant(self.now));
        self.longest = self.longest.max(began.map(|it| it.elapsed()));
        result
    }

    /// A tenant sends a message. Returns when all work for the message is done.
    pub fn all_of(&mut self, tenant: usize, message: &[u8]) {
        self.down(tenant, message);
        self.finish();
    }

    /// Returns when all requests of the tenants are done.
    pub fn finish(&mut self) {
        while self.switch.tenants().any(|it| it.held > 0) {
            self.now += 1_000_000;
            self.carry();
        }
    }

    /// Lets 100 milliseconds pass, so that all work is done.
    pub fn rest(&mut self) {
        for _ in 0..100 {
            self.now += 1_000_000;
            self.carry();
        }
    }

    /// The number of entries that the core has examined for the tenants' requests.
    pub fn examined(&self) -> u64 {
        self.switch.tenants().map(|tenant| tenant.counters.examined).sum()
    }

    /// Does the work of the driver after each message.
    pub fn carry(&mut self) {
        while self.turn() {}
    }

    /// One turn of the event loop. Gives whether another turn is awaited.
    fn turn(&mut self) -> bool {
        self.now += 1_000;
        let is_awaited = self.timed(Switch::next_turn);
        loop {
            let outbox = self.switch.switch_outbox();
            let Some(length) = frame::next(outbox.as_slice()).unwrap() else { break };
            let (type_, xid) =
                (frame::type_(outbox.as_slice()).unwrap(), frame::xid(outbox.as_slice()).unwrap());
            let is_add = self.refuses && is_add(&outbox.as_slice()[..length]);
            let reply = self.said.as_ref().and_then(|_| empty_answer(&outbox.as_slice()[..length]));
            let mut answer = Vec::new();
            if self.answers {
                let message = &outbox.as_slice()[..length];
                self.emulated.handle_message(self.now, message, &mut answer);
            }
            outbox.consume(length);
            if self.answers {
                for message in frames(&answer) {
                    self.timed(|switch, now| switch.handle_switch_message(&message, now));
                }
                continue;
            }
            if let Some(reply) = reply {
                self.timed(|switch, now| switch.handle_switch_message(&reply, now));
                continue;
            }
            let is_chosen = type_ == FLOW_MOD && self.refuses_after == Some(0);
            if type_ == FLOW_MOD {
                self.refuses_after = self.refuses_after.and_then(|after| after.checked_sub(1));
            }
            if type_ == self.answer[1] {
                let mut reply = [0; 8];
                reply.copy_from_slice(&self.answer);
                reply[1] += 1;
                frame::set_xid(&mut reply, xid);
                self.timed(|switch, now| switch.handle_switch_message(&reply, now));
            } else {
                self.south += 1;
                if is_chosen || is_add && self.south.is_multiple_of(2) {
                    let error = table_full(self.answer[0], xid);
                    self.timed(|switch, now| switch.handle_switch_message(&error, now));
                }
            }
        }
        while let Some(controller) = self.switch.poll_controller() {
            let outbox = self.switch.controller_outbox(controller).unwrap();
            self.north += u64::from(!outbox.is_empty());
            if let Some(said) = &mut self.said {
                said.extend_from_slice(outbox.as_slice());
            }
            let waiting = outbox.len();
            outbox.consume(waiting);
            self.switch.written(controller, false);
        }
        if self.switch.poll_timeout().is_some_and(|at| at.0 <= self.now) {
            self.timed(Switch::handle_timeout);
        }
        while self.switch.poll_resumed().is_some() {}
        is_awaited
    }
}

/// The type of FLOW_MOD in both versions.
const FLOW_MOD: u8 = 14;

/// Whether a message to the switch is a FLOW_MOD that adds an entry. The command is one byte on 1.3 and two on 1.0.
fn is_add(message: &[u8]) -> bool {
    match message {
        [4, FLOW_MOD, ..] => message[25] == 0,
        [1, FLOW_MOD, ..] => message[56..58] == [0, 0],
        _ => false,
    }
}

/// The reply to a statistics request from a switch without entries.
fn empty_answer(message: &[u8]) -> Option<Vec<u8>> {
    let length = match message {
        [1, 16, ..] => 12,
        [4, 18, ..] => 16,
        _ => return None,
    };
    let mut reply = message[..length].to_vec();
    reply[1] += 1;
    reply[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    Some(reply)
}

/// The ERROR for an entry that the switch has no room for.
fn table_full(version: u8, xid: u32) -> Vec<u8> {
    let (version, code) = match version {
        1 => (Version::V1_0, openflow::error::v10::FLOW_MOD_FAILED_ALL_TABLES_FULL),
        _ => (Version::V1_3, openflow::error::v13::FLOW_MOD_FAILED_TABLE_FULL),
    };
    let mut out = Vec::new();
    openflow::error::Error { code, data: &[0; 64] }.write_message(version, xid, &mut out).unwrap();
    out
}

/// How the tenants share the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Slices,
    /// Each tenant has an edge port of its own and the end of a link.
    Networks,
}

/// The first columns of a row that an example prints.
pub fn row(version: Version, mode: Mode) -> String {
    let mode = if mode == Mode::Slices { "slices" } else { "networks" };
    format!("{:<8} {mode:<9}", version.to_string())
}

/// A virtual port that is up.
pub fn virtual_port(kind: PortKind) -> VirtualPort {
    VirtualPort { mac: [2, 0, 0, 0, 0, 1], name: String::new(), up: true, speed: None, kind }
}

fn policy_of(tenants: u16, mode: Mode, offset: u16) -> Policy {
    let text: String = (1..=tenants).map(|n| format!("t{n}x: ip,nw_src=10.{n}.0.0/16\n")).collect();
    let mut policy = policy(&text);
    if mode == Mode::Networks {
        let mut map = SwitchMap::default();
        let hop = |tag| Hop { port: PortNumber::new(30).unwrap(), tag: Tag::new(tag).unwrap() };
        for (n, tenant) in (1..).zip(&mut policy.tenants) {
            tenant.flowspace.clear();
            let edge = PortKind::Edge { port: PortNumber::new(n).unwrap(), hosts: Vec::new() };
            let tag = 2000 + n as u16 + offset;
            let receives = vec![hop(tag), hop(tag + 100)];
            let (sends, far) = (Some(hop(tag)), Default::default());
            let link = PortKind::Link { sends, receives, far };
            let member = Member {
                datapath: Dpid(0xa0),
                name: String::new(),
                ports: [(1, virtual_port(edge)), (2, virtual_port(link))].into(),
                shared_with: false,
            };
            map.members.insert(tenant.id, member);
        }
        policy.maps.insert(1, Arc::new(map));
    }
    policy
}

/// The number of seconds that this work takes.
pub fn seconds(work: impl FnOnce()) -> f64 {
    let began = std::time::Instant::now();
    work();
    began.elapsed().as_secs_f64()
}

/// The number of nanoseconds that one of so many messages takes.
pub fn nanoseconds(messages: u32, work: impl FnOnce()) -> f64 {
    seconds(work) * 1e9 / f64::from(messages)
}

/// The median: the value in the middle.
pub fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
