//! When changes reach the disk.

use std::time::Duration;

/// When changes reach the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Before they are acknowledged.
    Always,
    /// At most this long after they were acknowledged.
    Every(Duration),
}

impl Default for Sync {
    fn default() -> Self {
        Sync::Every(Duration::from_millis(100))
    }
}
