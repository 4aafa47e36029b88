//! The counted events: per switch, per tenant on a switch, and for the process.

use hypervisor::{NumberShare, PortTraffic, RateShare, Standing, TableShare};
use std::array;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::api::ApiMetrics;
use super::contacts::Contacts;
use super::instruments::{Counter, Gauge, Histogram, SharedCounter};
use super::kinds::{Direction, DropReason, Kind, Rejection};
use super::names;
use super::totals::{Sums, TenantTotals, Totals};

use crate::lock::lock;

/// OpenFlow message types with a counter of their own; all others share the last one, as in the core.
pub(super) const TYPES: usize = hypervisor::counters::TYPES - 1;

/// Messages by OpenFlow type, for one direction.
#[derive(Debug)]
pub struct Messages([Counter; TYPES + 1]);

impl Default for Messages {
    fn default() -> Self {
        Messages(array::from_fn(|_| Counter::default()))
    }
}

impl Messages {
    /// Counts one message of the type (the second byte of its header).
    #[inline]
    pub fn count(&self, message_type: u8) {
        if let Some(counter) = self.0.get(usize::from(message_type).min(TYPES)) {
            counter.increment();
        }
    }

    /// Copies counts that are kept elsewhere, by type; counts of unknown types are added up.
    pub fn publish(&self, by_type: &[u64]) {
        let (known, beyond) = by_type.split_at(by_type.len().min(TYPES));
        self.0.iter().zip(known).for_each(|(counter, &total)| counter.publish(total));
        if let Some(counter) = self.0.last() {
            counter.publish(beyond.iter().sum());
        }
    }

    /// All types together.
    pub fn total(&self) -> u64 {
        self.0.iter().map(Counter::get).sum()
    }

    /// The types seen so far; `None`: all types that OpenFlow does not define.
    pub(super) fn seen(&self) -> impl Iterator<Item = (Option<u8>, u64)> + '_ {
        let numbered = self.0.iter().enumerate();
        numbered
            .map(|(i, c)| ((i < TYPES).then_some(i as u8), c.get()))
            .filter(|&(_, count)| count > 0)
    }
}

/// The counters of one switch connection.
#[derive(Debug, Default)]
pub struct SwitchMetrics {
    /// The switch.
    pub dpid: u64,
    /// Negotiated OpenFlow version, 0x01 or 0x04.
    pub version: u8,
    /// Messages received on the switch's connection, including answers to Weir.
    pub received: Messages,
    /// Messages sent on the switch's connection, including Weir's own messages.
    pub sent: Messages,
    /// Sent messages that no tenant has requested.
    pub own_messages: Counter,
    /// PACKET_INs that belong to no tenant.
    pub packet_in_unclaimed: Counter,
    /// Malformed or unexpected messages of the switch.
    pub unexpected: Counter,
    /// Requests that the switch never answered.
    pub unanswered: Counter,
    /// Changes of Weir's own that the switch refused.
    pub own_refused: Counter,
    /// Rules of other installations of Weir on the switch when it connected.
    pub others_rules: Gauge,
    /// The window: the most unacknowledged messages at the switch, adapted to its speed.
    pub window: Gauge,
    /// The present number of unacknowledged messages at the switch.
    pub outstanding: Gauge,
    /// Bits per second that each port sends, by the switch's own counters.
    pub port_loads: Mutex<BTreeMap<u32, u64>>,
    /// The data sheet of the switch.
    pub sheet: Mutex<SheetUse>,
    known_as: AtomicU64,
    tenants: Mutex<BTreeMap<u16, Weak<TenantMetrics>>>,
    totals: Arc<Totals>,
}

impl SwitchMetrics {
    pub(super) fn new(dpid: u64, version: u8, totals: Arc<Totals>) -> Self {
        SwitchMetrics {
            dpid,
            version,
            known_as: AtomicU64::new(dpid),
            totals,
            ..SwitchMetrics::default()
        }
    }

    /// The datapath id for people: for a big switch, the id that its tenant sees.
    pub fn known_as(&self) -> u64 {
        self.known_as.load(Ordering::Relaxed)
    }

    /// Sets the datapath id for people.
    pub fn set_known_as(&self, dpid: u64) {
        self.known_as.store(dpid, Ordering::Relaxed);
    }

