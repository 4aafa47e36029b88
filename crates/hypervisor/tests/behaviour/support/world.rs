//! One hypervisor core between controllers and an emulated switch, or a switch that the test plays by hand.
//!
//! Time is virtual and in nanoseconds. Connections deliver messages in order and at once, or to the switch after a
//! delay. While the core does not read from a controller, the controller's messages wait in its own queue, as in a
//! socket.

use super::{describe, policy, request};
use emulate::{Config, ServiceTime, SlowSwitch};
use hypervisor::{
    ControllerIndex, Event, Instant, LldpKey, Outbox, Policy, Pool, Settings, StoreKey, StoreOp,
    Switch, TenantId,
};
use openflow::{Hello, Version, VersionSet, frame};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The parts and settings of a world.
pub struct Setup {
    pub version: Version,
    pub policy: Policy,
    /// The number of ports, which have the numbers from 1 on.
    pub ports: u32,
    /// Messages per second that the switch can handle; `None` for any number.
    pub per_second: Option<u32>,
    /// Messages that the switch handles at once after an idle time, as from a bucket of tokens; 0 for none.
    pub bucket: u32,
    /// The time that messages to the switch take.
    pub delay: u64,
    pub settings: Settings,
    /// Whether changes count as stored at once; else the test calls [`World::stored`].
    pub store_at_once: bool,
    /// Whether the test plays the switch itself.
    pub by_hand: bool,
    /// The memory that the switch shares with other switches, if the switch is unlisted.
    pub pool: Option<Arc<Pool>>,
    pub configure: fn(&mut Config),
}

impl Setup {
    pub fn new(version: Version, text: &str) -> Setup {
        Setup {
            version,
            policy: policy(text),
            ports: 4,
            per_second: None,
            bucket: 0,
            delay: 0,
            settings: Settings::default(),
            store_at_once: true,
            by_hand: false,
            pool: None,
            // PACKET_INs have whole packets, so that only tests of buffers name buffer ids.
            configure: |config| config.n_buffers = 0,
        }
    }
}

impl Setup {
    /// Applies changes of many entries in small batches or at once, by a number that differs from case to case.
    pub fn in_batches(mut self, by: usize) -> Setup {
        self.settings.batch = [1, 2, Settings::default().batch][by % 3];
        self
    }
}

/// A controller, by its place in the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat(pub usize);

/// One controller's connection.
pub struct Controller {
    pub index: ControllerIndex,
    pub tenant: TenantId,
    /// The messages that the controller has received, with the times.
    pub inbox: VecDeque<(u64, Vec<u8>)>,
    /// The messages that the controller has sent and the core has not read.
    pub outgoing: VecDeque<Vec<u8>>,
    /// Whether the core does not read from the controller at present.
    pub paused: bool,
    /// A controller that does not read blocks its connection.
    pub reads: bool,
}

/// A frame that left the switch.
#[derive(Clone, Debug)]
pub struct Left {
    pub at: u64,
    pub port: u32,
    pub frame: Vec<u8>,
}

pub struct World {
    pub core: Switch,
    pub switch: SlowSwitch,
    pub now: u64,
    pub version: Version,
    pub controllers: Vec<Controller>,
    /// All messages that the core has sent to the switch.
    pub south: Vec<Vec<u8>>,
    /// Frames that left the switch.
    pub left: Vec<Left>,
    pub events: Vec<Event>,
    /// The changes that are stored, as in the driver's store.
    pub store: BTreeMap<StoreKey, Vec<u8>>,
    /// Changes that the driver has taken and not stored.
    pub unstored: Vec<(u64, Vec<StoreOp>)>,
    delay: u64,
    store_at_once: bool,
    by_hand: bool,
    pool: Option<Arc<Pool>>,
    names: Vec<(String, TenantId)>,
    policy: Arc<Policy>,
    settings: Settings,
}

/// The datapath id of all worlds' switches.
pub const DPID: u64 = 0x2a;
/// The LLDP key of all worlds.
pub const LLDP_KEY: LldpKey = LldpKey([9; 16]);

