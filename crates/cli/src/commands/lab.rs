//! Makes real emulated networks on this machine (`weir lab`). Each subcommand has one file. Code that the subcommands
//! share: [`which`].

mod down;
mod exec;
mod iperf;
mod list;
mod ping_all;
mod up;
mod which;

use crate::exit::Exit;

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
