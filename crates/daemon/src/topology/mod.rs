//! The physical network as Weir knows it, kept on a thread of its own beside the shards.
//!
//! ```text
//!   shards ── ports, probes, flow entries ──▶ Inbox ──▶ ┌──── thread "topology" ────┐ ──▶ Watch ──▶ REST
//!     ▲                                                 │ State: Network, Discovery │        └──▶ subscribers
//!     │                                                 │ Tracker ─▶ Labeller       │ ──▶ Board ──▶ REST, events
//!     └───── Command::Topology: probes, labels ◀────────└───────────────────────────┘
//! ```
//!
//! Shards never wait for it (`inbox`), nor does it wait for them: what a shard has not taken is bounded by
//! `BATCHES`, beyond which probes are left out and of labels the newest is kept. Subscribers run on threads of their own ([`Watch`]).
//!
//! Start reading at [`Topology::start`], then [`State`], which decides everything.

mod board;
mod inbox;
mod labeller;
mod state;
mod tables;
mod trace;
mod tracker;
mod watch;
mod worker;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fabric::embedding::SwitchMap;
use fabric::{LldpKey, TenantId};
use hypervisor::{Label, Policy};

pub use board::{Board, Counts, Told};
pub use inbox::Inbox;
pub use state::{Origin, State, Wire};
pub use watch::{Change, Snapshot, Subscription, Watch};

use crate::config::{self, Config};
use crate::metrics::Registry;
use crate::shard::Handle;
use crate::threads::Thread;
use worker::Worker;

/// Batches that a shard may have been given and not handled.
const BATCHES: usize = 64;
/// When to try again what a shard had no room for.
const AGAIN: Duration = Duration::from_millis(20);

/// What each switch has to do for tenants' own networks, by datapath id.
pub type Maps = BTreeMap<u64, Arc<SwitchMap>>;

/// What the operator says of the network and of who is told what about it.
#[derive(Clone)]
pub struct Setup {
    /// `[topology]`
    pub topology: config::Topology,
    /// `[labels]`
    pub labels: config::Labels,
    /// All tenants.
    pub tenants: Vec<Tenant>,
    /// What each may see.
    pub policy: Arc<Policy>,
}

/// A tenant, as far as flows and labels are concerned.
#[derive(Clone)]
pub struct Tenant {
    /// Its number.
    pub id: TenantId,
    /// Its name.
    pub name: String,
    /// Whether it is told labels.
    pub is_told: bool,
    /// Its virtual interfaces.
    pub vnics: Vec<config::Vnic>,
}

impl Setup {
    /// From a configuration and the tenants' numbers, in its order.
    pub fn new(config: &Config, policy: Arc<Policy>) -> Setup {
        let tenants = config.tenants.iter().zip(&policy.tenants).map(|(tenant, own)| Tenant {
            id: own.id,
            name: tenant.name.clone(),
            is_told: tenant.labels.is_some(),
            vnics: tenant.vnics.clone(),
        });
        Setup {
            topology: config.topology.clone(),
            labels: config.labels.clone(),
            tenants: tenants.collect(),
            policy,
        }
    }

    /// Whether flows have to be followed: somebody wants to know what is left.
    pub fn tracks_flows(&self) -> bool {
        self.tenants.iter().any(|tenant| tenant.is_told)
    }
}

/// What a shard is to send or to tell.
pub struct Orders {
    /// Frames of the hypervisor's own: datapath id, port, frame.
    pub frames: Vec<(u64, u32, Vec<u8>)>,
    /// Labels: datapath id, tenant, port, and what is left.
    pub labels: Vec<(u64, TenantId, u32, Label)>,
    _under_way: UnderWay,
}

/// Counts down when the shard is done.
struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The running thread.
pub struct Topology {
    inbox: Arc<Inbox>,
    watch: Watch,
    board: Board,
    thread: Option<Thread>,
}

impl Topology {
    /// Starts the thread. Shards tell `inbox`, as does whoever has another configuration; frames are sent by `shards`.
    /// `origin` is their time zero.
    pub fn start(
        setup: Setup,
        key: LldpKey,
        origin: Instant,
        inbox: Arc<Inbox>,
        shards: Vec<Handle>,
        metrics: Arc<Registry>,
    ) -> io::Result<Topology> {
        let (watch, board) = (Watch::default(), Board::default());
        let worker = Worker::new(setup, key, origin, &inbox, (&watch, &board, metrics), shards);
        let thread = Thread::start("topology", move || worker.run())?;
        Ok(Topology { inbox, watch, board, thread: Some(thread) })
    }

    /// Where the topology can be had.
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// Where labels can be had.
    pub fn board(&self) -> Board {
        self.board.clone()
    }
}

impl Drop for Topology {
    fn drop(&mut self) {
        self.inbox.stop();
        self.thread.take().into_iter().for_each(Thread::join);
    }
}
