//! The testbed: several wired switches with their cores, and tenants' networks on these switches. Beside the testbed,
//! each tenant has a reference network of switches of its own. Packets and requests must have the same result in both.
//!
//! ```text
//!   hosts at ports 1 to 4 of each       s1 5───5 s2 6───5 s3 6───6 s1
//! ```

mod backs;
mod counting;
mod following;
mod fronts;
mod ports;
mod refusing;
mod slowly;
mod tables;
mod traced;

use super::actions::port_v13;
use super::places::{Plan, hw_addr, know_versions, maps};
use super::policy::new_tenant;
use super::world::{core_of, drain, has_words, keep};
use super::{describe, frames, request};
use emulate::{Config, Fault, Host, HostIndex, Network, Point, SessionId, SwitchIndex};
use fabric::MacAddress;
use fabric::embedding::SwitchMap;
use hypervisor::big_switch::{self, BigSwitch};
use hypervisor::policy::Tenant;
use hypervisor::{ControllerIndex, Instant, Policy, Settings, StoreKey, Switch, TenantId};
use openflow::{ErrorCode, Hello, Version, VersionSet};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use counting::Counted;

/// The physical switches are numbered from 1.
pub const SWITCHES: u64 = 3;
/// The number of the port LOCAL in 1.3.
pub const LOCAL: u32 = 0xffff_fffe;
/// The first VLAN id that is reserved for links.
const FIRST_TAG: u16 = 2000;

/// The version of each physical switch.
pub type Versions = [Version; SWITCHES as usize];

/// The frames that hosts have received, and the messages that controllers have received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// `(tenant, physical switch, virtual port)` and the frame.
    pub delivered: Vec<(usize, u64, u32, Vec<u8>)>,
    /// `(tenant, physical switch)` and the message in words.
    pub received: Vec<(usize, u64, String)>,
    /// Whether a packet was in an endless loop.
    pub endless: bool,
}

impl Seen {
    pub fn sorted(mut self) -> Seen {
        self.delivered.sort();
        self.received.sort();
        self
    }

    /// Adds packets and messages that were seen later.
    pub fn and(mut self, later: Seen) -> Seen {
        self.delivered.extend(later.delivered);
        self.received.extend(later.received);
        self.endless |= later.endless;
        self
    }
}

/// The number of tables of a switch that a tenant with a network does not see.
const OWN_TABLES: u8 = 2;

/// The properties of the switches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Make {
    /// The number of packets that a physical switch buffers. The reference switches buffer none.
    pub buffers: u32,
    /// Whether the switches execute the action set of a packet on a miss, as Open vSwitch does.
    pub runs_sets: bool,
}

impl Make {
    fn faults(self) -> Vec<Fault> {
        if self.runs_sets { vec![Fault::RunSetOnMiss] } else { Vec::new() }
    }
}

pub struct Testbed {
    versions: Versions,
    physical: Network,
    cores: Vec<Switch>,
    /// The store of each core.
    stores: Vec<BTreeMap<StoreKey, Vec<u8>>>,
    seats: BTreeMap<(usize, u64), ControllerIndex>,
    /// The tenants' virtual ports at each host of the physical network.
    hosts: Vec<Vec<(usize, u32)>>,
    host_points: Vec<Point>,
    bigs: Vec<Big>,
    plans: Vec<Plan>,
    references: Vec<Network>,
    /// The physical switch and the virtual port of each reference host, by tenant.
    reference_hosts: Vec<Vec<(u64, u32)>>,
    seen: Seen,
    /// The messages that tenants' controllers have received since the last request for port counters.
    raw: Vec<Vec<u8>>,
    /// Switches whose cores get no requests and replies of other cores, and send none.
    deaf: BTreeSet<u64>,
    /// The tenants' ports that are down because physical switches refuse their rules, as the cores report.
    refused: BTreeMap<u64, Vec<(TenantId, u32)>>,
    /// A physical switch, the type of the message that the switch refuses next, and the error code.
    refuses: Option<(u64, u8, ErrorCode)>,
    /// The messages that each physical switch has received and has not refused.
    sent: Vec<Vec<Vec<u8>>>,
    policy: Arc<Policy>,
    now: u64,
}

