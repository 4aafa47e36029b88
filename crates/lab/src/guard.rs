//! A guard that takes a lab down at the end of its scope.

use std::ops::Deref;

use crate::error::Result;
use crate::lab::Lab;

/// Takes its lab down when the guard is dropped, for tests, demonstrations and measurements.
///
/// A signal does not run destructors. The handler of SIGINT or SIGTERM must call [`LabGuard::down`] or let the guard go
/// out of scope. After SIGKILL, [`Lab::down_abandoned`] removes the lab.
#[derive(Debug)]
#[must_use = "the lab is taken down when the guard is dropped"]
pub struct LabGuard {
    lab: Lab,
    is_down: bool,
}

impl LabGuard {
    /// Makes a guard for the lab.
    pub fn new(lab: Lab) -> LabGuard {
        LabGuard { lab, is_down: false }
    }

    /// Takes the lab down now and returns an error, which a drop can only log.
    pub fn down(mut self) -> Result<()> {
        self.is_down = true;
        self.lab.remove()
    }
}

impl Deref for LabGuard {
    type Target = Lab;

    fn deref(&self) -> &Lab {
        &self.lab
    }
}

impl Drop for LabGuard {
    fn drop(&mut self) {
        if self.is_down {
            return;
        }
        if let Err(error) = self.lab.remove() {
            tracing::error!(lab = self.lab.name(), %error, "the lab could not be removed whole");
        }
    }
}
