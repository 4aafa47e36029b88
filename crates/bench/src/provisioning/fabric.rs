//! Connects the emulated switches to the system under test, and records the changes of their tables.

use super::shape::{Place, Shape, point};
use crate::error::Error;
use crate::plan::Version;
use crate::wire::{Types, kind};
use channel::Address;
use emulate::{Point, Runner, Running, Seen, SwitchIndex};
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time that switches may take to connect.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// The most unanswered barriers of one switch that are kept.
const BARRIERS: usize = 4096;

/// The running switches.
pub(super) struct Fabric {
    running: Arc<Running>,
    tables: Arc<Mutex<Vec<Table>>>,
}

/// The changes of one switch's tables since [`Fabric::forget`].
#[derive(Clone, Debug, Default)]
struct Table {
    /// The number of received changes.
    changes: u64,
    first: u64,
    last: u64,
    /// The unanswered barriers: their xids, and the number of changes before each.
    barriers: VecDeque<(u32, u64)>,
    /// The number of changes before the newest answered barrier, and the time of its answer.
    done: (u64, u64),
    errors: u64,
}

/// The changes of all tables since [`Fabric::forget`]. Times are the fabric's times, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Changed {
    /// Entries added, changed and removed.
    pub(super) changes: u64,
    /// The time of the first change.
    pub(super) first: Option<u64>,
    /// The time of the last change.
    pub(super) last: u64,
    /// The time when a barrier acknowledged the last change.
    pub(super) done: u64,
    /// The number of changes without a later answered barrier.
    pub(super) open: u64,
    /// Requests that switches refused.
    pub(super) errors: u64,
    /// Switches whose tables changed.
    pub(super) switches: usize,
}

impl Fabric {
    /// Connects the switches.
    pub(super) fn raise(
        shape: &Shape,
        version: Version,
        address: SocketAddr,
    ) -> Result<Fabric, Error> {
        let tables = Arc::new(Mutex::new(vec![Table::default(); shape.switches]));
        let seen = Arc::clone(&tables);
        let types = Types::of(version);
        let runner = Runner::new(shape.build(version)).tap(move |at, what| {
            let mut tables = lock(&seen);
            let (switch, frame, came) = match what {
                Seen::Received { switch, frame, .. } => (switch, frame, true),
                Seen::Sent { switch, frame, .. } => (switch, frame, false),
                Seen::Opened { .. } | Seen::Closed { .. } | Seen::Delivered { .. } => return,
            };
            if let Some(table) = tables.get_mut(switch.0) {
                table.note(at, frame, came, types);
            }
        });
        let running = runner.dial_all(Address::tcp(address)).start().map_err(|it| emulated(&it))?;
        running.wait_connected(CONNECT_LIMIT).map_err(|it| emulated(&it))?;
        Ok(Fabric { running: Arc::new(running), tables })
    }

    /// The fabric's clock, for other parts that need the same time.
    pub(super) fn clock(&self) -> Arc<Running> {
        Arc::clone(&self.running)
    }

    pub(super) fn now(&self) -> u64 {
        self.running.now()
    }

    /// Sets the count of changes to zero.
    pub(super) fn forget(&self) {
        for table in lock(&self.tables).iter_mut() {
            // Barriers in flight are still answered.
            *table = Table::default();
        }
    }

    pub(super) fn changed(&self) -> Changed {
        let tables = lock(&self.tables);
        let mut all = Changed::default();
        for table in tables.iter() {
            all.errors += table.errors;
            if table.changes == 0 {
                continue;
            }
            all.switches += 1;
            all.changes += table.changes;
            all.first = Some(all.first.unwrap_or(u64::MAX).min(table.first));
            all.last = all.last.max(table.last);
            all.done = all.done.max(table.done.1);
            all.open += table.changes - table.done.0;
        }
        all
    }

    /// Waits until all changes are acknowledged and no change has arrived for the time `quiet`, at most for `limit`.
    /// Returns the changes.
    pub(super) fn settle(&self, quiet: Duration, limit: Duration) -> Changed {
        let deadline = Instant::now() + limit;
        let mut seen = self.changed();
        let mut since = Instant::now();
        loop {
            std::thread::sleep(Duration::from_millis(5));
            let now = self.changed();
            if now.changes != seen.changes || now.open != seen.open {
                since = Instant::now();
            }
            seen = now;
            let is_quiet = since.elapsed() >= quiet && seen.open == 0;
            if is_quiet || Instant::now() >= deadline {
                return seen;
            }
        }
    }

    /// Makes a link fail, and returns the time, in ns.
    pub(super) fn cut(&self, end: Place) -> Result<u64, Error> {
        let cut = self.running.call(move |network, now| {
            network.set_link_up(point(end), false);
            now
        });
        cut.map_err(|it| emulated(&it))
    }

