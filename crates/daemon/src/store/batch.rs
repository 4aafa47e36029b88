//! Batches of changes that shards store, and the events that shards get.

use hypervisor::store::{StoreKey, StoreOp};

use super::error::StoreError;

/// A stored entry, group or meter: its key, and the core's encoding.
pub type Stored = (StoreKey, Vec<u8>);

/// Changes of one switch that are stored together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The number that the shard chooses: 1, 2, 3 and so on over all its switches; [`Event::Stored`] returns it.
    pub seq: u64,
    /// The switch.
    pub dpid: u64,
    /// The changes in order.
    pub ops: Vec<StoreOp>,
}

/// An event of the store thread for a shard. The callback that receives the event runs on the store thread and must not
/// block: it puts the event into the shard's inbox and wakes the shard.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// Every batch of this shard up to and including this one is stored.
    Stored(u64),
    /// This batch was not stored. Later batches of this shard are not stored either until the shard pushes this batch
    /// again: the shard pushes all of them again in order.
    Failed(Batch),
    /// The answer to [`ShardStore::load`](super::ShardStore::load), after every batch that any shard had pushed before.
    Loaded {
        /// The switch.
        dpid: u64,
        /// The stored items of the switch, by key.
        stored: Result<Vec<Stored>, StoreError>,
    },
}
