//! Tests of the simulation of path choices, in comparison with the optimum.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

use fabric::labels::Privacy;
use fabric::{Bandwidth, Network};
use simulate::traffic::Traffic;
use simulate::{Choice, Error, Moves, Outcome, Setting, Tenancy, World, run, yardstick};
use std::collections::BTreeSet;

fn world(topology: &str) -> World {
    let rate = "10Gbit".parse().unwrap();
    World::new(lab::Topology::builtin(topology).unwrap().network(rate).unwrap()).unwrap()
}

fn setting(tenants: usize, divisions: &[u64], lifetime: f64) -> Setting {
    let tenancy = Tenancy { tenants, divisions: divisions.to_vec(), lifetime };
    Setting { tenancy, warm_up: 60, steps: 60, stride: 5, seed: 1 }
}

fn labels(interval: u32, moves: Moves) -> Choice {
    Choice::Labels { interval, moves, privacy: Privacy::default() }
}

/// The mean share of the optimum.
fn share(world: &World, setting: &Setting, choice: &Choice) -> (f64, Outcome) {
    let most = yardstick(world, setting, 1_000).unwrap();
    let outcome = run(world, setting, choice).unwrap();
    let shares: Vec<f64> = outcome.shares(&most).collect();
    assert_eq!(shares.len(), 12);
    (shares.iter().sum::<f64>() / shares.len() as f64, outcome)
}

#[test]
fn labels_reach_95_percent_of_the_optimum_for_500_tenants() {
    let world = world("fattree,16");
    let setting = setting(500, &[2, 4, 8], 600.0);
    let (with, _) = share(&world, &setting, &labels(1, Moves::DAMPED));
    let (hashing, _) = share(&world, &setting, &Choice::EqualCost);
    println!("of the optimum: {with:.3} with labels, {hashing:.3} by equal-cost hashing");
    assert!(with >= 0.95, "{with}");
    assert!(hashing < 0.8, "{hashing}");
}

#[test]
fn flows_that_move_at_once_herd_and_damped_moves_do_not() {
    let world = world("fattree,8");
    let setting = setting(60, &[4, 8], 600.0);
    let (hashing, _) = share(&world, &setting, &Choice::EqualCost);
    let (herd, restless) = share(&world, &setting, &labels(10, Moves::All));
    let (damped, calm) = share(&world, &setting, &labels(10, Moves::DAMPED));
    let (eager, _) = share(&world, &setting, &labels(10, Moves::Damped { eagerness: 8.0 }));
    println!("{hashing:.3} hashing, {herd:.3} herding, {damped:.3} damped, {eager:.3} eager");
    assert!(herd < hashing && hashing < damped, "{herd} {hashing} {damped}");
    assert!(eager < damped - 0.05, "{eager} {damped}");
    assert!(restless.moved > 10 * calm.moved, "{} {}", restless.moved, calm.moved);
}

#[test]
fn old_labels_give_less_throughput_than_fresh_labels() {
    let world = world("fattree,8");
    let setting = setting(60, &[2, 4], 50.0);
    let [fresh, old] = [1, 50].map(|every| share(&world, &setting, &labels(every, Moves::Never)).0);
    assert!(fresh > old + 0.02, "{fresh} {old}");
}

