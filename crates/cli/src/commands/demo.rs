//! Shows the main job of Weir, end to end, in about a minute (`weir demo`).

use crate::exit::Exit;
use crate::signals;
use lab::Interrupted;
use openflow::Version;
use std::path::PathBuf;

/// Show in a minute that tenants cannot touch, see or slow each other
///
/// Two tenants with two hosts each on a private Open vSwitch, each with its own controller, and `weir serve` between:
/// who reaches whom, what a tenant may not do, and what Weir costs in latency. Without root or Open vSwitch, the same
/// on an emulated switch. It leaves nothing behind but the results. Exit status 0: every check passed; 1: a check
/// failed.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir demo
  weir demo --quick --protocols 1.3 --out /tmp/demo

See docs/demo.md.")]
pub struct Demo {
    /// The folder for the results: the page report.html, its data, and this output
    #[arg(long, value_name = "DIR", default_value = "weir-demo", value_parser = crate::out::folder)]
    out: PathBuf,
    /// Also keep the configuration files and logs, in DIR/work
    #[arg(long)]
    keep: bool,
    /// Measure for a few seconds only
    #[arg(long)]
    quick: bool,
    /// The OpenFlow version that the switch speaks
    #[arg(long, value_name = "VERSION", default_value = "1.0")]
    protocols: Protocol,
    /// Emulate the switch even where Open vSwitch could be used
    #[arg(long)]
    emulated: bool,
}

/// A version of OpenFlow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Protocol {
    /// OpenFlow 1.0
    #[value(name = "1.0", alias = "OpenFlow10")]
    V1_0,
    /// OpenFlow 1.3
    #[value(name = "1.3", alias = "OpenFlow13")]
    V1_3,
}

impl Demo {
    pub fn run(self) -> anyhow::Result<Exit> {
        let interrupt = signals::interrupt()?;
        let settings = demo::Settings {
            out: self.out,
            keep: self.keep,
            quick: self.quick,
            version: match self.protocols {
                Protocol::V1_0 => Version::V1_0,
                Protocol::V1_3 => Version::V1_3,
            },
            emulated: self.emulated,
        };
        match demo::run(&settings, &interrupt) {
            Ok(0) => Ok(Exit::Success),
            Ok(_) => Ok(Exit::Finding),
            // An error after an interrupt is no failure.
            Err(_) if interrupt.is_asked() => Err(Interrupted.into()),
            Err(error) => Err(error),
        }
    }
}
