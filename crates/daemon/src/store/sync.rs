//! When changes reach the disk.

use std::time::Duration;

/// When changes reach the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Before the changes are acknowledged.
    Always,
    /// At most this time after the changes were acknowledged.
    Every(Duration),
}

impl Default for Sync {
    fn default() -> Self {
        Sync::Every(Duration::from_millis(100))
    }
}
