//! Token buckets: how many messages per second a tenant may send or get.

use super::queue::{Class, Item};
use crate::policy::{Limits, Rate};
use crate::sheet::{MessageClass, Sheet};
use crate::time::{Duration, Instant};

/// The rate and the size of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Nanoseconds for one token.
    token: u64,
    /// Nanoseconds' worth of tokens in a full bucket.
    full: u64,
}

/// The burst, where a data sheet gives the rate or where a configured rate has no burst: the messages of a tenth of a
/// second.
const BURST: u64 = 100_000_000;
/// The longest time for a token, ns: a lower rate would only hide a mistake.
const SLOWEST: u64 = 3_600_000_000_000;

impl From<Rate> for Pace {
    fn from(rate: Rate) -> Pace {
        let token = 1_000_000_000 / u64::from(rate.per_second.max(1));
        Pace { token, full: token * u64::from(rate.burst.max(1)) }
    }
}

impl Pace {
    /// A tenant's share of a rate with one message in `interval` nanoseconds.
    fn share(interval: u64, weight: u64, weights: u64) -> Pace {
        let token = u128::from(interval) * u128::from(weights) / u128::from(weight.max(1));
        let token = u64::try_from(token).unwrap_or(SLOWEST).clamp(1, SLOWEST);
        Pace { token, full: token.max(BURST) }
    }

    /// Messages per second.
    pub(crate) fn per_second(self) -> f64 {
        1e9 / self.token as f64
    }

    /// Messages that may come at once.
    pub(crate) fn burst(self) -> u32 {
        u32::try_from(self.full / self.token.max(1)).unwrap_or(u32::MAX)
    }

    /// The price of messages, ns.
    fn price(self, messages: u32) -> u64 {
        self.token.saturating_mul(u64::from(messages))
    }
}

/// A token bucket.
#[derive(Default)]
pub(crate) struct Bucket {
    /// Nanoseconds' worth of tokens.
    level: u64,
    filled: Instant,
}

impl Bucket {
    /// Takes a token. If there is none, returns when there will be one.
    pub(crate) fn take(
        &mut self,
        pace: Option<impl Into<Pace>>,
        now: Instant,
    ) -> Result<(), Instant> {
        let Some(pace) = pace.map(Into::into) else { return Ok(()) };
        self.fill(pace, 1, now)?;
        self.level -= pace.token;
        Ok(())
    }

    /// Fills the bucket. If there are too few tokens for the messages, returns when there will be enough.
    fn fill(&mut self, pace: Pace, messages: u32, now: Instant) -> Result<(), Instant> {
        let price = pace.price(messages);
        self.level =
            self.level.saturating_add(now.nanos_since(self.filled)).min(pace.full.max(price));
        self.filled = now;
        match price.saturating_sub(self.level) {
            0 => Ok(()),
            missing => Err(now + Duration::from_nanos(missing)),
        }
    }
}

/// A tenant's share of the figures of a data sheet for a class of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SheetShare {
    /// The share of the safe rate.
    pub rate: Pace,
    /// The share of the switch's time.
    pub time: Pace,
}

impl SheetShare {
    /// The share of a tenant with this weight; `weights` is the sum of the weights of all tenants.
    pub(crate) fn of(
        sheet: &Sheet,
        class: MessageClass,
        weight: u64,
        weights: u64,
    ) -> Option<SheetShare> {
        let measured = sheet.classes.get(&class).filter(|_| weight > 0)?;
        // `as` saturates at the bounds of the integer.
        let interval = (1e9 / measured.rate.value) as u64;
        let rate = Pace::share(interval.max(1), weight, weights);
        Some(SheetShare { rate, time: Pace::share(measured.cost, weight, weights) })
    }
}

/// How many messages of a class per second, and how many at once, a tenant of this weight may send or get by a data
/// sheet. `weights` is the sum of the weights of all tenants of the switch.
pub fn share_of(
    sheet: &Sheet,
    class: MessageClass,
    weight: u64,
    weights: u64,
) -> Option<(f64, u32)> {
    let SheetShare { rate, .. } = SheetShare::of(sheet, class, weight, weights)?;
    Some((rate.per_second(), rate.burst()))
}

/// A tenant's rates towards the switch.
#[derive(Default)]
pub(super) struct Rates {
    limits: Limits,
    /// By the place of the class in [`MessageClass::ALL`].
    shares: [Option<SheetShare>; MessageClass::ALL.len()],
    packet_out: Bucket,
    flow_mod: Bucket,
    statistics: Bucket,
    other: Bucket,
    /// The tenant's share of the switch's time.
    time: Bucket,
}

impl Rates {
    pub(super) fn set(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Sets the tenant's shares by a data sheet, if there is one.
    pub(super) fn set_shares(&mut self, shares: [Option<SheetShare>; MessageClass::ALL.len()]) {
        self.shares = shares;
    }

    /// Whether the rates admit the message now. If not, returns when to try again. The operator's rates take precedence
    /// over the data sheet's.
    pub(super) fn admit(&mut self, item: &Item, now: Instant) -> Result<(), Instant> {
        let class = item.class.measured();
        let Limits { packet_out, flow_mod, statistics, .. } = self.limits;
        let (bucket, limit) = match item.class {
            Class::PacketOut => (&mut self.packet_out, packet_out),
            Class::Modification => (&mut self.flow_mod, flow_mod),
            Class::Statistics => (&mut self.statistics, statistics),
            Class::Barrier | Class::Other => (&mut self.other, None),
        };
        if limit.is_some() {
            // One request of the tenant may lead to several messages; only the request is charged.
            let is_charged = class != MessageClass::FlowMod || item.origin.is_some();
            return bucket.take(limit.filter(|_| is_charged), now);
        }
        let Some(share) = self.shares[class as usize] else { return Ok(()) };
        // The rates of the data sheet protect the switch, so they count all messages. A message that changes many
        // entries counts as several messages.
        let messages = item.share.max(1);
        bucket.fill(share.rate, 1, now)?;
        self.time.fill(share.time, messages, now)?;
        bucket.level -= share.rate.token;
        self.time.level = self.time.level.saturating_sub(share.time.price(messages));
        Ok(())
    }
}
