//! A request that waits for statistics.

use crate::south::pending::Origin;
use alloc::vec::Vec;

/// See the module.
pub(crate) struct Waiter {
    pub origin: Origin,
    /// The body of the request.
    pub request: Vec<u8>,
    /// The least that the answer will cost, in examined entries.
    pub(super) work: u64,
}
