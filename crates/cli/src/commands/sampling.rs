//! `weir sampling`: who samples how much of whose traffic.
//!
//! One file per subcommand: [`calibrate`] (what sampling costs here), [`plan`] (an optimal plan for a traffic matrix),
//! [`simulate`] (what collaboration gains, after the 2019 paper), [`filters`] (a plan as `tc` is told it), [`sample`] (one interface, sFlow out), [`collect`]
//! (what samples say) and [`run`] (the closed loop over servers; its part on each is [`weir agent`](super::agent)'s). Here is
//! what they share.

pub mod calibrate;
mod collect;
mod filters;
mod plan;
mod run;
pub mod sample;
pub mod simulate;
mod traffic;

use crate::exit::Exit;
use anyhow::Context;
use sampling::{Costs, Error, Problem, Solver};
use std::path::{Path, PathBuf};

/// Plan traffic sampling across servers so that most is seen and no user traffic suffers
///
/// Servers that have capacity to spare process samples of those that have none. The model is that of "Collaborative
/// Traffic Measurement in Virtualized Data Center Networks" (2019). stdout is the result, stderr the talk.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir sampling plan problem.json
  weir sampling plan --servers servers.csv --traffic matrix.csv --alpha 1.54 --beta 0.46
  weir sampling simulate --out results/

See docs/sampling.md.")]
pub struct Sampling {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Calibrate(calibrate::Calibrate),
    Plan(plan::Plan),
    Filters(filters::Filters),
    Sample(sample::Sample),
    Collect(collect::Collect),
    Run(run::Run),
    #[command(hide = true)]
    Traffic(traffic::Traffic),
    Simulate(simulate::Simulate),
}

impl Sampling {
    pub fn run(self) -> anyhow::Result<Exit> {
        let result = match self.command {
            Command::Calibrate(calibrate) => calibrate.run(),
            Command::Plan(plan) => plan.run(),
            Command::Filters(filters) => filters.run(),
            Command::Sample(sample) => sample.run(),
            Command::Collect(collect) => collect.run(),
            Command::Run(run) => run.run(),
            Command::Traffic(traffic) => traffic.run(),
            Command::Simulate(simulate) => simulate.run(),
        };
        result.or_else(|error| match error.downcast_ref::<Error>() {
            // The input is understood; that it has no answer is the answer.
            Some(finding @ (Error::Overloaded(_) | Error::Unreachable(_))) => {
                Ok(Exit::finding(finding))
            }
            _ => Err(error),
        })
    }
}

/// What becomes of the result.
#[derive(clap::Args)]
struct Output {
    /// Write the result's files here
    #[arg(long, value_name = "DIR", value_parser = crate::out::folder)]
    out: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

/// α and β where nothing else says them.
#[derive(clap::Args)]
struct CostOptions {
    /// What sampling a packet locally costs, in units of forwarding it [default: 1.54, as published]
    #[arg(long, value_name = "COST")]
    alpha: Option<f64>,
    /// What mirroring a packet costs, and receiving one [default: 0.46, as published]
    #[arg(long, value_name = "COST")]
    beta: Option<f64>,
}

impl CostOptions {
    fn costs(&self) -> Result<Costs, Error> {
        let published = Costs::PUBLISHED;
        Costs::new(self.alpha.unwrap_or(published.alpha), self.beta.unwrap_or(published.beta))
    }
}

/// A way to solve, or the best one for the problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum SolverOption {
    /// The fastest that is exact for the problem
    Auto,
    /// The linear program as printed in the paper, with every extension
    Linear,
    /// The linear program after the paper's reduction
    Reduced,
    /// Sort and fill, for the full mesh
    Combinatorial,
    /// No collaboration
    Local,
}

impl SolverOption {
    fn solver(self, problem: &Problem) -> Solver {
        match self {
            SolverOption::Auto => Solver::best_for(problem),
            SolverOption::Linear => Solver::Linear,
            SolverOption::Reduced => Solver::Reduced,
            SolverOption::Combinatorial => Solver::Combinatorial,
            SolverOption::Local => Solver::Local,
        }
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// `12.3 %`.
fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
