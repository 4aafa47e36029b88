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
mod local;
mod mesh;

pub use crate::solver::Solver;

use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::problem::Problem;
use local::local;

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