    /// Instruments for a tenant on this switch, counting from zero; the newest registration of an id is shown.
    pub fn tenant(&self, id: u16, name: &str) -> Arc<TenantMetrics> {
        let metrics = Arc::new(TenantMetrics::new(name, self.totals.tenant(name)));
        let mut tenants = lock(&self.tenants);
        tenants.retain(|_, tenant| tenant.strong_count() > 0);
        tenants.insert(id, Arc::downgrade(&metrics));
        metrics
    }

    /// The tenants on this switch, by ascending id.
    pub fn tenants(&self) -> Vec<Arc<TenantMetrics>> {
        let tenants = lock(&self.tenants);
        tenants.values().filter_map(Weak::upgrade).collect()
    }
}

/// A switch's data sheet, and the switch's description of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SheetUse {
    /// Whether there is a data sheet, and whether it belongs to this switch.
    pub standing: Standing,
    /// The manufacturer, hardware and software of the switch.
    pub description: Option<[String; 3]>,
}

/// The limits of a tenant on a switch, with its weight and the sum of all weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grant {
    /// Whether the tenant has a part of the switch.
    pub served: bool,
    /// The weight of the tenant.
    pub weight: u32,
    /// The weights of all tenants that have a part of the switch.
    pub weights: u64,
    /// The most rules by the tenant's own limit.
    pub most_rules: u32,
    /// The tenant's shares of the switch's tables with known sizes.
    pub shares: Vec<TableShare>,
    /// The tenant's limits of groups and meters on the switch.
    pub numbers: Vec<NumberShare>,
    /// The tenant's message rates, as far as limits exist.
    pub rates: Vec<RateShare>,
}

/// The counters of one tenant on one switch.
#[derive(Debug, Default)]
pub struct TenantMetrics {
    /// The tenant's name.
    pub name: String,
    /// The tenant's counters over all switches.
    pub totals: Arc<TenantTotals>,
    /// The connections to the tenant's controllers, for this switch.
    pub contacts: Contacts,
    /// Controllers connected now for this switch.
    pub controllers: Gauge,
    /// Messages that wait in this tenant's southbound queue.
    pub queue_southbound: Gauge,
    /// Messages that wait in this tenant's northbound queue.
    pub queue_northbound: Gauge,
    /// Entries in the tenant's virtual flow table.
    pub flows: Gauge,
    /// Rules on the switch for these entries.
    pub entries: Gauge,
    /// Groups.
    pub groups: Gauge,
    /// Meters.
    pub meters: Gauge,
    /// The tenant's limits on the switch.
    pub grant: Mutex<Grant>,
    /// The counters of the tenant's ports.
    pub ports: Mutex<Vec<PortTraffic>>,
    /// Bytes for the tenant's unfinished requests.
    pub held: Gauge,
    /// Entries that Weir has examined for the tenant's requests.
    pub examined: Counter,
    /// The time from reading a tenant's message until it is in the switch's send buffer.
    pub added_southbound: Histogram,
    /// The time from reading a switch's message until it is in a controller's send buffer.
    pub added_northbound: Histogram,
    messages: [Messages; 4],
    dropped: [Counter; DropReason::ALL.len()],
    refused: Refusals,
}

impl TenantMetrics {
    fn new(name: &str, totals: Arc<TenantTotals>) -> Self {
        TenantMetrics { name: name.to_owned(), totals, ..TenantMetrics::default() }
    }

    /// Messages of the tenant in one direction. `FromSwitch` and `ToSwitch` count messages on the tenant's behalf, so
    /// their sum over tenants differs from the switch's own count by Weir's own messages.
    #[inline]
    pub fn messages(&self, direction: Direction) -> &Messages {
        &self.messages[direction as usize]
    }

    /// PACKET_INs that did not reach the tenant.
    #[inline]
    pub fn dropped(&self, why: DropReason) -> &Counter {
        &self.dropped[why as usize]
    }

    /// Copies the count of an error that is kept elsewhere.
    pub fn publish_refused(&self, error_type: u16, code: u16, total: u64) {
        self.refused.counter(error_type, code).publish(total);
    }

    /// Requests refused so far, all errors together.
    pub fn refused(&self) -> u64 {
        self.refused.seen().map(|(_, count)| count).sum()
    }

    /// Requests refused so far, by the error's name; those of a kind beyond the first sixteen are `other`.
    pub fn refused_by_error(&self, version: u8) -> Vec<(String, u64)> {
        self.refused.seen().map(|(error, count)| (names::error(version, error), count)).collect()
    }

