//! The physical network as data, and everything that is computed on it.
//!
//! Switches, ports, links and hosts ([`Network`]), paths over them ([`paths`]) and bandwidth set aside on those paths
//! ([`reservations`]); which of it the tenants' own networks lie on ([`embedding`]); which tenant's flows load which
//! links ([`usage`]), what is left of a link as one tenant sees it and when it is told ([`labels`]); how bandwidth is
//! shared ([`share`], [`hose`]); how links are found ([`discovery`]), by probes with a keyed tag ([`lldp`]);
//! what agents at the edge tell one another and the hypervisor ([`edge`]), read off counters ([`meter`]).
//!
//! Deliberately without sockets, clocks, threads and randomness: time and seeds are arguments, what is to be sent or
//! told is returned. It knows OpenFlow no further than that ports have numbers. Start reading at [`Network`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod discovery;
pub mod dpid;
pub mod edge;
pub mod embedding;
pub mod error;
pub mod hose;
pub mod labels;
pub mod lldp;
pub mod meter;
pub mod network;
pub mod paths;
pub mod reservations;
pub mod share;
pub mod text;
pub mod time;
pub mod units;
pub mod usage;

pub use error::Error;
pub use lldp::LldpKey;
pub use network::{End, Link, LinkId, Network, Switch, SwitchIndex, Tagging};
pub use paths::{Path, Search};
pub use share::max_min;
pub use time::{Duration, Instant};
pub use units::{Bandwidth, Dpid, MacAddress, PortId, PortNumber, TenantId};
