//! The solvers, behind one function.
//!
//! ```text
//!   linear         every pair of servers is a variable; knows all extensions
//!   reduced        the paper's rule, put right: only pairs from a server that cannot sample all its own traffic to
//!                  one that can are variables
//!   combinatorial  no linear program: sort and fill, O(n log n)
//!   local          no collaboration: what the paper compares with
//! ```
//!
//! The first three find the same optimum; `docs/sampling.md` proves it, `tests/optimum.rs` tries it.

mod linear;
mod mesh;

use crate::error::{Error, Result};
use crate::plan::{Flow, Plan};
use crate::problem::Problem;
use serde::Serialize;

/// A way to find a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Solver {
    /// The linear program as printed (section IV-A), with every extension.
    Linear,
    /// The linear program after the reduction (section IV-B).
    Reduced,
    /// Sort and fill: exact for the paper's full mesh.
    Combinatorial,
    /// Every server samples what it can of its own traffic.
    Local,
}

impl Solver {
    /// The name by which it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Solver::Linear => "linear",
            Solver::Reduced => "reduced",
            Solver::Combinatorial => "combinatorial",
            Solver::Local => "local",
        }
    }

    /// The fastest that is exact for this problem.
    #[must_use]
    pub fn best_for(problem: &Problem) -> Solver {
        if problem.extension().is_some() { Solver::Linear } else { Solver::Combinatorial }
    }
}

/// Finds a plan: an optimal one, except with [`Solver::Local`].
///
/// # Errors
/// [`Error::Unsupported`] when the solver does not know what the problem contains; [`Error::Unreachable`] when minimum
/// rates cannot be met; [`Error::Solver`] when the linear program defeats the solver's arithmetic.
pub fn solve(problem: &Problem, solver: Solver) -> Result<Plan> {
    let full_mesh = |name| match problem.extension() {
        Some(what) => Err(Error::Unsupported { solver: name, what }),
        None => Ok(()),
    };
    let flows = match solver {
        Solver::Linear => linear::every_pair(problem)?,
        Solver::Reduced => {
            full_mesh("reduced")?;
            linear::reduced(problem)?
        }
        Solver::Combinatorial => {
            full_mesh("combinatorial")?;
            mesh::solve(problem)
        }
        Solver::Local => {
            full_mesh("local")?;
            local(problem)
        }
    };
    Ok(Plan { solver, flows })
}

/// Each server samples its own traffic in the limit of its own capacity.
fn local(problem: &Problem) -> Vec<Flow> {
    let servers = problem.servers().iter().zip(problem.own()).zip(problem.headroom());
    let flow = |(origin, ((server, own), headroom)): (usize, ((&crate::Server, &f64), f64))| {
        let volume = own.min(headroom / server.costs.alpha);
        flow(origin, origin, volume, *own)
    };
    servers.enumerate().filter_map(flow).collect()
}

/// A flow of a server's whole traffic; `None` of nothing.
fn flow(origin: usize, processor: usize, volume: f64, own: f64) -> Option<Flow> {
    let rate = (volume / own).min(1.0);
    (volume > 0.0).then_some(Flow { origin, processor, tenant: None, volume, rate })
}
