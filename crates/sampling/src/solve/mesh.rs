//! The exact combinatorial solver for a full mesh of servers.
//!
//! Volumes are x = s·U. A server with headroom R that samples l locally, exports e and imports m must keep α·l + β·e +
//! (α + β)·m ≤ R and l + e ≤ U; over all servers Σe = Σm. Some optimum (proof in `docs/sampling.md`) has only two kinds
//! of servers:
//!
//! * *importers* (αU ≤ R) sample all of their own traffic and can import M = (R − αU) / (α + β) without loss;
//! * *exporters* (αU > R, β < α) sample R/α alone. Each exported packet displaces β/α local ones, so it gains 1 − β/α
//!   per unit of import capacity. The limit e* is the lesser of (αU − R) / (α − β), where all of U is sampled, and R/β,
//!   where the server only mirrors.
//!
//! The rest is a knapsack of divisible goods: fill Σ M in order of falling gain. Sorting takes most of the time.

use super::local::flow;
use crate::plan::Flow;
use crate::problem::Problem;

/// A server that exports traffic.
struct Exporter {
    server: usize,
    ratio: f64,
    most: f64,
}

/// A server that processes others' traffic.
struct Importer {
    server: usize,
    room: f64,
}

pub(super) fn solve(problem: &Problem) -> Vec<Flow> {
    let mut exporters = Vec::new();
    let mut importers = Vec::new();
    let mut local: Vec<f64> = Vec::with_capacity(problem.servers().len());
    let servers = problem.servers().iter().zip(problem.own()).zip(problem.headroom());
    for (server, ((facts, &own), headroom)) in servers.enumerate() {
        let (alpha, beta) = (facts.costs.alpha, facts.costs.beta);
        let left = headroom - alpha * own;
        if left >= 0.0 {
            importers.push(Importer { server, room: left / (alpha + beta) });
            local.push(own);
            continue;
        }
        local.push(headroom / alpha);
        if beta < alpha {
            // With β = 0 the second bound is infinite.
            let most = (-left / (alpha - beta)).min(headroom / beta.max(f64::MIN_POSITIVE));
            exporters.push(Exporter { server, ratio: beta / alpha, most });
        }
    }
    // Sorts by gain, and equal gains by index, so that the plan is the same every time.
    exporters.sort_by(|a, b| a.ratio.total_cmp(&b.ratio).then(a.server.cmp(&b.server)));
    let mirrored = fill(&exporters, &mut importers, &mut local);
    collect(problem, &local, mirrored)
}

/// Assigns exporters to importers until one side is used up: (origin, processor, volume).
fn fill(
    exporters: &[Exporter],
    importers: &mut [Importer],
    local: &mut [f64],
) -> Vec<(usize, usize, f64)> {
    let mut mirrored = Vec::new();
    let mut importers = importers.iter_mut().filter(|importer| importer.room > 0.0);
    let mut importer = importers.next();
    for exporter in exporters {
        let mut left = exporter.most;
        while left > 0.0 {
            let Some(current) = importer.as_mut() else { break };
            let volume = left.min(current.room);
            mirrored.push((exporter.server, current.server, volume));
            left -= volume;
            current.room -= volume;
            if current.room <= 0.0 {
                importer = importers.next();
            }
        }
        if let Some(own) = local.get_mut(exporter.server) {
            *own = (*own - exporter.ratio * (exporter.most - left)).max(0.0);
        }
        if importer.is_none() {
            break;
        }
    }
    mirrored
}

/// In order of the origin, with local samples first.
fn collect(problem: &Problem, local: &[f64], mut mirrored: Vec<(usize, usize, f64)>) -> Vec<Flow> {
    mirrored.sort_by_key(|(origin, processor, _)| (*origin, *processor));
    let mut mirrored = mirrored.into_iter().peekable();
    let mut flows = Vec::with_capacity(local.len() + mirrored.len());
    for (origin, (&volume, &own)) in local.iter().zip(problem.own()).enumerate() {
        flows.extend(flow(origin, origin, volume, own));
        while let Some((_, processor, volume)) = mirrored.next_if(|(from, ..)| *from == origin) {
            flows.extend(flow(origin, processor, volume, own));
        }
    }
    flows
}
