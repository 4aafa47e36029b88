//! `weir bench relay` and its like: comparisons with criteria.

use super::{Effort, Ends, Output, Work, own_serve, talk};
use crate::commands::switches::OpenVSwitches;
use crate::exit::Exit;
use bench::{RealSwitches, System, Tenancy, scenarios};
use lab::Requirements;
use std::sync::Arc;

/// A comparison that Weir has to stand: it starts its systems, measures them in turn, and says which criterion was met
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir bench relay --quick --out results/
  weir bench isolation-switch --runs 3 --duration 10
  weir bench isolation-flood --switch openvswitch --quick

The criteria are in docs/bench.md.")]
pub struct Scenario {
    #[command(flatten)]
    effort: Effort,
    #[command(flatten)]
    ends: Ends,
    /// The switch: emulated, or a real Open vSwitch in a lab that is made for the run (needs root)
    #[arg(long, value_name = "SWITCH", default_value = "emulated")]
    switch: Switch,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Switch {
    Emulated,
    Openvswitch,
}

impl Scenario {
    pub fn run(self, scenario: scenarios::Scenario) -> anyhow::Result<Exit> {
        let switches = self.switches(scenario)?;
        let also = switches.clone();
        let work = Work::beside(move || also.iter().for_each(OpenVSwitches::down))?;
        let subject = System::Weir {
            command: own_serve()?,
            extra: String::new(),
            tenancy: Tenancy::default(),
        };
        let mut options = work.options(&self.effort, &self.ends, subject);
        options.switches =
            switches.clone().map(|switches| Arc::new(switches) as Arc<dyn RealSwitches>);
        let verdict = scenarios::run(scenario, &options, &mut talk);
        switches.iter().for_each(OpenVSwitches::down);
        self.output.give(&verdict?)
    }

    fn switches(&self, scenario: scenarios::Scenario) -> anyhow::Result<Option<OpenVSwitches>> {
        if self.switch == Switch::Emulated {
            return Ok(None);
        }
        anyhow::ensure!(
            scenario.runs_on_real_switches(),
            "{} needs an emulated switch: leave out --switch",
            scenario.name()
        );
        Requirements { switches: true, rates: false }.require()?;
        OpenVSwitches::new(self.ends.openflow.version()).map(Some)
    }
}
