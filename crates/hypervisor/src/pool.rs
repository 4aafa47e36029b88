//! Memory that several switches share. The reports of all unlisted switches together have one bound.
//!
//! A switch may hold at most as many bytes of the pool as stay free in the pool. So one switch alone gets half of the
//! pool, each of four switches gets a fifth, and a switch that connects later finds room, whatever the other switches
//! do. Different threads may drive the switches, so the pool is an atomic number. In a test with one thread the results
//! are the same each time.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

/// See the module.
#[derive(Debug)]
pub struct Pool {
    bytes: usize,
    taken: AtomicUsize,
}

/// The bytes that one switch has taken from the pool. Dropping `Taken` returns them.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// Without a pool there is no bound.
    pool: Option<Arc<Pool>>,
    bytes: usize,
}

impl Pool {
    /// A pool of this size.
    pub const fn new(bytes: usize) -> Pool {
        Pool { bytes, taken: AtomicUsize::new(0) }
    }

    /// Bytes that all switches together have taken.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Takes `more` bytes for a switch that then has `all` bytes. False if fewer than `all` bytes would stay free.
    fn take(&self, more: usize, all: usize) -> bool {
        let take = |taken: usize| {
            let taken = taken.checked_add(more)?;
            (all <= self.bytes.checked_sub(taken)?).then_some(taken)
        };
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

impl Taken {
    /// A switch that has taken no bytes from this pool.
    pub(crate) fn new(pool: Arc<Pool>) -> Taken {
        Taken { pool: Some(pool), bytes: 0 }
    }

    /// The switch needs this many bytes now. False if the pool has no room for them; then nothing changes.
    pub(crate) fn set(&mut self, bytes: usize) -> bool {
        let Some(pool) = &self.pool else { return true };
        if bytes > self.bytes {
            if !pool.take(bytes - self.bytes, bytes) {
                return false;
            }
        } else {
            pool.taken.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
        true
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// The most bytes that a switch gets if it takes one byte after another until the pool refuses.
    fn most(taken: &mut Taken) -> usize {
        (0..).take_while(|bytes| taken.set(*bytes)).last().unwrap()
    }

    #[test]
    fn a_switch_gets_at_most_as_much_memory_as_stays_free() {
        let pool = Arc::new(Pool::new(1_000));
        let taken = || Taken::new(pool.clone());
        let (mut first, mut second) = (taken(), taken());
        assert_eq!(most(&mut first), 500);
        assert_eq!(most(&mut second), 250);
        let mut others: Vec<Taken> = (0..20).map(|_| taken()).collect();
        assert!(others.iter_mut().all(|it| it.set(10)), "a small switch finds room");
        assert!(pool.taken() < 1_000);
        drop((first, others));
        assert_eq!(pool.taken(), 250);
        assert!(!second.set(501) && !second.set(usize::MAX));
        assert!(second.set(500) && second.set(1));
        assert_eq!(pool.taken(), 1);
        assert!(Taken::default().set(usize::MAX), "without a pool there is no bound");
    }
}
