//! The settings of the demo.

use crate::network;
use openflow::Version;
use std::path::PathBuf;

/// The settings of the demo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The folder of the results: the page report.html, its data, and the printed text.
    pub out: PathBuf,
    /// Whether configuration files and logs are kept as well, in `out/work`.
    pub keep: bool,
    /// Whether the measurement takes only a few seconds.
    pub quick: bool,
    /// The OpenFlow version that the switch speaks.
    pub version: Version,
    /// Whether the switch is emulated even if Open vSwitch is available.
    pub emulated: bool,
}

impl Settings {
    /// Whether the switch can be an Open vSwitch.
    pub(crate) fn has_open_vswitch(&self) -> bool {
        !self.emulated && network::missing().is_empty()
    }

    pub(crate) fn version_name(&self) -> &'static str {
        if self.version == Version::V1_0 { "OpenFlow 1.0" } else { "OpenFlow 1.3" }
    }
}
