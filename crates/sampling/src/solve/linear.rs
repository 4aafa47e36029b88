//! The linear program, by a simplex solver.
//!
//! Variables are sampled volumes x = s·U instead of rates. The program is the same, and its coefficients are α, β and
//! 1, even if the servers' volumes are very unequal. Volumes are scaled so that servers without collaboration sample
//! 1,000: the solver's tolerance is absolute, and the result must be right to 10⁻⁹ of its value.

use super::local::flow;
use crate::cost::Costs;
use crate::error::{Error, Result, Shortfall};
use crate::plan::Flow;
use crate::problem::{Class, Problem, Server};
use microlp::{ComparisonOp, OptimizationDirection, SolveOptions, Variable};
use std::collections::HashMap;

/// The tolerance of constraints in the program's units: the smallest that the solver accepts.
const TOLERANCE: f64 = 1e-10;

/// The volume that servers can sample without collaboration, in the program's units.
const SCALE: f64 = 1e3;

/// All n² pairs, with every extension.
pub(super) fn every_pair(problem: &Problem) -> Result<Vec<Flow>> {
    let limits: HashMap<(usize, usize), f64> =
        problem.links().iter().map(|link| ((link.from, link.to), link.capacity)).collect();
    let every = 0..problem.servers().len();
    let pairs = |origin: usize| {
        let limits = &limits;
        let allowed = move |processor: &usize| limits.get(&(origin, *processor)) != Some(&0.0);
        every.clone().filter(allowed)
    };
    Program::of(problem, problem.classes(), &pairs).solve(problem)
}

/// Only local samples, and pairs from a server that cannot sample all its own traffic to a server that can.
///
/// The paper prints its rule inverted (section IV-B): "if i ∈ Q and k ∈ P then s = 0" names the variables that remain.
pub(super) fn reduced(problem: &Problem) -> Result<Vec<Flow>> {
    let servers = problem.servers().iter().zip(problem.own()).zip(problem.headroom());
    let is_able: Vec<bool> =
        servers.map(|((server, own), headroom)| server.costs.alpha * own <= headroom).collect();
    let able: Vec<usize> = (0..is_able.len()).filter(|k| is_able.get(*k) == Some(&true)).collect();
    // A server of P samples all of its own traffic, so its local volume needs no variable.
    let is_variable = |class: &&Class| is_able.get(class.server) == Some(&false);
    let classes: Vec<Class> = problem.classes().iter().filter(is_variable).copied().collect();
    let pairs = |origin: usize| std::iter::once(origin).chain(able.iter().copied());
    let mut program = Program::of(problem, &classes, &pairs);
    for (server, (own, facts)) in problem.own().iter().zip(problem.servers()).enumerate() {
        if is_able.get(server) == Some(&true)
            && let Some(left) = program.headroom.get_mut(server)
        {
            *left = (*left - facts.costs.alpha * own / program.unit).max(0.0);
        }
    }
    let mut flows = program.solve(problem)?;
    for &server in &able {
        let own = problem.own().get(server).copied().unwrap_or(0.0);
        flows.extend(flow(server, server, own, own));
    }
    flows.sort_by_key(|flow| (flow.origin, flow.processor != flow.origin, flow.processor));
    Ok(flows)
}

/// The linear program in the form of this crate; volumes are in units of `unit`.
struct Program {
    unit: f64,
    headroom: Vec<f64>,
    classes: Vec<Class>,
    /// The class and the processing server of each of the solver's first variables.
    pairs: Vec<(usize, usize)>,
}

impl Program {
    fn of<I: Iterator<Item = usize>>(
        problem: &Problem,
        classes: &[Class],
        processors: &dyn Fn(usize) -> I,
    ) -> Program {
        let alone: f64 = super::local::local(problem).iter().map(|flow| flow.volume).sum();
        let unit = if alone > 0.0 { alone } else { problem.total().max(1.0) } / SCALE;
        let headroom = problem.headroom().map(|headroom| headroom / unit).collect();
        let pairs = classes.iter().enumerate().flat_map(|(index, class)| {
            processors(class.server).map(move |processor| (index, processor))
        });
        Program { unit, headroom, classes: classes.to_vec(), pairs: pairs.collect() }
    }

