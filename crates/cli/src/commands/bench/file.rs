//! Runs a load that changes during the run, from a file (`weir bench scenario`).

use super::options::Times;
use super::output;
use super::switch::Switch;
use super::values;
use super::work::own_serve;
use crate::exit::Exit;
use crate::out::Output;
use crate::talk;
use anyhow::Context;
use bench::{Comparison, Control, Options, Plan, System, Topology};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use values::Wanted;

/// Run a scenario file: tenants that connect and disconnect, rates and message mixes that change during a run
///
/// The file is TOML: [setup] has the connections, [load] the duration, and each [[load.streams]] one arrival process of
/// a tenant, with its messages, its rate, its start and its end.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir bench scenario neighbour.toml --system direct,weir --runs 3 --out results/

  # neighbour.toml: tenant 0 is measured; tenant 1 comes after a second and sends faster after two
  setup.tenants = 2
  load.duration_ms = 3000
  [[load.streams]]
  tenant = 0
  mix = [[\"packet-out\", 3], [\"echo\", 1]]
  arrivals.poisson.rate = 1000
  [[load.streams]]
  tenant = 1
  mix = [[\"packet-out\", 1]]
  arrivals.steps.steps = [[0, 1000], [1, 20000]]
  start_ms = 1000
  subject = false

See docs/bench.md.")]
pub struct ScenarioFile {
    /// The scenario file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Systems under test, one after the other: direct, weir, weir-networks, haproxy, or
    /// NAME=IP:PORT[+CONTROLLERBASE][/PID or /cgroup:FOLDER]
    #[arg(long = "system", value_name = "SYSTEMS", value_delimiter = ',', default_value = "direct,weir", value_parser = values::system)]
    systems: Vec<Wanted>,
    /// Accept changes of a run by HTTP at this loopback address; see docs/bench.md
    #[arg(long, value_name = "127.0.0.1:PORT")]
    control: Option<SocketAddr>,
    #[command(flatten)]
    times: Times,
    #[command(flatten)]
    switch: Switch,
    #[command(flatten)]
    output: Output,
}

impl ScenarioFile {
    pub fn run(self) -> anyhow::Result<Exit> {
        let shown = self.file.display();
        let text = match fs::read_to_string(&self.file) {
            Ok(text) => text,
            Err(error) => return Ok(Exit::usage(&format_args!("{shown}: {error}"))),
        };
        let mut plan: Plan = match toml::from_str(&text) {
            Ok(plan) => plan,
            Err(error) => return Ok(Exit::usage(&format_args!("{shown}: {error}"))),
        };
        if plan.setup.topology != Topology::Direct {
            return Ok(Exit::usage(&format_args!(
                "{shown}: setup.topology is given by --system; leave it out"
            )));
        }
        let folder = self.file.parent().unwrap_or(Path::new("."));
        if let Err(error) = plan.load.read_traces(folder) {
            return Ok(Exit::usage(&format_args!("{shown}: {error}")));
        }
        let mut options = Options::new(System::Direct, PathBuf::new());
        (options.duration_ms, options.cut_ms) = (plan.load.duration_ms, plan.load.cut_ms);
        options.seed = plan.load.seed;
        self.times.apply(&mut options);
        (plan.load.duration_ms, plan.load.cut_ms) = (options.duration_ms, options.cut_ms);
        if let Some(wrong) = self.switch.wrong() {
            return Ok(Exit::usage(&wrong));
        }
        let (taken, work) = self.switch.take(plan.setup.version)?;
        options.switches = taken.0.clone();
        options.work_dir = work.path().to_owned();
        options.stop = work.stop();
        options.setup = plan.setup.clone();
        options.control = match self.control.map(Control::bind).transpose() {
            Ok(control) => control.map(Arc::new),
            Err(error @ bench::Error::Setting { .. }) => return Ok(Exit::usage(&error)),
            Err(error) => return Err(error.into()),
        };
        if let Some(control) = &options.control {
            talk::progress(&format!("changes: http://{}/streams", control.address()));
        }
        let serve = own_serve()?;
        let systems: Vec<System> =
            self.systems.into_iter().map(|wanted| wanted.system(&serve)).collect();
        let comparison = Comparison::of_plan(&plan, &systems).with_context(|| shown.to_string())?;
        let comparison = Comparison { tool: "bench scenario".to_owned(), ..comparison };
        let verdict = comparison.run(&options, &mut talk::progress);
        drop(taken);
        output::give(&self.output, &verdict?)
    }
}
