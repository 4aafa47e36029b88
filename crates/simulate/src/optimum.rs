//! What the best routing could carry.
//!
//! Three ways to know it, tried in this order:
//!
//! 1. Every flow is split evenly over its shortest paths. If that overloads no link, all demands are met at once, and
//!    nothing is better: so it is in a fat tree whose demands conform to the hose model.
//! 2. The multicommodity linear program, over the shortest paths, where it is small enough: the most that flows can
//!    carry together when each may be split at will.
//! 3. Else a bound: no routing carries more out of (or into) a switch with servers than its links to other switches.

use crate::error::Error;
use crate::traffic::Flow;
use crate::world::World;
use fabric::{LinkId, SwitchIndex};
use microlp::{ComparisonOp, LinearExpr, OptimizationDirection, Problem};
use std::collections::BTreeMap;

/// The most that can be carried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimum {
    /// In bits per second.
    pub bits: f64,
    /// How it is known.
    pub proof: Proof,
}

/// How an optimum is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Proof {
    /// All demands are met by splitting evenly.
    EvenSplit,
    /// The linear program's solution.
    LinearProgram,
    /// It is not: no routing can carry more, but the best may carry less.
    Bound,
}

/// The most that can be carried of these flows; the program is solved if it has no more variables than that.
pub fn optimum(world: &World, flows: &[Flow], most_variables: usize) -> Result<Optimum, Error> {
    let demands = Demands::new(world, flows);
    if demands.even_split_fits(world) {
        return Ok(Optimum { bits: demands.total(), proof: Proof::EvenSplit });
    }
    match demands.solve(world, most_variables)? {
        Some(bits) => Ok(Optimum { bits, proof: Proof::LinearProgram }),
        None => Ok(Optimum { bits: demands.bound(world), proof: Proof::Bound }),
    }
}

/// Demands between switches, in bits per second. Servers' own links are never what is short: what their virtual
/// interfaces are entitled to fits.
struct Demands {
    local: f64,
    between: BTreeMap<(SwitchIndex, SwitchIndex), f64>,
}

impl Demands {
    fn new(world: &World, flows: &[Flow]) -> Demands {
        let mut demands = Demands { local: 0.0, between: BTreeMap::new() };
        for flow in flows {
            let [from, to] = [flow.from, flow.to].map(|server| world.servers()[server].switch);
            let demand = match from == to {
                true => &mut demands.local,
                false => demands.between.entry((from, to)).or_default(),
            };
            *demand += flow.nominal as f64;
        }
        demands
    }

    fn total(&self) -> f64 {
        self.local + self.between.values().sum::<f64>()
    }

    fn even_split_fits(&self, world: &World) -> bool {
        let network = world.network();
        let mut loads = vec![0.0; network.link_slots()];
        for (&(from, to), &demand) in &self.between {
            let towards = world.towards(to);
            let mut level = BTreeMap::from([(from, demand)]);
            while level.keys().any(|at| *at != to) {
                let mut next: BTreeMap<SwitchIndex, f64> = BTreeMap::new();
                for (at, amount) in level {
                    let part = amount / towards.closer(network, at).count() as f64;
                    for (link, after) in towards.closer(network, at) {
                        loads[link.index()] += part;
                        *next.entry(after).or_default() += part;
                    }
                }
                level = next;
            }
        }
        let fits = |(id, link): (LinkId, &fabric::Link)| {
            loads[id.index()] <= link.capacity.bits_per_second() as f64 * (1.0 + 1e-9)
        };
        network.links().all(fits)
    }

