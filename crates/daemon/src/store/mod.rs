//! The state that survives a restart: tenants' numbers, Weir's secret, and each tenant's entries, groups and meters on
//! each switch.
//!
//! A rule on a switch has a cookie that only Weir can resolve; without Weir's state, the rule would have no owner. So
//! the core does not send a FLOW_MOD before its state is safe, and this time is a part of the latency of every
//! FLOW_MOD. This requirement decides the design:
//!
//! ```text
//!   journal-0, journal-1: one write (page cache), by the shard itself
//!     ▲
//!   shard 0 ─ push(batch) ─┐  bounded queue   ┌────────────────┐ commit (page cache) ┌──────┐
//!   shard 1 ─ push(batch) ─┼─────────────────►│ store thread   │────────────────────►│ redb │
//!   reload ─ tenant_ids() ─┘                  │ (owns database)│                     └──┬───┘
//!        ▲   Event::Stored(seq), Loaded(…)    └──────┬─────────┘   fsync, at most every │
//!        └───────── callback per shard ──────────────┘             100 ms, other thread ┘
//! ```
//!
//! * A shard first writes its batches to a file of its own (`journal`). The journal survives `kill -9`, so the
//!   FLOW_MODs go to the switch at once ([`Pushed::Journaled`]), and do not wait for the commit. With [`Sync::Always`]
//!   there are no journals, and FLOW_MODs wait for the commit.
//! * Batches that wait are committed together (group commit).
//! * A batch that cannot be stored goes back to its shard, which pushes it again. Later batches go back, too, so that
//!   no older change replaces a newer one. After a failed commit the thread rests: changes wait, up to the queue's
//!   bound, while requests of the control side are still handled and answered.
//! * Each tenant has a part of the store, and there is a reserve for a full disk (`room`).
//! * A commit is written to the file and acknowledged, and fsynced later ([`Sync::Every`]): the page cache survives
//!   `kill -9` of Weir. Only a crash of the machine can lose changes that were acknowledged since the last fsync; then
//!   the file may be damaged too, which the next start detects. [`Sync::Always`] fsyncs before the acknowledgement.
//! * A damaged file is renamed, not deleted, and a new one is created.
//!
//! With [`Sync::Always`], measured in a 2-core virtual machine under load, ext4 on a virtual disk, release build, from
//! push to acknowledgement of batches of four changes of 120 bytes
//! (`cargo run --release -p weir-daemon --example store_writer -- DIR SYNC BATCHES IN_FLIGHT`, which also says how long
//! the journal takes):
//!
//! | `SYNC BATCHES IN_FLIGHT` | p50 | p90 | p99 | p99.9 |
//! |---|---|---|---|---|
//! | `always 1000 1` | 3.9 ms | 6.5 ms | 8.9 ms | 20 ms |
//! | `always 3000 64` | 4.0 ms | 8.0 ms | 8.5 ms | 8.5 ms |
//!
//! Without `--state` the same interface works in memory, without a thread.
//!
//! The module deliberately does not know the meaning of the values: the core encodes them. Start reading at [`Store`],
//! then [`ShardStore`]; the store thread is in `writer`, the tables are in `schema`.

mod adoption;
mod backend;
mod backup;
mod batch;
mod command;
mod database;
mod error;
mod journal;
mod memory;
mod queue;
mod room;
mod schema;
mod sync;
mod writer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hypervisor::Installation;
use hypervisor::policy::TenantId;

use crate::lock::lock;
use crate::metrics::Registry;
use crate::threads::{Priority, Thread};
use command::{Command, LoadTo, Reply};
use database::Database;
use journal::Journal;
use memory::Memory;
use queue::Asker;
use writer::REST;

pub use backup::{Snapshot, check as check_backup};
pub use batch::{Batch, Event, Stored};
pub use error::{BackupError, StoreError};
pub use room::Quota;
pub use sync::Sync;

/// Whether a request is done already, or an [`Event`] will report the result.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum Done<T> {
    /// The request is done; no event follows.
    Now(T),
    /// An event follows.
    Later,
}

/// The state of a batch.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum Pushed {
    /// The batch is stored; no event follows.
    Stored,
    /// The batch and all earlier batches survive the end of the process; an event reports when the batch is in the
    /// database.
    Journaled,
    /// The batch is safe when an event reports that it is stored.
    Later,
}

/// The queue to the store thread is full, and the batch was not accepted. The shard stops reading from tenants and
/// tries again after its next [`Event::Stored`].
#[derive(Debug, PartialEq, Eq)]
pub struct Full<T>(pub T);

/// The store of the daemon. Dropping it stores queued changes, fsyncs and closes.
pub struct Store {
    inner: Inner,
    secret: [u8; 16],
    /// The folder and the generation of the shards' journals.
    journals: Option<(PathBuf, u64)>,
    metrics: Arc<Registry>,
    shards: AtomicU32,
    thread: Option<Thread>,
}

