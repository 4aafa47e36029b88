//! What a [`Switch`](super::Switch) does in its own way with messages of OpenFlow 1.3.

mod features;
pub(super) mod groups;
mod meters;
pub(super) mod numbers;
mod packet;
mod statistics;
pub(super) mod switch;
