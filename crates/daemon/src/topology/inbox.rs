//! The news that shards send to the topology's thread. Shards never wait for the thread: the newest state of a port
//! replaces the older one, and probes without room are dropped and counted, because the next probes follow within a
//! second.
//!
//! News that can move links, such as ports and probes, wakes the thread at once. Flow entries and measured rates do not
//! wake the thread while it rests ([`Inbox::wait`]): at ten thousand changes per second each change would cost its
//! shard a wake-up, and the thread would follow changes that the next change undoes.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

use fabric::edge::Sent;
use fabric::{MacAddress, TenantId};
use hypervisor::{FlowChange, FlowEntry, PortState};
use openflow::Version;

use super::setup::{Maps, Setup};

use crate::lock::lock;

/// The most waiting probes.
const PROBES: usize = 4096;
/// The most ports of one switch with waiting news.
const PORTS: usize = 1 << 16;

/// The news since the last call of `wait`.
#[derive(Default)]
pub struct News {
    /// News of switches by datapath id.
    pub switches: BTreeMap<u64, SwitchNews>,
    /// Received probes: datapath id, port and frame.
    pub probes: VecDeque<(u64, u32, Vec<u8>)>,
    /// The number of probes and ports without room.
    pub dropped: u64,
    /// The newest measured rates of tenants' virtual interfaces.
    pub sent: HashMap<(TenantId, MacAddress), Sent>,
    /// The new maps of tenants' own networks.
    pub maps: Option<Maps>,
    /// A new configuration.
    pub setup: Option<Setup>,
    /// Whether the thread has to end.
    pub stop: bool,
    /// Whether there is urgent news.
    is_urgent: bool,
    /// Whether there is news that can wait.
    has_flows: bool,
    /// Whether the thread rests, and will read news that can wait by itself.
    rests: bool,
}

impl News {
    /// Whether the news includes flow entries or rates, which can wait.
    pub fn has_flows(&self) -> bool {
        self.has_flows
    }
}

/// The news of a switch.
#[derive(Default)]
pub struct SwitchNews {
    /// Whether the switch disconnected before the other news.
    pub is_gone: bool,
    /// The new states of ports; `None`: removed.
    pub ports: BTreeMap<u32, Option<PortState>>,
    /// The OpenFlow version, if there is news of ports or entries.
    pub version: Option<Version>,
    /// The new states of entries in tenants' tables; `None`: removed. The size of the tables bounds their number.
    pub flows: HashMap<(TenantId, u32), Option<FlowEntry>>,
}

/// The inbox.
#[derive(Default)]
pub struct Inbox {
    news: Mutex<News>,
    changed: Condvar,
}

impl Inbox {
    /// Sets the states of ports; `None`: removed. The thread reads these ports together.
    pub fn ports(&self, dpid: u64, version: Version, ports: Vec<(u32, Option<PortState>)>) {
        self.notify(|news| {
            let switch = news.switches.entry(dpid).or_default();
            switch.version = Some(version);
            let known = &mut switch.ports;
            for (number, state) in ports {
                if known.len() < PORTS || known.contains_key(&number) {
                    known.insert(number, state);
                } else {
                    news.dropped += 1;
                }
            }
        });
    }

    /// Reports added, changed and removed entries of tenants' tables.
    pub fn flows(&self, dpid: u64, version: Version, changes: Vec<FlowChange>) {
        self.mention(|news| {
            let switch = news.switches.entry(dpid).or_default();
            switch.version = Some(version);
            let changes = changes.into_iter().map(|it| ((it.tenant, it.number), it.entry));
            switch.flows.extend(changes);
        });
    }

    /// Reports that a switch has disconnected.
    pub fn gone(&self, dpid: u64) {
        let gone = SwitchNews { is_gone: true, ..SwitchNews::default() };
        self.notify(|news| drop(news.switches.insert(dpid, gone)));
    }

    /// Reports a received probe.
    pub fn probe(&self, dpid: u64, port: u32, frame: Vec<u8>) {
        self.notify(|news| {
            if news.probes.len() < PROBES {
                news.probes.push_back((dpid, port, frame));
            } else {
                news.dropped += 1;
            }
        });
    }

    /// Reports the measured rates of a virtual interface; `None`: not measured any more.
    pub fn sent(&self, tenant: TenantId, vnic: MacAddress, sent: Sent) {
        self.mention(|news| drop(news.sent.insert((tenant, vnic), sent)));
    }

    /// Sets new maps of tenants' own networks.
    pub fn maps(&self, maps: Maps) {
        self.notify(|news| news.maps = Some(maps));
    }

