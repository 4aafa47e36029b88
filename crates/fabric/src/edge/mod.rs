//! What agents at the network's edge tell one another and the hypervisor, in bytes.
//!
//! An agent is the process that shapes what virtual interfaces (VNICs) send and meters what they receive; the hypervisor
//! is a peer like another, that only listens. [`Message`] is what is said; [`Sessions`] seals it into datagrams that
//! nobody without the key can make, change or play again.
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
//! Reports and grants go between agents at every step; every 100 ms the hypervisor is told the rates, and the reports of
//! what its VNICs send to which.
//!
//! *from* and *to* are [`AgentId`]s. *life* is drawn anew by each process, *number* counts its datagrams to that peer,
//! and *token* was given to it by that peer in a hello. The hash is SipHash-2-4 with 128 bits of output, under the key
//! that all agents share, over everything before it. Nothing is encrypted: rates are no secret on the operator's own
//! network.
//!
//! [`Measured`] is what the hypervisor makes of it.
//!
//! Deliberately without sockets and clocks: time is an argument, datagrams are returned.

mod measured;
mod message;
mod session;

pub use measured::{Measured, Sent, Vnic};
pub use message::{Grant, Message, Rates, Report};
pub use session::{EdgeKey, NoKey, Opened, Refused, Sessions};

use core::hash::Hasher;
use siphasher::sip::SipHasher24;

/// No datagram is longer: it fits a frame on any network that carries IPv6.
pub const LONGEST_DATAGRAM: usize = 1232;

/// An agent's number: its name's hash, so that nobody has to hand out numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(pub u64);

impl AgentId {
    /// The number of the agent of that name.
    pub fn of(name: &str) -> AgentId {
        let mut hasher = SipHasher24::new();
        hasher.write(name.as_bytes());
        AgentId(hasher.finish())
    }
}
