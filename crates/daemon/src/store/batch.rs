//! What shards have stored, and what they are told of it.

use hypervisor::store::{StoreKey, StoreOp};

use super::error::StoreError;

/// What is stored of a flow, group or meter: its name, and the core's encoding of it.
pub type Stored = (StoreKey, Vec<u8>);

/// Changes of one switch that are stored together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Chosen by the shard: from 1, one after the other over all its switches; comes back in [`Event::Stored`].
    pub seq: u64,
    /// The switch.
    pub dpid: u64,
    /// In this order.
    pub ops: Vec<StoreOp>,
}

/// What the store thread tells a shard. The callback that receives it runs on the store thread and must not block:
/// it puts the event into the shard's inbox and wakes it.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// Every batch of this shard up to and including this one is stored.
    Stored(u64),
    /// This batch was not stored, nor will any of this shard behind it before it is pushed again: to be done in their order.
    Failed(Batch),
    /// The answer to [`ShardStore::load`](super::ShardStore::load), after every batch that was pushed before by whichever shard.
    Loaded {
        /// The switch.
        dpid: u64,
        /// All that is stored for it, by key.
        stored: Result<Vec<Stored>, StoreError>,
    },
}
