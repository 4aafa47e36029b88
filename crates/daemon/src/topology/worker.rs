//! The thread: reads news, updates the state, and sends the results.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fabric::labels::Notice;
use fabric::{Dpid, End, LinkId, LldpKey, PortId, PortNumber, TenantId};
use hypervisor::policy::Ownership;
use hypervisor::{FlowChange, Label, TenantIndex};

use super::inbox::{Inbox, News, SwitchNews};
use super::label_feed::{LabelFeed, LinkLabel};
use super::labeller::Labeller;
use super::orders::Orders;
use super::setup::Setup;
use super::state::State;
use super::tracker::Tracker;
use super::watch::{Snapshot, Watch};
use crate::metrics::Registry;
use crate::shard::command::{Command, Handle};

/// The most batches of orders that a shard has not handled.
const BATCHES: usize = 64;
/// The wait before orders without room are tried again.
const AGAIN: Duration = Duration::from_millis(20);

/// The pairs that are traced in one step, which takes a fraction of a millisecond.
const SLICE: usize = 64;
/// The shortest time between two readings of flow entries and measured rates.
const REST: Duration = Duration::from_millis(50);

pub(super) struct Worker {
    setup: Setup,
    seed: [u8; 16],
    state: State,
    tracker: Tracker,
    labeller: Labeller,
    /// The ownership on each connected switch: the ports that each tenant sees.
    ownership: BTreeMap<Dpid, Ownership>,
    places: BTreeMap<TenantId, TenantIndex>,
    origin: Instant,
    inbox: Arc<Inbox>,
    watch: Watch,
    label_feed: LabelFeed,
    metrics: Arc<Registry>,
    shards: Vec<Shard>,
    number: u64,
}

/// A shard, and its waiting orders.
struct Shard {
    handle: Handle,
    /// The number of batches that the shard has not handled yet.
    under_way: Arc<AtomicUsize>,
    frames: Vec<(u64, u32, Vec<u8>)>,
    /// The newest label of each port and tenant.
    labels: BTreeMap<(u64, TenantId, u32), Label>,
}

impl Worker {
    pub(super) fn new(
        setup: Setup,
        key: LldpKey,
        origin: Instant,
        inbox: &Arc<Inbox>,
        (watch, label_feed, metrics): (&Watch, &LabelFeed, Arc<Registry>),
        shards: Vec<Handle>,
    ) -> Worker {
        let shards = shards.into_iter().map(|handle| Shard {
            handle,
            under_way: Arc::default(),
            frames: Vec::new(),
            labels: BTreeMap::new(),
        });
        // The seed of the noise must not change with each start, and must not be the key itself.
        let seed = key.0.map(|byte| byte ^ 0x5a);
        let mut worker = Worker {
            state: State::new(setup.topology.clone(), key),
            labeller: Labeller::new(&setup.labels, seed),
            setup,
            seed,
            tracker: Tracker::default(),
            ownership: BTreeMap::new(),
            places: BTreeMap::new(),
            origin,
            inbox: Arc::clone(inbox),
            watch: watch.clone(),
            label_feed: label_feed.clone(),
            metrics,
            shards: shards.collect(),
            number: 0,
        };
        worker.take_setup();
        worker
    }

    pub(super) fn run(mut self) {
        let (mut again, mut rest, mut is_behind) = (None, None, false);
        loop {
            let due = [self.state.next_due(), self.labeller.next_due()].into_iter().flatten().min();
            let due = due.map(|due| self.origin + Duration::from_nanos(due.0));
            let due = match is_behind {
                // Shards that wait for this processor run first, and urgent news is handled first.
                true => {
                    std::thread::yield_now();
                    Some(Instant::now())
                }
                false => [due, again].into_iter().flatten().min(),
            };
            let news = self.inbox.wait(due, rest);
            if news.stop {
                return;
            }
            if news.has_flows() {
                rest = Some(Instant::now() + REST);
            }
            let now = fabric::Instant(self.origin.elapsed().as_nanos() as u64);
            self.take(news, now);
            self.state.handle_timeout(now);
            is_behind = self.follow(now);
            self.send_labels(now);
            while let Some(probe) = self.state.poll_probe(now) {
                let dpid = probe.port.dpid.0;
                if let Some(shard) = self.shard(dpid) {
                    shard.frames.push((dpid, probe.port.port.get(), probe.frame));
                }
            }
            again = self.send().then(|| Instant::now() + AGAIN);
        }
    }

