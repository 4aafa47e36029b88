//! Tests of the solvers: the three solvers find the same optimum, and the optimum keeps every constraint.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::prelude::*;
use sampling::{Costs, Entry, Error, LinkLimit, Plan, Problem, Server, Solver, Tenant, solve};

/// A full mesh of servers of very unequal load, capacity and costs.
fn meshes(most: usize) -> impl Strategy<Value = Problem> {
    // The headroom is between none and far too much. Loads cover four orders of magnitude, and some loads are zero.
    let server = (0.0..5.0_f64, prop_oneof![3 => -2.0..2.0_f64, 1 => Just(f64::NEG_INFINITY)]);
    let alike = (0.05..4.0_f64, 0.0..3.0_f64);
    let costs = prop_oneof![
        // All servers have one α and one β, as in the paper, or each server has its own α and β.
        alike.clone().prop_map(|pair| vec![pair]),
        prop::collection::vec(alike, most),
    ];
    (prop::collection::vec(server, 2..=most), costs).prop_map(|(servers, costs)| {
        let count = servers.len();
        let mut traffic = Vec::new();
        let mut load = vec![0.0; count];
        for (from, (_, exponent)) in servers.iter().enumerate() {
            let volume = 1e5 * 10f64.powf(*exponent);
            for (to, share) in [(from, 0.5), ((from + 1) % count, 0.5)] {
                traffic.push(Entry { from, to, tenant: None, volume: volume * share });
                load[from] += volume * share;
                load[to] += if to == from { 0.0 } else { volume * share };
            }
        }
        let server = |(index, (room, _)): (usize, &(f64, f64))| {
            let (alpha, beta) = costs[index % costs.len()];
            // Adds a few ulps, so that a sum in another order is no overload.
            let capacity = load[index] * (1.0 + room) * (1.0 + 1e-14);
            Server::new(format!("s{index}"), capacity, Costs { alpha, beta })
        };
        let servers = servers.iter().enumerate().map(server).collect();
        Problem::new(servers, Vec::new(), &traffic, Vec::new()).unwrap()
    })
}

