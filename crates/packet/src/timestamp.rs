//! Points in time as the kernel stamps packets with them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970 (CLOCK_REALTIME), which is what the kernel's packet timestamps count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Now.
    pub fn now() -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::default().plus(since)
    }

    /// Nanoseconds from `earlier` to this point; negative when it is in truth later.
    pub fn nanoseconds_since(self, earlier: Timestamp) -> i64 {
        self.0.wrapping_sub(earlier.0).cast_signed()
    }

    /// That much later.
    pub fn plus(self, duration: Duration) -> Timestamp {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Timestamp(self.0.saturating_add(nanoseconds))
    }
}
