//! What one tenant uses on all switches together: bytes that wait for the tenant's controllers, bytes held for the
//! tenant's requests, the tenant's part of the store, and refused requests.
//!
//! Switches may be driven by different threads, so these numbers are atomic. A connection updates the account after its
//! driver has written. It updates the account earlier only if many bytes wait. So a connection whose controller reads
//! touches no shared memory.

use crate::policy::Rate;
use crate::time::Instant;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// A connection with fewer waiting bytes updates the account only after the driver has written.
pub(crate) const MUCH: usize = 64 << 10;

/// See the module.
#[derive(Debug, Default)]
pub struct Account {
    /// Bytes that wait for the tenant's controllers.
    bytes: AtomicUsize,
    /// Bytes held for requests that are not finished, roughly: each switch updates this number in steps.
    held: AtomicUsize,
    /// Whether the store takes no more from the tenant.
    is_store_full: AtomicBool,
    changes: Paid,
    refusals: Paid,
}

/// When all things of a kind will have been paid for, at a rate: a token bucket.
#[derive(Debug, Default)]
struct Paid(AtomicU64);

impl Account {
    /// Bytes that wait, over all connections.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Bytes held for requests that are not finished, over all switches, roughly.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Whether the store takes no more from the tenant. Then Weir refuses requests that would add something to the
    /// store.
    pub fn is_store_full(&self) -> bool {
        self.is_store_full.load(Ordering::Relaxed)
    }

    /// The driver says whether the store takes no more from the tenant.
    pub fn set_store_full(&self, is_full: bool) {
        self.is_store_full.store(is_full, Ordering::Relaxed);
    }

    /// Counts changes that go to the store. If there are more than the rate allows, returns when the tenant may send
    /// its next request.
    pub(crate) fn charge_changes(&self, changes: u64, rate: Rate, now: Instant) -> Option<Instant> {
        self.changes.charge(changes, rate, now)
    }

    /// Counts a request that Weir refuses. If there are more than the rate allows, returns when the tenant may send its
    /// next request.
    pub(crate) fn charge_refusal(&self, rate: Rate, now: Instant) -> Option<Instant> {
        self.refusals.charge(1, rate, now)
    }
}

impl Paid {
    /// Counts so many things. If there are more than the rate allows, returns when the next is allowed.
    fn charge(&self, many: u64, rate: Rate, now: Instant) -> Option<Instant> {
        let each = 1_000_000_000 / u64::from(rate.per_second.max(1));
        let pay = |paid: u64| paid.max(now.0).saturating_add(many.saturating_mul(each));
        let before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |it| Some(pay(it)));
        let paid = pay(before.unwrap_or_else(|paid| paid));
        let again = paid.saturating_sub(each.saturating_mul(u64::from(rate.burst)));
        (again > now.0).then_some(Instant(again))
    }
}

/// The bytes of one connection in an account. Dropping the part subtracts them.
#[derive(Debug)]
pub(crate) struct Part {
    account: Arc<Account>,
    bytes: usize,
}

impl Part {
    pub(crate) fn new(account: Arc<Account>) -> Part {
        Part { account, bytes: 0 }
    }

    /// This many bytes wait for the connection now.
    #[inline]
    pub(crate) fn set(&mut self, bytes: usize) {
        change(&self.account.bytes, self.bytes, bytes);
        self.bytes = bytes;
    }

    /// Bytes that wait for all connections of the account.
    pub(crate) fn all(&self) -> usize {
        self.account.bytes()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Bytes held for a tenant's requests on one switch. The account is updated in steps: small requests touch no shared
/// memory.
#[derive(Debug, Default)]
pub(crate) struct Held {
    account: Arc<Account>,
    bytes: usize,
    /// The bytes that the account has counted.
    counted: usize,
}

impl Held {
    /// Adds bytes.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.set(self.bytes + bytes);
    }

    /// Subtracts bytes.
    pub(crate) fn remove(&mut self, bytes: usize) {
        self.set(self.bytes.saturating_sub(bytes));
    }

    /// The account that these bytes are a part of.
    pub(crate) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// The bytes on this switch.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the tenant may send more requests. One request is always allowed, whatever is held on other switches.
    pub(crate) fn leaves_room(&self, in_all: usize) -> bool {
        self.bytes == 0 || self.account.held() < in_all
    }

    /// From now on the bytes count in this account.
    pub(crate) fn share(&mut self, account: Arc<Account>) {
        let bytes = self.bytes;
        self.set(0);
        self.account = account;
        self.set(bytes);
    }

    fn set(&mut self, bytes: usize) {
        self.bytes = bytes;
        if bytes == 0 || bytes.abs_diff(self.counted) >= MUCH {
            change(&self.account.held, self.counted, bytes);
            self.counted = bytes;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// A part of a sum changes. An equal part does not touch the shared memory.
#[inline]
fn change(sum: &AtomicUsize, before: usize, after: usize) {
    if after != before {
        // The sum wraps around: a smaller part adds a negative number.
        sum.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn changes_beyond_the_burst_wait_according_to_the_rate() {
        let (account, rate) = (Account::default(), Rate { per_second: 1_000, burst: 50 });
        let charge = |changes, ms: u64| {
            let again = account.charge_changes(changes, rate, Instant(ms * 1_000_000));
            again.map(|at| at.0 / 1_000_000)
        };
        assert_eq!(charge(50, 1_000), None);
        assert_eq!(charge(10, 1_000), Some(1_010));
        assert_eq!(charge(1, 1_010), Some(1_011), "from another switch");
        assert_eq!(charge(10, 1_100), None);
        assert_eq!(charge(10_000, 5_000), Some(14_950));
        assert!(charge(u64::MAX, 20_000).is_some());
    }

    #[test]
    fn held_bytes_are_bounded_over_switches_except_one_request_per_switch() {
        let account = Arc::new(Account::default());
        let mut switches: Vec<Held> = (0..20).map(|_| Held::default()).collect();
        switches.iter_mut().for_each(|held| held.share(account.clone()));
        let mut requests = 0;
        for _ in 0..10 {
            for held in &mut switches {
                if held.leaves_room(16 << 20) {
                    held.add(1 << 20);
                    requests += 1;
                }
            }
        }
        assert_eq!(requests, 20, "more than the bound, as one request each");
        switches.truncate(4);
        assert_eq!(account.held(), 4 << 20, "a switch that is gone holds nothing");
        for held in &mut switches {
            held.remove(1 << 20);
            held.add(10);
        }
        assert_eq!(account.held(), 0, "what is little is not counted");
        assert!(switches[0].leaves_room(1));
    }
}
