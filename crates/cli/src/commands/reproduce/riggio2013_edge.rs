//! Measures the bandwidth of each tenant, with and without labels and shapers (`weir reproduce riggio2013-edge`).

use super::output;
use crate::exit::Exit;
use crate::out::Output;
use crate::signals;
use crate::talk;

/// The example of section II of The Price of Virtualization (2013): who gets what, with and without labels and shapers
///
/// Then what a burst of UDP at ten times its share takes from a neighbour's TCP, tenth of a second by tenth, without
/// and with shapers. Needs root and Open vSwitch.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir reproduce riggio2013-edge --out results/

See docs/agent.md.")]
pub struct Riggio2013Edge {
    /// How long to measure each of the four cases, 1 to 600
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Bursts of UDP, without and with shapers each, and as many times without any, 1 to 100
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    bursts: u32,
    #[command(flatten)]
    output: Output,
}

impl Riggio2013Edge {
    pub fn run(self) -> anyhow::Result<Exit> {
        let (seconds, bursts) = (self.seconds, self.bursts);
        let experiment = papers::riggio2013_edge::Riggio2013Edge { seconds, bursts };
        output::give(&self.output, &experiment.run(&signals::interrupt()?, &mut talk::progress)?)
    }
}