/// A big switch: the object that joins its members, and its front, the core that serves the tenant's controllers.
pub struct Big {
    pub tenant: usize,
    head: u64,
    pub joint: BigSwitch,
    /// The connection of the big switch to each member.
    seats: BTreeMap<u64, ControllerIndex>,
    connected: Vec<u64>,
    front: Option<Switch>,
    /// The store of the front.
    store: BTreeMap<StoreKey, Vec<u8>>,
}

/// The datapath id of a tenant's switch.
pub fn datapath(tenant: usize, switch: u64) -> u64 {
    0xa0 + 0x10 * tenant as u64 + switch
}

/// The batch is small, so that Weir applies also changes of a few entries in several batches.
fn settings() -> Settings {
    Settings { batch: 2, ..Settings::default() }
}

impl Testbed {
    pub fn new(version: Version, plans: Vec<Plan>) -> Testbed {
        Testbed::mixed([version; SWITCHES as usize], plans)
    }

    /// A testbed with physical switches that buffer this number of packets. The reference switches buffer none.
    pub fn with_buffers(version: Version, plans: Vec<Plan>, buffers: u32) -> Testbed {
        let make = Make { buffers, ..Make::default() };
        Testbed::made([version; SWITCHES as usize], plans, make)
    }

    /// A testbed with switches of several versions. All members of a big switch must speak the same version.
    pub fn mixed(versions: Versions, plans: Vec<Plan>) -> Testbed {
        Testbed::made(versions, plans, Make::default())
    }

    /// A testbed with switches of these versions and properties.
    pub fn made(versions: Versions, plans: Vec<Plan>, make: Make) -> Testbed {
        let (mut maps, tags) = Testbed::maps_from(FIRST_TAG, &plans);
        know_versions(&mut maps, &versions);
        let (physical, hosts, host_points) = physical(&versions, &plans, make);
        let tenants = plans.iter().enumerate().map(tenant).collect();
        let maps = maps.into_iter().map(|(dpid, map)| (dpid, Arc::new(map))).collect();
        let policy = Policy { tenants, maps, tags: Some(FIRST_TAG..=tags), ..Policy::default() };
        let references: Vec<(Network, Vec<(u64, u32)>)> = plans
            .iter()
            .enumerate()
            .map(|(at, plan)| reference(&versions, at, plan, make))
            .collect();
        let (references, reference_hosts): (Vec<_>, _) = references.into_iter().unzip();
        let mut testbed = Testbed {
            versions,
            physical,
            cores: Vec::new(),
            stores: vec![BTreeMap::new(); SWITCHES as usize],
            seats: BTreeMap::new(),
            hosts,
            host_points,
            bigs: Vec::new(),
            plans,
            references,
            reference_hosts,
            seen: Seen::default(),
            raw: Vec::new(),
            deaf: BTreeSet::new(),
            refused: BTreeMap::new(),
            refuses: None,
            sent: vec![Vec::new(); SWITCHES as usize],
            policy: Arc::new(Policy::default()),
            now: 0,
        };
        let policy = Arc::new(policy);
        for (at, &version) in versions.iter().enumerate() {
            let features = shake_hands(&mut testbed.physical, SwitchIndex(at), version);
            testbed.cores.push(core_of(&features, &policy, settings(), &BTreeMap::new(), 0));
        }
        testbed.pump();
        for (key, plan) in big_switch::plans(&policy) {
            let tenant = usize::from(plan.tenant.0) - 1;
            let head = *plan.members.first().unwrap();
            let (mut seats, version) = (BTreeMap::new(), testbed.version(head));
            for &dpid in &plan.members {
                let core = &mut testbed.cores[dpid as usize - 1];
                let seat = core.joint_connected(plan.tenant).expect("not served");
                core.handle_controller_message(seat, &request(version, 7, "features"), Instant(0));
                seats.insert(dpid, seat);
            }
            let joint = BigSwitch::new(key, plan, version);
            let (connected, store) = (Vec::new(), BTreeMap::new());
            testbed.bigs.push(Big { tenant, head, joint, seats, connected, front: None, store });
        }
        testbed.policy = policy.clone();
        testbed.pump();
        for tenant in 0..testbed.plans.len() {
            for switch in testbed.switches_of(tenant) {
                let core = testbed.serving(tenant, switch);
                assert!(core.is_ready());
                let seat = core.controller_connected(TenantId(tenant as u16 + 1));
                testbed.seats.insert((tenant, switch), seat.expect("not served"));
            }
        }
        testbed.pump();
        testbed.seen = Seen::default();
        testbed
    }

