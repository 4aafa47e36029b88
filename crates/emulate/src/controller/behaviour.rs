//! What emulated controllers do.

/// What a controller does with its switches. ECHO is answered by all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Nothing but the handshake.
    Silent,
    /// Floods every packet.
    Hub,
    /// Learns where stations are and installs an entry (in port, destination) for each pair; floods
    /// what it does not know.
    LearningSwitch {
        /// Idle time-out of the entries, seconds; 0 is never.
        idle_timeout: u16,
    },
    /// Sends every packet back out of the port it came from, by a PACKET_OUT.
    Reflector,
    /// After the handshake and after every PACKET_IN: the next of [`malformed_messages`](crate::controller::malformed_messages).
    Malformed,
    /// Sends one message over and over, from the end of the handshake on.
    Storm {
        /// A whole frame of the version spoken; its xid is counted up.
        frame: Vec<u8>,
        /// Messages per second to each switch.
        per_second: u32,
    },
}