#[track_caller]
fn check(problem: &Problem, plan: &Plan) {
    let violations = plan.violations(problem, 1e-9);
    assert!(violations.is_empty(), "{:?}: {violations:?}", plan.solver);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn three_solvers_agree_on_small_problems(problem in meshes(7)) {
        let [linear, reduced, exact, local] =
            [Solver::Linear, Solver::Reduced, Solver::Combinatorial, Solver::Local]
                .map(|solver| solve(&problem, solver).unwrap());
        for plan in [&linear, &reduced, &exact, &local] {
            check(&problem, plan);
        }
        let best = exact.sampled();
        for other in [&linear, &reduced] {
            let apart = (other.sampled() - best).abs();
            prop_assert!(apart <= 1e-9 * best, "{:?} {} {best}", other.solver, other.sampled());
        }
        prop_assert!(local.sampled() <= best * (1.0 + 1e-12));
        // A plan has at most two flows for each server.
        prop_assert!(exact.flows.len() <= 2 * problem.servers().len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn two_solvers_agree_on_large_problems(problem in meshes(40)) {
        let [linear, exact] =
            [Solver::Linear, Solver::Combinatorial].map(|solver| solve(&problem, solver).unwrap());
        let best = exact.sampled();
        prop_assert!((linear.sampled() - best).abs() <= 1e-9 * best, "{} {best}", linear.sampled());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Limits and minimums reduce the objective. A plan keeps all limits and minimums, and is never better than a plan
    /// without limits and minimums.
    #[test]
    fn plans_keep_link_limits_and_minimums(
        problem in meshes(5),
        limits in prop::collection::vec(0.0..1e5_f64, 20),
        minimums in prop::collection::vec(0.0..0.4_f64, 5),
    ) {
        let servers: Vec<Server> = problem.servers().iter().zip(&minimums)
            .map(|(server, minimum)| Server { minimum: *minimum, ..server.clone() })
            .collect();
        let count = servers.len();
        let pairs = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
        let links: Vec<LinkLimit> = pairs.filter(|(from, to)| from != to).zip(&limits)
            .map(|((from, to), limit)| {
                // A third of the pairs is forbidden.
                let capacity = if *limit < 3e4 { 0.0 } else { *limit };
                LinkLimit { from, to, capacity }
            })
            .collect();
        let traffic: Vec<Entry> = problem.own().iter().enumerate()
            .map(|(from, volume)| Entry { from, to: from, tenant: None, volume: *volume })
            .collect();
        let free = Problem::new(problem.servers().to_vec(), Vec::new(), &traffic, Vec::new()).unwrap();
        let bound = Problem::new(servers, Vec::new(), &traffic, links).unwrap();
        match solve(&bound, Solver::Linear) {
            Ok(plan) => {
                check(&bound, &plan);
                let best = solve(&free, Solver::Combinatorial).unwrap().sampled();
                prop_assert!(plan.sampled() <= best * (1.0 + 1e-9));
            }
            Err(Error::Unreachable(shortfalls)) => {
                prop_assert!(!shortfalls.is_empty());
                prop_assert!(shortfalls.iter().all(|one| one.by > 0.0 && one.by <= one.of * (1.0 + 1e-9)));
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }
}

/// `docs/sampling.md` derives the same numbers by hand, for two servers.
#[test]
fn plans_match_the_worked_example_of_the_documentation() {
    let servers = [("busy", 1000.0), ("idle", 1000.0)]
        .map(|(name, c)| Server::new(name, c, Costs { alpha: 1.5, beta: 0.5 }));
    let traffic = [
        Entry { from: 0, to: 0, tenant: None, volume: 800.0 },
        Entry { from: 1, to: 1, tenant: None, volume: 100.0 },
    ];
    let problem = Problem::new(servers.to_vec(), Vec::new(), &traffic, Vec::new()).unwrap();
    // `busy` has 200 left, enough for 133 local samples. `idle` can import (900 - 150) / 2 = 375. If `busy` only
    // mirrors, it can mirror 400. Mirroring 375 costs `busy` 187.5 and leaves 12.5, which is enough for 8.33 local
    // samples.
    for solver in [Solver::Linear, Solver::Reduced, Solver::Combinatorial] {
        let plan = solve(&problem, solver).unwrap();
        check(&problem, &plan);
        let loads = plan.loads(&problem);
        assert!((loads[0].exported - 375.0).abs() < 1e-6, "{solver:?} {loads:?}");
        assert!((loads[0].local - 25.0 / 3.0).abs() < 1e-6, "{solver:?} {loads:?}");
        assert!((plan.sampled() - (375.0 + 25.0 / 3.0 + 100.0)).abs() < 1e-6);
    }
    let local = solve(&problem, Solver::Local).unwrap();
    assert!((local.sampled() - (400.0 / 3.0 + 100.0)).abs() < 1e-9);
}

#[test]
fn unreachable_minimums_are_reported_with_the_missing_amount() {
    let server = |name: &str, minimum| Server {
        minimum,
        ..Server::new(name, 1000.0, Costs { alpha: 1.5, beta: 0.5 })
    };
    let entry = |from, tenant, volume| Entry { from, to: from, tenant, volume };
    // 100 are left: 66.7 packets can be sampled locally, or at best 100 / 0.5 = 200 packets mirrored. The minimum needs
    // 450, which is 250 too many.
    let problem = Problem::new(
        vec![server("full", 0.5), server("idle", 0.0)],
        Vec::new(),
        &[entry(0, None, 900.0)],
        Vec::new(),
    )
    .unwrap();
    let Err(Error::Unreachable(all)) = solve(&problem, Solver::Linear) else { panic!() };
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].who, "server full");
    assert!((all[0].by - 250.0).abs() < 1e-6 && (all[0].of - 450.0).abs() < 1e-6, "{all:?}");

    let tenants = vec![Tenant { minimum: 1.0, ..Tenant::new("red") }, Tenant::new("blue")];
    let traffic = [entry(0, Some(0), 500.0), entry(0, Some(1), 400.0)];
    let problem = Problem::new(vec![server("full", 0.0)], tenants, &traffic, Vec::new()).unwrap();
    let error = solve(&problem, Solver::Linear).unwrap_err().to_string();
    assert!(
        error.contains("tenant red is to have 500.0 packets/s sampled, at least 433.3 too many"),
        "{error}"
    );
}

#[test]
fn a_tenant_with_more_weight_is_sampled_first() {
    let tenants = vec![Tenant { weight: 3.0, ..Tenant::new("red") }, Tenant::new("blue")];
    let traffic = [(0, 300.0), (1, 300.0)].map(|(tenant, volume)| Entry {
        from: 0,
        to: 0,
        tenant: Some(tenant),
        volume,
    });
    let server = Server::new("s", 1050.0, Costs { alpha: 1.5, beta: 0.5 });
    let problem = Problem::new(vec![server], tenants, &traffic, Vec::new()).unwrap();
    let plan = solve(&problem, Solver::Linear).unwrap();
    check(&problem, &plan);
    // 450 are left, which is enough for 300 packets: all packets of red, no packets of blue.
    assert_eq!(plan.flows.len(), 1);
    assert_eq!(plan.flows[0].tenant, Some(0));
    assert!((plan.objective(&problem) - 900.0).abs() < 1e-6);
    for solver in [Solver::Reduced, Solver::Combinatorial, Solver::Local] {
        let error = solve(&problem, solver).unwrap_err();
        assert!(matches!(error, Error::Unsupported { what: "weights", .. }), "{error}");
    }
}

#[test]
fn plans_that_violate_a_constraint_are_detected() {
    let server = Server::new("s", 250.0, Costs { alpha: 1.5, beta: 0.5 });
    let traffic = [Entry { from: 0, to: 0, tenant: None, volume: 100.0 }];
    let problem = Problem::new(vec![server], Vec::new(), &traffic, Vec::new()).unwrap();
    let mut plan = solve(&problem, Solver::Combinatorial).unwrap();
    check(&problem, &plan);
    plan.flows.push(plan.flows[0]);
    let violations = plan.violations(&problem, 1e-9);
    let found: Vec<&str> = violations.iter().map(|one| one.what.as_str()).collect();
    assert_eq!(found, ["server s is over its capacity", "s samples packets twice"]);
}
