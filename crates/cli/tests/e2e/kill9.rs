//! Tests of repeated kill -9 during changes: afterwards each acknowledged change is on the switch and in the tenant's
//! table, and the switch has no rule that the tenant's table does not have.
//!
//! `scripts/kill9` runs many rounds. The test runs few rounds.

use fastrand::Rng;
use std::collections::BTreeMap;
use std::env;
use std::thread;
use std::time::Duration;

use crate::slices::by_port;
use crate::support::network::{Network, V10};
use crate::support::requirements::{Needs, needs};
use crate::support::scripted::{
    BARRIER_REPLY, BARRIER_REQUEST, Controller, FEATURES_REPLY, FEATURES_REQUEST, FLOW_MOD,
    Message, Peer, STATS_REPLY, STATS_REQUEST, add_flow,
};

/// The number of priorities. A tenant has at most one rule of each priority, and a change sets the output port of a
/// rule or deletes the rule.
const PRIORITIES: u16 = 300;
/// Changes before each barrier. Each change is of another rule.
const BURST: u16 = 16;

/// The rules of a tenant: the output port of each priority.
pub type Rules = BTreeMap<u16, u16>;

struct Tenant {
    controller: Controller,
    /// The ports of the tenant. The rules match the first port.
    ports: [u16; 2],
    /// The rules after the last acknowledged barrier.
    acknowledged: Rules,
    /// The changes after the last acknowledged barrier: the new output port of each rule, or `None` for a deleted rule.
    pending: BTreeMap<u16, Option<u16>>,
    /// How often Weir has connected.
    connections: usize,
}

#[test]
fn ovs_no_acknowledged_rule_is_lost_by_kill_9() {
    needs!(ovs_no_acknowledged_rule_is_lost_by_kill_9: Needs::OpenVSwitch);
    let rounds = env::var("WEIR_KILL9_ROUNDS").ok().and_then(|it| it.parse().ok()).unwrap_or(3);
    let mut dice = Rng::with_seed(
        env::var("WEIR_KILL9_SEED").ok().and_then(|it| it.parse().ok()).unwrap_or(29),
    );
    let network = Network::single(&["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"], V10);
    let mut tenants = [[1, 2], [3, 4]].map(|ports| Tenant {
        controller: Controller::listen(),
        ports,
        acknowledged: Rules::new(),
        pending: BTreeMap::new(),
        connections: 0,
    });
    let config = by_port("red", &tenants[0].controller.name(), tenants[0].ports)
        + &by_port("blue", &tenants[1].controller.name(), tenants[1].ports);
    let mut weir = network.serve(&config);
    let mut peers = tenants.each_mut().map(Tenant::connected);
    let (mut acknowledged, mut pending) = (0, 0);
    for round in 1..=rounds {
        let lives = Duration::from_millis(50 + dice.u64(..600));
        let seeds = [dice.u64(..), dice.u64(..)];
        thread::scope(|scope| {
            let working: Vec<_> = tenants
                .iter_mut()
                .zip(&peers)
                .zip(seeds)
                .map(|((tenant, peer), seed)| {
                    scope.spawn(move || tenant.work(peer, &mut Rng::with_seed(seed)))
                })
                .collect();
            thread::sleep(lives);
            weir.crash();
            acknowledged +=
                working.into_iter().map(|it| it.join().expect("no panic")).sum::<usize>();
        });
        weir.restart();
        peers = tenants.each_mut().map(Tenant::connected);
        for ((name, tenant), peer) in ["red", "blue"].iter().zip(&mut tenants).zip(&peers) {
            peer.send(&Message::new(BARRIER_REQUEST, 1, &[]));
            peer.expect_reply(BARRIER_REPLY, 1);
            let what = format!("round {round}, {name}");
            let found = on_switch(&network, tenant.ports[0]);
            tenant.check(&what, &found);
            assert!(
                priorities_in_statistics(peer).eq(found.keys().copied()),
                "{what}: the tenant gets other entries"
            );
            pending += tenant.pending.len();
            (tenant.acknowledged, tenant.pending) = (found, BTreeMap::new());
        }
    }
    assert!(acknowledged > 0, "nothing was acknowledged in any round");
    println!(
        "{rounds} rounds: {acknowledged} barriers answered, {pending} changes were on their way"
    );
}