    fn solve(&self, problem: &Problem) -> Result<Vec<Flow>> {
        if self.pairs.is_empty() {
            return Ok(Vec::new());
        }
        let (mut program, variables, minimums) = self.write(problem, Goal::Volume);
        for minimum in minimums {
            program.add_constraint(minimum.terms, ComparisonOp::Ge, minimum.least);
        }
        let values = match run(&program) {
            Err(microlp::Error::Infeasible) => return Err(self.unreachable(problem)),
            Err(error) => return Err(Error::Solver(error.to_string())),
            Ok(solution) => solution,
        };
        let flow = |(&(class, processor), &variable): (&(usize, usize), &Variable)| {
            let class = self.classes.get(class)?;
            // A value that is only the solver's rounding error counts as 0.
            let value = values.var_value(variable).clamp(0.0, class.volume / self.unit);
            let volume = if value > TOLERANCE { value * self.unit } else { 0.0 };
            let mut flow = flow(class.server, processor, volume, class.volume)?;
            flow.tenant = class.tenant;
            Some(flow)
        };
        let mut flows: Vec<Flow> = self.pairs.iter().zip(&variables).filter_map(flow).collect();
        flows.sort_by_key(|flow| (flow.origin, flow.processor != flow.origin, flow.processor));
        Ok(flows)
    }

    /// The least total shortfall of the minimum rates: the elastic program, with a variable for each shortfall.
    fn unreachable(&self, problem: &Problem) -> Error {
        let (mut program, _, minimums) = self.write(problem, Goal::Shortfalls);
        let mut shortfalls = Vec::new();
        for mut minimum in minimums {
            let missing = program.add_var(1.0, (0.0, minimum.least.max(0.0)));
            minimum.terms.push((missing, 1.0));
            program.add_constraint(minimum.terms, ComparisonOp::Ge, minimum.least);
            shortfalls.push((minimum.who, missing, minimum.least));
        }
        let solution = match run(&program) {
            Ok(solution) => solution,
            Err(error) => return Error::Solver(error.to_string()),
        };
        let missing = |(who, variable, least): (String, Variable, f64)| {
            let by = solution.var_value(variable);
            (by > 1e-6 * least).then_some(Shortfall {
                who,
                by: by * self.unit,
                of: least * self.unit,
            })
        };
        let mut all: Vec<Shortfall> = shortfalls.into_iter().filter_map(missing).collect();
        all.sort_by(|a, b| b.by.total_cmp(&a.by));
        Error::Unreachable(all)
    }

