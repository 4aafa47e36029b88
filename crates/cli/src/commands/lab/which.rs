//! Finds the lab of a command, and waits for the switches of the lab.

use lab::{Error, Interrupted, Lab, StateDirectory};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The folder with the files of labs.
#[derive(clap::Args)]
pub struct State {
    /// The folder with the files of labs [default: /run/weir/labs]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

impl State {
    pub fn directory(&self) -> StateDirectory {
        self.state.as_ref().map_or_else(StateDirectory::default, StateDirectory::at)
    }
}

/// The lab.
#[derive(clap::Args)]
pub struct Which {
    /// The lab's name [default: the only one]
    #[arg(long, alias = "name", value_name = "NAME")]
    pub lab: Option<String>,
    #[command(flatten)]
    pub state: State,
}

impl Which {
    pub fn open(&self) -> anyhow::Result<Lab> {
        let state = self.state.directory();
        let name = match &self.lab {
            Some(name) => name.clone(),
            None => only(&state)?,
        };
        Ok(Lab::open(&name, &state)?)
    }
}

/// Waits until the switches of a lab with loops forward packets, as long as `check` permits. Returns false if the wait
/// is longer than `SPANNING_TREE`.
pub fn wait_until_forwarding(
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

/// The longest wait for a spanning tree: twice the time that the protocol waits if a neighbour does not answer.
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
