//! Plans and runs the sampling of tenants' traffic across servers (`weir sampling`).
//!
//! Each subcommand has one file: [`calibrate`] (the costs of sampling on this machine), [`plan`] (an optimal plan for a
//! traffic matrix), [`simulate`] (the gain of collaboration, after the 2019 paper), [`filters`] (the `tc` commands of a
//! plan), [`sample`] (sFlow samples of one interface), [`collect`] (estimates from samples) and [`run`] (the closed
//! loop over servers; `weir agent` is the part on each server). Code that the subcommands share: [`options`], [`text`]
//! and [`collector_output`].

pub mod calibrate;
mod collect;
mod collector_output;
mod filters;
mod options;
mod plan;
mod run;
pub mod sample;
mod simulate;
mod text;
mod traffic;

use crate::exit::Exit;
use sampling::Error;

/// Plan traffic sampling across servers so that most is seen and no user traffic suffers
///
/// Servers that have capacity to spare process samples of those that have none. The model is that of "Collaborative
/// Traffic Measurement in Virtualized Data Center Networks" (2019). stdout is the result, stderr the progress.
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
            // The input is valid. The result is that the problem has no solution.
            Some(finding @ (Error::Overloaded(_) | Error::Unreachable(_))) => {
                Ok(Exit::finding(finding))
            }
            _ => Err(error),
        })
    }
}