impl World {
    /// Starts, and waits until the tenants are served (unless the switch is played by hand).
    pub fn new(setup: Setup) -> World {
        let mut config = Config::new(DPID, setup.ports);
        config.versions = VersionSet::only(setup.version);
        (setup.configure)(&mut config);
        let mut switch = emulate::Switch::new(config);
        let features = shake_hands(&mut switch, setup.version);
        let service = setup.per_second.map_or(ServiceTime::default(), ServiceTime::per_second);
        let names = setup.policy.tenants.iter().map(|t| (t.name.clone(), t.id)).collect();
        let policy = Arc::new(setup.policy);
        let core = core_of(&features, &policy, setup.settings, &BTreeMap::new(), 0);
        let mut world = World {
            core,
            switch: SlowSwitch::with_bucket(switch, service, setup.bucket),
            now: 0,
            version: setup.version,
            controllers: Vec::new(),
            south: Vec::new(),
            left: Vec::new(),
            events: Vec::new(),
            store: BTreeMap::new(),
            unstored: Vec::new(),
            delay: setup.delay,
            store_at_once: setup.store_at_once,
            by_hand: setup.by_hand,
            pool: setup.pool,
            names,
            policy,
            settings: setup.settings,
        };
        world.share_memory();
        if !world.by_hand {
            world.advance(1_000_000_000);
            assert!(world.core.is_ready(), "the switch did not answer");
        }
        world
    }

    /// The switch disconnects and connects again. The core starts again from the store.
    pub fn reconnect(&mut self) {
        self.begin_to_reconnect();
        self.pump();
        self.advance(1_000_000_000);
    }

    /// The switch connects again. Fails if Weir then installs or removes a rule.
    pub fn check_agreement(&mut self) {
        self.reconnect();
        let mended = self.events.iter().find_map(|event| match event {
            Event::Reconciled { installed, removed, .. } => Some((*installed, *removed)),
            _ => None,
        });
        assert_eq!(mended, Some((0, 0)));
    }

    /// Another switch with the same datapath id and this version replaces the switch. Gives the old switch.
    pub fn reconnect_as(&mut self, version: Version) -> SlowSwitch {
        let mut config = Config::new(DPID, 4);
        config.versions = VersionSet::only(version);
        let switch = emulate::Switch::new(config);
        self.replace(SlowSwitch::new(switch, ServiceTime::default()), version)
    }

    /// This switch replaces the old switch. Gives the old switch.
    pub fn replace(&mut self, switch: SlowSwitch, version: Version) -> SlowSwitch {
        let before = core::mem::replace(&mut self.switch, switch);
        self.version = version;
        self.south.clear();
        self.reconnect();
        before
    }

    /// Weir stops and starts again with another policy. Returns as soon as the tables are reconciled: with a delay, the
    /// messages have not reached the switch yet.
    pub fn restart_with(&mut self, policy: Policy) {
        self.policy = Arc::new(policy);
        self.begin_to_reconnect();
        self.pump();
        while !self.events.iter().any(|event| matches!(event, Event::Reconciled { .. })) {
            self.advance(100_000);
        }
    }

    /// Weir has this policy after its next start.
    pub fn expect_policy(&mut self, policy: Policy) {
        self.policy = Arc::new(policy);
    }

    /// Another Weir takes over the switch, with a store of its own. Gives the old store.
    pub fn another_weir(
        &mut self,
        settings: Settings,
        store: BTreeMap<StoreKey, Vec<u8>>,
    ) -> BTreeMap<StoreKey, Vec<u8>> {
        self.settings = settings;
        let before = core::mem::replace(&mut self.store, store);
        self.reconnect();
        before
    }

    /// Whether changes count as stored at once from now on.
    pub fn store_at_once(&mut self, at_once: bool) {
        self.store_at_once = at_once;
    }

    /// Begins a reconnect, but carries no messages yet.
    pub fn begin_to_reconnect(&mut self) {
        // Changes that are not stored yet are lost.
        self.unstored.clear();
        let features = shake_hands(self.switch.switch_mut(), self.version);
        self.core = core_of(&features, &self.policy, self.settings, &self.store, self.now);
        self.share_memory();
        self.controllers.clear();
        self.events.clear();
    }

