//! The events that a runner's tap gets, for the measurement of a controller from the side of the
//! switches.

use crate::network::{HostIndex, SwitchIndex};
use crate::session::SessionId;

/// One event. The tap gets events on the network's thread and in order.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// A connection to a controller was established, or a connection attempt began.
    Opened {
        /// The switch.
        switch: SwitchIndex,
        /// The session.
        session: SessionId,
        /// The index of the controller among the controllers that the switch dials; `None` if the
        /// controller dialled the switch.
        dialled: Option<usize>,
    },
    /// A connection ended.
    Closed {
        /// The switch.
        switch: SwitchIndex,
        /// The session.
        session: SessionId,
    },
    /// A switch received a message from a controller. The time is the time at which the last byte
    /// was read. This time can be earlier than the time of the event before, because several
    /// messages can arrive at once.
    Received {
        /// The receiver.
        switch: SwitchIndex,
        /// The session of the sender.
        session: SessionId,
        /// The whole message.
        frame: &'a [u8],
    },
    /// A switch sends a message to a controller. The time is the time at which the connection took
    /// the message.
    Sent {
        /// The sender.
        switch: SwitchIndex,
        /// The session of the receiver.
        session: SessionId,
        /// The whole message.
        frame: &'a [u8],
    },
    /// A packet reached a host because of a controller's message or a timer. Packets that reach a host in
    /// [`Running::call`](super::Running::call) are in the journeys of the caller.
    Delivered {
        /// The receiver.
        host: HostIndex,
        /// The packet, Ethernet header first.
        frame: &'a [u8],
    },
}

/// The function that gets every event, with its time in ns.
pub(super) type Tap = Box<dyn FnMut(u64, Seen<'_>) + Send>;