impl Tenant {
    /// Waits for the next connection that works: a connection of the present process.
    fn connected(&mut self) -> Peer {
        loop {
            let peer = self.controller.connection(self.connections);
            self.connections += 1;
            peer.send(&Message::new(FEATURES_REQUEST, 0xfea, &[]));
            if peer.hears_reply(FEATURES_REPLY, 0xfea) {
                return peer;
            }
        }
    }

    /// Changes rules until the connection ends. Returns the number of answered barriers.
    fn work(&mut self, peer: &Peer, dice: &mut Rng) -> usize {
        for barrier in 0.. {
            for _ in 0..BURST {
                let priority = 1 + dice.u64(..u64::from(PRIORITIES)) as u16;
                if self.pending.contains_key(&priority) {
                    continue;
                }
                // The output is the other port or the controller, so that a change is visible.
                let port = [self.ports[1], 0xfffd][dice.u64(..2) as usize];
                let becomes = (dice.u64(..3) > 0).then_some(port);
                let mut body = add_flow(self.ports[0], port, priority, 0);
                if becomes.is_none() {
                    body[49] = 4; // DELETE_STRICT
                }
                self.pending.insert(priority, becomes);
                peer.send(&Message::new(FLOW_MOD, 2, &body));
            }
            let xid = 100 + barrier as u32;
            peer.send(&Message::new(BARRIER_REQUEST, xid, &[]));
            if !peer.hears_reply(BARRIER_REPLY, xid) {
                return barrier;
            }
            for (priority, becomes) in std::mem::take(&mut self.pending) {
                match becomes {
                    Some(port) => drop(self.acknowledged.insert(priority, port)),
                    None => drop(self.acknowledged.remove(&priority)),
                }
            }
        }
        0
    }

    /// Asserts that each acknowledged change is done. A change without an acknowledgement may be done or not.
    fn check(&self, what: &str, found: &Rules) {
        for priority in 1..=PRIORITIES {
            let (now, before) = (found.get(&priority), self.acknowledged.get(&priority));
            let becomes = self.pending.get(&priority).map(Option::as_ref);
            assert!(
                now == before || Some(now) == becomes,
                "{what}: rule {priority} was {before:?}, was to become {becomes:?}, and is {now:?}"
            );
        }
    }
}

/// Returns the rules on the switch for packets from a port.
pub fn on_switch(network: &Network, port: u16) -> Rules {
    let rule = |text: String| -> Option<(u16, u16)> {
        let words: Vec<&str> = text.split([' ', ',']).collect();
        let value = |key| words.iter().find_map(|word| word.strip_prefix(key));
        let from: u16 = in_port(value("in_port=")?)?;
        let to = text.split_once("actions=")?.1;
        let to = match to {
            _ if to.starts_with("CONTROLLER") => 0xfffd,
            to => in_port(to.strip_prefix("output:")?)?,
        };
        (from == port).then_some((value("priority=")?.parse().ok()?, to))
    };
    network.flow_texts("s1").into_iter().filter_map(rule).collect()
}

/// Parses a port in the output of `ovs-ofctl`: a number, or a name that ends in the number.
fn in_port(text: &str) -> Option<u16> {
    text.trim_matches('"').trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok()
}

/// Returns the priorities in the tenant's flow statistics, in order.
fn priorities_in_statistics(peer: &Peer) -> impl Iterator<Item = u16> {
    // The request is for flow statistics (OpenFlow 1.0 section 5.3.5) of all tables, with any match and any output
    // port.
    let mut body = vec![0, 1, 0, 0, 0, 0x3f, 0xff, 0xff];
    body.resize(4 + 40, 0);
    body.extend([0xff, 0, 0xff, 0xff]);
    peer.send(&Message::new(STATS_REQUEST, 3, &body));
    let mut priorities = Vec::new();
    loop {
        let reply = peer.expect_reply(STATS_REPLY, 3);
        let mut rest = &reply.body[4..];
        while let [high, low, ..] = rest {
            let (entry, after) = rest.split_at(usize::from(u16::from_be_bytes([*high, *low])));
            priorities.push(u16::from_be_bytes([entry[52], entry[53]]));
            rest = after;
        }
        if reply.body[3] & 1 == 0 {
            priorities.sort_unstable();
            return priorities.into_iter();
        }
    }
}
