//! Commands of other threads to a shard, and their channel.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use channel::{Connection, Established, Waker};
use hypervisor::{Counts, Policy, TenantId};

use super::question::Question;
use super::snapshot::Snapshot;
use crate::store;
use crate::topology::orders::Orders;

/// A command of another thread to a shard.
pub enum Command {
    /// Adopt a switch with a complete handshake that belongs to this shard.
    Adopt(Box<(Connection, Established)>),
    /// A new configuration.
    Apply(Box<Snapshot>),
    /// New maps of virtual networks, for the switches with these datapath ids.
    Maps(Arc<Policy>, Arc<BTreeSet<u64>>),
    /// An event of the store.
    Store(store::Event),
    /// Link probes and labels to send.
    Topology(Orders),
    /// A question of one switch's core to another, or its answer.
    Counts(Counting),
    /// Answer a question about the cores.
    Ask(Box<Question>),
    /// Answer with a sign of life.
    Ping(Sender<usize>),
    /// Close all connections, then end.
    Stop,
}

/// A question between cores, or an answer. At most one question between two switches is open for each tenant, because
/// the core asks again only after the time-out.
pub enum Counting {
    /// Ask for the received packets of the tenant's ports on switch `of`.
    Ask {
        /// The asked switch.
        of: u64,
        /// The tenant of the ports.
        tenant: TenantId,
        /// The asking switch.
        by: u64,
    },
    /// The answer.
    Answer {
        /// The switch that has asked.
        to: u64,
        /// The received packets.
        counts: Counts,
        /// The switch of the ports.
        from: u64,
    },
}

impl Counting {
    /// The receiving switch.
    pub(super) fn switch(&self) -> u64 {
        match *self {
            Counting::Ask { of, .. } => of,
            Counting::Answer { to, .. } => to,
        }
    }
}

/// Sends commands to a shard.
#[derive(Clone)]
pub struct Handle {
    sender: Sender<Command>,
    waker: Waker,
}

impl Handle {
    /// `waker`: wakes the receiving shard.
    pub(super) fn new(sender: Sender<Command>, waker: Waker) -> Handle {
        Handle { sender, waker }
    }

    /// Sends a command; false if the shard has ended.
    pub fn send(&self, command: Command) -> bool {
        self.sender.send(command).is_ok() && self.waker.wake().is_ok()
    }
}
