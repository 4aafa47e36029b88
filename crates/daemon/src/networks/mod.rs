//! The tenants' own networks on the known physical network.
//!
//! ```text
//!   topology ── Subscription ──▶ thread "networks" ──┐
//!                                                    ├─▶ Inner: Embedding ──▶ Command::Maps ──▶ shards
//!   reload, REST ────────────────────────────────────┘        └──▶ thread "networks-save" ──▶ Documents: where all is
//! ```
//!
//! A thread with a change makes the change under one lock, and informs the shards before it releases the lock, so
//! shards get changes in order. A REST request is first tried on a copy without the lock. Changes through REST and
//! places are stored without the lock as well, because a disk may be slow or may fail. A shard needs only the newest
//! state, and an unchanged map stays the same `Arc`. So a failure costs time only for the switches that it concerns.
//!
//! **File and REST.** A tenant's network is the network in `[tenants.network]` until it is changed through REST. The
//! change stays in force, also after a restart, until the file's definition of this tenant's network changes, or until
//! the file contradicts the change at a start.
//!
//! Start reading at [`Networks`], then `inner` (the state) and [`Control`]; `document` is a network as JSON,
//! `operation` a change of one part.

mod changes;
mod control;
mod document;
mod edits;
mod error;
mod inner;
mod number;
mod object;
mod operation;
mod own;
mod parts;
mod rounds;
mod shared;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::big_switches;
use crate::config::Config;
use crate::refused::Refused;
use crate::shard::{Handle, Snapshot};
use crate::store::Documents;
use crate::threads::{Priority, Thread};
use crate::topology::{Inbox, Setup, Watch};
use inner::{Contradiction, Inner};
use shared::Shared;

pub use changes::{BackupChange, HostChange, LinkChange, PortChange, SwitchChange};
pub use control::{
    Control, How, NetworkView, Outcome, Passed, PathOutcome, PathView, PortOutcome, PortView,
};
pub use document::{
    Backup, Choice, Document, HostDocument, LinkDocument, PortDocument, RouteDocument,
    SwitchDocument,
};
pub use edits::SetAside;
pub use error::{ChangeError, DocumentError};
pub use number::NumberDocument;
pub use operation::{Ends, Operation, Target};
pub use parts::{Assigned, PartOutcome};

/// The time between two looks at the clock without events.
const TICK: Duration = Duration::from_millis(100);

/// The running threads. Dropping this value ends them.
pub struct Networks {
    shared: Arc<Shared>,
    threads: Vec<Thread>,
}

impl Networks {
    /// Restores the stored placement. `snapshot`: the first snapshot of the shards, which is returned with the maps.
    pub fn prepare(
        config: &Config,
        snapshot: &mut Snapshot,
        following: Setup,
        documents: Documents,
        inbox: Arc<Inbox>,
        joiner: big_switches::Handle,
        refused: Arc<Refused>,
    ) -> Result<Networks, ChangeError> {
        let base = snapshot.clone();
        let inner =
            Inner::restore(config, base, following, documents.clone(), inbox, joiner, refused)?;
        *snapshot = inner.snapshot();
        Ok(Networks { shared: Arc::new(Shared::new(inner, documents)), threads: Vec::new() })
    }

    /// Begins to follow the topology, and to inform the shards.
    pub fn start(&mut self, watch: Watch, shards: Vec<Handle>) -> io::Result<()> {
        let subscription = watch.subscribe();
        self.shared.lock().begin(watch, shards);
        let shared = Arc::clone(&self.shared);
        let run = move || {
            while !shared.is_stopping() {
                let has_changed = subscription.wait(TICK);
                let mut inner = shared.lock();
                if has_changed {
                    inner.follow_topology();
                }
                inner.tick();
            }
        };
        self.threads.push(Thread::start("networks", Priority::Normal, run)?);
        let shared = Arc::clone(&self.shared);
        let save = move || {
            while !shared.is_stopping() {
                std::thread::park_timeout(TICK);
                shared.save();
            }
        };
        self.threads.push(Thread::start("networks-save", Priority::Low, save)?);
        Ok(())
    }

    /// Applies another configuration as a whole and informs the shards, or changes nothing.
    pub fn configure(
        &self,
        config: &Config,
        snapshot: Snapshot,
        following: Setup,
    ) -> Result<(), ChangeError> {
        let (_turn, _saving) = (self.shared.turn(), self.shared.saving());
        let contradiction = Contradiction::Refuses;
        self.shared.lock().configure(config, snapshot, following, contradiction).map(|_| ())
    }

    /// Access to the networks, to read and change them.
    pub fn control(&self) -> Control {
        Control::new(Arc::clone(&self.shared))
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        self.shared.stop();
        self.threads.drain(..).for_each(Thread::join);
        self.shared.save();
    }
}

#[cfg(test)]
mod tests;
