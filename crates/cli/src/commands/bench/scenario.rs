//! `weir bench relay` and its like: comparisons with criteria.

use super::{Effort, Ends, Output, Work, own_serve, talk};
use crate::exit::Exit;
use bench::{System, Tenancy, scenarios};

/// A comparison that Weir has to stand: it starts its systems, measures them in turn, and says which criterion was met
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir bench relay --quick --out results/
  weir bench isolation-switch --runs 3 --duration 10

The criteria are in docs/bench.md.")]
pub struct Scenario {
    #[command(flatten)]
    effort: Effort,
    #[command(flatten)]
    ends: Ends,
    #[command(flatten)]
    output: Output,
}

impl Scenario {
    pub fn run(self, scenario: scenarios::Scenario) -> anyhow::Result<Exit> {
        let work = Work::new()?;
        let subject = System::Weir {
            command: own_serve()?,
            extra: String::new(),
            tenancy: Tenancy::default(),
        };
        let options = work.options(&self.effort, &self.ends, subject);
        let verdict = scenarios::run(scenario, &options, &mut talk)?;
        self.output.give(&verdict)
    }
}
