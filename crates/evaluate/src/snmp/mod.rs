//! SNMP: the switch's CPU time, interface counters and anything else that its agent tells, by v2c and v3.
//!
//! [`Agent`] says where it is and how to be let in, `session.rs` asks it, `poller.rs` does that on a thread of its own,
//! so that no experiment waits for it. Protocol and cryptography are the crate snmp2's.

mod agent;
mod object;
mod poller;
mod session;

pub use agent::Agent;
pub use object::{Oid, Value};
pub(crate) use poller::{Poller, Question};
