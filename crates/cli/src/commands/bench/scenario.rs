//! Runs the comparisons with criteria, such as `weir bench relay`.

use super::comparing::Comparing;
use super::output;
use super::values;
use super::work::own_serve;
use crate::exit::Exit;
use crate::out::Output;
use crate::talk;
use bench::{System, Tenancy, scenarios};

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
    comparing: Comparing,
    /// Further systems, where a comparison measures several on a real switch: NAME=IP:PORT[+CONTROLLERBASE][/PID or
    /// /cgroup:FOLDER]
    #[arg(long = "system", value_name = "SYSTEMS", value_delimiter = ',', value_parser = values::running)]
    systems: Vec<System>,
    #[command(flatten)]
    output: Output,
}

impl Scenario {
    pub fn run(self, scenario: scenarios::Scenario) -> anyhow::Result<Exit> {
        if let Some(wrong) = self.wrong(scenario) {
            return Ok(Exit::usage(&wrong));
        }
        let subject = System::Weir {
            command: own_serve()?,
            extra: String::new(),
            tenancy: Tenancy::default(),
        };
        let others = self.systems;
        let verdict = self.comparing.run(subject, |options| {
            options.others = others;
            scenarios::run(scenario, options, &mut talk::progress)
        })?;
        output::give(&self.output, &verdict)
    }

    fn wrong(&self, scenario: scenarios::Scenario) -> Option<String> {
        let name = scenario.name();
        if self.comparing.switch.is_real() && !scenario.runs_on_real_switches() {
            return Some(format!("{name} needs an emulated switch: leave out --switch"));
        }
        if !self.systems.is_empty() && !scenario.takes_others(self.comparing.switch.is_real()) {
            return Some(format!("{name} measures no further systems here: leave out --system"));
        }
        self.comparing.switch.wrong()
    }
}
