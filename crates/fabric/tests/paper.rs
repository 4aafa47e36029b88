//! Tests of the example of *The Price of Virtualization* (2013), sections II and III, figures 1 and 2, at a thousandth
//! of its rates: red's flow A to B has interfaces of 8 Mbit/s, blue's flows E to F and C to D have interfaces of 10 and
//! 2 Mbit/s; all links have 10 Mbit/s.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod common;

use common::{builtin, megabits, switch};
use fabric::hose::{Hose, VnicId};
use fabric::paths::Distances;
use fabric::share::{Demand, max_min};
use fabric::usage::{Flow, FlowId, Usage};
use fabric::{Bandwidth, Network, Path, TenantId};

const RED: TenantId = TenantId(1);
const BLUE: TenantId = TenantId(2);

/// The flows in the order in which they begin: the tenant, and the bandwidth of both interfaces.
const FLOWS: [(TenantId, u64); 3] = [(RED, 8), (BLUE, 10), (BLUE, 2)];

/// Nominal rates of the flows. No two flows share an interface.
fn nominal() -> [Bandwidth; 3] {
    let mut hose = Hose::default();
    for (flow, (_, bandwidth)) in (0..).zip(FLOWS) {
        let ends = [VnicId(flow * 2), VnicId(flow * 2 + 1)];
        ends.iter().for_each(|end| hose.add_vnic(*end, megabits(bandwidth)).unwrap());
        hose.connect(FlowId(flow), ends[0], ends[1]).unwrap();
    }
    [0, 1, 2].map(|flow| hose.rate(FlowId(flow)).unwrap())
}

/// The rate of each flow on these paths, in Mbit/s.
fn carried(network: &Network, paths: [&Path; 3]) -> [f64; 3] {
    let capacities = vec![10.0; network.link_slots()];
    let links = paths.map(|path| path.links().iter().map(|link| link.index()).collect::<Vec<_>>());
    let nominal = nominal().map(|rate| rate.bits_per_second() as f64 / 1e6);
    let demands = [0, 1, 2].map(|it| Demand { links: &links[it], weight: 1, most: nominal[it] });
    max_min(&capacities, &demands).unwrap().try_into().unwrap()
}

#[test]
fn labels_lead_each_flow_to_the_path_with_free_bandwidth() {
    let network = builtin("isolation2013");
    let (from, to) = (switch(&network, 3), switch(&network, 4));
    let towards = Distances::to(&network, to);
    let mut usage = Usage::default();
    let mut paths = Vec::new();
    let nominal = nominal();
    for (id, (tenant, _)) in (0..).zip(FLOWS) {
        // The bandwidth that other tenants leave, minus the tenant's own flows, which the tenant knows.
        let room = |link| {
            let label = usage.label(&network, link, tenant);
            label.saturating_sub(usage.of(link, tenant)).bits_per_second()
        };
        let (path, _) = towards.widest(&network, from, room).unwrap();
        let links = path.links().into();
        let flow = Flow { tenant, rate: nominal[id as usize], links };
        usage.add(&network, FlowId(id), flow).unwrap();
        paths.push(path);
    }
    let [red, large, small] = [&paths[0], &paths[1], &paths[2]];
    assert!(red != large && red == small);
    assert_eq!(carried(&network, [red, large, small]), [8.0, 10.0, 2.0]);

    // Figure 2c: blue sees 2 Mbit/s on red's path and the whole capacity on its own path; red sees the bandwidth that
    // blue leaves.
    let label = |path: &Path, tenant| usage.label(&network, path.links()[0], tenant);
    assert_eq!([label(red, BLUE), label(large, BLUE)], [megabits(2), megabits(10)]);
    assert_eq!([label(red, RED), label(large, RED)], [megabits(8), megabits(0)]);
}

#[test]
fn without_labels_the_path_choice_can_waste_capacity_and_be_unfair() {
    let network = builtin("isolation2013");
    let (from, to) = (switch(&network, 3), switch(&network, 4));
    let both = Distances::to(&network, to).paths(&network, from, 9);
    let [one, other] = [&both[0], &both[1]];
    let sum = |paths| carried(&network, paths).iter().sum::<f64>();
    // All flows on one link are the worst case of figure 4c: half of the network's capacity.
    assert_eq!(sum([one, one, one]), 10.0);
    assert_eq!(sum([one, one, other]), 12.0);
    assert_eq!(sum([one, other, other]), 18.0);
    // This is also unfair: the tenant that bought 10 Mbit/s gets no more than the tenant that bought 8 Mbit/s.
    assert_eq!(carried(&network, [one, one, other]), [5.0, 5.0, 2.0]);
}