    /// The version that a switch speaks.
    pub fn version(&self, switch: u64) -> Version {
        self.versions[switch as usize - 1]
    }

    /// The core that serves a tenant's switch: the front of a big switch, or the core of the physical switch.
    fn serving(&mut self, tenant: usize, switch: u64) -> &mut Switch {
        match self.bigs.iter_mut().find(|big| (big.tenant, big.head) == (tenant, switch)) {
            Some(big) => big.front.as_mut().expect("no front"),
            None => &mut self.cores[switch as usize - 1],
        }
    }

    pub fn big(&mut self, tenant: usize, switch: u64) -> Option<&mut Big> {
        self.bigs.iter_mut().find(|big| big.tenant == tenant && big.head == switch)
    }

    /// The number of the tenant's switch on this physical switch.
    pub fn head(&self, tenant: usize, switch: u64) -> u64 {
        self.plans[tenant].head(switch)
    }

    /// Lets this number of seconds pass.
    pub fn wait(&mut self, seconds: u64) {
        (0..seconds * 4).for_each(|_| self.pass_a_quarter());
    }

    fn pass_a_quarter(&mut self) {
        self.now += 250_000_000;
        let journey = self.physical.tick(self.now);
        self.take(journey);
        for big in &mut self.bigs {
            big.joint.handle_timeout(Instant(self.now));
        }
        self.pump();
    }

    /// From now on a physical switch has these faults, and no others.
    pub fn plant(&mut self, switch: u64, faults: Vec<Fault>) {
        let at = SwitchIndex(switch as usize - 1);
        self.physical.switch_mut(at).unwrap().plant(faults);
    }

    /// The maps of all switches, with tags from `first` on, and the highest tag.
    pub fn maps_from(first: u16, plans: &[Plan]) -> (BTreeMap<u64, SwitchMap>, u16) {
        maps(plans, first)
    }

    /// The physical switches on which a tenant has a switch.
    pub fn switches_of(&self, tenant: usize) -> Vec<u64> {
        switches_of(&self.plans[tenant])
    }

    /// A tenant's controller sends a request to one of its switches. Gives the messages that the controller then
    /// receives.
    pub fn say(&mut self, tenant: usize, switch: u64, words: &str) -> Vec<String> {
        let received = self.say_together(tenant, switch, &[words]);
        self.cores.iter().for_each(has_words);
        received
    }

    /// A tenant's controller sends several requests without waiting for replies. Gives the messages that the
    /// controllers then receive.
    pub fn say_together(&mut self, tenant: usize, switch: u64, all: &[&str]) -> Vec<String> {
        let before = self.seen.received.len();
        all.iter().for_each(|words| self.hand(tenant, switch, words));
        self.pump();
        let received = self.seen.received.split_off(before);
        received.into_iter().map(|(_, _, words)| words).collect()
    }

    fn speak(&mut self, tenant: usize, switch: u64, words: &str) {
        self.hand(tenant, switch, words);
        self.pump();
    }

