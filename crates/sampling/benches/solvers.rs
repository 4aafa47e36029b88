//! How long the solvers take: `cargo bench -p weir-sampling`.

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark measures time and prints it"
)]
#![allow(clippy::expect_used, reason = "its own data is right")]

use sampling::{Costs, Entry, Problem, Server, Solver, solve};
use std::time::Instant;

fn main() {
    println!("{:>14} {:>9} {:>10} {:>12} {:>16}", "solver", "servers", "matrix", "ms", "sampled");
    for (solver, servers, dense) in [
        (Solver::Combinatorial, 1_000, false),
        (Solver::Combinatorial, 10_000, false),
        (Solver::Combinatorial, 100_000, false),
        (Solver::Combinatorial, 1_000_000, false),
        (Solver::Linear, 50, true),
        (Solver::Reduced, 50, true),
        (Solver::Linear, 100, true),
        (Solver::Reduced, 100, true),
        (Solver::Linear, 200, true),
        (Solver::Reduced, 200, true),
        (Solver::Combinatorial, 200, true),
    ] {
        let problem = problem(servers, dense);
        let start = Instant::now();
        let plan = solve(&problem, solver).expect("a feasible problem");
        let taken = start.elapsed().as_secs_f64() * 1e3;
        let matrix = if dense { "dense" } else { "sparse" };
        println!(
            "{:>14} {servers:>9} {matrix:>10} {taken:>12.2} {:>16.3}",
            solver.name(),
            plan.sampled()
        );
    }
}

/// Unequal loads and costs: about half of the servers cannot sample all of their own traffic.
fn problem(count: usize, dense: bool) -> Problem {
    let mut numbers = fastrand::Rng::with_seed(1);
    let mut random = move || numbers.f64();
    let mut traffic = Vec::new();
    let mut load = vec![0.0; count];
    for from in 0..count {
        let heavy = 0.1 + 2.0 * random();
        let receivers: Vec<usize> = if dense {
            (0..count).collect()
        } else {
            (0..3).map(|step| (from + step * 7) % count).collect()
        };
        for to in receivers {
            let volume = heavy * random() * 1e4;
            traffic.push(Entry { from, to, tenant: None, volume });
            load[from] += volume;
            load[to] += if from == to { 0.0 } else { volume };
        }
    }
    let server = |(index, load): (usize, f64)| {
        let costs = Costs { alpha: 1.0 + random(), beta: 0.2 + random() };
        Server::new(format!("s{index}"), load * (1.0 + 1.8 * random()) + 1.0, costs)
    };
    let servers = load.into_iter().enumerate().map(server).collect();
    Problem::new(servers, Vec::new(), &traffic, Vec::new()).expect("valid data")
}
