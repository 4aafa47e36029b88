//! The sources of the answers: the access of the REST interface to the rest of Weir.

use std::sync::Arc;
use std::time::Duration;

use crate::metrics::Registry;
use crate::networks::Control;
use crate::pins::Pins;
use crate::reload::Current;
use crate::shard::shown::Reader;
use crate::store::Documents;
use crate::topology::{LabelFeed, Watch};

/// Asks all shards for a sign of life. The result is the number of connected switches, or `None` if a shard does not
/// answer within the time. The call blocks for at most this time.
pub type Pulse = Arc<dyn Fn(Duration) -> Option<usize> + Send + Sync>;

/// The sources of the answers.
#[derive(Clone)]
pub struct Sources {
    /// Counters.
    pub metrics: Arc<Registry>,
    /// The configuration in force.
    pub current: Current,
    /// The shards.
    pub pulse: Pulse,
    /// The reader of the switches' cores: flow tables, refused requests.
    pub reader: Reader,
    /// The physical network.
    pub topology: Watch,
    /// The link labels.
    pub labels: LabelFeed,
    /// The tenants' own networks.
    pub networks: Control,
    /// The stored documents.
    pub documents: Documents,
    /// Pinned certificates of switches.
    pub pins: Pins,
}