    fn hand(&mut self, tenant: usize, switch: u64, words: &str) {
        let message = request(self.version(switch), 7, &self.addressed(tenant, switch, words));
        let seat = self.seats[&(tenant, switch)];
        let now = Instant(self.now);
        self.serving(tenant, switch).handle_controller_message(seat, &message, now);
    }

    /// Adds the address of the tenant's virtual port to a PORT_MOD that has no address.
    fn addressed(&self, tenant: usize, switch: u64, words: &str) -> String {
        let port = words.split(' ').find_map(|word| port_v13(word.strip_prefix("port=")?));
        match port.map(|port| port.0) {
            Some(port) if words.starts_with("port_mod") && !words.contains("mac=") => {
                let mac = hw_addr(&self.plans[tenant], tenant, switch, port);
                format!("{words} mac={}", MacAddress::new(mac).unwrap())
            }
            _ => words.to_owned(),
        }
    }

    /// A tenant's controller sends a request to its reference switch. Gives the messages that the controller then
    /// receives.
    pub fn say_beside(&mut self, tenant: usize, switch: u64, words: &str) -> Vec<String> {
        let message = request(self.version(switch), 7, words);
        let reference = &mut self.references[tenant];
        let at = reference_index(&self.plans[tenant], switch);
        reference.handle_message(self.now, at, &message);
        let answers = reference.take_output(at, SessionId::MAIN);
        frames(&answers).map(|frame| describe(&frame)).collect()
    }

    /// A host of a tenant sends a frame on the testbed. Gives the delivered frames and the messages to controllers.
    pub fn send(&mut self, tenant: usize, switch: u64, port: u32, frame: &[u8]) -> Seen {
        self.seen = Seen::default();
        let host = self.host(tenant, switch, port);
        let journey = self.physical.inject(self.now, HostIndex(host), frame);
        self.take(journey);
        self.pump();
        std::mem::take(&mut self.seen).sorted()
    }

    /// A host of a tenant sends a frame on the tenant's reference network. Gives the delivered frames and the messages
    /// to the controller.
    pub fn send_beside(&mut self, tenant: usize, switch: u64, port: u32, frame: &[u8]) -> Seen {
        let at = self.reference_hosts[tenant].iter().position(|p| *p == (switch, port)).unwrap();
        let journey = self.references[tenant].inject(self.now, HostIndex(at), frame);
        self.seen_beside(tenant, journey)
    }

    /// A tenant's controller sends a PACKET_OUT on the testbed.
    pub fn out(&mut self, tenant: usize, switch: u64, words: &str) -> Seen {
        self.said(tenant, switch, &[words]).sorted()
    }

    /// A controller sends these messages one after another, without waiting for replies. Returns the delivered packets,
    /// and the messages to controllers in the order of their arrival.
    pub fn said(&mut self, tenant: usize, switch: u64, all: &[&str]) -> Seen {
        self.seen = Seen::default();
        all.iter().for_each(|words| self.hand(tenant, switch, words));
        self.pump();
        self.cores.iter().for_each(has_words);
        std::mem::take(&mut self.seen)
    }

    /// A tenant's controller sends a PACKET_OUT on the tenant's reference network.
    pub fn out_beside(&mut self, tenant: usize, switch: u64, words: &str) -> Seen {
        let message = request(self.version(switch), 7, words);
        let at = reference_index(&self.plans[tenant], switch);
        let journey = self.references[tenant].handle_message(self.now, at, &message);
        self.seen_beside(tenant, journey)
    }

    fn seen_beside(&mut self, tenant: usize, journey: emulate::Journey) -> Seen {
        let mut seen = Seen { endless: journey.endless, ..Seen::default() };
        for (host, bytes) in journey.delivered {
            let (switch, port) = self.reference_hosts[tenant][host.0];
            seen.delivered.push((tenant, switch, port, bytes));
        }
        for (at, switch) in self.switches_of(tenant).into_iter().enumerate() {
            let output = self.references[tenant].take_output(SwitchIndex(at), SessionId::MAIN);
            let received = frames(&output).map(|frame| (tenant, switch, describe(&frame)));
            seen.received.extend(received);
        }
        seen.sorted()
    }

