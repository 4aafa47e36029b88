//! Bounds of a switch's queues, and why a switch cannot be served.

use crate::cookie::Installation;
use crate::time::Duration;
use core::fmt;
use openflow::{DecodeError, Version};

/// Bounds of the core's queues.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The most messages of one tenant that may be accepted and not done. Beyond this limit Weir does not read from the
    /// tenant.
    pub tenant_backlog: usize,
    /// The most work of one tenant's requests, in examined entries, that the switch has not confirmed. Beyond this
    /// limit Weir does not read from the tenant.
    pub tenant_work: u64,
    /// The most entries that one request changes in one turn. Then other tenants have their turn.
    pub batch: usize,
    /// The most bytes that may be held for one tenant's requests. Beyond this limit Weir does not read from the tenant.
    pub tenant_bytes: usize,
    /// The most bytes that may be held for one tenant's requests on all switches that share the tenant's
    /// [account](crate::Account). One request per switch is always allowed.
    pub tenant_bytes_in_all: usize,
    /// The most bytes that may wait for a controller. Beyond this limit, asynchronous messages for the controller are
    /// dropped.
    pub controller_bytes: usize,
    /// The most bytes that may wait for a controller. Beyond this limit the controller is disconnected: replies cannot
    /// be dropped.
    pub controller_bytes_limit: usize,
    /// The most bytes that may wait for all controllers of one tenant, on all switches that share its
    /// [account](crate::Account). Beyond this limit a controller that would get more is disconnected. Beyond half of
    /// the limit, Weir does not read from controllers for which bytes wait.
    pub tenant_unread: usize,
    /// The most bytes that may wait for the switch.
    pub switch_bytes: usize,
    /// How long Weir waits for a reply of the switch.
    pub reply_timeout: Duration,
    /// This installation of Weir, in the cookies of its rules.
    pub installation: Installation,
    /// The installation whose rules are deleted when a switch connects. The rules of all other installations are left.
    pub takes_over: Option<Installation>,
    /// Whether the store replaces a lost store of the same installation. Then Weir makes entries of a switch's rules,
    /// if the store has nothing of the switch.
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
    /// Weir does not speak this version.
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
