//! The ways to find a plan, by name.

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
    /// Every server samples as much of its own traffic as it can.
    Local,
}

impl Solver {
    /// The solver's name on the command line and in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Solver::Linear => "linear",
            Solver::Reduced => "reduced",
            Solver::Combinatorial => "combinatorial",
            Solver::Local => "local",
        }
    }

    /// The fastest solver that is exact for this problem.
    #[must_use]
    pub fn best_for(problem: &Problem) -> Solver {
        if problem.extension().is_some() { Solver::Linear } else { Solver::Combinatorial }
    }
}
