//! The wish that work on a lab ends before its time. Whoever handles signals sets it; whoever has a lab up looks at it
//! between steps, and takes the lab down.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether somebody asked this process to end. Clones share the wish.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// One that is asked for when that flag is set.
    #[must_use]
    pub fn by(flag: Arc<AtomicBool>) -> Interrupt {
        Interrupt(flag)
    }

    /// Asks for the end.
    pub fn ask(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether it is time to end.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// The same, for those who look at a flag themselves.
    #[must_use]
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// For `?` between steps.
    ///
    /// # Errors
    /// [`Interrupted`] once somebody asked.
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.is_asked() { Err(Interrupted) } else { Ok(()) }
    }
}

/// The work was ended by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}
