//! What the demo is asked to show.

use crate::network;
use openflow::Version;
use std::path::PathBuf;

/// What the demo is asked to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Where the results go: the page report.html, its data, and what was told.
    pub out: PathBuf,
    /// Whether configuration files and logs are kept as well, in `out/work`.
    pub keep: bool,
    /// Measure for a few seconds only.
    pub quick: bool,
    /// The OpenFlow version that the switch speaks.
    pub version: Version,
    /// Emulate the switch even where Open vSwitch could be used.
    pub emulated: bool,
}

impl Settings {
    /// Whether the switch can be a real one.
    pub(crate) fn has_open_vswitch(&self) -> bool {
        !self.emulated && network::missing().is_empty()
    }

    pub(crate) fn version_name(&self) -> &'static str {
        if self.version == Version::V1_0 { "OpenFlow 1.0" } else { "OpenFlow 1.3" }
    }
}