    fn take(&mut self, news: News, now: fabric::Instant) {
        if news.dropped > 0 {
            tracing::warn!(dropped = news.dropped, "more probes or ports than could be kept");
        }
        if let Some(setup) = news.setup {
            if setup.labels != self.setup.labels {
                self.labeller = Labeller::new(&setup.labels, self.seed);
            }
            self.state.configure(setup.topology.clone(), now);
            self.setup = setup;
            self.take_setup();
        }
        if let Some(maps) = news.maps {
            self.tracker.handle_maps(maps);
        }
        for ((tenant, vnic), sent) in news.sent {
            self.tracker.handle_sent(tenant, vnic, sent);
        }
        for (dpid, news) in news.switches {
            self.take_switch(Dpid(dpid), news, now);
        }
        for (dpid, port, frame) in news.probes {
            let Ok(port) = PortNumber::new(port) else { continue };
            let at = PortId::new(Dpid(dpid), port);
            if let Err(refusal) = self.state.handle_probe(at, &frame, now) {
                tracing::debug!(%at, %refusal, "a probe counts for nothing");
            }
        }
        self.watch.set_refused_probes(self.state.refused());
    }

    fn take_switch(&mut self, dpid: Dpid, news: SwitchNews, now: fabric::Instant) {
        if news.is_gone {
            self.state.handle_switch_gone(dpid, now);
            self.tracker.handle_switch_gone(dpid);
            self.label_feed.handle_switch_gone(dpid);
            self.ownership.remove(&dpid);
            self.repeat_labels(dpid, now);
        }
        let is_new = self.state.network().switch_index(dpid).is_err() && !news.ports.is_empty();
        for (number, port) in news.ports {
            // Switches have no other port numbers.
            if let Ok(number) = PortNumber::new(number) {
                self.state.handle_port(PortId::new(dpid, number), port, now);
            }
        }
        if is_new {
            self.repeat_labels(dpid, now);
        }
        if let Some(version) = news.version {
            self.state.handle_version(dpid, version);
            let changes = news.flows.into_iter();
            let changes =
                changes.map(|((tenant, number), entry)| FlowChange { tenant, number, entry });
            self.tracker.handle_changes(dpid, version, changes);
        }
    }

    /// Sends the labels of a switch again after it has connected again.
    fn repeat_labels(&mut self, dpid: Dpid, now: fabric::Instant) {
        let links = self.state.wires().filter_map(|wire| wire.link);
        let leaves = |link: &LinkId| matches!(self.state.network().link(*link).from, End::Switch { port, .. } if port.dpid == dpid);
        let links: BTreeSet<LinkId> =
            links.flat_map(|link| [link, link.reverse()]).filter(leaves).collect();
        self.labeller.repeat(&links, now);
    }

    fn take_setup(&mut self) {
        let tenants = self.setup.tenants.iter();
        self.tracker.configure(tenants.map(|tenant| (tenant.id, tenant.vnics.as_slice())));
        let with_labels = self.setup.tenants.iter().filter(|tenant| tenant.gets_labels);
        self.label_feed
            .set_tenants(with_labels.map(|tenant| (tenant.name.clone(), tenant.id)).collect());
        let tenants = self.setup.tenants.iter().enumerate();
        self.places = tenants.map(|(at, tenant)| (tenant.id, TenantIndex(at as u32))).collect();
        self.ownership.clear();
    }

