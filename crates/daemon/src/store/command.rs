//! A command to the store thread.

use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;

use hypervisor::policy::TenantId;

use super::backup::Snapshot;
use super::batch::{Batch, Event, Stored};
use super::error::StoreError;
use super::room::Quota;

/// A command to the store thread.
pub(super) enum Command {
    /// Send this shard's events to this callback.
    Register { shard: u32, notify: Notify },
    /// Store a batch.
    Store { shard: u32, batch: Batch },
    /// Read a switch's flows.
    Load { dpid: u64, to: LoadTo },
    /// Find or create tenants' numbers.
    TenantIds { names: Vec<String>, reply: Reply<Vec<TenantId>> },
    /// Read a document.
    Document { name: String, reply: Reply<Option<Vec<u8>>> },
    /// Set the quota of each tenant.
    Quotas(BTreeMap<TenantId, Quota>),
    /// Return a snapshot of the store.
    Snapshot { reply: Reply<Snapshot> },
    /// Store a document.
    PutDocument { name: String, document: Vec<u8>, reply: Reply<()> },
    /// End after all earlier commands.
    Stop,
}

pub(super) type Reply<T> = SyncSender<Result<T, StoreError>>;

pub(super) type Notify = Box<dyn FnMut(Event) + Send>;

pub(super) enum LoadTo {
    Shard(u32),
    Caller(Reply<Vec<Stored>>),
}
