//! A request to end work on a lab early. The signal handler sets the request. The owner of a lab checks the request
//! between steps, and takes the lab down.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to end this process. Clones share the request.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Makes a request from a flag. The request is active when the flag is set.
    #[must_use]
    pub fn by(flag: Arc<AtomicBool>) -> Interrupt {
        Interrupt(flag)
    }

    /// Sets the request.
    pub fn ask(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether the request was made.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// The flag of the request, for callers that check the flag themselves.
    #[must_use]
    pub fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// Returns an error if the request was made, for `?` between steps.
    ///
    /// # Errors
    /// [`Interrupted`] once the request was made.
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.is_asked() { Err(Interrupted) } else { Ok(()) }
    }
}

/// A signal ended the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}
