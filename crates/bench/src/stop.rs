//! Whether a measurement is to end before its time: what was measured until then counts.

use crate::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Clones share the wish.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks for the end.
    pub fn ask(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether somebody asked.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// For `?` between steps.
    ///
    /// # Errors
    /// [`Error::Interrupted`] once somebody asked.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_asked() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

impl PartialEq for Stop {
    fn eq(&self, other: &Stop) -> bool {
        self.is_asked() == other.is_asked()
    }
}
