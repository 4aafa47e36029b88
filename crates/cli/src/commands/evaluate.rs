//! Measures the real behaviour of a switch (`weir evaluate`).
//!
//! Each experiment has one subcommand. Options that the subcommands share: [`effort`] and [`output`]. [`target`] finds
//! or makes the switch, [`mod@measure`] runs experiments on one switch, and [`modules`] has each experiment's own
//! options.

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

/// Measure the behaviour of a switch from outside
///
/// Experiments send OpenFlow messages over the control channel and probes through the switch's ports. The probes show
/// when a change takes effect in the data plane. The result is on stdout, progress on stderr. The switch's flow tables
/// are the same afterwards. Exit status 0: no findings; 1: findings, such as a barrier reply before its changes take
/// effect.
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
    /// Add entries: time until sent, until the barrier reply, until packets pass
    Insert(One<modules::Insert>),
    /// Modify entries from drop to forward
    Change(One<modules::Change>),
    /// Delete entries: time until traffic stops
    Delete(One<modules::Delete>),
    /// Change entries during polling of statistics
    Interaction(One<modules::Interaction>),
    /// Delay, deviation and loss of forwarding and of each modification
    Modify(One<modules::Modify>),
    /// The capacity of the table, and the time of an insertion as the table fills
    Capacity(One<modules::Capacity>),
    /// Latency and loss of PACKET_IN against rate, and the highest rate without loss
    PacketIn(One<modules::PacketIn>),
    /// Latency and loss of PACKET_OUT against rate, and the highest rate without loss
    PacketOut(One<modules::PacketOut>),
    /// Time of ECHO replies against rate, and the highest rate with all replies
    Echo(One<modules::Echo>),
    /// Time of BARRIER replies against rate, and the highest rate with all replies
    Barrier(One<modules::Barrier>),
    /// The cost of polling statistics
    Statistics(One<modules::Statistics>),
    /// Delay from port to port against rate and frame size
    PathDelay(One<modules::PathDelay>),
    /// Time from a link's change until the PORT_STATUS
    PortStatus(One<modules::PortStatus>),
    /// Delay and rate of each queue of the receiving port
    Queue(One<modules::Queue>),
    /// The precision of Weir's own capture
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
