//! What a [`Switch`](super::Switch) does in its own way with messages of OpenFlow 1.0.

mod network_packet;
pub(super) mod packet;
mod statistics;
mod switch;