    /// Sends each packet into its port, and counts the packets that end as a PACKET_IN of the right switch, and at no
    /// other place.
    pub(super) fn deliver(
        &self,
        packets: Vec<(Point, Vec<u8>, SwitchIndex)>,
    ) -> Result<usize, Error> {
        let delivered = self.running.call(move |network, now| {
            let mut arrives = |(from, frame, to): &(Point, Vec<u8>, SwitchIndex)| {
                let journey = network.inject_at(now, *from, frame);
                journey.packet_ins == [*to]
                    && journey.delivered.is_empty()
                    && journey.lost.is_empty()
            };
            packets.iter().filter(|it| arrives(it)).count()
        });
        delivered.map_err(|it| emulated(&it))
    }

    /// The number of entries, and the number of these packets (switch, port, VLAN id) without an entry.
    pub(super) fn entries(
        &self,
        wanted: BTreeSet<(usize, u32, u16)>,
    ) -> Result<(usize, usize), Error> {
        let found = self.running.call(move |network, _| {
            let mut wanted = wanted;
            let mut count = 0;
            for (index, switch) in network.switches() {
                for (_, flow) in switch.flows() {
                    count += 1;
                    if let Some((port, tag)) = tagged(&flow.match_.to_string()) {
                        wanted.remove(&(index.0, port, tag));
                    }
                }
            }
            (count, wanted.len())
        });
        found.map_err(|it| emulated(&it))
    }
}

impl Table {
    fn note(&mut self, at: u64, frame: &[u8], came: bool, types: Types) {
        let Some(type_) = openflow::frame::type_(frame) else { return };
        let xid = openflow::frame::xid(frame).unwrap_or_default();
        match came {
            true if type_ == kind::FLOW_MOD => {
                if self.changes == 0 {
                    self.first = at;
                }
                self.changes += 1;
                self.last = at;
            }
            true if type_ == types.barrier_request && self.barriers.len() < BARRIERS => {
                self.barriers.push_back((xid, self.changes));
            }
            false if type_ == types.barrier_reply => {
                let place = self.barriers.iter().position(|it| it.0 == xid);
                let answered = place.and_then(|place| self.barriers.drain(..=place).next_back());
                if let Some((_, covered)) = answered.filter(|(_, covered)| *covered > self.done.0) {
                    self.done = (covered, at);
                }
            }
            false if type_ == kind::ERROR => self.errors += 1,
            _ => {}
        }
    }
}

/// The ingress port and the VLAN id of an entry that matches both, from the text of the entry.
fn tagged(text: &str) -> Option<(u32, u16)> {
    let field = |name: &str| text.split(',').find_map(|item| item.trim().strip_prefix(name));
    Some((field("in_port=")?.parse().ok()?, field("dl_vlan=")?.parse().ok()?))
}

fn lock(tables: &Mutex<Vec<Table>>) -> MutexGuard<'_, Vec<Table>> {
    tables.lock().unwrap_or_else(PoisonError::into_inner)
}

fn emulated(error: &emulate::Error) -> Error {
    Error::System(format!("the emulated switches: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the number of acknowledged changes and their time. The messages are (arrived, type, xid), at times 1, 2,
    /// ….
    #[track_caller]
    fn check(messages: &[(bool, u8, u32)], changes: u64, done: (u64, u64)) {
        let mut table = Table::default();
        for (at, &(came, type_, xid)) in (1..).zip(messages) {
            let [a, b, c, d] = xid.to_be_bytes();
            table.note(at, &[4, type_, 0, 8, a, b, c, d], came, Types::of(Version::V1_3));
        }
        assert_eq!((table.changes, table.done), (changes, done));
    }

    #[test]
    fn a_barrier_reply_acknowledges_the_flow_mods_before_its_request() {
        const MOD: u8 = kind::FLOW_MOD;
        check(&[(true, MOD, 1), (true, MOD, 2)], 2, (0, 0));
        check(&[(true, MOD, 1), (true, 20, 9), (true, MOD, 2), (false, 21, 9)], 2, (1, 4));
        check(&[(true, MOD, 1), (true, 20, 8), (true, 20, 9), (false, 21, 9)], 1, (1, 4));
        check(&[(true, MOD, 1), (true, 20, 8), (false, 21, 9)], 1, (0, 0));
    }

    #[test]
    fn ingress_port_and_vlan_id_are_parsed_from_the_text_of_a_rule() {
        assert_eq!(tagged("in_port=3,dl_vlan=2000"), Some((3, 2000)));
        assert_eq!(tagged("in_port=3"), None);
        assert_eq!(tagged("dl_vlan=2000"), None);
    }
}
