//! Measures the costs of sampling and the gain of collaboration (`weir reproduce elbouanani2019`).

use super::output;
use crate::commands::sampling::calibrate::Effort;
use crate::exit::Exit;
use crate::out::Output;
use crate::signals;
use papers::elbouanani2019::{Figure, HEADER};

/// Collaborative Traffic Measurement in Virtualized Data Center Networks (2019): costs and gain
///
/// Figures 2a and 2b with the fit and the table of α and β are measured through a real Open vSwitch (root and iperf3
/// are needed); figure 3 is simulated, as in the paper; then three servers with bounded CPU shares sample on their own
/// and together, which the paper left as future work. A full run takes half an hour.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir reproduce elbouanani2019 --quick --out results/
  weir reproduce elbouanani2019 3

See docs/reproduce/elbouanani2019.md.")]
pub struct Elbouanani2019 {
    /// Figures: 2 for 2a and 2b with the table of costs, 3, servers for what the paper left as future work [default:
    /// all]
    #[arg(value_name = "FIGURE")]
    figures: Vec<Figure>,
    #[command(flatten)]
    effort: Effort,
    #[command(flatten)]
    output: Output,
}

impl Elbouanani2019 {
    pub fn run(self) -> anyhow::Result<Exit> {
        let (figures, calibration) = (self.figures, self.effort.settings(HEADER));
        let experiment = papers::elbouanani2019::Elbouanani2019 { figures, calibration };
        output::give(&self.output, &experiment.run(&signals::interrupt()?)?)
    }
}
