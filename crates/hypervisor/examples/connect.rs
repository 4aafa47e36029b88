//! What the core needs when a switch with many rules connects, and when Weir's own rules follow a new map.
//!
//! ```text
//! cargo run --release -p weir-hypervisor --example connect
//! ```
//! Printed is the longest call into the core, for which all tenants of the event loop wait, as the median of the
//! rounds. The switch connects again with all its rules ("again"), or with none of them ("empty"). Weir gets a new
//! policy in which nothing changes ("same") or in which each of Weir's own rules changes ("other"). In rows with
//! "adopt" the store is lost, and Weir makes entries of the rules. The other rows are for requests that are about many
//! entries or rules.

// A measurement ends when anything goes wrong.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../tests/behaviour/support/mod.rs"]
mod support;

use emulate::Config;
use fabric::embedding::{Exit, Hop, Member, PortKind, SwitchMap, Tag, Transit, VirtualPort};
use fabric::{Dpid, MacAddress, PortNumber};
use hypervisor::{Instant, Policy, Settings, StoreKey, Switch};
use openflow::{Version, VersionSet};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use support::{
    core_of, drain, frames, keep, median, nth_add, policy, request, shake_hands, virtual_port,
};

const ROUNDS: usize = 5;
const PORTS: u32 = 30;
/// Requests of a tenant that are about all its entries.
const REQUESTS: [(&str, &str); 5] = [
    ("flows", "stats flow"),
    ("sum", "stats aggregate match=ip,nw_src=10.1.128.0/17"),
    ("tables", "stats table"),
    (
        "check",
        "flow add flags=overlap match=ip,nw_src=10.1.0.0/17,nw_dst=10.9.0.1 actions=output:1",
    ),
    ("modify", "flow modify match=ip,nw_src=10.1.128.0/17 actions=output:1"),
];
/// A tenant takes a port of its network down, at which many hosts are.
const PORT_DOWN: [(&str, &str); 1] =
    [("port", "port_mod port=1 config=1 mask=1 mac=02:00:00:00:00:01")];

fn main() {
    let only = std::env::args().nth(1).unwrap_or_default();
    println!("{:<8} {:<22} {:<6} {:>15} in", "version", "rules", "", "longest call us");
    for version in support::VERSIONS {
        for what in [
            "10000 entries",
            "10000 adopt",
            "1000 groups",
            "1000 slices",
            "1000 links",
            "10000 links",
            "30 hosts",
        ] {
            let is_v13 = version == Version::V1_3;
            let needs_v13 = ["1000 groups", "1000 slices", "30 hosts"].contains(&what);
            if (needs_v13 && !is_v13) || !what.contains(&only) {
                continue;
            }
            let mut rows: BTreeMap<&str, (Vec<f64>, &str)> = BTreeMap::new();
            for _ in 0..ROUNDS {
                for (act, longest, call) in round(version, what) {
                    let row = rows.entry(act).or_insert((Vec::new(), call));
                    row.0.push(longest.as_secs_f64());
                    row.1 = call;
                }
            }
            for (act, (mut times, call)) in rows {
                let longest = median(&mut times) * 1e6;
                let version = version.to_string();
                println!("{version:<8} {what:<22} {act:<6} {longest:>15.0} {call}");
            }
        }
    }
}

/// Measures each action once: its name, the longest call into the core, and the name of this call.
fn round(version: Version, what: &str) -> Vec<(&'static str, Duration, &'static str)> {
    let number: u32 = what.split(' ').next().unwrap().parse().unwrap();
    let policy = |other| policy_of(what, number, other);
    let mut line = Line::new(version, policy(false));
    let mut found = Vec::new();
    if what.ends_with("entries") || what.ends_with("adopt") {
        line.say((0..number).map(|n| nth_add(version, n)));
    }
    if what.ends_with("groups") {
        line.say((1..=number).map(|id| {
            request(version, id, &format!("group add id={id} buckets=output:1|output:2"))
        }));
        line.say((1..=256).map(|id| request(version, id, &format!("meter add id={id} rate={id}"))));
    }
    if what.ends_with("adopt") {
        line.store.clear();
        line.settings.adopts = true;
        line.connect();
        found.push(line.took("adopt"));
        return found;
    }
    line.connect();
    found.push(line.took("again"));
    if !what.ends_with("entries") {
        line.follow(policy(false));
        found.push(line.took("same"));
        line.follow(policy(true));
        found.push(line.took("other"));
    }
    let requests = match what {
        _ if what.ends_with("entries") => &REQUESTS[..],
        _ if what.ends_with("hosts") => &PORT_DOWN,
        _ => &[],
    };
    for (act, words) in requests {
        line.now += 1_000_000_000;
        line.carry();
        line.forget();
        line.say(core::iter::once(request(version, 1, words)));
        found.push(line.took(act));
    }
    line.emulated = emulated(version);
    line.connect();
    found.push(line.took("empty"));
    found
}

