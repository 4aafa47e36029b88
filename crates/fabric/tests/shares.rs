//! Tests of fair shares, in comparison with another kind of solver, and of nominal rates, in comparison with the bought
//! bandwidth.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

use fabric::hose::{Change, Hose, VnicId, Wish, shares};
use fabric::share::Demand;
use fabric::usage::FlowId;
use fabric::{Bandwidth, Error, max_min};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
struct Case {
    capacities: Vec<f64>,
    flows: Vec<(Vec<usize>, u64, f64)>,
}

impl Case {
    fn demands(&self) -> Vec<Demand<'_>> {
        let flows = self.flows.iter();
        flows.map(|(links, weight, most)| Demand { links, weight: *weight, most: *most }).collect()
    }

    /// Solves by bisection: finds the largest common level of all rising flows that every link allows, and then stops
    /// the flows that cannot rise further. This solver has no events, no queue and no order.
    fn solve_slowly(&self) -> Vec<f64> {
        let mut rates: Vec<Option<f64>> = vec![None; self.flows.len()];
        while rates.iter().any(Option::is_none) {
            let at = |rates: &[Option<f64>], level: f64| -> Vec<f64> {
                let rate = |(flow, rate): (&(Vec<usize>, u64, f64), &Option<f64>)| {
                    rate.unwrap_or((level * flow.1 as f64).min(flow.2))
                };
                self.flows.iter().zip(rates).map(rate).collect()
            };
            let loads = |rates: &[f64]| -> Vec<f64> {
                let mut loads = vec![0.0; self.capacities.len()];
                for ((links, ..), rate) in self.flows.iter().zip(rates) {
                    links.iter().for_each(|&link| loads[link] += rate);
                }
                loads
            };
            let stands = |rates: &[f64]| {
                loads(rates)
                    .iter()
                    .zip(&self.capacities)
                    .all(|(load, capacity)| *load <= capacity + 1e-9)
            };
            let (mut low, mut high) = (0.0, 1e6);
            for _ in 0..200 {
                let middle = (low + high) / 2.0;
                if stands(&at(&rates, middle)) { low = middle } else { high = middle }
            }
            let now = at(&rates, low);
            let loads = loads(&now);
            let is_full = |link: &usize| loads[*link] >= self.capacities[*link] - 1e-6;
            for (place, (links, _, most)) in self.flows.iter().enumerate() {
                if rates[place].is_none()
                    && (now[place] >= most - 1e-6 || links.iter().any(is_full))
                {
                    rates[place] = Some(now[place]);
                }
            }
        }
        rates.into_iter().flatten().collect()
    }
}

fn case() -> impl Strategy<Value = Case> {
    (1_usize..7).prop_flat_map(|links| {
        let capacities = proptest::collection::vec((0_u32..100).prop_map(f64::from), links);
        let most = prop_oneof![Just(1e5), (0_u32..60).prop_map(f64::from)];
        let crossed = proptest::sample::subsequence((0..links).collect::<Vec<_>>(), 1..=links);
        let flows = proptest::collection::vec((crossed, 1_u64..5, most), 0..12);
        (capacities, flows).prop_map(|(capacities, flows)| Case { capacities, flows })
    })
}

