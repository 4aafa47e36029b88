//! The subcommands.

mod check;
mod demo;
mod serve;

use crate::exit::Exit;
use clap::Subcommand;

/// One variant per subcommand.
#[derive(Subcommand)]
pub enum Command {
    Serve(serve::Serve),
    Check(check::Check),
    Demo(demo::Demo),
}

impl Command {
    /// Does it.
    pub fn run(self) -> anyhow::Result<Exit> {
        match self {
            Command::Serve(serve) => serve.run(),
            Command::Check(check) => check.run(),
            Command::Demo(demo) => demo.run(),
        }
    }
}
