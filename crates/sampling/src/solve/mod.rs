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
//! The first three find the same optimum; `docs/sampling.md` has the proof, `tests/optimum.rs` the test.

mod linear;
mod local;
mod mesh;

pub use crate::solver::Solver;

use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::problem::Problem;
use local::local;

/// Finds a plan, which is optimal except with [`Solver::Local`].
///
/// # Errors
/// [`Error::Unsupported`] if the solver does not support a feature of the problem; [`Error::Unreachable`] if minimum
/// rates cannot be met; [`Error::Solver`] if the solver fails numerically.
pub fn solve(problem: &Problem, solver: Solver) -> Result<Plan> {
    if solver != Solver::Linear
        && let Some(what) = problem.extension()
    {
        return Err(Error::Unsupported { solver: solver.name(), what });
    }
    let flows = match solver {
        Solver::Linear => linear::every_pair(problem)?,
        Solver::Reduced => linear::reduced(problem)?,
        Solver::Combinatorial => mesh::solve(problem),
        Solver::Local => local(problem),
    };
    Ok(Plan { solver, flows })
}
