//! Options that several subcommands have.

use sampling::{Costs, Error, Problem, Solver};

/// α and β where nothing else says them.
#[derive(clap::Args)]
pub struct CostOptions {
    /// Cost of sampling a packet locally, in units of the cost of forwarding [default: 1.54, as published]
    #[arg(long, value_name = "COST")]
    alpha: Option<f64>,
    /// Cost of mirroring a packet, and of receiving a mirrored packet [default: 0.46, as published]
    #[arg(long, value_name = "COST")]
    beta: Option<f64>,
}

impl CostOptions {
    pub fn costs(&self) -> Result<Costs, Error> {
        let published = Costs::PUBLISHED;
        Costs::new(self.alpha.unwrap_or(published.alpha), self.beta.unwrap_or(published.beta))
    }
}

/// A way to solve, or the best one for the problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SolverOption {
    /// The fastest exact solver for the problem
    Auto,
    /// The linear program as printed in the paper, with every extension
    Linear,
    /// The linear program after the paper's reduction
    Reduced,
    /// Sort the servers and fill them in that order, for a full mesh
    Combinatorial,
    /// No collaboration
    Local,
}

impl SolverOption {
    pub fn solver(self, problem: &Problem) -> Solver {
        match self {
            SolverOption::Auto => Solver::best_for(problem),
            SolverOption::Linear => Solver::Linear,
            SolverOption::Reduced => Solver::Reduced,
            SolverOption::Combinatorial => Solver::Combinatorial,
            SolverOption::Local => Solver::Local,
        }
    }
}
