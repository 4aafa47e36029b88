//! The behaviours of emulated controllers.

/// The behaviour of a controller towards its switches. Every controller answers ECHO_REQUEST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// The controller does only the handshake.
    Silent,
    /// The controller floods every packet.
    Hub,
    /// The controller learns the ports of stations and installs an entry (ingress port,
    /// destination) for each pair. The controller floods packets to unknown destinations.
    LearningSwitch {
        /// The idle timeout of the entries, in seconds; 0 means no timeout.
        idle_timeout: u16,
    },
    /// The controller sends every packet back to its ingress port by a PACKET_OUT.
    Reflector,
    /// The controller sends the next of [`malformed_messages`](crate::controller::malformed_messages) after the
    /// handshake and after every PACKET_IN.
    Malformed,
    /// The controller sends one message again and again from the end of the handshake on.
    Storm {
        /// A whole frame of the negotiated version. The controller increments its xid.
        frame: Vec<u8>,
        /// Messages per second to each switch.
        per_second: u32,
    },
}
