//! What shards tell the topology's thread. They never wait for it: what was told last of a port replaces what was told
//! before, and probes that find no room are dropped and counted, since the next ones follow within a second.
//!
//! Ports, probes and whatever else can move links wake it at once. Flow entries and measured rates do not while it rests
//! ([`Inbox::wait`]): at ten thousand changes a second each would cost its shard a wake-up, and what a change undoes of the
//! one before it would be followed in vain.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use fabric::edge::Sent;
use fabric::{MacAddress, TenantId};
use hypervisor::{FlowChange, FlowEntry, PortState};
use openflow::Version;

use super::setup::{Maps, Setup};

/// Probes that may wait.
const PROBES: usize = 4096;
/// Ports of one switch of which news may wait.
const PORTS: usize = 1 << 16;

/// What has been told since it was last taken.
#[derive(Default)]
pub struct News {
    /// By datapath id.
    pub switches: BTreeMap<u64, SwitchNews>,
    /// Datapath id, port and frame.
    pub probes: VecDeque<(u64, u32, Vec<u8>)>,
    /// Probes, and ports, that found no room.
    pub dropped: u64,
    /// What tenants' virtual interfaces send, as agents measure it: the newest of each.
    pub sent: HashMap<(TenantId, MacAddress), Sent>,
    /// Where tenants' own networks are now.
    pub maps: Option<Maps>,
    /// A new configuration.
    pub setup: Option<Setup>,
    /// The thread is to end.
    pub stop: bool,
    /// There is something that does not wait.
    is_urgent: bool,
    /// There is something that can.
    is_told: bool,
    /// The thread looks by itself when what can wait has waited long enough.
    rests: bool,
}

impl News {
    /// Whether there is something that could have waited.
    pub fn tells_flows(&self) -> bool {
        self.is_told
    }
}

/// What has been told of a switch.
#[derive(Default)]
pub struct SwitchNews {
    /// It went, before all that follows.
    pub is_gone: bool,
    /// Its ports as they are now; `None` is gone.
    pub ports: BTreeMap<u32, Option<PortState>>,
    /// The version that it speaks, once it told of ports or of entries.
    pub version: Option<Version>,
    /// Entries of tenants' tables as they are now; `None` is gone. As many as the tables may hold.
    pub flows: HashMap<(TenantId, u32), Option<FlowEntry>>,
}

/// Where it is told.
#[derive(Default)]
pub struct Inbox {
    news: Mutex<News>,
    told: Condvar,
}

impl Inbox {
    /// Ports as they are now; `None` is gone. They are taken together, as they were told.
    pub fn ports(&self, dpid: u64, version: Version, ports: Vec<(u32, Option<PortState>)>) {
        let mut news = self.lock();
        let switch = news.switches.entry(dpid).or_default();
        switch.version = Some(version);
        let known = &mut switch.ports;
        let mut dropped = 0;
        for (number, state) in ports {
            if known.len() < PORTS || known.contains_key(&number) {
                known.insert(number, state);
            } else {
                dropped += 1;
            }
        }
        news.dropped += dropped;
        self.tell(news);
    }

    /// Entries of tenants' tables came, changed or went.
    pub fn flows(&self, dpid: u64, version: Version, changes: Vec<FlowChange>) {
        let mut news = self.lock();
        let switch = news.switches.entry(dpid).or_default();
        switch.version = Some(version);
        let changes = changes.into_iter().map(|it| ((it.tenant, it.number), it.entry));
        switch.flows.extend(changes);
        self.mention(news);
    }

    /// A switch has gone.
    pub fn gone(&self, dpid: u64) {
        let mut news = self.lock();
        news.switches.insert(dpid, SwitchNews { is_gone: true, ..SwitchNews::default() });
        self.tell(news);
    }

    /// A probe came in.
    pub fn probe(&self, dpid: u64, port: u32, frame: Vec<u8>) {
        let mut news = self.lock();
        if news.probes.len() < PROBES {
            news.probes.push_back((dpid, port, frame));
        } else {
            news.dropped += 1;
        }
        self.tell(news);
    }

    /// What a virtual interface sends; nothing is known of it any more if there is `None`.
    pub fn sent(&self, tenant: TenantId, vnic: MacAddress, sent: Sent) {
        let mut news = self.lock();
        news.sent.insert((tenant, vnic), sent);
        self.mention(news);
    }

    /// Tenants' own networks are elsewhere.
    pub fn maps(&self, maps: Maps) {
        let mut news = self.lock();
        news.maps = Some(maps);
        self.tell(news);
    }

    /// Another configuration.
    pub fn configure(&self, setup: Setup) {
        let mut news = self.lock();
        news.setup = Some(setup);
        self.tell(news);
    }

    /// Ends the thread.
    pub fn stop(&self) {
        let mut news = self.lock();
        news.stop = true;
        self.tell(news);
    }

    /// Everything that was told, as soon as there is something that cannot wait, and at `rest` if there is something that
    /// can; nothing at `until`, if what was told can wait longer.
    pub fn wait(&self, until: Option<Instant>, rest: Option<Instant>) -> News {
        let mut news = self.lock();
        loop {
            let now = Instant::now();
            let rest = rest.filter(|rest| *rest > now);
            if news.is_urgent || (news.is_told && rest.is_none()) {
                return std::mem::take(&mut news);
            }
            if until.is_some_and(|until| until <= now) {
                return News::default();
            }
            news.rests = rest.is_some();
            let next = [until, rest].into_iter().flatten().min();
            news = match next {
                Some(next) => {
                    let waited = self.told.wait_timeout(news, next.saturating_duration_since(now));
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.told.wait(news).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, mut news: MutexGuard<'_, News>) {
        news.is_urgent = true;
        drop(news);
        self.told.notify_one();
    }

    /// Of what can wait.
    fn mention(&self, mut news: MutexGuard<'_, News>) {
        let wakes = !news.is_told && !news.rests;
        news.is_told = true;
        drop(news);
        if wakes {
            self.told.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: Option<PortState> = Some(PortState { is_up: true, speed: 0 });

    #[test]
    fn the_newest_word_of_a_port_replaces_the_older_and_a_switch_that_went_starts_anew() {
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
    fn it_is_bounded_and_counts_what_it_leaves_out() {
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
    fn what_can_wait_waits_until_the_thread_has_rested_and_nothing_else_does() {
        let (inbox, now) = (Inbox::default(), Instant::now());
        let (soon, never) = (now, now + std::time::Duration::from_secs(3600));
        let change = || FlowChange { tenant: TenantId(1), number: 1, entry: None };
        inbox.flows(1, Version::V1_0, vec![change()]);
        assert_eq!(inbox.wait(Some(never), None).switches[&1].flows.len(), 1, "nobody rests");
        inbox.flows(1, Version::V1_0, vec![change()]);
        assert_eq!(inbox.wait(Some(never), Some(soon)).switches[&1].flows.len(), 1, "rested");
        // It comes along with what cannot wait.
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