proptest! {
    #[test]
    fn progressive_filling_agrees_with_bisection(case in case()) {
        let fast = max_min(&case.capacities, &case.demands()).unwrap();
        for (place, (fast, slow)) in fast.iter().zip(case.solve_slowly()).enumerate() {
            prop_assert!((fast - slow).abs() < 1e-4, "flow {}: {} is not {}", place, fast, slow);
        }
    }

    /// The defining property (Bertsekas and Gallager, section 6.5.2): each flow has its demand, or crosses a full link
    /// on which no flow has more for its weight.
    #[test]
    fn every_flow_has_its_demand_or_a_bottleneck_link(case in case()) {
        let rates = max_min(&case.capacities, &case.demands()).unwrap();
        let level = |place: usize| rates[place] / case.flows[place].1 as f64;
        let flows = &case.flows;
        let on = |link: usize| (0..flows.len()).filter(move |&flow| flows[flow].0.contains(&link));
        for (link, capacity) in case.capacities.iter().enumerate() {
            prop_assert!(on(link).map(|flow| rates[flow]).sum::<f64>() <= capacity + 1e-6);
        }
        for (place, (links, _, most)) in case.flows.iter().enumerate() {
            let is_bottleneck = |&link: &usize| {
                let load: f64 = on(link).map(|flow| rates[flow]).sum();
                load >= case.capacities[link] - 1e-6 && on(link).all(|other| level(other) <= level(place) + 1e-6)
            };
            prop_assert!(rates[place] <= most + 1e-9);
            prop_assert!(rates[place] >= most - 1e-6 || links.iter().any(is_bottleneck), "flow {}", place);
        }
    }

    #[test]
    fn nominal_rates_never_exceed_the_bandwidth_of_a_vnic(
        bandwidths in proptest::collection::vec(0_u64..1_000, 2..6),
        changes in proptest::collection::vec((0_u64..10, 0_u64..6, 0_u64..6, 0_u8..8), 1..50),
    ) {
        let count = bandwidths.len() as u64;
        let bits = Bandwidth::from_bits_per_second;
        let mut hose = Hose::default();
        for (id, &bandwidth) in (0..).zip(&bandwidths) {
            hose.add_vnic(VnicId(id), bits(bandwidth)).unwrap();
        }
        let mut flows: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let mut reported: BTreeMap<FlowId, Bandwidth> = BTreeMap::new();
        for (id, from, to, kind) in changes {
            let (from, to) = (from % count, to % count);
            let changes = match kind {
                0 | 1 if flows.remove(&id).is_some() => {
                    reported.remove(&FlowId(id));
                    hose.disconnect(FlowId(id)).unwrap()
                }
                2 => {
                    // Every second flow is removed, and up to two flows are added, with new numbers or with numbers of
                    // removed flows.
                    let gone: Vec<FlowId> = flows.keys().filter(|it| *it % 2 == id % 2).map(|id| FlowId(*id)).collect();
                    let new = [id + 10, id + 20].map(|id| (FlowId(id), VnicId(from), VnicId(to)));
                    let new: Vec<_> = new.into_iter().filter(|new| !flows.contains_key(&new.0.0) || gone.contains(&new.0)).collect();
                    for flow in &gone {
                        flows.remove(&flow.0);
                        reported.remove(flow);
                    }
                    flows.extend(new.iter().map(|new| (new.0.0, (from, to))));
                    hose.change(&gone, &new).unwrap()
                }
                _ if flows.contains_key(&id) => {
                    let both = [(FlowId(50), VnicId(from), VnicId(to)), (FlowId(id), VnicId(from), VnicId(to))];
                    prop_assert_eq!(hose.change(&[], &both), Err(Error::DuplicateId(id)));
                    prop_assert_eq!(hose.change(&[FlowId(id), FlowId(id)], &[]), Err(Error::UnknownId(id)));
                    prop_assert_eq!(
                        hose.connect(FlowId(id), VnicId(from), VnicId(to)),
                        Err(Error::DuplicateId(id))
                    );
                    continue;
                }
                _ => {
                    flows.insert(id, (from, to));
                    hose.connect(FlowId(id), VnicId(from), VnicId(to)).unwrap()
                }
            };
            reported.extend(changes.iter().map(|Change { flow, rate }| (*flow, *rate)));
            // The reported changes alone give every rate.
            prop_assert_eq!(reported.len(), flows.len());
            for (&flow, &rate) in &reported {
                prop_assert_eq!(hose.rate(flow), Some(rate));
            }
            // The incremental rates equal the rates of a new computation.
            let mut fresh = Hose::default();
            for (id, &bandwidth) in (0..).zip(&bandwidths) {
                fresh.add_vnic(VnicId(id), bits(bandwidth)).unwrap();
            }
            for (&id, &(from, to)) in &flows {
                fresh.connect(FlowId(id), VnicId(from), VnicId(to)).unwrap();
            }
            for vnic in 0..count {
                let sum = |end: fn(&(u64, u64)) -> u64| -> u64 {
                    let ours = flows.iter().filter(|(_, ends)| end(ends) == vnic);
                    ours.map(|(&id, _)| reported[&FlowId(id)].bits_per_second()).sum()
                };
                prop_assert!(sum(|ends| ends.0) <= bandwidths[vnic as usize]);
                prop_assert!(sum(|ends| ends.1) <= bandwidths[vnic as usize]);
            }
            for (&flow, &rate) in &reported {
                prop_assert_eq!(fresh.rate(flow), Some(rate));
            }
        }
    }
}

fn megabits(megabits: u64) -> Bandwidth {
    Bandwidth::from_megabits_per_second(megabits)
}

