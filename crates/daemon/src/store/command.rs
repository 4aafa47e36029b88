//! What the store thread is asked to do.

use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;

use hypervisor::policy::TenantId;

use super::backup::Snapshot;
use super::batch::{Batch, Event, Stored};
use super::error::StoreError;
use super::room::Quota;

/// What the store thread is asked to do.
pub(super) enum Command {
    /// From now on this shard's events go here.
    Register { shard: u32, notify: Notify },
    /// Store a batch.
    Store { shard: u32, batch: Batch },
    /// Read a switch's flows.
    Load { dpid: u64, to: LoadTo },
    /// Find or make tenants' numbers.
    TenantIds { names: Vec<String>, reply: Reply<Vec<TenantId>> },
    /// Read a document.
    Document { name: String, reply: Reply<Option<Vec<u8>>> },
    /// What each tenant may have.
    Quotas(BTreeMap<TenantId, Quota>),
    /// Let all that is stored now be read.
    Snapshot { reply: Reply<Snapshot> },
    /// Store a document.
    PutDocument { name: String, document: Vec<u8>, reply: Reply<()> },
    /// End; everything queued before is done.
    Stop,
}

pub(super) type Reply<T> = SyncSender<Result<T, StoreError>>;

pub(super) type Notify = Box<dyn FnMut(Event) + Send>;

pub(super) enum LoadTo {
    Shard(u32),
    Caller(Reply<Vec<Stored>>),
}
