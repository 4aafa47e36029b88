//! The physical network as data, and everything that is computed on it.
//!
//! The modules: switches, ports, links and hosts ([`Network`]); paths ([`paths`]) and reserved bandwidth on paths
//! ([`reservations`]); the placement of tenants' own networks ([`embedding`]); the load of each tenant's flows on links
//! ([`usage`]), and the labels for tenants ([`labels`]); shares of bandwidth ([`share`], [`hose`]); discovery of links
//! ([`discovery`]), by probes with a keyed tag ([`lldp`]); messages of agents at the edge ([`edge`]), with rates from
//! counters ([`meter`]).
//!
//! This crate deliberately has no sockets, clocks, threads and randomness: time and seeds are arguments, and messages
//! to send are return values. Of OpenFlow the crate knows only that ports have numbers. Start reading at [`Network`].
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
pub mod index;
pub mod labels;
pub mod lldp;
pub mod meter;
pub mod network;
pub mod paths;
pub mod reservations;
pub mod share;
pub mod text;
pub mod text_error;
pub mod time;
pub mod units;
pub mod usage;

pub use error::Error;
pub use index::{LinkId, SwitchIndex};
pub use lldp::LldpKey;
pub use network::{End, Link, Network, Switch, Tagging};
pub use paths::{Path, Search};
pub use share::max_min;
pub use time::{Duration, Instant};
pub use units::{
    Bandwidth, Dpid, MacAddress, NotAHostAddress, PortId, PortNumber, ReservedPort, TenantId,
};
