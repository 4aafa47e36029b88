//! The place of the measured mechanisms.

use std::path::PathBuf;

/// The place of the measured mechanisms.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The sampled bridge.
    pub(crate) bridge: String,
    /// The ports of the bridge that receive traffic.
    pub(crate) ports: [String; 2],
    /// The interface to the remote server, and the tunnel over it, into which frames are mirrored.
    pub(crate) remote: String,
    pub(crate) tunnel: String,
    /// The network namespace of all these.
    pub(crate) namespace: String,
    /// The folder of Open vSwitch's sockets, and its process.
    pub(crate) folder: PathBuf,
    pub(crate) process: i32,
}
