//! Ends a measurement early. The results until then count.

use crate::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to end a measurement, which all clones share.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Requests the end.
    pub fn ask(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether the end has been requested.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Checks for the request, for `?` between steps.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if the end has been requested.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_asked() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

impl PartialEq for Stop {
    fn eq(&self, other: &Stop) -> bool {
        self.is_asked() == other.is_asked()
    }
}