#[test]
fn nominal_rates_follow_the_hose_model() {
    // Bandwidths in Mbit/s; flows as sender, receiver and nominal rate in kbit/s.
    let check = |bandwidths: &[u64], flows: &[(u64, u64, u64)]| {
        let mut hose = Hose::default();
        for (id, &bandwidth) in (0..).zip(bandwidths) {
            hose.add_vnic(VnicId(id), megabits(bandwidth)).unwrap();
        }
        for (id, &(from, to, _)) in (0..).zip(flows) {
            hose.connect(FlowId(id), VnicId(from), VnicId(to)).unwrap();
        }
        let found = (0..flows.len() as u64).map(|id| hose.rate(FlowId(id)).unwrap());
        let found: Vec<u64> = found.map(Bandwidth::kilobits_per_second).collect();
        assert_eq!(found, flows.iter().map(|flow| flow.2).collect::<Vec<_>>(), "{flows:?}");
    };
    // The paper's example: A 8, B 8, C 2, D 2, E 10, F 10.
    check(&[8, 8, 2, 2, 10, 10], &[(0, 1, 8_000), (4, 5, 10_000), (2, 3, 2_000)]);
    // A receiver of 10 is shared in proportion to its senders' 8 and 2, and equally among equal senders.
    check(&[8, 2, 10], &[(0, 2, 8_000), (1, 2, 2_000)]);
    check(&[10, 10, 10], &[(0, 2, 5_000), (1, 2, 5_000)]);
    check(&[8, 8, 8, 8], &[(0, 3, 2_666), (1, 3, 2_666), (2, 3, 2_666)]);
    // Two flows of one sender to a receiver share that sender's part.
    check(&[10, 10, 10], &[(0, 2, 2_500), (0, 2, 2_500), (1, 2, 5_000)]);
    // A sender to several receivers divides its own bandwidth.
    check(&[10, 10, 10], &[(0, 1, 5_000), (0, 2, 5_000)]);
    // A sender with a slow receiver uses the rest of its bandwidth for its other receiver.
    check(&[10, 2, 10], &[(0, 1, 1_666), (0, 2, 8_333)]);
    check(&[0, 10], &[(0, 1, 0)]);
}

#[test]
fn unused_bandwidth_is_redistributed() {
    let all = f64::INFINITY;
    // Bandwidths in Mbit/s; from, to, wish in Mbit/s, rate in Mbit/s.
    let check = |bandwidths: &[u64], flows: &[(usize, usize, f64, f64)]| {
        let bandwidths: Vec<Bandwidth> = bandwidths.iter().map(|&it| megabits(it)).collect();
        let wish =
            |&(from, to, most, _): &(usize, usize, f64, f64)| Wish { from, to, most: most * 1e6 };
        let wishes: Vec<Wish> = flows.iter().map(wish).collect();
        let rates = shares(&bandwidths, &wishes).unwrap();
        for (rate, flow) in rates.iter().zip(flows) {
            assert!((rate / 1e6 - flow.3).abs() < 1e-6, "{flow:?}: {rate}");
        }
    };
    check(&[10, 10, 10], &[(0, 2, all, 5.0), (1, 2, all, 5.0)]);
    check(&[10, 10, 10], &[(0, 2, 1.0, 1.0), (1, 2, all, 9.0)]);
    check(&[8, 2, 10], &[(0, 2, all, 8.0), (1, 2, all, 2.0)]);
    check(
        &[8, 8, 2, 10],
        &[(0, 3, all, 40.0 / 9.0), (1, 3, all, 40.0 / 9.0), (2, 3, all, 10.0 / 9.0)],
    );
    check(&[8, 8, 10, 10], &[(0, 1, all, 8.0), (2, 3, all, 10.0)]);
    check(&[0, 10, 10], &[(0, 2, all, 0.0), (1, 2, all, 10.0)]);
}

#[test]
fn impossible_demands_are_refused_with_their_index() {
    let flow = |links: &'static [usize], weight, most| Demand { links, weight, most };
    let cases = [
        (vec![-1.0], vec![], Error::ImpossibleCapacity(0)),
        (vec![1.0, f64::NAN], vec![], Error::ImpossibleCapacity(1)),
        (vec![1.0], vec![flow(&[0], 1, 1.0), flow(&[0], 0, 1.0)], Error::ImpossibleDemand(1)),
        (vec![1.0], vec![flow(&[0], 1, f64::NAN)], Error::ImpossibleDemand(0)),
        (vec![1.0], vec![flow(&[0], 1, -1.0)], Error::ImpossibleDemand(0)),
        (vec![1.0], vec![flow(&[1], 1, 1.0)], Error::ImpossibleDemand(0)),
        (vec![1.0], vec![flow(&[], 1, f64::INFINITY)], Error::ImpossibleDemand(0)),
    ];
    for (capacities, demands, error) in cases {
        assert_eq!(max_min(&capacities, &demands), Err(error));
    }
    assert_eq!(max_min(&[], &[flow(&[], 1, 3.0)]), Ok(vec![3.0]));
    let wish = Wish { from: 0, to: 1, most: 1.0 };
    assert_eq!(shares(&[megabits(1)], &[wish]), Err(Error::ImpossibleDemand(0)));
}

#[test]
fn a_repeated_vnic_and_a_flow_to_an_unknown_vnic_are_refused() {
    let mut hose = Hose::default();
    hose.add_vnic(VnicId(0), megabits(10)).unwrap();
    assert_eq!(hose.add_vnic(VnicId(0), megabits(1)), Err(Error::DuplicateId(0)));
    assert_eq!(hose.connect(FlowId(3), VnicId(0), VnicId(9)), Err(Error::UnknownId(9)));
}