    /// The messages that tenants' controllers have received since the last call.
    pub fn take_received(&mut self) -> Vec<(usize, u64, String)> {
        std::mem::take(&mut self.seen.received)
    }

    /// The reference count of each of a tenant's groups, as the tenant's controller receives it.
    pub fn references(&mut self, tenant: usize, switch: u64) -> Vec<(u32, u32)> {
        self.raw.clear();
        self.speak(tenant, switch, "stats group");
        let mut references = Vec::new();
        for message in std::mem::take(&mut self.raw) {
            let reply = openflow::v13::MultipartReply::parse(&message[8..]).unwrap();
            if let openflow::v13::MultipartReplyBody::Group(groups) = reply.body {
                references.extend(groups.iter().map(|group| (group.group_id, group.ref_count)));
            }
        }
        references
    }

    fn host(&self, tenant: usize, switch: u64, port: u32) -> usize {
        let stands = |at: &usize| {
            self.host_points[*at].switch.0 as u64 + 1 == switch
                && self.hosts[*at].contains(&(tenant, port))
        };
        (0..self.hosts.len()).find(stands).expect("no host there")
    }

    fn take(&mut self, journey: emulate::Journey) {
        self.seen.endless |= journey.endless;
        for (host, bytes) in journey.delivered {
            let switch = self.host_points[host.0].switch.0 as u64 + 1;
            for &(tenant, port) in &self.hosts[host.0] {
                self.seen.delivered.push((tenant, switch, port, bytes.clone()));
            }
        }
    }

    fn pump(&mut self) {
        for round in 0.. {
            assert!(round < 100_000, "the testbed does not come to rest");
            let mut moved = false;
            for at in 0..self.cores.len() {
                moved |= self.pump_one(at);
            }
            moved |= self.pump_bigs();
            if !moved {
                // Let time pass without messages, so that barriers are sent and answered.
                self.now += 50_000_000;
                for core in &mut self.cores {
                    core.handle_timeout(Instant(self.now));
                }
                for front in self.bigs.iter_mut().filter_map(|big| big.front.as_mut()) {
                    front.handle_timeout(Instant(self.now));
                }
                let moved =
                    (0..self.cores.len()).fold(false, |moved, at| self.pump_one(at) | moved);
                if !(self.pump_bigs() | moved) {
                    break;
                }
            }
        }
    }

    fn pump_bigs(&mut self) -> bool {
        let now = Instant(self.now);
        let mut moved = false;
        for big in &mut self.bigs {
            while let Some(event) = big.joint.poll_event() {
                moved = true;
                match event {
                    big_switch::Event::Start(features) => {
                        let (policy, store) = (&self.policy, &big.store);
                        big.front = Some(core_of(&features, policy, settings(), store, self.now));
                    }
                    big_switch::Event::Stop => big.front = None,
                    big_switch::Event::TooManyPorts(ports) => panic!("{ports} ports"),
                    big_switch::Event::CloseMember(dpid, why) => panic!("{dpid}: {why}"),
                }
            }
            for (&dpid, &seat) in &big.seats {
                let Some(outbox) = big.joint.member_outbox(dpid) else { continue };
                let bytes = drain(outbox);
                moved |= !bytes.is_empty();
                for message in frames(&bytes) {
                    let core = &mut self.cores[dpid as usize - 1];
                    core.handle_controller_message(seat, &message, now);
                }
            }
            let bytes = drain(big.joint.front_outbox());
            moved |= !bytes.is_empty();
            let Some(front) = &mut big.front else { continue };
            for message in frames(&bytes) {
                front.handle_switch_message(&message, now);
            }
            while front.poll_event().is_some() {}
            moved |= take_turn(front, &mut big.store, now);
            let bytes = drain(front.switch_outbox());
            moved |= !bytes.is_empty();
            for message in frames(&bytes) {
                big.joint.handle_front(&message, now);
            }
            while let Some(index) = front.poll_controller() {
                moved = true;
                let Some(outbox) = front.controller_outbox(index) else { continue };
                let bytes = drain(outbox);
                front.written(index, false);
                self.raw.extend(frames(&bytes));
                let received = frames(&bytes).map(|frame| (big.tenant, big.head, describe(&frame)));
                self.seen.received.extend(received);
            }
        }
        moved
    }

