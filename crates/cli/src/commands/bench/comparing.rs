//! Options and prelude of the comparisons: how much, between which ends, on which switch.

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
    /// Whether it is for a look only.
    pub fn is_quick(&self) -> bool {
        self.effort.quick
    }

    /// Takes the switches, compares, and gives the switches back, also where it fails.
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
