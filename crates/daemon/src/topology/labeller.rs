//! Decides which tenant gets which label, and when: subscriptions, and a bound on the labels of each tenant.
//!
//! [`fabric::labels`] decides which labels are to be sent. These labels pass a token bucket per tenant. Without a
//! token, the newest label of each link waits for one. So a controller that is slow with PORT_STATUS gets at most
//! `[labels] notices` per second, and its last label is the true one.

use std::collections::{BTreeMap, BTreeSet};

use fabric::labels::{Labels, Notice, Privacy, Settings};
use fabric::usage::Usage;
use fabric::{Duration, Instant, LinkId, Network, TenantId};

use crate::config;

const SECOND: u64 = 1_000_000_000;

/// The subscriptions, and the waiting labels.
pub(super) struct Labeller {
    labels: Labels,
    /// The subscribed links by tenant.
    subscribed: BTreeMap<TenantId, BTreeSet<LinkId>>,
    buckets: BTreeMap<TenantId, Bucket>,
    notices: u32,
    sent: u64,
    replaced: u64,
}

/// One tenant's tokens, and the labels that wait for a token.
#[derive(Default)]
struct Bucket {
    /// The tokens, in units of notices times one second in nanoseconds, so that rounding loses none.
    tokens: u64,
    filled: Instant,
    /// The waiting links in the order of arrival.
    line: BTreeMap<u64, LinkId>,
    waiting: BTreeMap<LinkId, (u64, Notice)>,
    next: u64,
}

impl Labeller {
    /// A labeller without subscriptions.
    pub(super) fn new(config: &config::Labels, seed: [u8; 16]) -> Labeller {
        let settings = Settings {
            hysteresis: config.hysteresis,
            minimum_interval: config.minimum_interval,
            privacy: Privacy { step: config.step, noise: config.noise, hold: config.hold, seed },
        };
        Labeller {
            labels: Labels::new(settings),
            subscribed: BTreeMap::new(),
            buckets: BTreeMap::new(),
            notices: config.notices,
            sent: 0,
            replaced: 0,
        }
    }

    /// Subscribes the tenant to exactly these links.
    pub(super) fn subscribe(&mut self, tenant: TenantId, links: BTreeSet<LinkId>, now: Instant) {
        let before = self.subscribed.remove(&tenant).unwrap_or_default();
        for link in before.difference(&links) {
            self.forget(tenant, *link);
        }
        for link in links.difference(&before) {
            self.labels.subscribe(tenant, *link, now);
        }
        if links.is_empty() {
            self.buckets.remove(&tenant);
        } else {
            self.subscribed.insert(tenant, links);
        }
    }

    /// Sends the labels of these links again to all subscribers, because their switch has connected again.
    pub(super) fn repeat(&mut self, links: &BTreeSet<LinkId>, now: Instant) {
        let tenants: Vec<(TenantId, Vec<LinkId>)> = self
            .subscribed
            .iter()
            .map(|(tenant, own)| (*tenant, own.intersection(links).copied().collect()))
            .collect();
        for (tenant, links) in tenants {
            for link in links {
                self.forget(tenant, link);
                self.labels.subscribe(tenant, link, now);
            }
        }
    }

    /// Notes that the loads, capacities or states of these links have changed.
    pub(super) fn touch(&mut self, links: impl IntoIterator<Item = LinkId>, now: Instant) {
        self.labels.touch(links, now);
    }

    /// The labels that are to be sent now.
    pub(super) fn poll(&mut self, network: &Network, usage: &Usage, now: Instant) -> Vec<Notice> {
        for notice in self.labels.poll(network, usage, now) {
            let bucket = self.buckets.entry(notice.tenant).or_insert_with(|| Bucket {
                tokens: u64::from(self.notices) * SECOND,
                filled: now,
                ..Bucket::default()
            });
            self.replaced += u64::from(bucket.put(notice));
        }
        let mut sent = Vec::new();
        for bucket in self.buckets.values_mut() {
            bucket.fill(self.notices, now);
            sent.extend(std::iter::from_fn(|| bucket.take()));
        }
        self.sent += sent.len() as u64;
        sent
    }

    /// When [`poll`](Labeller::poll) is next worth calling.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let waiting = self.buckets.values().filter(|bucket| !bucket.line.is_empty());
        let tokens = waiting.map(|bucket| {
            let missing = SECOND.saturating_sub(bucket.tokens);
            bucket.filled + Duration::from_nanos(missing.div_ceil(u64::from(self.notices.max(1))))
        });
        tokens.chain(self.labels.next_due()).min()
    }

    /// The numbers of sent labels, and of labels that a newer label replaced before they were sent.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.sent, self.replaced)
    }

    fn forget(&mut self, tenant: TenantId, link: LinkId) {
        self.labels.unsubscribe(tenant, link);
        if let Some(bucket) = self.buckets.get_mut(&tenant)
            && let Some((place, _)) = bucket.waiting.remove(&link)
        {
            bucket.line.remove(&place);
        }
    }
}

