//! SNMP: reads the switch's CPU time, interface counters and other objects of its agent, with v2c and v3.
//!
//! [`Agent`] contains the address of the agent and the credentials; `session.rs` sends requests to the agent and waits
//! for replies. The crate snmp2 implements the protocol and the cryptography.

mod agent;
mod object;
mod session;

pub use agent::Agent;
pub(crate) use agent::Cpu;
pub use object::{Oid, Value};
pub(crate) use session::Session;
