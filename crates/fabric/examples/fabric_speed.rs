//! Prints the time of the fabric's computations on this machine: `cargo run --release -p weir-fabric --example
//! fabric_speed`.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use fabric::embedding::{Embedding, LinkSpec, Route, Spec, SwitchSpec, Tag, VirtualPortId};
use fabric::labels::{Labels, Settings};
use fabric::paths::{Disjoint, Distances};
use fabric::reservations::{Choice, Request, ReservationId, Reservations};
use fabric::share::{Demand, max_min};
use fabric::usage::{Flow, FlowId, Usage};
use fabric::{Bandwidth, Dpid, Instant, LinkId, Network, SwitchIndex, TenantId};
use std::collections::BTreeMap;
use std::time;

fn main() {
    let network = builtin("fattree,16");
    let edges: Vec<SwitchIndex> =
        (1..=128).map(|it| network.switch_index(Dpid(it)).unwrap()).collect();
    reroute(network.clone(), &edges);
    embed(network.clone());
    let routes = routes(&network, &edges);
    track(&network, &routes);
    share(&network, &routes);
}

/// 1,000 protected virtual links; then a core switch disappears and returns.
fn reroute(mut network: Network, edges: &[SwitchIndex]) {
    let mut reservations = Reservations::default();
    let begun = time::Instant::now();
    for id in 0..1_000 {
        let from = edges[id as usize % 128];
        let to = edges[(id as usize * 37 + 11) % 128];
        let (bandwidth, protection) =
            (Bandwidth::from_megabits_per_second(10), Some(Disjoint::Switches));
        let request =
            Request { from, to, bandwidth, choice: Choice::Widest, protection, reverts: true };
        reservations.reserve(&network, ReservationId(id), request).unwrap();
    }
    say("1,000 virtual links reserved, each with a backup", begun);
    // Half of the aggregation switches of every pod.
    let mut moved = 0;
    let begun = time::Instant::now();
    for pod in 0..16 {
        for index in 0..4 {
            let changed = network.remove_switch(Dpid(128 + pod * 8 + index + 1)).unwrap();
            moved += reservations.handle_changes(&network, &changed).len();
        }
    }
    say(&format!("{moved} moves after 64 of 128 aggregation switches failed one by one"), begun);
}

/// 100 virtual switches and 500 links, and 1,000 links of another tenant; then several aggregation switches disappear
/// at once.
fn embed(mut network: Network) {
    let [least, most] = [1000, 3999].map(|tag| Tag::new(tag).unwrap());
    let mut embedding = Embedding::new(least, most);
    let mut wanted = BTreeMap::from([(TenantId(1), ladder(100, 500))]);
    let begun = time::Instant::now();
    embedding.apply(&network, &wanted).unwrap();
    say("100 virtual switches and 500 virtual links embedded, each with a backup", begun);
    wanted.insert(TenantId(2), ladder(128, 1_000));
    let begun = time::Instant::now();
    embedding.apply(&network, &wanted).unwrap();
    say("1,000 virtual links of another tenant embedded beside them", begun);
    for pod in 0..16 {
        for index in 0..4 {
            network.remove_switch(Dpid(128 + pod * 8 + index + 1)).unwrap();
        }
    }
    let begun = time::Instant::now();
    let changes = embedding.handle_changes(&network);
    let what = format!(
        "{} of 1,500 virtual links moved, {} ports down, {} maps new, after 64 of 128 aggregation switches failed at once",
        changes.moves.len(),
        changes.ports.len(),
        changes.switches.len()
    );
    say(&what, begun);
    let begun = time::Instant::now();
    let saved = embedding.export();
    let mut after = Embedding::new(least, most);
    after.restore(&saved).unwrap();
    after.apply(&Network::default(), &wanted).unwrap();
    after.handle_changes(&network);
    say(&format!("all found again after a restart, from {} kB", saved.len() / 1_000), begun);
    assert_eq!(after.switch_maps(), embedding.switch_maps());
}