/// A switch, the core, and a driver between them.
struct Line {
    version: Version,
    core: Switch,
    emulated: emulate::Switch,
    store: BTreeMap<StoreKey, Vec<u8>>,
    settings: Settings,
    policy: Arc<Policy>,
    now: u64,
    longest: (Duration, &'static str),
    all: Vec<(Duration, &'static str)>,
}

fn emulated(version: Version) -> emulate::Switch {
    emulate::Switch::new(Config {
        versions: VersionSet::only(version),
        max_flows: 1 << 20,
        ..Config::new(1, PORTS)
    })
}

impl Line {
    fn new(version: Version, policy: Policy) -> Line {
        let (policy, settings) = (Arc::new(policy), Settings::default());
        let mut emulated = emulated(version);
        let features = shake_hands(&mut emulated, version);
        let core = core_of(&features, &policy, settings, &BTreeMap::new(), 0);
        let longest = (Duration::ZERO, "");
        let (store, now, all) = (BTreeMap::new(), 1_000, Vec::new());
        let mut line = Line { version, core, emulated, store, settings, policy, now, longest, all };
        line.carry();
        assert!(line.core.is_ready());
        line
    }

    fn connect(&mut self) {
        let features = shake_hands(&mut self.emulated, self.version);
        self.core = core_of(&features, &self.policy, self.settings, &self.store, 0);
        self.forget();
        self.carry();
        assert!(self.core.is_ready());
    }

    fn follow(&mut self, policy: Policy) {
        self.forget();
        self.policy = Arc::new(policy);
        let policy = self.policy.clone();
        self.timed("policy", |core, now| core.handle_policy(policy, now));
        self.carry();
    }

    fn forget(&mut self) {
        self.longest = (Duration::ZERO, "");
        self.all.clear();
    }

    fn say(&mut self, messages: impl Iterator<Item = Vec<u8>>) {
        let tenant = self.policy.tenants.first().unwrap().id;
        let controller = self.core.controller_connected(tenant).unwrap();
        for message in messages {
            while !self.core.wants_read(controller) {
                self.carry();
            }
            self.timed("request", |core, now| {
                core.handle_controller_message(controller, &message, now);
            });
            self.carry();
        }
    }

    fn took(&mut self, act: &'static str) -> (&'static str, Duration, &'static str) {
        if std::env::var_os("TOP").is_some() {
            self.all.sort();
            let top: Vec<String> =
                self.all.iter().rev().take(12).map(|it| format!("{:?} {}", it.0, it.1)).collect();
            println!("  {act}: {} calls: {}", self.all.len(), top.join(", "));
        }
        (act, self.longest.0, self.longest.1)
    }

    fn timed<T>(&mut self, name: &'static str, call: impl FnOnce(&mut Switch, Instant) -> T) -> T {
        let began = std::time::Instant::now();
        let result = call(&mut self.core, Instant(self.now));
        let took = (began.elapsed(), name);
        self.longest = self.longest.max(took);
        self.all.push(took);
        result
    }

    /// Carries messages until nobody has any.
    fn carry(&mut self) {
        while self.turn() {}
    }

    fn turn(&mut self) -> bool {
        self.now += 1_000;
        let mut moved = self.timed("turn", Switch::next_turn);
        if let Some((number, operations)) = self.timed("store", |core, _| core.poll_store()) {
            moved = true;
            keep(&mut self.store, operations);
            self.timed("stored", |core, now| core.handle_stored(number, now));
        }
        while let Some(index) = self.core.poll_controller() {
            drain(self.core.controller_outbox(index).unwrap());
            self.core.written(index, false);
        }
        while self.core.poll_resumed().is_some() {}
        while self.core.poll_event().is_some() {}
        let (sent, mut out) = (drain(self.core.switch_outbox()), Vec::new());
        for message in frames(&sent) {
            self.emulated.handle_message(self.now, &message, &mut out);
        }
        for message in frames(&out) {
            self.timed("message", |core, now| core.handle_switch_message(&message, now));
        }
        if self.core.poll_timeout().is_some_and(|at| at.0 <= self.now) {
            self.timed("timeout", Switch::handle_timeout);
        }
        moved | !sent.is_empty() | !out.is_empty()
    }
}

fn hop(n: u32) -> Hop {
    let (port, tag) = (10 + n % 20, 2 + n / 20);
    Hop { port: PortNumber::new(port).unwrap(), tag: Tag::new(tag as u16).unwrap() }
}

/// The policy for a row. In the `other` one each of Weir's own rules is another.
fn policy_of(what: &str, number: u32, other: bool) -> Policy {
    if what.ends_with("entries") || what.ends_with("adopt") {
        return policy("t1: ip,nw_src=10.1.0.0/16");
    }
    if what.ends_with("slices") {
        let subnet = |n: u32| format!("10.{}.{}.0/24", u32::from(other) * 100 + n / 200, n % 200);
        let line = |n: u32| format!("t{n}: ip,nw_src={}\n", subnet(n));
        return policy(&(0..number).map(line).collect::<String>());
    }
    let mut policy = policy("t1: -");
    let id = policy.tenants[0].id;
    let offset = u32::from(other) * number;
    let hosts = |at: u32| -> Vec<MacAddress> {
        let host = |n| MacAddress::new([2, 1, u8::from(other), at as u8, 0, n as u8]).unwrap();
        (1..=number).map(host).collect()
    };
    let edge = |at: u32| PortKind::Edge {
        port: PortNumber::new(at).unwrap(),
        hosts: if what.ends_with("hosts") { hosts(at) } else { Vec::new() },
    };
    let far = Default::default();
    let label = if what.ends_with("groups") { 80_000 - 20 * u32::from(other) } else { 80_000 };
    let link = PortKind::Link { sends: Some(hop(label)), receives: vec![hop(label)], far };
    let mut ports: BTreeMap<u32, VirtualPort> =
        [(1, virtual_port(edge(1))), (2, virtual_port(link))].into();
    if what.ends_with("hosts") {
        ports.extend((3..=20).map(|at| (at, virtual_port(edge(at)))));
    }
    let member = Member { datapath: Dpid(0xa0), name: String::new(), ports, shared_with: false };
    let mut map = SwitchMap::default();
    map.members.insert(id, member);
    if what.ends_with("links") {
        let transit = |n: u32| Transit {
            from: hop(n + offset),
            to: Exit::Next(hop(n + offset + 20)),
            leaves_by: None,
        };
        map.transit = (0..number).map(transit).collect();
        map.transit.sort_by_key(|it| it.from);
    }
    policy.maps.insert(1, Arc::new(map));
    policy
}