    /// The variables and the constraints that always hold; the caller adds the minimums.
    fn write(
        &self,
        problem: &Problem,
        goal: Goal,
    ) -> (microlp::Problem, Vec<Variable>, Vec<Minimum>) {
        let direction = match goal {
            Goal::Volume => OptimizationDirection::Maximize,
            Goal::Shortfalls => OptimizationDirection::Minimize,
        };
        let mut program = microlp::Problem::new(direction);
        let servers = problem.servers();
        let mut capacity = vec![Vec::new(); servers.len()];
        let mut once = vec![Vec::new(); self.classes.len()];
        let mut by_pair: HashMap<(usize, usize), Vec<(Variable, f64)>> =
            problem.links().iter().map(|link| ((link.from, link.to), Vec::new())).collect();
        let mut variables = Vec::with_capacity(self.pairs.len());
        for &(index, processor) in &self.pairs {
            let Some(class) = self.classes.get(index) else { continue };
            let worth = if goal == Goal::Volume { class.weight } else { 0.0 };
            let variable = program.add_var(worth, (0.0, self.most(class, processor, servers)));
            variables.push(variable);
            if let Some(terms) = once.get_mut(index) {
                terms.push((variable, 1.0));
            }
            let mut costs = |server: usize, cost: &dyn Fn(Costs) -> f64| {
                if let (Some(terms), Some(facts)) = (capacity.get_mut(server), servers.get(server))
                {
                    terms.push((variable, cost(facts.costs)));
                }
            };
            if class.server == processor {
                costs(processor, &|costs| costs.alpha);
            } else {
                costs(class.server, &|costs| costs.beta);
                costs(processor, &|costs| costs.alpha + costs.beta);
                if let Some(terms) = by_pair.get_mut(&(class.server, processor)) {
                    terms.push((variable, 1.0));
                }
            }
        }
        for (terms, headroom) in capacity.into_iter().zip(&self.headroom) {
            program.add_constraint(terms, ComparisonOp::Le, *headroom);
        }
        for link in problem.links() {
            let terms = by_pair.remove(&(link.from, link.to)).unwrap_or_default();
            if !terms.is_empty() {
                program.add_constraint(terms, ComparisonOp::Le, link.capacity / self.unit);
            }
        }
        let minimums = self.minimums(problem, &once);
        for (terms, class) in once.into_iter().zip(&self.classes) {
            program.add_constraint(terms, ComparisonOp::Le, class.volume / self.unit);
        }
        (program, variables, minimums)
    }

    /// The upper bound of a variable. The constraints imply this bound; stating it for the variable keeps numbers
    /// small.
    fn most(&self, class: &Class, processor: usize, servers: &[Server]) -> f64 {
        let bound = |server: usize, cost: fn(Costs) -> f64| {
            let cost = servers.get(server).map_or(1.0, |facts| cost(facts.costs));
            let headroom = self.headroom.get(server).copied().unwrap_or(0.0);
            // If the cost is 0, there is no bound.
            if cost > 0.0 { headroom / cost } else { f64::INFINITY }
        };
        let capacity = if class.server == processor {
            bound(processor, |costs| costs.alpha)
        } else {
            let sender = bound(class.server, |costs| costs.beta);
            sender.min(bound(processor, |costs| costs.alpha + costs.beta))
        };
        capacity.min(class.volume / self.unit)
    }

    fn minimums(&self, problem: &Problem, once: &[Vec<(Variable, f64)>]) -> Vec<Minimum> {
        let minimum = |who: String, share: f64, of: &dyn Fn(&Class) -> bool| {
            let classes = || self.classes.iter().zip(once).filter(|(class, _)| of(class));
            let volume: f64 = classes().map(|(class, _)| class.volume).sum();
            Minimum {
                who,
                least: share * volume / self.unit,
                terms: classes().flat_map(|(_, terms)| terms.iter().copied()).collect(),
            }
        };
        let servers = problem.servers().iter().enumerate();
        let servers = servers.filter(|(_, server)| server.minimum > 0.0).map(|(index, server)| {
            let who = format!("server {}", server.name);
            minimum(who, server.minimum, &|class| class.server == index)
        });
        let tenants = problem.tenants().iter().enumerate();
        let tenants = tenants.filter(|(_, tenant)| tenant.minimum > 0.0).map(|(index, tenant)| {
            let who = format!("tenant {}", tenant.name);
            minimum(who, tenant.minimum, &|class| class.tenant == Some(index))
        });
        servers.chain(tenants).filter(|minimum| minimum.least > 0.0).collect()
    }
}

/// The objective of the program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    /// As much sampled volume as possible.
    Volume,
    /// The smallest possible shortfall of the minimum rates.
    Shortfalls,
}

/// A minimum rate: its terms must sum to at least this value.
struct Minimum {
    who: String,
    least: f64,
    terms: Vec<(Variable, f64)>,
}

fn run(program: &microlp::Problem) -> Result<microlp::Solution, microlp::Error> {
    let mut options = SolveOptions::default();
    options.tolerances.feasibility = TOLERANCE;
    program
        .solve_with(options)?
        .into_solution()
        .map_err(|_| microlp::Error::InternalError("interrupted without a limit".to_owned()))
}
