//! The data plane of the daemon: one thread per core, each with the switches of its shard.
//!
//! ```text
//!                    shard 0                                     shard 1 ..
//!  switches ──▶ listeners, handshake ──(Command::Adopt, by dpid)──▶ ┐
//!                     │ by dpid                                     │
//!                     ▼                                             ▼
//!               ┌─────────────────── Session: one switch ──────────────────┐
//!   switch ◀──▶ │ Peer ◀──▶ hypervisor::Switch ◀──▶ Link, Link, ..         │ ◀──▶ controllers
//!               └──────────────┬───────────────────────────────────────────┘
//!                    changes   │   ▲ Command::Stored
//!                              ▼   │
//!                           store thread                     control side: Command::Apply (reload),
//!                                                            Command::Stop; metrics are read from atomics
//! ```
//! `crate::big_switches` joins a virtual switch on several physical switches: the links of its members lead there, and
//! the big switch is itself a switch of one of the shards.
//!
//! A switch and all connections of its tenants live on one shard, so the forwarding path has no shared data and no
//! locks. In a turn the event loop reads from all readable connections (a bounded amount from each), and then writes
//! once to each peer with new messages.

mod accept;
mod arrivals;
mod budget;
mod coalescing;
pub(crate) mod command;
mod connected;
mod contact;
mod counting;
mod dial;
mod past;
mod publish;
mod question;
mod session;
pub mod shown;
mod snapshot;
mod table;
mod turn;

use crate::admission::Unlisted;
use crate::big_switches::command::Handle as JoinerHandle;
use crate::descriptors::Descriptors;
use crate::dpid::Dpid;
use crate::metrics::Registry;
use crate::pins::Pins;
use crate::refused::Refused;
use crate::store::{self, ShardStore, Stored};
use crate::topology::inbox::Inbox;
use arrivals::Arrivals;
use channel::{Connection, Established, Event, EventLoop, Listener};
use coalescing::Coalescing;
use connected::Session;
use hypervisor::{Installation, LldpKey};
use past::Past;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use table::{Entry, Table};

pub use command::{Command, Counting, Handle};
pub use snapshot::Snapshot;

/// One shard, before it runs on its thread.
pub struct Shard {
    number: usize,
    events: EventLoop,
    commands: Receiver<Command>,
    peers: Vec<Handle>,
    joiner: JoinerHandle,
    origin: Instant,
    snapshot: Snapshot,
    lldp: LldpKey,
    takes_over: Option<Installation>,
    adopts: bool,
    store: ShardStore,
    volatile: bool,
    metrics: Arc<Registry>,
    topology: Arc<Inbox>,
    refused: Arc<Refused>,
    descriptors: Descriptors,
    unlisted: Unlisted,
    pins: Pins,
    arrivals: Arrivals,
    table: Table,
    sessions: Vec<Option<Session>>,
    past: Past,
    by_dpid: HashMap<u64, usize>,
    /// Switches whose stored state is being read.
    loading: HashMap<u64, Box<(Connection, Established)>>,
    /// Loading switches whose state is read again when the last changes of the earlier session are stored.
    behind: BTreeSet<u64>,
    /// Batches in the store's queue: number, switch, and the core's number.
    storing: VecDeque<(u64, u64, u64)>,
    unstored: VecDeque<store::Batch>,
    next_batch: u64,
    /// The first batch that is not reported as safe to the cores.
    unsafe_from: u64,
    /// Sessions with new messages in this turn.
    touched: Vec<usize>,
    /// Sessions in which tenants wait for their turn: one session gets a turn in each turn of the event loop.
    in_line: VecDeque<usize>,
    coalescing: Coalescing,
    stopping: bool,
}

/// The common setup of all shards.
#[derive(Clone)]
pub struct Setup {
    /// The first configuration.
    pub snapshot: Snapshot,
    /// The key of this installation's link probes.
    pub lldp: LldpKey,
    /// The other installation whose rules are deleted.
    pub takes_over: Option<Installation>,
    /// Whether the store takes the place of a lost one, and makes entries of the rules on switches.
    pub adopts: bool,
    /// Time zero of all shards: link probes pass between shards.
    pub origin: Instant,
    /// Whether there is no store on disk to wait for.
    pub volatile: bool,
    /// The metrics.
    pub metrics: Arc<Registry>,
    /// The inbox of the topology, for ports and probes.
    pub topology: Arc<Inbox>,
    /// The thread that joins switches into big switches.
    pub joiner: JoinerHandle,
    /// The refused infrastructure rules, which make ports down.
    pub refused: Arc<Refused>,
    /// The descriptors of connections.
    pub descriptors: Descriptors,
    /// The number of unlisted switches, and their memory.
    pub unlisted: Unlisted,
    /// Pinned certificates of switches.
    pub pins: Pins,
}

