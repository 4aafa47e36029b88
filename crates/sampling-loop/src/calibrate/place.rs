//! Where mechanisms stand.

use std::path::PathBuf;

/// Where mechanisms stand.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The bridge at which samples are taken.
    pub(crate) bridge: String,
    /// Its ports at which traffic comes in.
    pub(crate) ports: [String; 2],
    /// The interface behind which the remote server is, and the tunnel over it, into which frames are mirrored.
    pub(crate) remote: String,
    pub(crate) tunnel: String,
    /// The network namespace in which all these are.
    pub(crate) namespace: String,
    /// Where Open vSwitch's sockets are, and its process.
    pub(crate) folder: PathBuf,
    pub(crate) process: i32,
}
