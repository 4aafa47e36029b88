//! The tenants' own networks, kept on the physical one as that is known.
//!
//! ```text
//!   topology ── Subscription ──▶ thread "networks" ──┐
//!                                                    ├─▶ Inner: Embedding ──▶ Command::Maps ──▶ shards
//!   reload, REST ────────────────────────────────────┘        └──▶ thread "networks-save" ──▶ Documents: where all is
//! ```
//!
//! Whoever has a change makes it under one lock, and tells the shards before giving that back: so they hear of changes in
//! their order. What REST asks for is tried on a copy first, without the lock, and stored without it, as places are: a
//! disk may take long, or fail. Only the newest state matters to a shard, and a map that did not change is the same one; so a failure
//! costs the switches that it concerns something and the others nothing.
//!
//! **File and REST.** A tenant's network is what its `[tenants.network]` says, until it is changed through REST. Then it is
//! what that made of it, also after a restart, until the file says something else of this tenant than it did then, or,
//! at the start, contradicts it in what it says of others.
//!
//! Start reading at [`Networks`], then `inner` (all that is known of them) and [`Control`]; `document` is a network as
//! JSON, `operation` a change of one.

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
use crate::threads::Thread;
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
pub(crate) use error::why;
pub use error::{ChangeError, DocumentError};
pub use number::NumberDocument;
pub use operation::{Ends, Operation, Target};
pub use parts::{Assigned, PartOutcome};

/// Between two looks at the clock when nothing happens.
const TICK: Duration = Duration::from_millis(100);

/// The running actor. Dropping it ends its thread.
pub struct Networks {
    shared: Arc<Shared>,
    threads: Vec<Thread>,
}

impl Networks {
    /// Takes up where the store says that everything was. `snapshot` is what the shards are to start with; it comes back
    /// with the maps.
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

    /// Begins to follow the topology, and to tell the shards.
    pub fn start(&mut self, watch: Watch, shards: Vec<Handle>) -> io::Result<()> {
        let subscription = watch.subscribe();
        self.shared.lock().begin(watch, shards);
        let shared = Arc::clone(&self.shared);
        let run = move || {
            while !shared.is_stopping() {
                let change = subscription.wait(TICK);
                let mut inner = shared.lock();
                if change.is_some() {
                    inner.follow_topology();
                }
                inner.tick();
            }
        };
        self.threads.push(Thread::start("networks", run)?);
        let shared = Arc::clone(&self.shared);
        let save = move || {
            while !shared.is_stopping() {
                std::thread::park_timeout(TICK);
                shared.save();
            }
        };
        self.threads.push(Thread::start("networks-save", save)?);
        Ok(())
    }

    /// Takes over another configuration: all of it, telling the shards, or nothing.
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

    /// A way to see and change the networks.
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
