//! When a tenant receives the label of a link, and how exact the label is.
//!
//! The residual bandwidth ([`Usage::label`]) is first blurred as the operator chose ([`Privacy`]). The tenant receives
//! the label if it differs enough from the last one ([`Settings::hysteresis`]), and at most one per link and
//! [`Settings::minimum_interval`]. Changes in between are not queued: after the interval only the newest label is sent.
//! So the operator's settings bound the work, for any flows.
//!
//! The time of a label depends on changes of the link, so a label shows when a neighbour changed something.
//! [`Privacy::hold`] prevents this: each tenant's label of each link is then computed only at secret random instants,
//! one in each period of that length. A label shows only the load at that instant.
//!
//! With hysteresis *h* and no privacy, the error of a label is less than *h* as soon as a minimum interval has passed
//! without a change. Labels of empty and of full links are exact.

use crate::index::LinkId;
use crate::network::Network;
use crate::time::{Duration, Instant, nanos};
use crate::units::{Bandwidth, TenantId};
use crate::usage::Usage;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::hash::Hasher;
use hashbrown::HashMap;
use siphasher::sip::SipHasher24;

/// When and how exactly labels are sent.
#[derive(Clone, Debug)]
pub struct Settings {
    /// A smaller change is not sent.
    pub hysteresis: Bandwidth,
    /// The shortest time between two labels of the same link.
    pub minimum_interval: Duration,
    /// How labels are blurred.
    pub privacy: Privacy,
}

impl Default for Settings {
    /// Exact labels, at most ten times per second and link.
    fn default() -> Settings {
        Settings {
            hysteresis: Bandwidth::from_kilobits_per_second(1),
            minimum_interval: Duration::from_millis(100),
            privacy: Privacy::default(),
        }
    }
}

/// How labels are blurred to hide a neighbour's load.
///
/// The noise comes first, then rounding down to the step. The noise is a keyed hash (SipHash-2-4) of tenant, link and
/// level, and is not drawn again for each label. So the same load always has the same label for a tenant, and repeated
/// requests do not average the noise away.
///
/// Noise and step hide the size of a change, but not the change itself; [`hold`](Privacy::hold) bounds the number of
/// visible changes.
#[derive(Clone, Default)]
pub struct Privacy {
    /// Labels are rounded down to multiples of this value; 0: exact labels.
    pub step: Bandwidth,
    /// The largest noise in each direction, before rounding; 0: no noise.
    pub noise: Bandwidth,
    /// A label changes at most once in each period of this length, at an instant that depends only on tenant, link and
    /// period; 0: no bound.
    pub hold: Duration,
    /// The seed of noise and instants; a secret of the operator.
    pub seed: [u8; 16],
}

impl core::fmt::Debug for Privacy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "Privacy {{ step: {}, noise: {}, hold: {:?}, .. }}",
            self.step, self.noise, self.hold
        )
    }
}

impl Privacy {
    /// The label that the tenant may see; at most the capacity of the link.
    pub fn blur(
        &self,
        tenant: TenantId,
        link: LinkId,
        label: Bandwidth,
        capacity: Bandwidth,
    ) -> Bandwidth {
        let step = self.step.bits_per_second().max(1);
        let level = label.bits_per_second() / step * step;
        let noise = self.noise.bits_per_second();
        let noisy = match noise.checked_mul(2).and_then(|width| width.checked_add(1)) {
            None | Some(1) => level,
            Some(width) => {
                let off = self.draw(Draw::Noise, tenant, link, level) % width;
                level.saturating_add(off).saturating_sub(noise)
            }
        };
        let seen = noisy.min(capacity.bits_per_second()) / step * step;
        Bandwidth::from_bits_per_second(seen)
    }

    /// The first instant from `now` on at which the tenant's label of the link may change.
    pub fn next_look(&self, tenant: TenantId, link: LinkId, now: Instant) -> Instant {
        let hold = nanos(self.hold);
        if hold == 0 {
            return now;
        }
        let period = now.0 / hold;
        let look = |period: u64| {
            let into = self.draw(Draw::Instant, tenant, link, period) % hold;
            Instant(period.saturating_mul(hold).saturating_add(into))
        };
        let this = look(period);
        if this >= now { this } else { look(period + 1) }
    }

    fn draw(&self, what: Draw, tenant: TenantId, link: LinkId, level: u64) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.seed);
        hasher.write(&[what as u8]);
        hasher.write(&tenant.0.to_be_bytes());
        hasher.write(&(link.index() as u64).to_be_bytes());
        hasher.write(&level.to_be_bytes());
        hasher.finish()
    }
}

/// The purpose of a secret number.
#[derive(Clone, Copy)]
enum Draw {
    Noise,
    Instant,
}

/// The label of a link for a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The tenant that gets the label.
    pub tenant: TenantId,
    /// The link.
    pub link: LinkId,
    /// The residual bandwidth for the tenant.
    pub label: Bandwidth,
    /// The capacity of the link.
    pub capacity: Bandwidth,
}

/// The subscriptions of tenants to links, and the last labels.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    settings: Settings,
    /// The last label by link and tenant.
    sent: HashMap<LinkId, BTreeMap<TenantId, SentLabel>>,
    /// Links by the time of their next computation.
    due: BTreeSet<(Instant, LinkId)>,
    /// The time in `due` of each link, and the time of the last computation.
    clocks: HashMap<LinkId, Clock>,
}

