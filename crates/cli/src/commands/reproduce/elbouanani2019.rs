//! `weir reproduce elbouanani2019`: what sampling costs, and what collaboration gains.

mod collaboration;

use crate::commands::sampling::calibrate::Effort;
use crate::commands::sampling::simulate::{SERVERS, simulate};
use crate::exit::Exit;
use crate::signals;
use lab::Interrupted;
use report::results::Extras;
use report::{Environment, Results};
use sampling::Costs;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Bytes of each sample: as many as there can be. In the paper's switch samples go to the program whole.
const HEADER: u32 = agent::ovsdb::LARGEST_HEADER;

/// Collaborative Traffic Measurement in Virtualized Data Center Networks (2019): costs and gain
///
/// Figures 2a and 2b with the fit and the table of α and β are measured through a real Open vSwitch (root and iperf3 are
/// needed); figure 3 is simulated, as in the paper; then three servers with bounded CPU shares sample on their own and together,
/// which the paper left as future work. A full run takes half an hour.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir reproduce elbouanani2019 --quick --out results/
  weir reproduce elbouanani2019 3

See docs/reproduce/elbouanani2019.md.")]
pub struct Elbouanani2019 {
    /// Figures: 2 for 2a and 2b with the table of costs, 3, servers for what the paper left as future work [default: all]
    #[arg(value_name = "FIGURE")]
    figures: Vec<Figure>,
    #[command(flatten)]
    effort: Effort,
    /// Write result.json, CSV, report.html and figures/ here
    #[arg(long, value_name = "DIR", value_parser = crate::out::folder)]
    out: Option<PathBuf>,
    /// Print result.json instead of tables
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Figure {
    #[value(name = "2")]
    Costs,
    #[value(name = "3")]
    Gain,
    /// What the paper left as future work
    #[value(name = "servers")]
    Servers,
}

impl Elbouanani2019 {
    pub fn run(self) -> anyhow::Result<Exit> {
        let wants = |figure| self.figures.is_empty() || self.figures.contains(&figure);
        let mut results = Results::new("reproduce elbouanani2019", 0, Environment::capture(&[]));
        let mut extras = Extras::default();
        let mut remarks = String::new();
        let (costs, gain) = (wants(Figure::Costs), wants(Figure::Gain));
        // First, since a calibration keeps this process to one CPU from then on.
        let measured = if wants(Figure::Servers) {
            let interrupt = signals::interrupt()?;
            let (repetitions, seconds) = if self.effort.is_quick() { (1, 8) } else { (5, 15) };
            Some(collaboration::measure(repetitions, seconds, &interrupt)?)
        } else {
            None
        };
        let mut partial = measured.as_ref().and_then(collaboration::Collaboration::partial);
        if costs && partial.is_none() {
            match self.effort.settings(HEADER).calibrate(&signals::interrupt()?) {
                // What servers were measured to do is there.
                Err(error) if error.is::<Interrupted>() && measured.is_some() => {
                    partial = Some("interrupted before costs were measured".to_owned());
                }
                calibration => {
                    let calibration = calibration?;
                    let Extras { figures, tables } = calibration.extras();
                    extras.figures.extend(figures);
                    extras.tables.extend(tables);
                    remarks = calibration.remarks();
                    results = Results { tool: results.tool, ..calibration.results };
                }
            }
        }
        partial.inspect(|text| results.mark_partial(text));
        if let Some(measured) = measured {
            results.points.extend(measured.points());
            let heading = "Servers on their own and together".to_owned();
            extras.tables.push((heading, measured.table()));
            remarks += &measured.remarks();
        }
        if gain {
            let simulated = simulate(&SERVERS, 50, Costs::PUBLISHED)?;
            results.points.extend(simulated.results.points.iter().cloned());
            let Extras { figures, tables } = simulated.extras();
            extras.figures.extend(figures);
            extras.tables.extend(tables);
        }
        let mut stdout = std::io::stdout().lock();
        if self.json {
            write!(stdout, "{}", results.to_json())?;
        } else {
            for (heading, table) in &extras.tables {
                writeln!(stdout, "{heading}\n{table}")?;
            }
            write!(stdout, "{remarks}")?;
        }
        if let Some(out) = &self.out {
            results.write_with(out, &[], Duration::ZERO, &extras)?;
            writeln!(std::io::stderr(), "results: {}", out.join("report.html").display())?;
        }
        Ok(Exit::of_results(&results))
    }
}