    fn share_memory(&mut self) {
        if let Some(pool) = &self.pool {
            self.core.share_memory(pool.clone());
        }
    }

    pub fn tenant(&self, name: &str) -> TenantId {
        let found = self.names.iter().find(|(known, _)| known == name);
        found.unwrap_or_else(|| panic!("no tenant {name}")).1
    }

    pub fn set_policy(&mut self, policy: Policy) {
        self.begin_policy(policy);
        self.pump();
    }

    /// Sets the policy, but carries no messages.
    pub fn begin_policy(&mut self, policy: Policy) {
        self.names = policy.tenants.iter().map(|t| (t.name.clone(), t.id)).collect();
        self.policy = Arc::new(policy);
        self.core.handle_policy(self.policy.clone(), Instant(self.now));
    }

    /// A controller of the tenant connects.
    pub fn connect(&mut self, tenant: &str) -> Seat {
        let tenant = self.tenant(tenant);
        let index = self.core.controller_connected(tenant).expect("the tenant is not served");
        self.controllers.push(Controller {
            index,
            tenant,
            inbox: VecDeque::new(),
            outgoing: VecDeque::new(),
            paused: false,
            reads: true,
        });
        Seat(self.controllers.len() - 1)
    }

    /// A controller sends a message in words.
    pub fn say(&mut self, seat: Seat, xid: u32, words: &str) {
        self.send(seat, &request(self.version, xid, words));
    }

    /// A controller sends bytes.
    pub fn send(&mut self, seat: Seat, message: &[u8]) {
        self.controllers[seat.0].outgoing.push_back(message.to_vec());
        self.pump();
    }

    /// Takes the messages that a controller has received, in words.
    pub fn heard(&mut self, seat: Seat) -> Vec<String> {
        has_words(&self.core);
        self.controllers[seat.0].inbox.drain(..).map(|(_, frame)| describe(&frame)).collect()
    }

    /// Takes the messages that a controller has received, in bytes.
    pub fn received(&mut self, seat: Seat) -> Vec<Vec<u8>> {
        self.controllers[seat.0].inbox.drain(..).map(|(_, frame)| frame).collect()
    }

    /// A packet arrives at a port of the switch. Gives the ports by which copies left.
    pub fn packet(&mut self, port: u32, bytes: &[u8]) -> Vec<u32> {
        let before = self.left.len();
        let mut out = Vec::new();
        let outcome = self.switch.switch_mut().receive_packet(self.now, port, bytes, &mut out);
        self.take_left(outcome);
        self.switch_says(&out);
        let mut ports: Vec<u32> = self.left[before..].iter().map(|left| left.port).collect();
        ports.sort_unstable();
        ports
    }

    fn take_left(&mut self, outcome: emulate::Outcome) {
        let at = self.now;
        let sent = outcome.sent.into_iter();
        self.left.extend(sent.map(|sent| Left { at, port: sent.port, frame: sent.frame }));
    }

    /// The switch sends these messages of the test.
    pub fn switch_says(&mut self, bytes: &[u8]) {
        for message in frames(bytes) {
            self.core.handle_switch_message(&message, Instant(self.now));
        }
        self.pump();
    }

    /// The store finishes all changes that it has taken.
    pub fn stored(&mut self) {
        for (number, operations) in std::mem::take(&mut self.unstored) {
            keep(&mut self.store, operations);
            self.core.handle_stored(number, Instant(self.now));
        }
        self.pump();
    }

    /// Carries messages until no messages are left.
    pub fn pump(&mut self) {
        for round in 0.. {
            assert!(round < 1_000_000, "the world does not come to rest");
            let is_awaited = self.core.next_turn(Instant(self.now));
            if !(self.pump_store() | self.pump_north() | self.pump_south() | is_awaited) {
                break;
            }
        }
        while let Some(event) = self.core.poll_event() {
            self.events.push(event);
        }
    }