impl Shard {
    /// Creates a shard and its handle. Before the shards run, the caller adds listeners to the first shard, and peers
    /// to all shards.
    pub fn new(
        number: usize,
        setup: Setup,
        store: &store::Store,
    ) -> Result<(Shard, Handle), SetupError> {
        let events = EventLoop::new().map_err(SetupError::Loop)?;
        let (sender, commands) = channel();
        let handle = Handle::new(sender, events.waker());
        let notify = handle.clone();
        let store = store
            .register(move |event| {
                notify.send(Command::Store(event));
            })
            .map_err(SetupError::Store)?;
        let coalescing = Coalescing::new(events.now(), setup.metrics.event_loop(number));
        let shard = Shard {
            number,
            events,
            commands,
            peers: Vec::new(),
            joiner: setup.joiner,
            origin: setup.origin,
            snapshot: setup.snapshot,
            lldp: setup.lldp,
            takes_over: setup.takes_over,
            adopts: setup.adopts,
            store,
            volatile: setup.volatile,
            metrics: setup.metrics,
            topology: setup.topology,
            refused: setup.refused,
            arrivals: Arrivals::new(setup.descriptors.arriving()),
            descriptors: setup.descriptors,
            unlisted: setup.unlisted,
            pins: setup.pins,
            table: Table::default(),
            sessions: Vec::new(),
            past: Past::default(),
            by_dpid: HashMap::new(),
            loading: HashMap::new(),
            behind: BTreeSet::new(),
            storing: VecDeque::new(),
            unstored: VecDeque::new(),
            next_batch: 1,
            unsafe_from: 0,
            touched: Vec::new(),
            in_line: VecDeque::new(),
            coalescing,
            stopping: false,
        };
        Ok((shard, handle))
    }

    /// Sets all shards, in order; the datapath id of a switch selects its shard.
    pub fn set_peers(&mut self, peers: Vec<Handle>) {
        self.peers = peers;
    }

    /// Adds a listener for switches.
    pub fn listen(&mut self, mut listener: Listener) -> Result<(), SetupError> {
        let token = self.events.register(&mut listener).map_err(SetupError::Loop)?;
        self.table.put(token, Entry::Listener(listener));
        Ok(())
    }

    /// Runs until [`Command::Stop`].
    pub fn run(mut self) {
        // Without this call the kernel may make each sleep 50 µs longer. A refusal does no harm.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        self.schedule_publishing();
        let mut events = Vec::new();
        while !self.stopping {
            let at_once = (!self.in_line.is_empty()).then_some(Duration::ZERO);
            if let Err(error) = self.events.wait(&mut events, at_once) {
                // Without events the shard cannot work; the process logs this and ends.
                tracing::error!(shard = self.number, %error, "the event loop failed");
                return;
            }
            self.turn(&events);
        }
        self.close_everything();
    }

    fn turn(&mut self, events: &[Event]) {
        let is_behind = |event: &Event| matches!(event, Event::Ready(readiness) if readiness.again);
        let (first, behind) = events.split_at(events.partition_point(|event| !is_behind(event)));
        self.handle(first);
        while let Ok(command) = self.commands.try_recv() {
            self.command(command);
        }
        self.finish_turn();
        // Peers that have sent more than one turn reads come behind the answers to all other peers.
        if !behind.is_empty() {
            self.handle(behind);
            self.finish_turn();
        }
        // A batch of one tenant's long work comes last, so that the answers to all other tenants do not wait for the
        // batch.
        if self.give_turn() {
            self.finish_turn();
        }
        if let Some(interval) = self.coalescing.turn(self.events.now()) {
            self.events.set_interval(interval);
        }
    }