    /// PACKET_INs that did not reach the tenant, by reason.
    pub fn dropped_by_reason(&self) -> Vec<(String, u64)> {
        let all = DropReason::ALL.iter();
        let counts = all.map(|&(why, name)| (name.to_owned(), self.dropped(why).get()));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// Adds the tenant's counts on the switch, which has this version.
    pub(super) fn add_to(&self, sums: &mut Sums, version: u8) {
        for (at, (direction, _)) in Direction::ALL.into_iter().enumerate() {
            for (message_type, count) in self.messages(direction).seen() {
                let known = message_type.and_then(|t| names::message_type(version, t));
                *sums.messages.entry((at, known.unwrap_or("unknown"))).or_default() += count;
            }
        }
        for (error, count) in self.refusals() {
            *sums.refused.entry(names::error(version, error)).or_default() += count;
        }
        for (sum, (why, _)) in sums.dropped.iter_mut().zip(DropReason::ALL) {
            *sum += self.dropped(why).get();
        }
        sums.examined += self.examined.get();
        let histograms = [&self.added_southbound, &self.added_northbound];
        for (sum, histogram) in sums.added.iter_mut().zip(histograms) {
            let snapshot = histogram.snapshot();
            match sum {
                Some(sum) => sum.add(&snapshot),
                None => *sum = Some(snapshot),
            }
        }
    }

    /// Adds messages that the switch does not get, because its connection has ended: by message type, in this version.
    pub fn lose(&self, version: u8, by_type: &[u64]) {
        let messages = Messages::default();
        messages.publish(by_type);
        self.totals.add(|past| {
            for (message_type, count) in messages.seen() {
                let known = message_type.and_then(|t| names::message_type(version, t));
                *past.lost.entry(known.unwrap_or("unknown")).or_default() += count;
            }
        });
    }

    /// Ends the tenant's session on the switch: its counts stay in the totals.
    pub(super) fn retire(&self, version: u8) {
        self.totals.add(|past| self.add_to(past, version));
    }

    /// Errors sent so far: (type, code), and `None` for all beyond the first sixteen kinds.
    pub(super) fn refusals(&self) -> impl Iterator<Item = (Option<(u16, u16)>, u64)> + '_ {
        self.refused.seen()
    }
}

/// Counts by error (type, code): the first sixteen kinds that occur have a slot of their own.
#[derive(Debug, Default)]
struct Refusals {
    slots: [(AtomicU64, Counter); 16],
    other: Counter,
}

/// Marks a slot as used, because (0, 0) is an error, too.
const TAKEN: u64 = 1 << 32;

impl Refusals {
    fn counter(&self, error_type: u16, code: u16) -> &Counter {
        let key = TAKEN | u64::from(error_type) << 16 | u64::from(code);
        for (slot, counter) in &self.slots {
            match slot.load(Ordering::Relaxed) {
                0 => slot.store(key, Ordering::Relaxed),
                taken if taken != key => continue,
                _ => {}
            }
            return counter;
        }
        &self.other
    }

    fn seen(&self) -> impl Iterator<Item = (Option<(u16, u16)>, u64)> + '_ {
        let named = self.slots.iter().map(|(slot, counter)| {
            let key = slot.load(Ordering::Relaxed);
            (Some(((key >> 16) as u16, key as u16)), counter.get())
        });
        named.chain([(None, self.other.get())]).filter(|&(_, count)| count > 0)
    }
}

/// Metrics that belong to no switch. Several threads may write, except where noted.
#[derive(Debug, Default)]
pub struct ProcessMetrics {
    connections: [SharedCounter; 2],
    rejected: [[SharedCounter; Rejection::ALL.len()]; 2],
    /// File descriptors: the process's limit, in use by switches, in use by controllers.
    pub descriptors: [Gauge; 3],
    /// The expiry of Weir's own certificate, in seconds of Unix time; 0 without one.
    pub certificate_not_after: Gauge,
    /// The refusals of the REST interface.
    pub api: ApiMetrics,
    /// Applied configurations, including the first one.
    pub reloads_applied: SharedCounter,
    /// Configurations refused because of errors in them.
    pub reloads_refused: SharedCounter,
    /// Commits of the store that failed.
    pub store_failed: SharedCounter,
    /// 1 while no state can be stored.
    pub store_full: Gauge,
    /// Batches without room in a journal, so that their FLOW_MODs waited for a commit.
    pub store_unjournaled: SharedCounter,
    /// Datagrams and reports of agents.
    pub agents: AgentMetrics,
    /// Followed flows, and labels for tenants.
    pub labels: LabelMetrics,
    /// Changes stored.
    pub store_changes: SharedCounter,
    /// The duration of commits of the store: from taking the first batch from the queue until the batch survives a
    /// crash of Weir. Written by the store's thread only.
    pub store_commit: Histogram,
}

