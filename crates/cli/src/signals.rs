//! Signals, as values that a thread waits for.

use anyhow::Context;
use nix::sys::signal::{SigSet, Signal};

/// Signals that are waited for rather than acted upon.
pub struct Signals(SigSet);

impl Signals {
    /// Blocks SIGINT, SIGTERM and SIGHUP in this thread and all that it starts later. To be called before any.
    pub fn block() -> anyhow::Result<Signals> {
        let mut set = SigSet::empty();
        set.add(Signal::SIGINT);
        set.add(Signal::SIGTERM);
        set.add(Signal::SIGHUP);
        set.thread_block().context("cannot block signals")?;
        Ok(Signals(set))
    }

    /// Waits for the next one.
    pub fn wait(&self) -> anyhow::Result<Signal> {
        self.0.wait().context("cannot wait for signals")
    }
}
