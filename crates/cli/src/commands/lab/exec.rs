//! Runs a program at a host or among the switches (`weir lab exec`).

use super::which::Which;
use crate::exit::Exit;
use anyhow::Context;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;

/// Run a program at a host, or among the switches
///
/// Among the switches, Open vSwitch's tools find the lab's own instance. The exit status is the program's.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir lab exec h1 -- ping -c 3 10.0.0.2
  weir lab exec s1 -- ovs-ofctl dump-flows s1")]
pub struct Exec {
    /// A host such as h1, or a switch such as s1
    node: String,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
    #[command(flatten)]
    which: Which,
}

impl Exec {
    pub fn run(self) -> anyhow::Result<Exit> {
        let lab = self.which.open()?;
        let (program, arguments) = self.command.split_first().context("there is no command")?;
        let mut command = lab.command(&self.node, program)?;
        // The program replaces this process, so that the program gets signals and terminal, and sets the exit status.
        let error = command.args(arguments).exec();
        Err(error).context("cannot run `ip netns exec`")
    }
}
