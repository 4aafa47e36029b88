//! `weir serve`: the hypervisor.

use crate::exit::Exit;
use crate::signals::Signals;
use anyhow::Context;
use daemon::config;
use daemon::serve::{Daemon, ServeOptions};
use nix::sys::signal::Signal;
use std::io::Write;
use std::path::PathBuf;

/// Sits between the switches, which connect to it, and the tenants' controllers, to which it connects.
#[derive(clap::Args)]
pub struct Serve {
    /// Configuration file (see docs/configuration.md)
    config: PathBuf,
    /// Keep state here, so that a restart loses no tenant's rule
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Event loops [default: one per core]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    threads: usize,
}

impl Serve {
    pub fn run(self) -> anyhow::Result<Exit> {
        let signals = Signals::block()?;
        let config = match config::load(&self.config) {
            Ok(config) => config,
            Err(error) => {
                write!(std::io::stderr(), "{error}")?;
                return Ok(Exit::Usage);
            }
        };
        let options = ServeOptions { state: self.state.clone(), threads: self.threads };
        let daemon = Daemon::start(&config, &options).context("cannot start")?;
        for address in daemon.addresses() {
            tracing::info!(%address, "switches can connect");
        }
        loop {
            match signals.wait()? {
                Signal::SIGHUP => {}
                _ => {
                    daemon.stop();
                    return Ok(Exit::Success);
                }
            }
        }
    }
}
