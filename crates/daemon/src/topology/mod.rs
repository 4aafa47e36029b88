//! The physical network as Weir knows it, on a thread of its own beside the shards.
//!
//! ```text
//!   shards ── ports, probes, flow entries ──▶ Inbox ──▶ ┌──── thread "topology" ────┐ ──▶ Watch ──▶ REST
//!     ▲                                                 │ State: Network, Discovery │        └──▶ subscribers
//!     │                                                 │ Tracker ─▶ Labeller       │ ──▶ LabelFeed ──▶ REST, events
//!     └───── Command::Topology: probes, labels ◀────────└───────────────────────────┘
//! ```
//!
//! Shards never wait for this thread (`inbox`), and the thread never waits for shards: `BATCHES` bounds the orders that
//! a shard has not handled. Beyond this bound probes are dropped, and only the newest labels are kept. Subscribers run
//! on threads of their own ([`Watch`]).
//!
//! Start reading at [`Topology::start`], then [`State`], which has all decisions.

pub(crate) mod inbox;
mod label_feed;
mod labeller;
pub(crate) mod orders;
mod setup;
mod state;
mod tables;
mod trace;
mod tracker;
mod watch;
mod worker;

use std::io;
use std::sync::Arc;
use std::time::Instant;

use fabric::LldpKey;

pub use inbox::Inbox;
pub use label_feed::{LabelFeed, LinkLabel};
pub use orders::Orders;
pub use setup::{Maps, Setup, Tenant};
pub use state::{Origin, State, Wire};
pub use watch::{Snapshot, Subscription, Watch};

use crate::metrics::Registry;
use crate::shard::command::Handle;
use crate::threads::{Priority, Thread};
use worker::Worker;

/// The running thread.
pub struct Topology {
    inbox: Arc<Inbox>,
    watch: Watch,
    label_feed: LabelFeed,
    thread: Option<Thread>,
}

impl Topology {
    /// Starts the thread. Shards, and threads with a new configuration, write to `inbox`; `shards` send frames.
    /// `origin`: time zero of the shards.
    pub fn start(
        setup: Setup,
        key: LldpKey,
        origin: Instant,
        inbox: Arc<Inbox>,
        shards: Vec<Handle>,
        metrics: Arc<Registry>,
    ) -> io::Result<Topology> {
        let (watch, label_feed) = (Watch::default(), LabelFeed::default());
        let worker =
            Worker::new(setup, key, origin, &inbox, (&watch, &label_feed, metrics), shards);
        let thread = Thread::start("topology", Priority::Low, move || worker.run())?;
        Ok(Topology { inbox, watch, label_feed, thread: Some(thread) })
    }

    /// The topology for readers.
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// The labels for readers.
    pub fn label_feed(&self) -> LabelFeed {
        self.label_feed.clone()
    }
}

impl Drop for Topology {
    fn drop(&mut self) {
        self.inbox.stop();
        self.thread.take().into_iter().for_each(Thread::join);
    }
}
