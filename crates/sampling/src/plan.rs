//! A plan: which server samples which share of its traffic, and which server processes the samples.

use crate::problem::Problem;
use crate::solver::Solver;
use serde::Serialize;
use std::collections::HashMap;

/// A sparse solution: the plan contains only sampled traffic.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The solver that found the plan.
    pub solver: Solver,
    /// The flows, in order of the sampling server, then of the processing server.
    pub flows: Vec<Flow>,
}

/// Traffic of one server that is sampled and processed at one server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// The server that sees the traffic and samples it: i.
    pub origin: usize,
    /// The server that processes the samples: k; equal to `origin` for local samples.
    pub processor: usize,
    /// The tenant, if tenants differ in weight or minimum.
    pub tenant: Option<usize>,
    /// Sampled packets per second.
    pub volume: f64,
    /// s: the share of that traffic, 0 to 1.
    pub rate: f64,
}

/// The load of one server under a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ServerLoad {
    /// Packets per second that the server forwards.
    pub forwarded: f64,
    /// Packets per second of its own traffic that the server samples itself.
    pub local: f64,
    /// Packets per second of its own traffic that the server mirrors to other servers.
    pub exported: f64,
    /// Packets per second of other servers' traffic that the server processes.
    pub imported: f64,
    /// The cost of all this work, in units of capacity.
    pub cost: f64,
}

/// A constraint that a plan violates.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The violation, as a sentence.
    pub what: String,
    /// The excess, relative to the bound.
    pub by: f64,
}

impl Plan {
    /// The sampled volume in packets per second. The paper maximizes this volume.
    #[must_use]
    pub fn sampled(&self) -> f64 {
        self.flows.iter().map(|flow| flow.volume).sum()
    }

    /// The sampled volume with weights, which the solvers maximize. Equal to the sampled volume if every weight is 1.
    #[must_use]
    pub fn objective(&self, problem: &Problem) -> f64 {
        let server = |index: usize| problem.servers().get(index).map_or(1.0, |one| one.weight);
        let tenant = |index: usize| problem.tenants().get(index).map_or(1.0, |one| one.weight);
        self.flows
            .iter()
            .map(|flow| flow.volume * server(flow.origin) * flow.tenant.map_or(1.0, tenant))
            .sum()
    }

    /// The load of each server under this plan.
    #[must_use]
    pub fn loads(&self, problem: &Problem) -> Vec<ServerLoad> {
        let start = |forwarded: &f64| ServerLoad { forwarded: *forwarded, ..ServerLoad::default() };
        let mut loads: Vec<ServerLoad> = problem.load().iter().map(start).collect();
        for flow in &self.flows {
            if flow.origin == flow.processor {
                if let Some(load) = loads.get_mut(flow.origin) {
                    load.local += flow.volume;
                }
                continue;
            }
            if let Some(load) = loads.get_mut(flow.origin) {
                load.exported += flow.volume;
            }
            if let Some(load) = loads.get_mut(flow.processor) {
                load.imported += flow.volume;
            }
        }
        for (load, server) in loads.iter_mut().zip(problem.servers()) {
            let costs = server.costs;
            load.cost = load.forwarded
                + costs.alpha * load.local
                + costs.beta * load.exported
                + (costs.alpha + costs.beta) * load.imported;
        }
        loads
    }

    /// The constraints that the plan violates by more than `tolerance`, relative to the bound; none for a valid plan.
    ///
    /// The check uses the plan alone, so it also works for plans of other origin.
    #[must_use]
    pub fn violations(&self, problem: &Problem, tolerance: f64) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut at_most = |what: &dyn Fn() -> String, value: f64, bound: f64| {
            let by = (value - bound) / bound.max(f64::MIN_POSITIVE);
            if value - bound > tolerance * bound.max(1.0) || value.is_nan() {
                found.push(Violation { what: what(), by });
            }
        };
        let name = |index: usize| problem.servers().get(index).map_or("?", |one| one.name.as_str());
        for (load, server) in self.loads(problem).iter().zip(problem.servers()) {
            at_most(
                &|| format!("server {} is over its capacity", server.name),
                load.cost,
                server.capacity,
            );
        }
        let mut sampled = vec![0.0; problem.servers().len()];
        let mut by_tenant = vec![0.0; problem.tenants().len()];
        let mut by_class: HashMap<(usize, Option<usize>), f64> = HashMap::new();
        let mut by_pair: HashMap<(usize, usize), f64> = HashMap::new();
        for flow in &self.flows {
            at_most(
                &|| format!("{} samples less than nothing", name(flow.origin)),
                -flow.volume,
                0.0,
            );
            if let Some(sampled) = sampled.get_mut(flow.origin) {
                *sampled += flow.volume;
            }
            if let Some(sampled) = flow.tenant.and_then(|tenant| by_tenant.get_mut(tenant)) {
                *sampled += flow.volume;
            }
            *by_class.entry((flow.origin, flow.tenant)).or_default() += flow.volume;
            *by_pair.entry((flow.origin, flow.processor)).or_default() += flow.volume;
        }
        for class in problem.classes() {
            let sampled = by_class.get(&(class.server, class.tenant)).copied().unwrap_or(0.0);
            at_most(
                &|| format!("{} samples packets twice", name(class.server)),
                sampled,
                class.volume,
            );
        }
        for ((server, sampled), own) in problem.servers().iter().zip(&sampled).zip(problem.own()) {
            at_most(
                &|| format!("{} misses its minimum", server.name),
                server.minimum * own,
                *sampled,
            );
        }
        for (index, (tenant, sampled)) in problem.tenants().iter().zip(&by_tenant).enumerate() {
            let own = problem.classes().iter().filter(|class| class.tenant == Some(index));
            let own: f64 = own.map(|class| class.volume).sum();
            at_most(
                &|| format!("tenant {} misses its minimum", tenant.name),
                tenant.minimum * own,
                *sampled,
            );
        }
        for link in problem.links() {
            let mirrored = by_pair.get(&(link.from, link.to)).copied().unwrap_or(0.0);
            let what = || format!("{} mirrors too much to {}", name(link.from), name(link.to));
            at_most(&what, mirrored, link.capacity);
        }
        found
    }
}