/// One tenant's label of one link.
#[derive(Clone, Copy, Debug, Default)]
struct SentLabel {
    label: Option<Bandwidth>,
    /// The time of the next computation, if the link has changed since the last one.
    due: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    due: Option<Instant>,
    looked: Option<Instant>,
}

impl Labels {
    /// No tenant is subscribed yet.
    pub fn new(settings: Settings) -> Labels {
        Labels { settings, ..Labels::default() }
    }

    /// Subscribes a tenant to a link; the first label is due at once.
    pub fn subscribe(&mut self, tenant: TenantId, link: LinkId, now: Instant) {
        self.sent.entry(link).or_default().entry(tenant).or_default();
        self.schedule(link, now);
    }

    /// Ends a tenant's subscription to a link.
    pub fn unsubscribe(&mut self, tenant: TenantId, link: LinkId) {
        let Some(tenants) = self.sent.get_mut(&link) else { return };
        tenants.remove(&tenant);
        if tenants.is_empty() {
            self.sent.remove(&link);
            if let Some(due) = self.clocks.remove(&link).and_then(|clock| clock.due) {
                self.due.remove(&(due, link));
            }
        }
    }

    /// Notes that the loads, capacities or states of these links have changed.
    pub fn touch(&mut self, links: impl IntoIterator<Item = LinkId>, now: Instant) {
        for link in links {
            let Some(tenants) = self.sent.get_mut(&link) else { continue };
            let privacy = &self.settings.privacy;
            let due = tenants.iter_mut().map(|(&tenant, sent)| {
                let next = privacy.next_look(tenant, link, now);
                *sent.due.insert(sent.due.map_or(next, |due| due.min(next)))
            });
            if let Some(due) = due.min() {
                let due = self.next_look(link, now).max(due);
                self.schedule(link, due);
            }
        }
    }

    /// When [`poll`](Labels::poll) is next worth calling.
    pub fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// The labels that are to be sent now.
    pub fn poll(&mut self, network: &Network, usage: &Usage, now: Instant) -> Vec<Notice> {
        let mut notices = Vec::new();
        while let Some(&(due, link)) = self.due.first() {
            if due > now {
                break;
            }
            self.due.pop_first();
            let early = self.is_early(link, now);
            let Some(tenants) = self.sent.get_mut(&link) else { continue };
            let capacity = network.link(link).capacity;
            for (&tenant, sent) in tenants.iter_mut() {
                let is_due = !early && sent.due.is_some_and(|due| due <= now);
                if sent.label.is_some() && !is_due {
                    continue;
                }
                sent.due = None;
                let label = usage.label(network, link, tenant);
                let label = self.settings.privacy.blur(tenant, link, label, capacity);
                if is_worth_sending(sent.label, label, capacity, self.settings.hysteresis) {
                    sent.label = Some(label);
                    notices.push(Notice { tenant, link, label, capacity });
                }
            }
            if let Some(due) = tenants.values().filter_map(|sent| sent.due).min() {
                let due = self.next_look(link, now).max(due);
                self.schedule(link, due);
            }
        }
        notices
    }

    /// Whether a link's interval has not passed yet. Then only new subscribers get a label, and the link is due at the
    /// end of the interval. If the interval has passed, the next interval begins.
    fn is_early(&mut self, link: LinkId, now: Instant) -> bool {
        let next = self.next_look(link, now);
        let clock = self.clocks.entry(link).or_default();
        clock.due = None;
        if next <= now {
            clock.looked = Some(now);
            return false;
        }
        self.schedule(link, next);
        true
    }

    /// The end of the link's interval; `now` if the interval has passed. With [`Privacy::hold`] there is no interval:
    /// one tenant's label would delay another tenant's label, and so become visible.
    fn next_look(&self, link: LinkId, now: Instant) -> Instant {
        if self.settings.privacy.hold > Duration::ZERO {
            return now;
        }
        // A clock that was set back must not silence a link until the clock has caught up.
        let looked = self.clocks.get(&link).and_then(|clock| clock.looked);
        let looked = looked.filter(|looked| *looked <= now);
        looked.map_or(now, |looked| (looked + self.settings.minimum_interval).max(now))
    }

    /// The last label of the link that the tenant got.
    pub fn last_sent(&self, tenant: TenantId, link: LinkId) -> Option<Bandwidth> {
        self.sent.get(&link)?.get(&tenant)?.label
    }

    /// Makes a link due at `due`, or earlier if an earlier time is planned.
    fn schedule(&mut self, link: LinkId, due: Instant) {
        let clock = self.clocks.entry(link).or_default();
        match clock.due {
            Some(planned) if planned <= due => return,
            Some(planned) => _ = self.due.remove(&(planned, link)),
            None => {}
        }
        clock.due = Some(due);
        self.due.insert((due, link));
    }
}

/// Whether a label is to be sent: the first label, a large enough change, and any change to 0 or to the whole capacity.
fn is_worth_sending(
    last: Option<Bandwidth>,
    label: Bandwidth,
    capacity: Bandwidth,
    hysteresis: Bandwidth,
) -> bool {
    let Some(last) = last else { return true };
    let change = last.max(label).saturating_sub(last.min(label));
    let is_extreme = label == Bandwidth::ZERO || label == capacity;
    change >= hysteresis.max(Bandwidth::from_bits_per_second(1))
        || (change > Bandwidth::ZERO && is_extreme)
}