#[test]
fn no_path_choice_exceeds_the_optimum() {
    // Each leaf has two uplinks for eight servers. So the linear program gives the optimum, and not the division of
    // flows.
    let world = world("leafspine,4,2,8");
    let setting = setting(20, &[1, 2], 20.0);
    let most = yardstick(&world, &setting, 1_000).unwrap();
    assert!(most.iter().all(|most| most.proof == simulate::optimum::Proof::LinearProgram));
    let privacy = Privacy {
        step: Bandwidth::from_megabits_per_second(1_000),
        noise: Bandwidth::from_megabits_per_second(2_000),
        seed: [1; 16],
        ..Privacy::default()
    };
    let choices = [
        Choice::Random,
        Choice::EqualCost,
        labels(1, Moves::Never),
        labels(3, Moves::All),
        labels(2, Moves::DAMPED),
        Choice::Labels { interval: 2, moves: Moves::DAMPED, privacy },
    ];
    for choice in choices {
        let outcome = run(&world, &setting, &choice).unwrap();
        for (moment, share) in outcome.moments.iter().zip(outcome.shares(&most)) {
            assert!(share <= 1.0 + 1e-9, "{choice:?}: {share}");
            assert!(moment.carried <= moment.offered * (1.0 + 1e-9));
            assert!((0.0..=1.0 + 1e-9).contains(&moment.fairness) && moment.least >= 0.0);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_result() {
    let world = world("fattree,4");
    let first = setting(10, &[1, 2, 4], 20.0);
    let other = Setting { seed: 2, ..first.clone() };
    for choice in [Choice::Random, Choice::EqualCost, labels(2, Moves::DAMPED)] {
        let once = run(&world, &first, &choice).unwrap();
        assert_eq!(once, run(&world, &first, &choice).unwrap(), "{choice:?}");
        assert_ne!(once, run(&world, &other, &choice).unwrap(), "{choice:?}");
    }
}

#[test]
fn traffic_never_exceeds_the_server_capacity() {
    let world = world("fattree,4");
    for (tenants, divisions) in [(3, vec![1, 2, 4]), (8, vec![1]), (40, vec![8])] {
        let tenancy = Tenancy { tenants, divisions, lifetime: 3.0 };
        let mut traffic = Traffic::new(&world, &tenancy, 7).unwrap();
        assert_eq!(traffic.tenants(), tenants);
        let mut began = BTreeSet::new();
        for _ in 0..30 {
            for (place, server) in world.servers().iter().enumerate() {
                let sum = |end: fn(&simulate::traffic::Flow) -> usize| -> u64 {
                    let ours = traffic.flows().iter().filter(|flow| end(flow) == place);
                    ours.map(|flow| flow.nominal).sum()
                };
                assert!(sum(|flow| flow.from) <= server.capacity);
                assert!(sum(|flow| flow.to) <= server.capacity);
            }
            began.extend(traffic.step().unwrap());
        }
        assert_eq!(began.len(), tenants, "every tenant's job has ended by now");
    }
}

#[test]
fn impossible_simulations_are_refused_with_the_reason() {
    let refused =
        |world: &World, setting: &Setting, choice| run(world, setting, &choice).unwrap_err();
    let world = world("fattree,4");
    let good = setting(4, &[1], 10.0);
    let with = |change: fn(&mut Setting)| {
        let mut setting = good.clone();
        change(&mut setting);
        refused(&world, &setting, Choice::EqualCost).to_string()
    };
    let cases = [
        (with(|it| it.tenancy.tenants = 9), "9 tenants are too many for this network: 8 at most"),
        (with(|it| it.tenancy.tenants = 0), "there are 1 to 65534 tenants"),
        (with(|it| it.tenancy.divisions = vec![]), "a server is divided into at least one"),
        (with(|it| it.tenancy.divisions = vec![0]), "a server is divided into at least one"),
        (
            with(|it| (it.tenancy.tenants, it.tenancy.divisions) = (1, vec![2, 4])),
            "fewer tenants than",
        ),
        (with(|it| it.tenancy.lifetime = f64::NAN), "a job lasts at least a step"),
        (with(|it| it.steps = 0), "at least one step is measured"),
        (refused(&world, &good, labels(0, Moves::All)).to_string(), "at most once in a step"),
        (World::new(Network::default()).unwrap_err().to_string(), "at least two servers"),
    ];
    for (said, expected) in cases {
        assert!(said.contains(expected), "{said:?} instead of {expected:?}");
    }
    let apart = "[[switches]]\nname = \"s1\"\n[[switches]]\nname = \"s2\"\n[[hosts]]\nname = \"a\"\n\
        [[hosts]]\nname = \"b\"\n[[links]]\nends = [\"a\", \"s1\"]\n[[links]]\nends = [\"b\", \"s2\"]";
    let network =
        lab::Topology::from_toml(apart).unwrap().network("1Gbit".parse().unwrap()).unwrap();
    assert_eq!(World::new(network).unwrap_err(), Error::Unconnected);
}