    fn pump_one(&mut self, at: usize) -> bool {
        let now = Instant(self.now);
        let mut moved = false;
        while let Some(event) = self.cores[at].poll_event() {
            moved |= self.take_event(at as u64 + 1, event);
        }
        let core = &mut self.cores[at];
        moved |= take_turn(core, &mut self.stores[at], now);
        while let Some(index) = core.poll_controller() {
            moved = true;
            let Some(outbox) = core.controller_outbox(index) else { continue };
            let bytes = drain(outbox);
            core.written(index, false);
            let dpid = at as u64 + 1;
            let sits = |big: &&mut Big| big.seats.get(&dpid) == Some(&index);
            if let Some(big) = self.bigs.iter_mut().find(sits) {
                for message in frames(&bytes) {
                    const FEATURES_REPLY: u8 = 6;
                    if message[1] == FEATURES_REPLY && !big.connected.contains(&dpid) {
                        big.connected.push(dpid);
                        big.joint.member_connected(dpid, &message, now);
                    } else {
                        big.joint.handle_member(dpid, &message, now);
                    }
                }
                continue;
            }
            let seat =
                self.seats.iter().find(|(key, seat)| key.1 == at as u64 + 1 && **seat == index);
            let Some((&(tenant, switch), _)) = seat else { continue };
            self.raw.extend(frames(&bytes));
            let received = frames(&bytes).map(|frame| (tenant, switch, describe(&frame)));
            self.seen.received.extend(received);
        }
        let bytes = drain(core.switch_outbox());
        moved |= !bytes.is_empty();
        for message in frames(&bytes) {
            if self.refuse_at_switch(at, &message) {
                continue;
            }
            let journey = self.physical.handle_message(self.now, SwitchIndex(at), &message);
            self.take(journey);
            self.sent[at].push(message);
        }
        for index in 0..self.cores.len() {
            let answers = self.physical.take_output(SwitchIndex(index), SessionId::MAIN);
            moved |= !answers.is_empty();
            for message in frames(&answers) {
                self.forget_refused(index, &message);
                self.cores[index].handle_switch_message(&message, now);
            }
        }
        moved
    }
}

/// One turn of a core, and the changes of the core's store.
fn take_turn(core: &mut Switch, store: &mut BTreeMap<StoreKey, Vec<u8>>, now: Instant) -> bool {
    let mut moved = core.next_turn(now);
    while let Some((number, operations)) = core.poll_store() {
        moved = true;
        keep(store, operations);
        core.handle_stored(number, now);
    }
    moved
}

fn tenant((at, plan): (usize, &Plan)) -> Tenant {
    // The experimenter id of Nicira, which the emulated switches do not support.
    let (experimenters, labels) = (vec![0x2320], plan.labels);
    let name = ["red", "blue", "green"][at];
    Tenant { experimenters, labels, ..new_tenant(at as u16 + 1, name) }
}

pub fn switches_of(plan: &Plan) -> Vec<u64> {
    let all: BTreeSet<u64> = plan.ports().map(|(switch, _)| plan.head(switch)).collect();
    all.into_iter().collect()
}

pub fn reference_index(plan: &Plan, switch: u64) -> SwitchIndex {
    let switch = plan.head(switch);
    SwitchIndex(switches_of(plan).iter().position(|s| *s == switch).unwrap())
}

