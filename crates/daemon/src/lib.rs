#![forbid(unsafe_code)]
//! Drives the pure core `hypervisor` over real channels: everything of `weir serve` that touches sockets, files, clocks
//! and threads.
//!
//! ```text
//!   config ──► check                        what the operator says, and what it will do
//!     │
//!     ▼                                     data plane                      control side
//!   serve ──┬─► shard 0, 1, ..  ◄──────────────────────────── reload ◄── control ──► api
//!           │      │     │ counts                                            │        ▲
//!           └──────┤     └──► metrics ───────────────────────────────────────┴────────┘
//!                  ▼ changes
//!                store
//! ```
//!
//! The crate deliberately has no rewriting logic: `hypervisor` decides what a message becomes. Start reading at
//! [`serve`], then [`shard`] (the forwarding path). [`config`] and [`store`] can be read alone. [`topology`] keeps the
//! physical network, and gets measured rates from [`agents`]. [`networks`] keeps the tenants' own networks, and
//! [`big_switches`] joins their switches on several physical switches.

pub use fabric::dpid;

pub mod access;
pub mod admission;
pub mod agents;
pub mod api;
pub mod big_switches;
mod carry;
pub mod check;
pub mod config;
pub mod control;
pub mod descriptors;
mod expiry;
pub mod identity;
mod lock;
pub mod logging;
mod memory;
pub mod metrics;
pub mod networks;
pub mod pins;
pub mod refused;
pub mod reload;
pub mod serve;
pub mod shard;
mod sheets;
pub mod store;
mod system;
mod threads;
pub mod topology;
mod unsupported;
