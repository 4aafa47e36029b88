//! SNMP: the switch's CPU time, interface counters and anything else that its agent tells, by v2c and v3.
//!
//! [`Agent`] says where the agent is and how to be let in; `session.rs` asks the agent, and waits. Protocol and
//! cryptography are the crate snmp2's.

mod agent;
mod object;
mod session;

pub use agent::Agent;
pub(crate) use agent::Cpu;
pub use object::{Oid, Value};
pub(crate) use session::Session;
