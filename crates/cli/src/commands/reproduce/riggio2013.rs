//! Measures the throughput that tenants lose without knowledge of the load of other tenants, and the gain by labels
//! (`weir reproduce riggio2013`).

use super::output;
use crate::exit::Exit;
use crate::out::Output;
use crate::signals;
use crate::talk;
use papers::riggio2013::Form;

/// The Price of Virtualization (2013): throughput of two tenants with and without link labels
///
/// On the paper's network of 10 Mbit/s links red sends from A to B, then blue from E to F, then from C to D, each as
/// much as TCP gets of the 8, 10 and 2 Mbit/s that its host bought. Each tenant's controller chooses among two paths:
/// by the labels that Weir sends, at random, or, as the worst case, always the first. Needs root, Open vSwitch, iperf3
/// and os-ken. A full run takes an hour and three quarters, or, --side-by-side, a good half hour.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir reproduce riggio2013 --quick --out results/

See docs/reproduce/riggio2013.md.")]
pub struct Riggio2013 {
    /// Two runs of each kind, flows 12 s apart instead of 60
    #[arg(long)]
    quick: bool,
    /// Runs of each kind [default: 10, 2 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: Option<u32>,
    /// Seconds between the flows' starts, an even number, 6 to 600 [default: 60, 12 with --quick]
    #[arg(long, value_name = "SECONDS", value_parser = gap)]
    gap: Option<u32>,
    /// How labels are sent
    #[arg(long, value_name = "VERSION", default_value = "1.3")]
    openflow: LabelVersion,
    /// Run the three kinds at the same time, in labs of their own; watch the idle CPU that is printed
    #[arg(long)]
    side_by_side: bool,
    /// Leave out the shapers: flows share links as TCP does
    #[arg(long)]
    no_shapers: bool,
    #[command(flatten)]
    output: Output,
}

/// The OpenFlow version whose messages carry the labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum LabelVersion {
    /// OpenFlow 1.0 with the paper's field
    #[value(name = "1.0")]
    V1_0,
    /// OpenFlow 1.3, as the ports' speed
    #[value(name = "1.3")]
    V1_3,
}

impl Riggio2013 {
    pub fn run(self) -> anyhow::Result<Exit> {
        let (runs, gap) = if self.quick { (2, 12) } else { (10, 60) };
        let experiment = papers::riggio2013::Riggio2013 {
            quick: self.quick,
            runs: self.runs.unwrap_or(runs),
            gap: self.gap.unwrap_or(gap),
            openflow: match self.openflow {
                LabelVersion::V1_0 => Form::V1_0,
                LabelVersion::V1_3 => Form::V1_3,
            },
            side_by_side: self.side_by_side,
            shapers: !self.no_shapers,
        };
        output::give(&self.output, &experiment.run(&signals::interrupt()?, &talk::progress)?)
    }
}

fn gap(text: &str) -> Result<u32, String> {
    let number: Option<u32> = text.parse().ok();
    // The number is even so that samples begin with the flows.
    let fits = |seconds: &u32| (6..=600).contains(seconds) && seconds.is_multiple_of(2);
    number.filter(fits).ok_or_else(|| "not an even number within 6 to 600".to_owned())
}
