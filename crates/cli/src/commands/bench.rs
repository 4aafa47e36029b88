//! Measures load and latency of a hypervisor, switch or controller, seen from outside (`weir bench`).
//!
//! Each family of subcommands has one file: [`scenario`] (the comparisons with criteria for Weir), [`run`] (any
//! combination of systems and loads), [`file`] (a load that changes during a run), [`search`] (the highest rate),
//! [`provisioning`] (how fast tenants' networks start and move) and [`controller`] (a real controller). Code that the
//! subcommands share: [`options`], [`output`] and [`work`].

mod comparing;
mod controller;
mod file;
mod hostile;
mod options;
mod output;
mod provisioning;
mod run;
mod scenario;
mod search;
mod switch;
pub mod values;
mod work;

pub use options::Times;
pub use output::give_as;
pub use work::{Work, own_serve};

use crate::exit::Exit;

/// Measure load and latency of a hypervisor, a switch or a controller, from outside
///
/// Emulated switches on one side and emulated controllers on the other send tagged messages on a fixed schedule around
/// the system under test; each message is accounted for. Latency counts from when a message was meant to leave. stdout
/// is the result, stderr the progress. Exit status 0: all criteria are met, and there is no finding; 1: there are
/// findings; 4: a criterion is undecided, since the generator was late; 130: Ctrl-C ended the benchmark, and the result
/// has the measurements until then.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir bench relay --quick --out results/
  weir bench run --message packet-in --rate 10000,40000 --tenants 1,20 --system direct,weir
  weir bench controller tcp:127.0.0.1:6653 --test latency

See docs/bench.md.")]
pub struct Bench {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// PACKET_IN at 40,000/s through HAProxy and through Weir, 1 and 20 tenants
    Relay(scenario::Scenario),
    /// As many PACKET_INs per second as Weir takes
    Saturation(scenario::Scenario),
    /// 1 to 1,000 tenants at a constant total rate
    Tenants(scenario::Scenario),
    /// A switch that handles 8,000 messages/s, and a neighbour who sends 16,000/s
    IsolationSwitch(scenario::Scenario),
    /// Such a switch whose host stalls, whose answers are late, which is far away, changes its speed, or answers
    /// barriers early
    IsolationDelays(scenario::Scenario),
    /// A neighbour who floods 400,000 PACKET_OUTs/s
    IsolationFlood(scenario::Scenario),
    /// Resident memory with 20 tenants and 10,000 rules
    Memory(scenario::Scenario),
    /// Tenants' own networks beside slices: PACKET_IN at 40,000/s, and as much as passes
    Networks(scenario::Scenario),
    /// What following 10,000 flows and sending labels to tenants costs, with rules that stand and that change
    Labels(scenario::Scenario),
    /// What 50 viewers of the page of Weir cost, and checks of 250 tokens per second, with 100 switches and 20 tenants
    Page(scenario::Scenario),
    /// CPU time per message at 10,000 to 60,000/s and at saturation, beside a relay, and messages of Weir's own
    Work(scenario::Scenario),
    /// The generator itself: as much as passes, 1,000 connections, and how evenly it sends
    Generator(scenario::Scenario),
    Hostile(hostile::HostileCommand),
    Run(run::Run),
    Scenario(file::ScenarioFile),
    Search(search::SearchCommand),
    Provisioning(provisioning::Provisioning),
    Controller(Box<controller::Controller>),
}

impl Bench {
    pub fn run(self) -> anyhow::Result<Exit> {
        use bench::scenarios::Scenario;
        match self.command {
            Command::Relay(it) => it.run(Scenario::Relay),
            Command::Saturation(it) => it.run(Scenario::Saturation),
            Command::Tenants(it) => it.run(Scenario::Tenants),
            Command::IsolationSwitch(it) => it.run(Scenario::IsolationSwitch),
            Command::IsolationDelays(it) => it.run(Scenario::IsolationDelays),
            Command::IsolationFlood(it) => it.run(Scenario::IsolationFlood),
            Command::Memory(it) => it.run(Scenario::Memory),
            Command::Networks(it) => it.run(Scenario::Networks),
            Command::Labels(it) => it.run(Scenario::Labels),
            Command::Page(it) => it.run(Scenario::Page),
            Command::Work(it) => it.run(Scenario::Work),
            Command::Generator(it) => it.run(Scenario::Generator),
            Command::Hostile(hostile) => hostile.run(),
            Command::Run(run) => run.run(),
            Command::Scenario(file) => file.run(),
            Command::Search(search) => search.run(),
            Command::Provisioning(provisioning) => provisioning.run(),
            Command::Controller(controller) => controller.run(),
        }
    }
}