fn config(version: Version, dpid: u64, ports: u32) -> Config {
    let mut config = Config::new(dpid, ports);
    config.versions = VersionSet::only(version);
    config.n_buffers = 0;
    config
}

fn shake_hands(network: &mut Network, at: SwitchIndex, version: Version) -> Vec<u8> {
    network.connect(at, &mut Vec::new());
    let mut hello = Vec::new();
    Hello::write_message(VersionSet::only(version), 1, &mut hello).unwrap();
    network.handle_message(0, at, &hello);
    network.take_output(at, SessionId::MAIN);
    network.handle_message(0, at, &request(version, 2, "features"));
    network.take_output(at, SessionId::MAIN)
}

type Standing = (Network, Vec<Vec<(usize, u32)>>, Vec<Point>);

fn physical(versions: &Versions, plans: &[Plan], make: Make) -> Standing {
    let mut network = Network::new();
    for (dpid, &version) in (1..).zip(versions) {
        let mut config = Config { n_buffers: make.buffers, ..config(version, dpid, 6) };
        config.ports.push(emulate::PortConfig::new(LOCAL));
        config.faults = make.faults();
        network.add_switch(emulate::Switch::new(config));
    }
    let point = |switch: u64, port| Point { switch: SwitchIndex(switch as usize - 1), port };
    network.link(point(1, 5), point(2, 5));
    network.link(point(2, 6), point(3, 5));
    network.link(point(3, 6), point(1, 6));
    let (mut hosts, mut points) = (Vec::<Vec<(usize, u32)>>::new(), Vec::<Point>::new());
    for (tenant, plan) in plans.iter().enumerate() {
        let shared = plan.shared.iter().map(|&(switch, at, port, _)| (switch, at, port));
        for (switch, at, port) in plan.edges.iter().copied().chain(shared) {
            let place = point(switch, at);
            match points.iter().position(|known| *known == place) {
                Some(known) if hosts[known].contains(&(tenant, port)) => {}
                Some(known) => hosts[known].push((tenant, port)),
                None => {
                    network.add_host(silent(), place);
                    hosts.push(vec![(tenant, port)]);
                    points.push(place);
                }
            }
        }
    }
    (network, hosts, points)
}

fn reference(
    versions: &Versions,
    tenant: usize,
    plan: &Plan,
    make: Make,
) -> (Network, Vec<(u64, u32)>) {
    let mut network = Network::new();
    let version = |switch: u64| versions[switch as usize - 1];
    for switch in switches_of(plan) {
        let mut config = config(version(switch), datapath(tenant, switch), 0);
        // A tenant does not see the hypervisor's own tables.
        config.n_tables = config.n_tables.saturating_sub(OWN_TABLES).max(1);
        config.faults = make.faults();
        let index = network.add_switch(emulate::Switch::new(config));
        let ports = plan.ports().filter(|(at, _)| plan.head(*at) == switch);
        for port in ports.map(|(_, port)| port).collect::<BTreeSet<u32>>() {
            let added = emulate::PortConfig::new(port);
            network.switch_mut(index).unwrap().add_port(0, added, &mut Vec::new());
        }
    }
    let point = |(switch, port)| Point { switch: reference_index(plan, switch), port };
    for &[a, b] in &plan.links {
        network.link(point(a), point(b));
    }
    let hosts: BTreeSet<(u64, u32)> = plan.edge_ports().collect();
    for &host in &hosts {
        network.add_host(silent(), point(host));
    }
    for (at, switch) in switches_of(plan).into_iter().enumerate() {
        shake_hands(&mut network, SwitchIndex(at), version(switch));
    }
    (network, hosts.into_iter().collect())
}

fn silent() -> Host {
    let mut host = Host::new([2, 0, 0, 0, 0, 1], 1);
    host.answers = false;
    host
}