    fn pump_store(&mut self) -> bool {
        let Some((number, operations)) = self.core.poll_store() else { return false };
        if self.store_at_once {
            keep(&mut self.store, operations);
            self.core.handle_stored(number, Instant(self.now));
        } else {
            self.unstored.push((number, operations));
        }
        true
    }

    /// One turn of the event loop, as in the daemon: the core reads a bounded number of bytes from each connection.
    pub fn turn(&mut self, bytes: usize) {
        self.read_north(bytes);
        self.core.next_turn(Instant(self.now));
        self.pump_store();
        self.write_north();
        self.pump_south();
    }

    fn pump_north(&mut self) -> bool {
        self.read_north(usize::MAX) | self.write_north()
    }

    fn read_north(&mut self, bytes: usize) -> bool {
        let mut moved = false;
        while let Some(index) = self.core.poll_resumed() {
            if let Some(controller) = self.controllers.iter_mut().find(|c| c.index == index) {
                controller.paused = false;
            }
        }
        for controller in &mut self.controllers {
            let mut left = bytes;
            while !controller.paused && left > 0 && !controller.outgoing.is_empty() {
                if !self.core.wants_read(controller.index) {
                    controller.paused = true;
                    break;
                }
                let message = controller.outgoing.pop_front().unwrap();
                left = left.saturating_sub(message.len());
                self.core.handle_controller_message(controller.index, &message, Instant(self.now));
                moved = true;
            }
        }
        moved
    }

    fn write_north(&mut self) -> bool {
        let mut moved = false;
        while let Some(index) = self.core.poll_controller() {
            moved = true;
            let share = self.core.share(index);
            let reader = self.controllers.iter_mut().find(|c| c.index == index);
            let blocked = reader.as_ref().is_some_and(|c| !c.reads);
            if let Some(outbox) = self.core.controller_outbox(index)
                && !blocked
            {
                // A connection takes whole messages here.
                let taken: usize = frames(outbox.as_slice())
                    .scan(0, |sum, message| {
                        let before = *sum;
                        *sum += message.len();
                        (before < share.max(1)).then_some(message.len())
                    })
                    .sum();
                let bytes = outbox.as_slice()[..taken].to_vec();
                outbox.consume(taken);
                if let Some(controller) = reader {
                    let now = self.now;
                    controller.inbox.extend(frames(&bytes).map(|message| (now, message)));
                }
            }
            self.core.written(index, blocked);
        }
        moved
    }

    fn pump_south(&mut self) -> bool {
        let bytes = drain(self.core.switch_outbox());
        for message in frames(&bytes) {
            if !self.by_hand {
                self.switch.offer(self.now + self.delay, &message);
            }
            self.south.push(message);
        }
        let mut answers = Vec::new();
        let outcome = self.switch.advance(self.now, &mut answers);
        self.take_left(outcome);
        for message in frames(&answers) {
            self.core.handle_switch_message(&message, Instant(self.now));
        }
        !bytes.is_empty() || !answers.is_empty()
    }

    /// Lets time pass, and handles all timeouts and messages of this time.
    pub fn advance(&mut self, by: u64) {
        let until = self.now + by;
        self.pump();
        for step in 0.. {
            assert!(step < 10_000_000, "time stands still");
            let timeout = self.core.poll_timeout().map(|at| at.0);
            let next = [timeout, self.switch.next_deadline()].into_iter().flatten().min();
            match next.filter(|at| *at <= until) {
                Some(at) => self.now = self.now.max(at),
                None => break,
            }
            if timeout.is_some_and(|at| at <= self.now) {
                self.core.handle_timeout(Instant(self.now));
            }
            self.pump();
        }
        self.now = until;
        self.core.handle_timeout(Instant(self.now));
        self.pump();
    }

    /// From now on messages to the switch are lost, or are delivered again.
    pub fn lose_south(&mut self, lost: bool) {
        self.by_hand = lost;
    }

    /// Another program sends the switch a message, in words. The core does not see the message and its replies.
    pub fn behind(&mut self, words: &str) {
        let message = request(self.version, 1, words);
        self.switch.switch_mut().handle_message(self.now, &message, &mut Vec::new());
    }