    /// Sets another configuration.
    pub fn configure(&self, setup: Setup) {
        self.notify(|news| news.setup = Some(setup));
    }

    /// Ends the thread.
    pub fn stop(&self) {
        self.notify(|news| news.stop = true);
    }

    /// Waits for news, and returns all news: at once if there is urgent news, and at `rest` if there is news that can
    /// wait. At `until` the call returns without news if the news can wait longer.
    pub fn wait(&self, until: Option<Instant>, rest: Option<Instant>) -> News {
        let mut news = lock(&self.news);
        loop {
            let now = Instant::now();
            let rest = rest.filter(|rest| *rest > now);
            if news.is_urgent || (news.has_flows && rest.is_none()) {
                return std::mem::take(&mut news);
            }
            if until.is_some_and(|until| until <= now) {
                return News::default();
            }
            news.rests = rest.is_some();
            let next = [until, rest].into_iter().flatten().min();
            news = match next {
                Some(next) => {
                    let waited =
                        self.changed.wait_timeout(news, next.saturating_duration_since(now));
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(news).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn notify(&self, add: impl FnOnce(&mut News)) {
        let mut news = lock(&self.news);
        add(&mut news);
        news.is_urgent = true;
        drop(news);
        self.changed.notify_one();
    }

    /// Adds news that can wait.
    fn mention(&self, add: impl FnOnce(&mut News)) {
        let mut news = lock(&self.news);
        add(&mut news);
        let wakes = !news.has_flows && !news.rests;
        news.has_flows = true;
        drop(news);
        if wakes {
            self.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: Option<PortState> = Some(PortState { is_up: true, speed: 0 });

    #[test]
    fn the_newest_port_state_is_kept_and_a_disconnected_switch_starts_empty() {
        let inbox = Inbox::default();
        inbox.ports(1, Version::V1_3, vec![(1, UP)]);
        inbox.ports(1, Version::V1_3, vec![(1, None)]);
        inbox.ports(2, Version::V1_3, vec![(1, UP)]);
        inbox.gone(2);
        inbox.ports(2, Version::V1_3, vec![(7, UP)]);
        let news = inbox.wait(None, None);
        assert_eq!(news.switches[&1].ports, BTreeMap::from([(1, None)]));
        assert!(!news.switches[&1].is_gone && news.switches[&2].is_gone);
        assert_eq!(news.switches[&2].ports, BTreeMap::from([(7, UP)]));
        let nothing = inbox.wait(Some(Instant::now()), None);
        assert!(nothing.switches.is_empty() && !nothing.stop);
    }

    #[test]
    fn the_topology_inbox_is_bounded_and_counts_dropped_news() {
        let inbox = Inbox::default();
        for _ in 0..PROBES + 3 {
            inbox.probe(1, 1, vec![0; 64]);
        }
        inbox.ports(1, Version::V1_3, (0..PORTS as u32 + 2).map(|number| (number, UP)).collect());
        let news = inbox.wait(None, None);
        assert_eq!((news.probes.len(), news.switches[&1].ports.len()), (PROBES, PORTS));
        assert_eq!(news.dropped, 5);
    }

    #[test]
    fn only_flow_changes_and_measured_rates_wait_for_the_end_of_the_pause() {
        let (inbox, now) = (Inbox::default(), Instant::now());
        let (soon, never) = (now, now + std::time::Duration::from_secs(3600));
        let change = || FlowChange { tenant: TenantId(1), number: 1, entry: None };
        inbox.flows(1, Version::V1_0, vec![change()]);
        assert_eq!(inbox.wait(Some(never), None).switches[&1].flows.len(), 1, "nobody rests");
        inbox.flows(1, Version::V1_0, vec![change()]);
        assert_eq!(inbox.wait(Some(never), Some(soon)).switches[&1].flows.len(), 1, "rested");
        // A flow change alone waits. An urgent change of a port ends the wait, and both changes are returned.
        inbox.flows(1, Version::V1_0, vec![change()]);
        inbox.ports(2, Version::V1_3, vec![(1, UP)]);
        assert_eq!(inbox.wait(Some(never), Some(never)).switches.len(), 2);
        inbox.sent(TenantId(1), MacAddress::new([2, 0, 0, 0, 0, 1]).unwrap(), None);
        assert_eq!(
            inbox.wait(Some(soon), Some(never)).sent.len(),
            0,
            "it has something else to do"
        );
        assert_eq!(inbox.wait(Some(never), Some(soon)).sent.len(), 1, "rested");
    }
}
