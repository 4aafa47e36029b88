//! `weir sampling`: who samples how much of whose traffic.
//!
//! One file per subcommand: [`calibrate`] (what sampling costs here), [`plan`] (an optimal plan for a traffic matrix),
//! [`simulate`] (what collaboration gains, after the 2019 paper), [`filters`] (a plan as `tc` is told it), [`sample`] (one interface, sFlow out), [`collect`]
//! (what samples say) and [`run`] (the closed loop over servers; its part on each is `weir agent`'s). [`options`], [`text`] and [`told`] are
//! what they share.

pub mod calibrate;
mod collect;
mod collector_text;
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
