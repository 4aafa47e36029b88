//! The physical network as data, and everything that is computed on it.
//!
//! Switches, ports, links and hosts ([`Network`]) and paths over them ([`paths`]); the keyed tag that keeps link probes
//! from being forged ([`lldp`]).
//!
//! Deliberately without sockets, clocks, threads and randomness: time and seeds are arguments, what is to be sent or
//! told is returned. It knows OpenFlow no further than that ports have numbers. Start reading at [`Network`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod error;
pub mod lldp;
pub mod network;
pub mod paths;
pub mod time;
pub mod units;

pub use error::Error;
pub use lldp::LldpKey;
pub use network::{End, Link, LinkId, Network, Switch, SwitchIndex};
pub use paths::{Path, Search};
pub use time::{Duration, Instant};
pub use units::{Bandwidth, Dpid, MacAddress, PortId, PortNumber, TenantId};
