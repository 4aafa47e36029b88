//! The subcommands.

mod serve;

use crate::exit::Exit;
use clap::Subcommand;

/// One variant per subcommand.
#[derive(Subcommand)]
pub enum Command {
    /// Run the hypervisor between switches and tenants' controllers
    Serve(serve::Serve),
}

impl Command {
    /// Does it.
    pub fn run(self) -> anyhow::Result<Exit> {
        match self {
            Command::Serve(serve) => serve.run(),
        }
    }
}
