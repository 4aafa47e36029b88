//! Measures how fast a tenant's own big network starts and moves (`weir bench provisioning`).

use super::output;
use super::values::{self, OpenFlow};
use super::work::{Work, own_serve};
use crate::exit::Exit;
use crate::out::Output;
use crate::talk;
use bench::provisioning;

/// Measure how fast a virtual network starts, and moves when a physical link fails
///
/// Emulated switches with real flow tables connect to Weir; between any two of them are two paths. One REST request
/// makes a network with a virtual switch on each switch. The network has started when all rules are in the tables and
/// acknowledged, and the tenant's controller sees all ports up. Another network has all its links over one physical
/// link, which then fails. That network has moved when the rules of the new paths are in the tables. Both are measured
/// without and with backup paths.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir bench provisioning --runs 3 --out results/
  weir bench provisioning --switches 20 --links 50 --reroute 100 --runs 1 --openflow 1.0")]
pub struct Provisioning {
    /// Physical switches, with a virtual one on each, 9 to 1000
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(9..=1000))]
    switches: u16,
    /// Virtual links of the network that is started, 1 to 2000
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..=2000))]
    links: u16,
    /// Virtual links that cross the physical link that fails, 1 to 2000
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u16).range(1..=2000))]
    reroute: u16,
    /// How often each case is measured, in turn with the others, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: u16,
    /// The longest that a start may take
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = values::seconds)]
    start_limit: u64,
    /// The longest that moving may take
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = values::seconds)]
    reroute_limit: u64,
    /// The OpenFlow version
    #[arg(long, value_name = "VERSION", default_value = "1.3")]
    openflow: OpenFlow,
    /// Seed for random choices
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: Output,
}

impl Provisioning {
    pub fn run(self) -> anyhow::Result<Exit> {
        let work = Work::new()?;
        let plan = bench::Provisioning {
            command: own_serve()?,
            switches: self.switches.into(),
            links: self.links.into(),
            reroute: self.reroute.into(),
            version: self.openflow.version(),
            runs: self.runs.into(),
            start_limit_ms: self.start_limit as f64,
            reroute_limit_ms: self.reroute_limit as f64,
            seed: self.seed,
            work_dir: work.path().to_owned(),
            stop: work.stop(),
        };
        let verdict = plan.run(&mut talk::progress)?;
        let text =
            format!("{}\n{}", provisioning::table(&verdict.results), verdict.criteria_table());
        output::give_as(&self.output, &verdict, &text, |out| {
            Ok(provisioning::write(&verdict, out)?)
        })
    }
}