/// The counters of one event loop, which is the only writer.
#[derive(Debug, Default)]
pub struct EventLoopMetrics {
    /// 1 while turns are coalesced.
    pub coalesced: Gauge,
    /// The time in which turns were coalesced, in nanoseconds.
    pub coalesced_nanos: Counter,
}

/// Followed flows, and sent labels. One writer.
#[derive(Debug, Default)]
pub struct LabelMetrics {
    /// Followed flows.
    pub flows: Gauge,
    /// Followed flows that do not reach their receiver.
    pub lost_flows: Gauge,
    /// Labels sent to all tenants together.
    pub sent: Counter,
    /// Labels that a newer label replaced before they were sent.
    pub replaced: Counter,
}

/// Counts of agents' datagrams and of their entries. One writer.
#[derive(Debug, Default)]
pub struct AgentMetrics {
    /// Accepted datagrams.
    pub taken: SharedCounter,
    /// Datagrams that no agent made: invalid, or with another key.
    pub garbage: SharedCounter,
    /// Datagrams from or to an agent that is not configured.
    pub strangers: SharedCounter,
    /// Datagrams before a hello to the sender, or from an earlier life of the sender.
    pub unplaced: SharedCounter,
    /// Datagrams that were accepted before.
    pub repeated: SharedCounter,
    /// Datagrams beyond an agent's rate.
    pub excess: SharedCounter,
    /// Entries about interfaces that the agent does not measure.
    pub misplaced: SharedCounter,
    /// Entries above the interface's bandwidth.
    pub impossible: SharedCounter,
    /// Interfaces that are measured now.
    pub measured: Gauge,
}

impl AgentMetrics {
    /// The counts of datagrams, by the label of the series.
    pub fn datagrams(&self) -> [(&'static str, &SharedCounter); 6] {
        [
            ("taken", &self.taken),
            ("garbage", &self.garbage),
            ("stranger", &self.strangers),
            ("unplaced", &self.unplaced),
            ("repeated", &self.repeated),
            ("excess", &self.excess),
        ]
    }
}

impl ProcessMetrics {
    /// Connections with a complete handshake.
    pub fn connections(&self, kind: Kind) -> &SharedCounter {
        &self.connections[kind as usize]
    }

    /// Connections without a complete handshake: the peer, the reason, and the count.
    pub fn rejected_by_reason(&self) -> Vec<(&'static str, &'static str, u64)> {
        let kinds = Kind::ALL.iter().flat_map(|&kind| Rejection::ALL.map(|why| (kind, why)));
        let named = |((kind, peer), (why, reason))| (peer, reason, self.rejected(kind, why).get());
        kinds.map(named).filter(|(_, _, count)| *count > 0).collect()
    }

    /// Connections without a complete handshake.
    pub fn rejected(&self, kind: Kind, why: Rejection) -> &SharedCounter {
        &self.rejected[kind as usize][why as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_metric_labels_are_in_discriminant_order() {
        assert!(Direction::ALL.iter().enumerate().all(|(i, it)| it.0 as usize == i));
        assert!(DropReason::ALL.iter().enumerate().all(|(i, it)| it.0 as usize == i));
        assert!(Rejection::ALL.iter().enumerate().all(|(i, it)| it.0 as usize == i));
        assert!(Kind::ALL.iter().enumerate().all(|(i, it)| it.0 as usize == i));
    }

    #[test]
    fn unknown_message_types_share_one_counter() {
        let messages = Messages::default();
        [10, 10, 30, 31, 255].iter().for_each(|&t| messages.count(t));
        assert_eq!(messages.seen().collect::<Vec<_>>(), [(Some(10), 2), (Some(30), 1), (None, 2)]);
        assert_eq!(messages.total(), 5);
    }

    #[test]
    fn refusals_beyond_sixteen_kinds_are_still_counted() {
        let refusals = Refusals::default();
        refusals.counter(0, 0).increment();
        for code in 0..20 {
            refusals.counter(1, code).increment();
            refusals.counter(1, code).increment();
        }
        refusals.counter(0xffff, 0xffff).increment();
        let seen: Vec<_> = refusals.seen().collect();
        assert_eq!(seen.len(), 17);
        assert_eq!(seen[0], (Some((0, 0)), 1));
        assert_eq!(seen[15], (Some((1, 14)), 2));
        assert_eq!(seen[16], (None, 11));
    }
}