    /// The types of the messages to the switch since the last call.
    pub fn south_types(&mut self) -> Vec<u8> {
        self.south.drain(..).filter_map(|message| frame::type_(&message)).collect()
    }

    /// The entries on the switch, in words and sorted: `table prio match`.
    pub fn switch_flows(&self) -> Vec<String> {
        flows_of(self.switch.switch())
    }

    /// The number of stored items.
    pub fn remembered(&self) -> usize {
        self.store.len()
    }

    /// The entries on the switch with cookies and instructions, in words and sorted.
    pub fn switch_entries(&self) -> Vec<String> {
        let flows = self.switch.switch().flows();
        let flows = flows.map(|(table, it)| {
            let (priority, match_, cookie) = (it.priority, it.match_, it.cookie);
            format!("{table} prio={priority} {match_} {cookie:#x} {:?}", it.instructions)
        });
        let mut flows: Vec<String> = flows.collect();
        flows.sort();
        flows
    }

    /// The groups on the switch, in words.
    pub fn switch_groups(&mut self) -> Vec<String> {
        let mut out = Vec::new();
        let asked = request(self.version, 1, "stats group_desc");
        self.switch.switch_mut().handle_message(self.now, &asked, &mut out);
        frames(&out).map(|frame| describe(&frame)).collect()
    }

    /// The rules on the switch for tenants' entries. On 1.3 these are the rules after table 0.
    pub fn tenant_flows(&self) -> Vec<String> {
        let own = if self.version == Version::V1_0 { "-" } else { "0 " };
        self.switch_flows().into_iter().filter(|flow| !flow.starts_with(own)).collect()
    }
}

/// The entries on a switch, in words and sorted: `table prio match`.
pub fn flows_of(switch: &emulate::Switch) -> Vec<String> {
    let flows = switch.flows();
    let flows = flows.map(|(table, it)| format!("{table} prio={} {}", it.priority, it.match_));
    let mut flows: Vec<String> = flows.collect();
    flows.sort();
    flows
}

/// Fails if a refusal by Weir has no reason in words.
pub fn has_words(core: &Switch) {
    for (_, refusal) in core.all_refusals() {
        let reason = refusal.reason(core.version());
        assert!(!reason.starts_with("Weir refused"), "{reason}: {refusal:?}");
    }
}

/// The core of a switch with this FEATURES_REPLY. The core starts with the stored state.
pub fn core_of(
    features: &[u8],
    policy: &Arc<Policy>,
    settings: Settings,
    stored: &BTreeMap<StoreKey, Vec<u8>>,
    now: u64,
) -> Switch {
    let (policy, stored) = (Arc::clone(policy), stored.clone().into_iter().collect());
    Switch::new(features, policy, settings, LLDP_KEY, stored, false, Instant(now)).unwrap()
}

/// Stores changes.
pub fn keep(store: &mut BTreeMap<StoreKey, Vec<u8>>, operations: Vec<StoreOp>) {
    for operation in operations {
        match operation {
            StoreOp::Put(key, bytes) => drop(store.insert(key, bytes)),
            StoreOp::Delete(key) => drop(store.remove(&key)),
        }
    }
}

/// Takes the bytes in an outbox.
pub fn drain(outbox: &mut Outbox) -> Vec<u8> {
    let bytes = outbox.as_slice().to_vec();
    outbox.consume(bytes.len());
    bytes
}

/// Exchanges HELLO, then requests FEATURES. Gives the FEATURES_REPLY.
pub fn shake_hands(switch: &mut emulate::Switch, version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    switch.connect(&mut out);
    let mut hello = Vec::new();
    Hello::write_message(VersionSet::only(version), 1, &mut hello).unwrap();
    switch.handle_message(0, &hello, &mut out);
    out.clear();
    switch.handle_message(0, &request(version, 2, "features"), &mut out);
    out
}

/// The messages in a run of bytes.
pub fn frames(mut bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let mut messages = Vec::new();
    while let Some(length) = frame::next(bytes).unwrap() {
        messages.push(bytes[..length].to_vec());
        bytes = &bytes[length..];
    }
    assert!(bytes.is_empty(), "half a message");
    messages.into_iter()
}
