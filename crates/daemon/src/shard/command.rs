//! What other threads tell a shard, and how.

use std::collections::BTreeSet;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use channel::{Connection, Established, Waker};
use hypervisor::{Counts, Policy, TenantId};

use super::question::Question;
use super::snapshot::Snapshot;
use crate::store;
use crate::topology::Orders;

/// What other threads tell a shard.
pub enum Command {
    /// A switch that has shaken hands and belongs here.
    Adopt(Box<(Connection, Established)>),
    /// A new configuration.
    Apply(Snapshot),
    /// Other maps of virtual networks, for the switches with these datapath ids.
    Maps(Arc<Policy>, Arc<BTreeSet<u64>>),
    /// News of the store.
    Store(store::Event),
    /// Link probes to be sent, labels to be told.
    Topology(Orders),
    /// What the core of one switch wants to know of another, or tells it.
    Counts(Counting),
    /// Answer a question of somebody who looks on.
    Ask(Box<Question>),
    /// Are you there?
    Ping(Sender<usize>),
    /// Close everything, then end.
    Stop,
}

/// A question between cores, or an answer. There is at most one open between two switches for each tenant, since the
/// core asks again only when it has given up.
pub enum Counting {
    /// What has come in by the tenant's ports on switch `of`?
    Ask {
        /// Which switch.
        of: u64,
        /// Whose ports.
        tenant: TenantId,
        /// Which switch asks.
        by: u64,
    },
    /// This.
    Tell {
        /// Which switch has asked.
        to: u64,
        /// What has come in.
        counts: Counts,
        /// On which switch.
        from: u64,
    },
}

impl Counting {
    /// The switch that it is for.
    pub(super) fn switch(&self) -> u64 {
        match *self {
            Counting::Ask { of, .. } => of,
            Counting::Tell { to, .. } => to,
        }
    }
}

/// A way to send commands to a shard.
#[derive(Clone)]
pub struct Handle {
    sender: Arc<Mutex<Sender<Command>>>,
    waker: Waker,
}

impl Handle {
    /// `waker` wakes the shard that takes the commands.
    pub(super) fn new(sender: Sender<Command>, waker: Waker) -> Handle {
        Handle { sender: Arc::new(Mutex::new(sender)), waker }
    }

    /// Sends a command; false when the shard has ended.
    pub fn send(&self, command: Command) -> bool {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        sender.send(command).is_ok() && self.waker.wake().is_ok()
    }
}
