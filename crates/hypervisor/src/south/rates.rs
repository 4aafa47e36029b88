//! Token buckets: how many messages a tenant may send, or get, per second.

use super::queue::{Class, Item};
use crate::policy::{Limits, Rate};
use crate::time::{Duration, Instant};

/// A token bucket.
#[derive(Default)]
pub(crate) struct Bucket {
    /// Nanoseconds' worth of tokens.
    level: u64,
    filled: Instant,
}

impl Bucket {
    /// Takes a token, or says when there will be one.
    pub(crate) fn take(&mut self, rate: Option<Rate>, now: Instant) -> Result<(), Instant> {
        let Some(rate) = rate else { return Ok(()) };
        let token = 1_000_000_000 / u64::from(rate.per_second.max(1));
        let full = token * u64::from(rate.burst.max(1));
        self.level = self.level.saturating_add((now - self.filled).0).min(full);
        self.filled = now;
        if self.level >= token {
            self.level -= token;
            Ok(())
        } else {
            Err(now + Duration(token - self.level))
        }
    }
}

/// A tenant's rates towards the switch.
#[derive(Default)]
pub(super) struct Rates {
    limits: Limits,
    packet_out: Bucket,
    flow_mod: Bucket,
    statistics: Bucket,
}

impl Rates {
    pub(super) fn set(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Whether the message may be sent as far as the rates go; if not, when to try again.
    pub(super) fn admit(&mut self, item: &Item, now: Instant) -> Result<(), Instant> {
        let Limits { packet_out, flow_mod, statistics, .. } = self.limits;
        match item.class {
            Class::PacketOut => self.packet_out.take(packet_out, now),
            // One request of the tenant may have become several messages; only what it asked for is charged.
            Class::Modification if item.origin.is_some() => self.flow_mod.take(flow_mod, now),
            Class::Statistics => self.statistics.take(statistics, now),
            _ => Ok(()),
        }
    }
}
