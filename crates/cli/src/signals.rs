//! SIGINT and SIGTERM: the first asks for an orderly end, the second has the last word.

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Once the flag that this returns is set, SIGINT and SIGTERM end the process at once.
pub fn end_at_once_when_ending() -> anyhow::Result<Arc<AtomicBool>> {
    let ending = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // As a shell reports a process that a signal ended.
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&ending))
            .context("cannot handle signals")?;
    }
    Ok(ending)
}

/// Whether somebody asked this process to end.
#[derive(Clone)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From here on SIGINT and SIGTERM only set this: whoever works has to look at it, and to clean up.
    pub fn catch() -> anyhow::Result<Interrupt> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register(signal, Arc::clone(&asked)).context("cannot handle signals")?;
        }
        Ok(Interrupt(asked))
    }

    /// Whether it is time to end.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// For `?` between steps.
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.is_asked() { Err(Interrupted) } else { Ok(()) }
    }
}

/// The work was ended by a signal.
#[derive(Debug)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}
