//! Link labels: the bandwidth that is left on a link, in the form that a tenant may know.

/// The free bandwidth of the link behind a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Free bandwidth in bits per second.
    pub left: u64,
    /// Capacity of the link in bits per second.
    pub capacity: u64,
}

impl Label {
    /// In kilobits per second, rounded down: a label must not promise more bandwidth than the link has.
    pub(crate) fn left_kilobits(self) -> u32 {
        // The highest number means that nothing is known.
        u32::try_from(self.left / 1_000).unwrap_or(u32::MAX).min(u32::MAX - 1)
    }
}

/// The experimenter (vendor) id of Weir's own messages. The id is locally administered, since Weir owns none.
pub const EXPERIMENTER: u32 = 0x0002_5745;

/// The type of a message with a label.
pub const EXPERIMENTER_LABEL: u32 = 1;

/// A label in the field of the paper: nothing is known of the link behind this port.
pub const UNKNOWN: u32 = u32::MAX;