#[derive(Clone)]
enum Inner {
    Memory(Arc<Mutex<Memory>>),
    Disk(Asker),
}

impl Store {
    /// Opens the store in a directory, which is created if necessary, and starts the store thread.
    ///
    /// A damaged database is renamed to `weir.redb.damaged-N`, with an error in the log, and a new one is created.
    pub fn open(dir: &Path, sync: Sync, metrics: Arc<Registry>) -> Result<Store, StoreError> {
        let database = match Database::open(dir, sync) {
            Err(StoreError::Database(_) | StoreError::Io { .. }) if room::give_up(dir) => {
                // The database needs some room on the disk to begin.
                Database::open(dir, sync)?
            }
            database => database?,
        };
        Store::start(database, REST, metrics)
    }

    /// Fills a directory without state from a backup.
    pub fn restore(dir: &Path, backup: &Path) -> Result<(), StoreError> {
        Database::restore(dir, backup)
    }

    /// Makes a store in a directory in which there is no state, in the place of a lost one of this installation.
    pub fn adopt(dir: &Path, installation: Installation) -> Result<(), StoreError> {
        Database::adopt(dir, installation)
    }

    /// Whether the store was made so: it does not know all rules on the switches.
    pub fn adopts(&self) -> Result<bool, StoreError> {
        self.documents().get(adoption::ADOPTS).map(|document| document.is_some())
    }

    fn start(
        database: Database,
        rest: Duration,
        metrics: Arc<Registry>,
    ) -> Result<Store, StoreError> {
        let (secret, journals) = (database.secret(), database.journals());
        let (asker, queue) = queue::queue();
        let counting = Arc::clone(&metrics);
        let run = move || writer::run(database, queue, rest, &counting);
        // With journals no message waits for the thread.
        let priority = if journals.is_some() { Priority::Low } else { Priority::Normal };
        let thread = Thread::start("store", priority, run)
            .map_err(|error| StoreError::io("starting the store thread", &error))?;
        Ok(Store {
            inner: Inner::Disk(asker),
            secret,
            journals,
            metrics,
            shards: AtomicU32::new(0),
            thread: Some(thread),
        })
    }

    /// A store in memory, which loses everything when it is dropped.
    pub fn memory() -> Result<Store, StoreError> {
        let inner = Inner::Memory(Arc::default());
        Ok(Store {
            inner,
            secret: database::new_secret()?,
            journals: None,
            metrics: Registry::new(),
            shards: AtomicU32::new(0),
            thread: None,
        })
    }

    /// Sixteen random bytes, made together with the store: the key of Weir's signatures (LLDP probes).
    pub fn secret(&self) -> [u8; 16] {
        self.secret
    }

    /// The tenants' numbers, in the order of their names; new names get new numbers.
    ///
    /// A number goes to another name only if all numbers are in use; then to a number whose name is not among `names`
    /// and has no stored item. The function returns when the numbers are on the disk, because they become a part of
    /// cookies on switches.
    pub fn tenant_ids(&self, names: &[&str]) -> Result<Vec<TenantId>, StoreError> {
        match &self.inner {
            Inner::Memory(memory) => lock(memory).tenant_ids(names),
            Inner::Disk(asker) => ask(asker, |reply| Command::TenantIds {
                names: names.iter().map(|&name| name.to_owned()).collect(),
                reply,
            }),
        }
    }

    /// The stored items of a switch, by key. The call waits for the store thread; shards use [`ShardStore::load`].
    /// Changes that wait while the thread rests are not included.
    pub fn load(&self, dpid: u64) -> Result<Vec<Stored>, StoreError> {
        match &self.inner {
            Inner::Memory(memory) => Ok(lock(memory).load(dpid)),
            Inner::Disk(asker) => {
                ask(asker, |reply| Command::Load { dpid, to: LoadTo::Caller(reply) })
            }
        }
    }

    /// Sets the quota of each tenant. Without a directory there are no bounds.
    pub fn set_quotas(&self, quotas: BTreeMap<TenantId, Quota>) {
        if let Inner::Disk(asker) = &self.inner {
            // Sending fails only if the thread has ended.
            let _ = asker.ask(Command::Quotas(quotas));
        }
    }

    /// The control side's access to its documents.
    pub fn documents(&self) -> Documents {
        Documents(self.inner.clone())
    }