impl Bucket {
    /// Adds a notice to the queue; a newer notice takes the place of an older one of the same link. Returns whether
    /// there was an older one.
    fn put(&mut self, notice: Notice) -> bool {
        if let Some((_, waiting)) = self.waiting.get_mut(&notice.link) {
            *waiting = notice;
            return true;
        }
        self.line.insert(self.next, notice.link);
        self.waiting.insert(notice.link, (self.next, notice));
        self.next += 1;
        false
    }

    fn fill(&mut self, notices: u32, now: Instant) {
        let most = u64::from(notices) * SECOND;
        // A clock that jumps ahead only fills the bucket.
        let passed = now.nanos_since(self.filled).saturating_mul(u64::from(notices));
        self.tokens = self.tokens.saturating_add(passed).min(most);
        self.filled = now;
    }

    fn take(&mut self) -> Option<Notice> {
        if self.tokens < SECOND {
            return None;
        }
        let (_, link) = self.line.pop_first()?;
        self.tokens -= SECOND;
        self.waiting.remove(&link).map(|(_, notice)| notice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::usage::{Flow, FlowId};
    use fabric::{Bandwidth, Dpid, PortId};

    const RED: TenantId = TenantId(1);
    const BLUE: TenantId = TenantId(2);

    fn mbit(number: u64) -> Bandwidth {
        Bandwidth::from_megabits_per_second(number)
    }

    fn millis(number: u64) -> Instant {
        Instant(number * 1_000_000)
    }

    /// Two switches, and this number of wires of 10 Mbit/s between the switches.
    fn network(wires: u32) -> (Network, Vec<LinkId>) {
        let mut network = Network::default();
        let mut links = Vec::new();
        for dpid in [1, 2] {
            network.add_switch(Dpid(dpid)).unwrap();
        }
        for number in 1..=wires {
            let ports =
                [1, 2].map(|dpid| format!("{dpid} port {number}").parse::<PortId>().unwrap());
            for port in ports {
                network.add_port(port).unwrap();
            }
            links.push(network.connect(ports[0], ports[1], mbit(10), Duration::ZERO).unwrap().0);
        }
        (network, links)
    }

    fn labels(notices: Vec<Notice>) -> Vec<(u16, u64)> {
        notices.iter().map(|n| (n.tenant.0, n.label.bits_per_second() / 1_000_000)).collect()
    }

    #[test]
    fn label_updates_are_rate_limited_and_the_newest_label_is_sent() {
        let (network, links) = network(1);
        let config = config::Labels {
            minimum_interval: Duration::ZERO,
            notices: 2,
            ..config::Labels::default()
        };
        let mut labeller = Labeller::new(&config, [0; 16]);
        let mut usage = Usage::default();
        labeller.subscribe(RED, links.iter().copied().collect(), millis(0));
        assert_eq!(labels(labeller.poll(&network, &usage, millis(0))), [(1, 10)]);
        let flow = Flow { tenant: BLUE, rate: mbit(1), links: links.clone().into() };
        usage.add(&network, FlowId(1), flow).unwrap();
        let mut sent = Vec::new();
        // The rate changes each millisecond for more than a second: 2, 3, ... 9, 1, 2, ... Mbit/s.
        for step in 1..=1_050 {
            usage.set_rate(&network, FlowId(1), mbit(1 + step % 9)).unwrap();
            labeller.touch(usage.take_touched(), millis(step));
            sent.extend(labels(labeller.poll(&network, &usage, millis(step))));
        }
        assert_eq!(sent.len(), 3, "one that was left, and two a second: {sent:?}");
        // When the rate limit allows a further label, the current label is sent.
        let due = labeller.next_due().unwrap();
        let last = labels(labeller.poll(&network, &usage, due));
        assert_eq!(last, [(1, 10 - (1 + 1_050 % 9))]);
        assert!(labeller.next_due().is_none());
        assert_eq!(labeller.counts().0, 5);
    }

    #[test]
    fn a_tenant_with_many_labels_does_not_delay_labels_of_another_tenant() {
        let (network, links) = network(8);
        let config = config::Labels { notices: 4, ..config::Labels::default() };
        let mut labeller = Labeller::new(&config, [0; 16]);
        let usage = Usage::default();
        labeller.subscribe(RED, links.iter().copied().collect(), millis(0));
        labeller.subscribe(BLUE, links[..1].iter().copied().collect(), millis(0));
        let first = labels(labeller.poll(&network, &usage, millis(0)));
        assert_eq!(first.iter().filter(|(tenant, _)| *tenant == 1).count(), 4);
        assert_eq!(first.iter().filter(|(tenant, _)| *tenant == 2).count(), 1);
        assert_eq!(labeller.next_due(), Some(millis(250)));
        let later: usize =
            (1..=4).map(|step| labeller.poll(&network, &usage, millis(step * 250)).len()).sum();
        assert_eq!((later, labeller.next_due()), (4, None));
        // After a switch has connected again, the labels of all its links are sent again.
        labeller.repeat(&links[..2].iter().copied().collect(), millis(5_000));
        assert_eq!(labeller.poll(&network, &usage, millis(5_000)).len(), 3);
        labeller.subscribe(RED, BTreeSet::new(), millis(6_000));
        labeller.repeat(&links.iter().copied().collect(), millis(6_000));
        assert_eq!(labels(labeller.poll(&network, &usage, millis(6_000))), [(2, 10)]);
    }
}