    fn handle(&mut self, events: &[Event]) {
        for event in events {
            match *event {
                Event::Ready(readiness) => self.ready(readiness),
                Event::Timer(key) => self.timer(key),
                Event::Woken => {}
            }
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Adopt(switch) => self.load(switch),
            Command::Apply(snapshot) => self.apply(*snapshot),
            Command::Maps(policy, switches) => self.apply_maps(policy, &switches),
            Command::Store(event) => self.stored(event),
            Command::Topology(orders) => self.take_orders(orders),
            Command::Counts(counting) => self.take_counting(counting),
            Command::Ask(question) => self.answer(*question),
            Command::Ping(reply) => {
                // The asking thread may have stopped waiting.
                let _ = reply.send(self.by_dpid.len());
            }
            Command::Stop => self.stopping = true,
        }
    }

    /// The present time for the core.
    fn now(&self) -> hypervisor::Instant {
        hypervisor::Instant(self.events.now().duration_since(self.origin).as_nanos() as u64)
    }

    fn stored(&mut self, event: store::Event) {
        match event {
            store::Event::Stored(seq) => {
                self.store.committed(seq);
                self.safe(seq);
                while self.storing.front().is_some_and(|(batch, ..)| *batch <= seq) {
                    self.storing.pop_front();
                }
                self.load_behind();
            }
            store::Event::Failed(batch) => put_back(&mut self.unstored, batch),
            store::Event::Loaded { dpid, stored } => match stored {
                Ok(stored) => self.start(dpid, stored),
                Err(error) => {
                    tracing::error!(dpid = %Dpid(dpid), %error, "stored state cannot be read; the switch is turned away");
                    self.loading.remove(&dpid);
                }
            },
        }
    }

    /// Notes that changes up to this batch survive the end of the process: the messages that waited for these changes
    /// are sent.
    fn safe(&mut self, seq: u64) {
        let now = self.now();
        let from = self.storing.partition_point(|(batch, ..)| *batch < self.unsafe_from);
        let to = self.storing.partition_point(|(batch, ..)| *batch <= seq);
        for at in from..to {
            let Some(&(batch, dpid, number)) = self.storing.get(at) else { break };
            if let Some(&at) = self.by_dpid.get(&dpid)
                && let Some(Some(session)) = self.sessions.get_mut(at)
                && session.epoch <= batch
            {
                session.core.handle_stored(number, now);
                self.touch(at);
            }
        }
        self.unsafe_from = self.unsafe_from.max(seq.saturating_add(1));
    }

    fn start(&mut self, dpid: u64, stored: Vec<Stored>) {
        if !self.loading.contains_key(&dpid) {
            return;
        }
        if self.is_storing(dpid) {
            // The loaded state is older than the last changes of the earlier session, which would be stored over the
            // changes of the new session.
            tracing::info!(
                dpid = %Dpid(dpid),
                "changes of this switch are not stored yet; it waits for that"
            );
            self.behind.insert(dpid);
        } else if let Some(switch) = self.loading.remove(&dpid) {
            self.open_session(*switch, stored);
        }
    }

    fn is_storing(&self, dpid: u64) -> bool {
        self.storing.iter().any(|(_, changed, _)| *changed == dpid)
    }

    /// Loads again the state of switches whose last changes are stored now.
    fn load_behind(&mut self) {
        let all = self.behind.iter().copied();
        let ready: Vec<u64> = all.filter(|dpid| !self.is_storing(*dpid)).collect();
        for dpid in ready {
            self.behind.remove(&dpid);
            if let Some(switch) = self.loading.remove(&dpid) {
                self.load(switch);
            }
        }
    }
}

/// Returns a batch that was not stored to its place among the batches to store.
fn put_back(unstored: &mut VecDeque<store::Batch>, batch: store::Batch) {
    let at = unstored.partition_point(|other| other.seq < batch.seq);
    unstored.insert(at, batch);
}

/// The reason why a shard cannot be created.
#[derive(Debug)]
pub enum SetupError {
    /// The event loop.
    Loop(channel::Error),
    /// The store.
    Store(store::StoreError),
    /// The thread.
    Thread(io::Error),
}

impl std::fmt::Display for SetupError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SetupError::Loop(error) => error.fmt(f),
            SetupError::Store(error) => error.fmt(f),
            SetupError::Thread(error) => write!(f, "cannot start a thread: {error}"),
        }
    }
}

impl std::error::Error for SetupError {}

#[cfg(test)]
mod tests;