    /// A shard's access; `notify` is called on the store thread and must not block.
    pub fn register(
        &self,
        notify: impl FnMut(Event) + Send + 'static,
    ) -> Result<ShardStore, StoreError> {
        let shard = self.shards.fetch_add(1, Ordering::Relaxed);
        if let Inner::Disk(asker) = &self.inner {
            let register = Command::Register { shard, notify: Box::new(notify) };
            asker.ask(register).then_some(()).ok_or(StoreError::Closed)?;
        }
        let journal = self.journals.as_ref().and_then(|(dir, generation)| {
            let made = Journal::create(dir, shard, *generation);
            let log =
                |error| tracing::warn!(%error, shard, "no journal: changes wait for the database");
            made.map_err(log).ok()
        });
        let inner = match &self.inner {
            Inner::Disk(asker) => Inner::Disk(asker.another()),
            memory => memory.clone(),
        };
        let metrics = Arc::clone(&self.metrics);
        Ok(ShardStore { shard, inner, journal, metrics })
    }
}

/// What the control side keeps by name. Each call but [`Documents::put_later`] waits for the store thread.
#[derive(Clone)]
pub struct Documents(Inner);

impl Documents {
    /// A snapshot of the whole store, including earlier pushed batches; `None` without a directory.
    pub fn snapshot(&self) -> Result<Option<Snapshot>, StoreError> {
        match &self.0 {
            Inner::Memory(_) => Ok(None),
            Inner::Disk(asker) => ask(asker, |reply| Command::Snapshot { reply }).map(Some),
        }
    }

    /// The document with this name.
    pub fn get(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let name = name.to_owned();
        match &self.0 {
            Inner::Memory(memory) => {
                let memory = lock(memory);
                Ok(memory.documents.get(&name).cloned())
            }
            Inner::Disk(asker) => ask(asker, |reply| Command::Document { name, reply }),
        }
    }

    /// Stores a document under a name, in place of an old one. When the call returns, the document survives `kill -9`.
    pub fn put(&self, name: &str, document: Vec<u8>) -> Result<(), StoreError> {
        self.put_later(name, document).recv().unwrap_or(Err(StoreError::Closed))
    }

    /// Like [`Documents::put`], and waits for nothing: the answer comes later.
    pub fn put_later(
        &self,
        name: &str,
        document: Vec<u8>,
    ) -> mpsc::Receiver<Result<(), StoreError>> {
        let name = name.to_owned();
        let (reply, answer) = mpsc::sync_channel(1);
        match &self.0 {
            Inner::Memory(memory) => {
                let mut memory = lock(memory);
                memory.documents.insert(name, document);
                // There is room for one answer.
                let _ = reply.send(Ok(()));
            }
            Inner::Disk(asker) => {
                // Where the thread has ended, no answer comes.
                let _ = asker.ask(Command::PutDocument { name, document, reply });
            }
        }
        answer
    }
}

fn ask<T>(asker: &Asker, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, StoreError> {
    let (reply, answer) = mpsc::sync_channel(1);
    let asked = asker.ask(command(reply));
    asked.then(|| answer.recv().ok()).flatten().unwrap_or(Err(StoreError::Closed))
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Inner::Disk(asker) = &self.inner {
            // Sending fails only if the thread has ended already.
            let _ = asker.ask(Command::Stop);
        }
        self.thread.take().into_iter().for_each(Thread::join);
    }
}

/// A shard's access to the store; it never waits for the store thread.
pub struct ShardStore {
    shard: u32,
    inner: Inner,
    journal: Option<Journal>,
    metrics: Arc<Registry>,
}

impl ShardStore {
    /// Gives changes to the store.
    pub fn push(&mut self, batch: Batch) -> Result<Pushed, Full<Batch>> {
        let asker = match &self.inner {
            Inner::Memory(memory) => {
                lock(memory).apply(batch);
                return Ok(Pushed::Stored);
            }
            Inner::Disk(asker) => asker,
        };
        let seq = batch.seq;
        if let Some(journal) = &mut self.journal {
            journal.prepare(&batch);
        }
        let offered = asker.offer(Command::Store { shard: self.shard, batch });
        if let Err(Command::Store { batch, .. }) = offered {
            // An ended store thread counts as a full queue: the store can accept no more changes.
            return Err(Full(batch));
        }
        let Some(journal) = &mut self.journal else { return Ok(Pushed::Later) };
        if journal.write(seq) {
            return Ok(Pushed::Journaled);
        }
        self.metrics.process.store_unjournaled.increment();
        Ok(Pushed::Later)
    }

    /// Notes the number in [`Event::Stored`]; the shard calls this function for each such event.
    pub fn committed(&mut self, seq: u64) {
        if let Some(journal) = &mut self.journal {
            journal.committed(seq);
        }
    }

    /// Asks for the stored items of a switch; with a directory the answer is [`Event::Loaded`].
    pub fn load(&self, dpid: u64) -> Result<Done<Vec<Stored>>, Full<u64>> {
        match &self.inner {
            Inner::Memory(memory) => Ok(Done::Now(lock(memory).load(dpid))),
            Inner::Disk(asker) => {
                let load = Command::Load { dpid, to: LoadTo::Shard(self.shard) };
                asker.offer(load).map(|()| Done::Later).map_err(|_| Full(dpid))
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