    /// Updates paths of flows and labels after possible changes of the network. Returns whether more flows have to be
    /// traced.
    fn follow(&mut self, now: fabric::Instant) -> bool {
        let changed = self.state.take_changed();
        let network = self.state.network();
        if changed.is_some() {
            let (places, policy) = (&self.places, &self.setup.policy);
            for (_, switch) in network.switches() {
                let dpid = switch.dpid();
                self.ownership.entry(dpid).or_insert_with(|| {
                    policy.ownership(dpid.0, places.len(), |id| places.get(&id).copied())
                });
            }
        }
        let (places, ownership) = (&self.places, &self.ownership);
        let sees = |tenant: TenantId, port: PortId| {
            let at = places.get(&tenant).zip(ownership.get(&port.dpid));
            at.is_some_and(|(place, owns)| owns.sees_port(*place, port.port.get()))
        };
        if let Some(changed) = &changed {
            self.tracker.handle_links(network, changed);
            self.labeller.touch(changed.iter().copied(), now);
            let wires: Vec<LinkId> = self.state.wires().filter_map(|wire| wire.link).collect();
            for tenant in self.setup.tenants.iter().filter(|tenant| tenant.gets_labels) {
                let links = wires.iter().flat_map(|link| [*link, link.reverse()]);
                let seen = |link: &LinkId| matches!(network.link(*link).from, End::Switch { port, .. } if sees(tenant.id, port));
                self.labeller.subscribe(tenant.id, links.filter(seen).collect(), now);
            }
            for tenant in self.setup.tenants.iter().filter(|tenant| !tenant.gets_labels) {
                self.labeller.subscribe(tenant.id, BTreeSet::new(), now);
            }
        }
        let is_behind = self.tracker.settle(network, &sees, SLICE);
        let touched = self.tracker.take_touched();
        let usage = self.tracker.usage();
        self.label_feed.set_loads(touched.iter().filter_map(
            |link| match network.link(*link).from {
                End::Switch { port, .. } => Some((port, usage.total(*link).bits_per_second())),
                End::Hosts(_) => None,
            },
        ));
        self.labeller.touch(touched, now);
        if let Some(changed) = changed {
            self.publish(&changed);
        }
        is_behind
    }

    /// Sends labels: to the label_feed at once, and to the switches' shards with the next orders.
    fn send_labels(&mut self, now: fabric::Instant) {
        let notices = self.labeller.poll(self.state.network(), self.tracker.usage(), now);
        for Notice { tenant, link, label, capacity } in notices {
            let End::Switch { port, .. } = self.state.network().link(link).from else { continue };
            let label =
                Label { left: label.bits_per_second(), capacity: capacity.bits_per_second() };
            self.label_feed.send(LinkLabel { tenant, port, label });
            if let Some(shard) = self.shard(port.dpid.0) {
                shard.labels.insert((port.dpid.0, tenant, port.port.get()), label);
            }
        }
        let ((flows, lost_flows), (sent, replaced)) =
            (self.tracker.counts(), self.labeller.counts());
        let metrics = &self.metrics.process.labels;
        metrics.flows.set(flows as u64);
        metrics.lost_flows.set(lost_flows as u64);
        metrics.sent.publish(sent);
        metrics.replaced.publish(replaced);
    }

    fn shard(&mut self, dpid: u64) -> Option<&mut Shard> {
        let at = dpid.checked_rem(self.shards.len() as u64)?;
        self.shards.get_mut(at as usize)
    }

    /// Gives orders to the shards; returns whether any order has to wait.
    fn send(&mut self) -> bool {
        let mut waits = false;
        for shard in &mut self.shards {
            if shard.frames.is_empty() && shard.labels.is_empty() {
                continue;
            }
            if shard.under_way.load(Ordering::Relaxed) >= BATCHES {
                // Probes are dropped, because the next ones follow soon; the newest labels wait.
                shard.frames.clear();
                waits |= !shard.labels.is_empty();
                continue;
            }
            let labels = std::mem::take(&mut shard.labels).into_iter();
            let orders = Orders::new(
                std::mem::take(&mut shard.frames),
                labels.map(|((dpid, tenant, port), it)| (dpid, tenant, port, it)).collect(),
                &shard.under_way,
            );
            shard.handle.send(Command::Topology(orders));
        }
        waits
    }

    fn publish(&mut self, changed: &[LinkId]) {
        self.number += 1;
        for link in changed {
            self.log(*link);
        }
        let snapshot = Snapshot {
            number: self.number,
            network: self.state.network().clone(),
            wires: self.state.wires().copied().collect(),
        };
        self.watch.publish(snapshot);
    }

    /// Logs the new state of a link, once for both directions.
    fn log(&self, link: LinkId) {
        let state = self.state.network().link(link);
        if let (End::Switch { port: a, .. }, End::Switch { port: b, .. }) = (state.from, state.to)
            && a < b
        {
            let capacity = state.capacity;
            match state.is_up() {
                true => tracing::info!(%a, %b, %capacity, "a link is up"),
                false => tracing::warn!(%a, %b, "a link is down"),
            }
        }
    }
}
