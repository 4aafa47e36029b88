//! `weir lab`: real emulated networks on this machine. One file per subcommand; here is what they share.

mod down;
mod exec;
mod iperf;
mod list;
mod ping_all;
mod up;

use crate::exit::Exit;
use lab::Interrupted;
use lab::{Error, Lab, StateDirectory};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Make networks of real switches and hosts on this machine, use them, remove them
///
/// Hosts are network namespaces, switches are bridges of a private Open vSwitch, links are veth pairs. Needs root and
/// Open vSwitch.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir lab up single,4 --controller tcp:127.0.0.1:6653
  weir lab exec h1 -- ping -c 3 10.0.0.2
  weir lab ping-all
  weir lab down

See docs/lab.md.")]
pub struct LabCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Up(up::Up),
    Down(down::Down),
    List(list::List),
    Exec(exec::Exec),
    PingAll(ping_all::PingAll),
    Iperf(iperf::Iperf),
}

impl LabCommand {
    pub fn run(self) -> anyhow::Result<Exit> {
        match self.command {
            Command::Up(up) => up.run(),
            Command::Down(down) => down.run(),
            Command::List(list) => list.run(),
            Command::Exec(exec) => exec.run(),
            Command::PingAll(ping_all) => ping_all.run(),
            Command::Iperf(iperf) => iperf.run(),
        }
    }
}

/// Where labs are remembered.
#[derive(clap::Args)]
struct State {
    /// Where labs are remembered [default: /run/weir/labs]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

impl State {
    fn directory(&self) -> StateDirectory {
        self.state.as_ref().map_or_else(StateDirectory::default, StateDirectory::at)
    }
}

/// Which lab.
#[derive(clap::Args)]
struct Which {
    /// The lab's name [default: the only one]
    #[arg(long, alias = "name", value_name = "NAME")]
    lab: Option<String>,
    #[command(flatten)]
    state: State,
}

impl Which {
    fn open(&self) -> anyhow::Result<Lab> {
        let state = self.state.directory();
        let name = match &self.lab {
            Some(name) => name.clone(),
            None => only(&state)?,
        };
        Ok(Lab::open(&name, &state)?)
    }
}

/// Waits until the switches of a lab with loops forward, as long as `check` lets it. False if that takes too long.
fn wait_until_forwarding(
    lab: &Lab,
    check: impl Fn() -> Result<(), Interrupted>,
) -> anyhow::Result<bool> {
    let end = Instant::now() + SPANNING_TREE;
    if lab.is_forwarding()? {
        return Ok(true);
    }
    writeln!(std::io::stderr(), "waiting until the switches agree on a spanning tree")?;
    while !lab.is_forwarding()? {
        check()?;
        if Instant::now() >= end {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(true)
}

/// The longest that a spanning tree is waited for: twice what the protocol waits where a neighbour does not answer.
const SPANNING_TREE: Duration = Duration::from_secs(60);

fn only(state: &StateDirectory) -> lab::Result<String> {
    let mut names: Vec<String> = Lab::list(state)?.into_iter().map(|lab| lab.name).collect();
    match (names.pop(), names.is_empty()) {
        (Some(name), true) => Ok(name),
        (Some(last), false) => {
            names.push(last);
            let message = format!("there are several labs; choose one of {}", names.join(", "));
            Err(Error::Option { option: "--lab", message })
        }
        (None, _) => Err(Error::Option {
            option: "--lab",
            message: "no lab is up; make one with `weir lab up`".to_owned(),
        }),
    }
}

/// Whether an error is about what the user gave, rather than about what happened.
pub fn is_usage(error: &Error) -> bool {
    matches!(
        error,
        Error::Topology { .. }
            | Error::Option { .. }
            | Error::NameTaken(_)
            | Error::NoSuchLab { .. }
            | Error::NoSuchNode { .. }
    )
}
