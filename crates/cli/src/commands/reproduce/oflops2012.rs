//! Compares the five switches of 2012 with Open vSwitch on this machine (`weir reproduce oflops2012`).

use crate::commands::evaluate::{Effort, Target, give_with, measure};
use crate::exit::Exit;
use crate::out::Output;
use papers::oflops2012::Part;

/// OFLOPS: An Open Framework for OpenFlow Switch Evaluation (2012): table 2, figures 2 to 6
///
/// Measured on a private Open vSwitch, or on the switch that is given; published values of the paper's five switches
/// beside it where the text prints them (table 2; of the curves only what is said in words). --quick sends fewer probes
/// for less time and says so on each figure.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir reproduce oflops2012 --quick --out results/

See docs/reproduce/oflops2012.md.")]
pub struct Oflops2012 {
    /// Parts: table2, 2, 3, 4, 5, 6 [default: all]
    #[arg(value_name = "FIGURE")]
    parts: Vec<Part>,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    effort: Effort,
    #[command(flatten)]
    output: Output,
}

impl Oflops2012 {
    pub fn run(self) -> anyhow::Result<Exit> {
        if let Some(wrong) = self.target.wrong() {
            return Ok(Exit::usage(&wrong));
        }
        let (common, quick) = (self.effort.common(), self.effort.is_quick());
        let experiment = papers::oflops2012::Oflops2012 { parts: self.parts, common, quick };
        let floor = experiment.floor().unwrap_or_else(|| self.effort.floor());
        let mut evaluation = measure(
            "reproduce oflops2012",
            &self.target,
            &self.effort,
            &floor,
            &experiment.experiments(),
        )?;
        evaluation.results.settings.insert("quick".to_owned(), quick.into());
        let extras = experiment.extras(&evaluation);
        give_with(&self.output, &evaluation, extras)
    }
}
