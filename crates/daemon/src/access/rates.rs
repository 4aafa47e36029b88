//! The limit of requests per second: a token bucket for each caller, and a bounded number of
//! buckets.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Mutex;
use std::time::Instant;

use crate::lock::lock;

/// The most callers with a bucket of their own; all others share one bucket.
const MOST: usize = 4_096;

/// Buckets of requests, by caller.
pub struct Rates<K> {
    per_second: f64,
    burst: f64,
    buckets: Mutex<Buckets<K>>,
}

struct Buckets<K> {
    own: HashMap<K, Bucket>,
    shared: Bucket,
}

#[derive(Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl<K: Eq + Hash> Rates<K> {
    /// Buckets with this rate per second and this burst.
    pub fn new(per_second: u32, burst: u32, now: Instant) -> Rates<K> {
        let (per_second, burst) = (f64::from(per_second), f64::from(burst));
        let shared = Bucket { left: burst, at: now };
        Rates { per_second, burst, buckets: Mutex::new(Buckets { own: HashMap::new(), shared }) }
    }

    /// Whether the caller may make a request now. An allowed request is counted.
    pub fn take(&self, caller: K, now: Instant) -> bool {
        let mut buckets = lock(&self.buckets);
        let Buckets { own, shared } = &mut *buckets;
        if own.len() >= MOST && !own.contains_key(&caller) {
            own.retain(|_, bucket| self.filled(*bucket, now) < self.burst);
        }
        let bucket = match own.len() >= MOST && !own.contains_key(&caller) {
            true => shared,
            false => own.entry(caller).or_insert(Bucket { left: self.burst, at: now }),
        };
        *bucket = Bucket { left: self.filled(*bucket, now), at: now };
        let may = bucket.left >= 1.0;
        if may {
            bucket.left -= 1.0;
        }
        may
    }

    fn filled(&self, bucket: Bucket, now: Instant) -> f64 {
        let since = now.saturating_duration_since(bucket.at).as_secs_f64();
        (bucket.left + since * self.per_second).min(self.burst)
    }
}

/// The origin of an address: an IPv6 address counts as its /64, which belongs to one customer.
pub fn origin(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let mut octets = v6.octets();
            octets[8..].fill(0);
            Ipv6Addr::from(octets).into()
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn each_caller_has_a_separate_burst_and_rate() {
        let start = Instant::now();
        let rates = Rates::new(2, 3, start);
        let taken = |who: u8, at: f64| rates.take(who, start + Duration::from_secs_f64(at));
        assert_eq!([0; 5].map(|_| taken(1, 0.0)), [true, true, true, false, false]);
        assert!(taken(2, 0.0), "another's bucket");
        assert!(!taken(1, 0.4) && taken(1, 0.6) && !taken(1, 0.7));
        assert_eq!([0; 5].map(|_| taken(1, 60.0)), [true, true, true, false, false]);
    }

    #[test]
    fn callers_beyond_the_maximum_share_a_rate_bucket() {
        let start = Instant::now();
        let rates = Rates::new(1, 2, start);
        for who in 0..MOST {
            assert!(rates.take(who, start));
        }
        // Callers beyond the maximum share one bucket. Two seconds later all buckets are full, and are deleted. The
        // next caller then gets a bucket of its own.
        assert_eq!(
            [MOST, MOST + 1, MOST + 2].map(|who| rates.take(who, start)),
            [true, true, false]
        );
        assert!(rates.take(MOST + 2, start + Duration::from_secs(2)));
        assert_eq!(rates.buckets.lock().unwrap().own.len(), 1);
    }

    #[test]
    fn ipv6_callers_count_by_64_bit_prefix_and_ipv4_callers_by_address() {
        for (address, counts_as) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ] {
            assert_eq!(origin(address.parse().unwrap()), counts_as.parse::<IpAddr>().unwrap());
        }
    }
}