/// A network of that many switches, each joined to some others.
fn ladder(switches: u64, links: u64) -> Spec {
    let dpid = |number: u64| Dpid(0xa00 + number % switches);
    let switch = |number| SwitchSpec {
        dpid: dpid(number),
        name: String::new(),
        members: vec![Dpid(1 + number)],
        routes: Vec::new(),
        started: true,
    };
    let link = |number: u64| LinkSpec {
        ends: [(number, 1), (number * 7 + 1 + number / switches, 2)].map(|(at, side)| {
            VirtualPortId {
                switch: dpid(at + u64::from(side == 2 && dpid(at) == dpid(number))),
                number: (number * 2 + side) as u32,
            }
        }),
        bandwidth: Bandwidth::from_megabits_per_second(10),
        route: Route::Shortest,
        protection: Some(Disjoint::Switches),
        reverts: true,
        started: true,
    };
    Spec {
        switches: (0..switches).map(switch).collect(),
        links: (0..links).map(link).collect(),
        ..Spec::default()
    }
}

fn routes(network: &Network, edges: &[SwitchIndex]) -> Vec<Vec<LinkId>> {
    let towards: Vec<Distances> = edges.iter().map(|&to| Distances::to(network, to)).collect();
    let route = |number: usize| {
        let mut state = number;
        let path = towards[number * 31 % 128].path_by(network, edges[number % 128], |_| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            state >> 33
        });
        path.unwrap().links().to_vec()
    };
    (0..10_000).map(route).collect()
}

/// 10,000 tracked flows of 20 tenants who watch all links; then 10,000 of them change.
fn track(network: &Network, routes: &[Vec<LinkId>]) {
    let mut usage = Usage::default();
    let mut labels = Labels::new(Settings::default());
    for (link, _) in network.links() {
        (0..20).for_each(|tenant| labels.subscribe(TenantId(tenant), link, Instant(0)));
    }
    let flow = |id: usize| Flow {
        tenant: TenantId((id % 20) as u16),
        rate: Bandwidth::from_megabits_per_second(1 + id as u64 % 9),
        links: routes[id % routes.len()].clone().into(),
    };
    for id in 0..routes.len() {
        usage.add(network, FlowId(id as u64), flow(id)).unwrap();
    }
    labels.touch(usage.take_touched(), Instant(0));
    labels.poll(network, &usage, Instant(0));
    let mut sent = 0;
    let begun = time::Instant::now();
    for change in 0..10_000_usize {
        let id = FlowId((change * 7 % routes.len()) as u64);
        usage.remove(id).unwrap();
        usage.add(network, id, flow(change + 3)).unwrap();
        // The changes are spread over one virtual second.
        let now = Instant(change as u64 * 100_000);
        labels.touch(usage.take_touched(), now);
        sent += labels.poll(network, &usage, now).len();
    }
    say(
        &format!("10,000 flows removed and added among 10,000, {sent} labels sent to 20 tenants"),
        begun,
    );
}

/// Fair shares of 10,000 flows.
fn share(network: &Network, routes: &[Vec<LinkId>]) {
    let capacities: Vec<f64> = vec![10e9; network.link_slots()];
    let links: Vec<Vec<usize>> =
        routes.iter().map(|route| route.iter().map(|link| link.index()).collect()).collect();
    let demands = links.iter().map(|links| Demand { links, weight: 1, most: 1.5e9 });
    let demands: Vec<Demand<'_>> = demands.collect();
    let begun = time::Instant::now();
    let rates = max_min(&capacities, &demands).unwrap();
    let sum: f64 = rates.iter().sum();
    say(&format!("fair shares of 10,000 flows, {:.0} Gbit/s", sum / 1e9), begun);
}

fn builtin(specification: &str) -> Network {
    let rate = "10Gbit".parse().unwrap();
    lab::Topology::builtin(specification).unwrap().network(rate).unwrap()
}

fn say(what: &str, begun: time::Instant) {
    println!("{:8.1} ms  {what}", begun.elapsed().as_secs_f64() * 1e3);
}
