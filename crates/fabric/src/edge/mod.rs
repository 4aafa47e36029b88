//! The protocol between agents at the network's edge and the hypervisor, in bytes.
//!
//! An agent is a process that shapes the traffic that virtual interfaces (VNICs) send, and meters the traffic that they
//! receive. The hypervisor is a peer that only listens. [`Message`] is one message. [`Sessions`] puts messages into
//! datagrams that nobody can make, change or replay without the key.
//!
//! ```text
//!   0     4    5    6      8     16    24     32      40        48              n      n+16
//!   ┌─────┬────┬────┬──────┬─────┬─────┬──────┬───────┬─────────┬───────────────┬──────┐
//!   │WEIR │ver │kind│count │from │ to  │ life │ token │ number  │ count entries │ hash │      all big-endian
//!   └─────┴────┴────┴──────┴─────┴─────┴──────┴───────┴─────────┴───────────────┴──────┘
//!   kind 0  hello   8 bytes an entry, one      the life of the peer that is greeted
//!   kind 1  report  28 bytes an entry, ≤ 40    sender's MAC, receiver's MAC, bytes sent so far, bits/s wished
//!   kind 2  grant   20 bytes an entry, ≤ 56    sender's MAC, receiver's MAC, bits/s granted
//!   kind 3  rates   22 bytes an entry, ≤ 50    a VNIC's MAC, bits/s received, bits/s sent
//! ```
//!
//! Agents exchange reports and grants at every step. Every 100 ms the hypervisor receives the rates, and the reports of
//! the traffic between VNICs.
//!
//! *from* and *to* are [`AgentId`]s. Each process draws a new *life*. *number* counts the process's datagrams to the
//! peer, and *token* is the peer's token from a hello. The hash is SipHash-2-4 with 128 bits of output, with the key
//! that all agents share, over all bytes before it. Nothing is encrypted: rates are no secret on the operator's own
//! network.
//!
//! [`Measured`] is the hypervisor's view of the reports.
//!
//! This module deliberately has no sockets and clocks: time is an argument, datagrams are return values.

mod agent;
mod datagram;
mod measured;
mod message;
mod session;

pub use agent::AgentId;
pub use datagram::LONGEST_DATAGRAM;
pub use measured::{Measured, Sent, Vnic};
pub use message::{Grant, Message, Rates, Report};
pub use session::{EdgeKey, NoKey, Opened, Refused, Sessions};
