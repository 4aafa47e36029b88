//! Removes a network (`weir lab down`).

use super::which::{State, Which};
use crate::exit::Exit;
use lab::Lab;
use std::io::Write;

/// Remove a network, and end all programs that run in it
#[derive(clap::Args)]
#[command(after_help = "Example:\n  weir lab down --lab lab1")]
pub struct Down {
    #[command(flatten)]
    which: Which,
    /// Remove all labs
    #[arg(long, conflicts_with = "lab")]
    all: bool,
}

impl Down {
    pub fn run(self) -> anyhow::Result<Exit> {
        let labs = if self.all { every(&self.which.state)? } else { vec![self.which.open()?] };
        for lab in labs {
            let name = lab.name().to_owned();
            lab.down()?;
            writeln!(std::io::stdout(), "{name} is down")?;
        }
        Ok(Exit::Success)
    }
}

fn every(state: &State) -> lab::Result<Vec<Lab>> {
    let state = state.directory();
    Lab::list(&state)?.into_iter().map(|summary| Lab::open(&summary.name, &state)).collect()
}
