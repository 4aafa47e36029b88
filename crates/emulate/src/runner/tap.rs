//! What a runner's tap is shown, for the measurement of a controller from the switches' side.

use crate::network::{HostIndex, SwitchIndex};
use crate::session::SessionId;

/// One thing that happened, on the network's thread and in order.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// A connection to a controller stands, or is being made.
    Opened {
        /// Whose.
        switch: SwitchIndex,
        /// Which.
        session: SessionId,
        /// The controller's place among those that the switch dials; `None` if the controller came.
        dialled: Option<usize>,
    },
    /// A connection is over.
    Closed {
        /// Whose.
        switch: SwitchIndex,
        /// Which.
        session: SessionId,
    },
    /// A message came from a controller. The time is when its last byte was read, which may be
    /// before what was shown last: several messages can come at once.
    Received {
        /// Who got it.
        switch: SwitchIndex,
        /// From whom.
        session: SessionId,
        /// The whole message.
        frame: &'a [u8],
    },
    /// A message goes to a controller. The time is when it was handed to the connection.
    Sent {
        /// Who sends it.
        switch: SwitchIndex,
        /// To whom.
        session: SessionId,
        /// The whole message.
        frame: &'a [u8],
    },
    /// A packet reached a host because of a controller's message or a timer; those that reach one in
    /// [`Running::call`](super::Running::call) are in the caller's own journeys.
    Delivered {
        /// Who got it.
        host: HostIndex,
        /// The packet, Ethernet header first.
        frame: &'a [u8],
    },
}

/// Is shown everything, with its time in ns.
pub(super) type Tap = Box<dyn FnMut(u64, Seen<'_>) + Send>;
