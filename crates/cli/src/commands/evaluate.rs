//! `weir evaluate`: what a switch really does.
//!
//! One subcommand per experiment. [`effort`] and [`output`] are options that they share, [`target`] finds or makes the switch,
//! [`mod@measure`] runs experiments on one switch, [`modules`] has each experiment's own options.

mod all;
mod effort;
mod measure;
mod modules;
mod output;
#[cfg(feature = "scripts")]
mod own;
mod target;

pub use effort::Effort;
pub use measure::measure;
pub use output::give_with;
pub use target::Target;

use crate::exit::Exit;
use crate::out::Output;
use modules::Build;

/// Measure what a switch really does, from outside
///
/// Experiments send OpenFlow messages over the control channel and probes through the switch's ports, and see from
/// the data plane what became true and when. stdout is the result, stderr the talk. The switch's flow tables are left
/// as they were found. Exit status 0: nothing wrong; 1: findings, such as a barrier that lies.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  weir evaluate insert                           a private Open vSwitch on this machine (root)
  weir evaluate insert --switch emulated --fault barrier-lies=50
  weir evaluate all --switch listen:0.0.0.0:6653 --channel eth1=1 --channel eth2=2 --out sheet/

See docs/evaluate.md.")]
pub struct Evaluate {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Add entries: until sent, until the barrier reply, until packets pass; does the barrier lie?
    Insert(One<modules::Insert>),
    /// Modify entries that drop so that they forward
    Change(One<modules::Change>),
    /// Delete entries, until traffic really stops
    Delete(One<modules::Delete>),
    /// Change entries while statistics are polled
    Interaction(One<modules::Interaction>),
    /// Delay, deviation and loss of forwarding and of each modification
    Modify(One<modules::Modify>),
    /// How many entries fit, and the time of an insertion as the table fills
    Capacity(One<modules::Capacity>),
    /// Latency and loss of PACKET_IN against rate, and the highest rate without loss
    PacketIn(One<modules::PacketIn>),
    /// The same for PACKET_OUT
    PacketOut(One<modules::PacketOut>),
    /// Time of ECHO replies against rate, and the highest rate at which all are answered
    Echo(One<modules::Echo>),
    /// The same for BARRIER
    Barrier(One<modules::Barrier>),
    /// What polling of statistics costs
    Statistics(One<modules::Statistics>),
    /// Delay from port to port against rate and frame size
    PathDelay(One<modules::PathDelay>),
    /// From a link's change until its PORT_STATUS
    PortStatus(One<modules::PortStatus>),
    /// Delay and rate of each queue of the receiving port
    Queue(One<modules::Queue>),
    /// How precise the tool's own capture is
    Timestamp(One<modules::Timestamp>),
    All(all::All),
    #[cfg(feature = "scripts")]
    Run(own::Run),
}

impl Evaluate {
    pub fn run(self) -> anyhow::Result<Exit> {
        match self.command {
            Command::Insert(it) => it.run(),
            Command::Change(it) => it.run(),
            Command::Delete(it) => it.run(),
            Command::Interaction(it) => it.run(),
            Command::Modify(it) => it.run(),
            Command::Capacity(it) => it.run(),
            Command::PacketIn(it) => it.run(),
            Command::PacketOut(it) => it.run(),
            Command::Echo(it) => it.run(),
            Command::Barrier(it) => it.run(),
            Command::Statistics(it) => it.run(),
            Command::PathDelay(it) => it.run(),
            Command::PortStatus(it) => it.run(),
            Command::Queue(it) => it.run(),
            Command::Timestamp(it) => it.run(),
            Command::All(all) => all.run(),
            #[cfg(feature = "scripts")]
            Command::Run(own) => own.run(),
        }
    }
}

/// One experiment with everything around it.
#[derive(clap::Args)]
struct One<T: clap::Args> {
    #[command(flatten)]
    own: T,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    effort: Effort,
    #[command(flatten)]
    output: Output,
}

impl<T: clap::Args + Build> One<T> {
    fn run(self) -> anyhow::Result<Exit> {
        if let Some(wrong) = self.target.wrong() {
            return Ok(Exit::usage(&wrong));
        }
        let common = self.effort.common();
        let experiment = match self.own.build(common, self.effort.is_quick()) {
            Ok(experiment) => experiment,
            Err(error) => return Ok(Exit::usage(&error)),
        };
        let tool = format!("evaluate {}", experiment.name());
        let evaluation =
            measure(&tool, &self.target, &self.effort, &self.effort.floor(), &[experiment])?;
        output::give(&self.output, &evaluation)
    }
}