    fn solve(&self, world: &World, most_variables: usize) -> Result<Option<f64>, Error> {
        let network = world.network();
        let mut problem = Problem::new(OptimizationDirection::Maximize);
        let mut on_link: BTreeMap<LinkId, LinearExpr> = BTreeMap::new();
        // In units of the largest demand: the solver's tolerance is absolute.
        let unit = self.between.values().copied().fold(1.0, f64::max);
        let mut left = most_variables;
        for (&(from, to), &demand) in &self.between {
            let paths = world.towards(to).paths(network, from, left + 1);
            let Some(remaining) = left.checked_sub(paths.len()) else { return Ok(None) };
            left = remaining;
            let mut of_pair = LinearExpr::empty();
            for path in paths {
                let carried = problem.add_var(1.0, (0.0, f64::INFINITY));
                of_pair.add(carried, 1.0);
                for &link in path.links() {
                    on_link.entry(link).or_insert_with(LinearExpr::empty).add(carried, 1.0);
                }
            }
            problem.add_constraint(of_pair, ComparisonOp::Le, demand / unit);
        }
        for (link, carried) in on_link {
            let capacity = network.link(link).capacity.bits_per_second() as f64;
            problem.add_constraint(carried, ComparisonOp::Le, capacity / unit);
        }
        let solver = |error: &dyn std::fmt::Display| Error::Solver(error.to_string());
        let outcome = problem.solve().map_err(|error| solver(&error))?;
        let solution = outcome.into_solution().map_err(|_| solver(&"it was interrupted"))?;
        Ok(Some(self.local + solution.objective() * unit))
    }

    /// See the third way above.
    fn bound(&self, world: &World) -> f64 {
        let network = world.network();
        let mut ends: [BTreeMap<SwitchIndex, f64>; 2] = Default::default();
        for (&(from, to), demand) in &self.between {
            *ends[0].entry(from).or_default() += demand;
            *ends[1].entry(to).or_default() += demand;
        }
        let passes = |(switch, demand): (&SwitchIndex, &f64)| {
            // Both directions of a wire have the same capacity.
            let links = network.leaving(*switch).map(|(link, _)| network.link(link).capacity);
            demand.min(links.map(|capacity| capacity.bits_per_second() as f64).sum())
        };
        let [out, into] = ends.map(|ends| ends.iter().map(passes).sum::<f64>());
        self.local + out.min(into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Servers of 10 Mbit/s, as are all links.
    fn world(topology: &str) -> World {
        let rate = "10Mbit".parse().unwrap();
        World::new(lab::Topology::builtin(topology).unwrap().network(rate).unwrap()).unwrap()
    }

    /// Flows as from, to, Mbit/s; the optimum in Mbit/s.
    fn check(topology: &str, flows: &[(usize, usize, u64)], most: usize, bits: f64, proof: Proof) {
        let world = world(topology);
        let flow = |&(from, to, rate)| Flow { tenant: 0, from, to, nominal: rate * 1_000_000 };
        let flows: Vec<Flow> = flows.iter().map(flow).collect();
        let found = optimum(&world, &flows, most).unwrap();
        let close = (found.bits / 1e6 - bits).abs() < 1e-6;
        assert!(close && found.proof == proof, "{topology}: {found:?}");
    }

    #[test]
    fn the_optimum_is_found_by_even_split_linear_program_or_bound() {
        // Section II of the 2013 paper: A to B 8, C to D 2, E to F 10: all 20 fit, split over both spines.
        let paper = [(0, 1, 8), (2, 3, 2), (4, 5, 10)];
        check("isolation2013", &paper, 0, 20.0, Proof::EvenSplit);
        // One spine: half of what two servers a leaf want.
        let crossing = [(0, 2, 10), (1, 3, 10)];
        check("leafspine,2,1,2", &crossing, 10, 10.0, Proof::LinearProgram);
        check("leafspine,2,1,2", &crossing, 0, 10.0, Proof::Bound);
        // The third leaf's traffic shares the way into the second; the program sees both ends, the bound one of them.
        let three = [(0, 2, 10), (1, 4, 10), (5, 3, 10)];
        check("leafspine,3,1,2", &three, 10, 20.0, Proof::LinearProgram);
        check("leafspine,3,1,2", &[(0, 1, 7)], 0, 7.0, Proof::EvenSplit);
    }

    #[test]
    fn the_linear_program_agrees_with_an_even_split_that_fits() {
        let world = world("fattree,4");
        let flow =
            |from: usize| Flow { tenant: 0, from, to: (from * 7 + 5) % 16, nominal: 10_000_000 };
        let flows: Vec<Flow> = (0..16).map(flow).collect();
        let demands = Demands::new(&world, &flows);
        assert!(demands.even_split_fits(&world));
        let solved = demands.solve(&world, 1_000).unwrap().unwrap();
        assert!((solved - demands.total()).abs() < 1.0, "{solved}");
        assert!(demands.bound(&world) >= solved - 1.0);
        assert_eq!(demands.solve(&world, 10), Ok(None));
    }
}
