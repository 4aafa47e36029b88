//! Options and preparation of the comparisons: the number and duration of runs, the two ends, and the switch.

use super::options::{Effort, Ends};
use super::switch::Switch;
use bench::{Options, System, Verdict};

/// How a comparison is made.
#[derive(clap::Args)]
pub struct Comparing {
    #[command(flatten)]
    effort: Effort,
    #[command(flatten)]
    ends: Ends,
    #[command(flatten)]
    pub switch: Switch,
}

impl Comparing {
    /// Whether the comparison is only a quick look.
    pub fn is_quick(&self) -> bool {
        self.effort.quick
    }

    /// Takes the switches, compares, and gives the switches back, also after an error.
    pub fn run(
        &self,
        subject: System,
        compare: impl FnOnce(&mut Options) -> Result<Verdict, bench::Error>,
    ) -> anyhow::Result<Verdict> {
        let (taken, work) = self.switch.take(self.ends.version())?;
        let mut options = self.effort.options(&work, &self.ends, subject);
        options.switches = taken.0.clone();
        let verdict = compare(&mut options);
        drop(taken);
        Ok(verdict?)
    }
}
