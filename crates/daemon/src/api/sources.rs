//! What the answers are made of: the ways from the REST interface into the rest of Weir.

use std::sync::Arc;
use std::time::Duration;

use crate::metrics::Registry;
use crate::networks::Control;
use crate::pins::Pins;
use crate::reload::Current;
use crate::shard::shown::Reader;
use crate::store::Documents;
use crate::topology::{Board, Watch};

/// Asks all shards for a sign of life: the number of connected switches, or `None` if one does not answer within the
/// time. Blocks for that long at most.
pub type Pulse = Arc<dyn Fn(Duration) -> Option<usize> + Send + Sync>;

/// What the answers are made of.
#[derive(Clone)]
pub struct Sources {
    /// Counters.
    pub metrics: Arc<Registry>,
    /// The configuration in force.
    pub current: Current,
    /// The shards.
    pub pulse: Pulse,
    /// What the switches' cores keep: flow tables, refused requests.
    pub reader: Reader,
    /// The physical network.
    pub topology: Watch,
    /// What is left of links.
    pub labels: Board,
    /// The tenants' own networks.
    pub networks: Control,
    /// What is stored.
    pub documents: Documents,
    /// Pinned certificates of switches.
    pub pins: Pins,
}
