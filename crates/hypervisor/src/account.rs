//! What waits for one tenant's controllers, on all switches together.
//!
//! Switches may be driven by different threads, so the sum is an atomic number. A connection counts what waits when its
//! driver has written, and before that if it is much: a connection whose controller reads touches no shared memory.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

/// What waits for fewer bytes is counted when the driver has written.
pub(crate) const MUCH: usize = 64 << 10;

/// Bytes that wait for a tenant's controllers.
#[derive(Debug, Default)]
pub struct Account(AtomicUsize);

impl Account {
    /// The sum over all connections.
    pub fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// What one connection adds to it; nothing when it is dropped.
#[derive(Debug)]
pub(crate) struct Part {
    account: Arc<Account>,
    bytes: usize,
}

impl Part {
    pub(crate) fn new(account: Arc<Account>) -> Part {
        Part { account, bytes: 0 }
    }

    /// So much waits for this connection now.
    #[inline]
    pub(crate) fn set(&mut self, bytes: usize) {
        if bytes > self.bytes {
            self.account.0.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else if bytes < self.bytes {
            self.account.0.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }

    /// What waits for all.
    pub(crate) fn all(&self) -> usize {
        self.account.bytes()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.set(0);
    }
}
