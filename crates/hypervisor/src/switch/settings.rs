//! Bounds of a switch's queues, and why a switch cannot be served.

use crate::cookie::Installation;
use crate::time::Duration;
use core::fmt;
use openflow::{DecodeError, Version};

/// Bounds of the core's queues.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Messages of one tenant that may be accepted and not finished, before reading from it stops.
    pub tenant_backlog: usize,
    /// Work of one tenant's requests, in examined entries, that may be done ahead of what the switch has confirmed, before
    /// reading from the tenant stops.
    pub tenant_work: u64,
    /// Entries that one request changes before other tenants have their turn.
    pub batch: usize,
    /// Bytes that may be held for one tenant's requests that are not finished, before reading from it stops.
    pub tenant_bytes: usize,
    /// The same on all switches that share the tenant's [account](crate::Account); each of them may have one request.
    pub tenant_bytes_in_all: usize,
    /// Bytes that may wait for a controller before asynchronous messages to it are dropped.
    pub controller_bytes: usize,
    /// Bytes that may wait for a controller before it is disconnected: replies cannot be dropped.
    pub controller_bytes_limit: usize,
    /// Bytes that may wait for all controllers of one tenant, on all switches that share its [account](crate::Account), before a
    /// controller that is to be given more is disconnected. At half of it no more is read of those for which anything waits.
    pub tenant_unread: usize,
    /// Bytes that may wait for the switch.
    pub switch_bytes: usize,
    /// How long a reply of the switch is waited for.
    pub reply_timeout: Duration,
    /// Which Weir this is, in the cookies of what it makes.
    pub installation: Installation,
    /// Whose entries are deleted when a switch connects. Those of all other installations are left.
    pub takes_over: Option<Installation>,
    /// Whether the store was made in the place of a lost one of the same installation: when a switch comes of which the store
    /// has nothing, entries are made of its rules.
    pub adopts: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            tenant_backlog: 256,
            tenant_work: 131_072,
            batch: 128,
            tenant_bytes: 1 << 20,
            tenant_bytes_in_all: 16 << 20,
            controller_bytes: 1 << 20,
            controller_bytes_limit: 8 << 20,
            tenant_unread: 32 << 20,
            switch_bytes: 256 << 10,
            reply_timeout: Duration::from_secs(10),
            installation: Installation::default(),
            takes_over: None,
            adopts: false,
        }
    }
}

/// Why a switch cannot be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartError {
    /// A version that is not spoken.
    Version(Version),
    /// The FEATURES_REPLY cannot be read.
    Features(DecodeError),
    /// OpenFlow 1.3 slices need a table before the tenants' own.
    TooFewTables,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Version(version) => {
                write!(f, "OpenFlow {version} is not spoken")
            }
            StartError::Features(error) => write!(f, "FEATURES_REPLY cannot be read: {error}"),
            StartError::TooFewTables => {
                f.write_str("slicing OpenFlow 1.3 needs a switch with two tables or more")
            }
        }
    }
}

impl core::error::Error for StartError {}
