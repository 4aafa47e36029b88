//! Commands about the physical network as a whole (`weir fabric`).

mod simulate;

use crate::exit::Exit;

/// Simulate tenants' paths in the physical network
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir fabric simulate fattree,8 --tenants 100 --quick

See docs/fabric.md.")]
pub struct Fabric {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Simulate(simulate::Simulate),
}

impl Fabric {
    pub fn run(self) -> anyhow::Result<Exit> {
        match self.command {
            Command::Simulate(simulate) => simulate.run(),
        }
    }
}
