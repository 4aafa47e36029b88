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
//! Deliberately without rewriting logic: what a message becomes is decided in `hypervisor`. Start reading at [`serve`],
//! then [`shard`] (the forwarding path); [`config`] and [`store`] stand for themselves; [`topology`] knows the physical
//! network, [`agents`] tells it what is measured at its edge, and [`networks`] keeps the tenants' own on it, of which
//! [`big_switches`] joins those switches that lie on several.

pub use fabric::dpid;

pub mod access;
pub mod admission;
pub mod agents;
pub mod api;
pub mod big_switches;
pub mod check;
pub mod config;
pub mod control;
pub mod descriptors;
mod expiry;
pub mod identity;
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
mod threads;
pub mod topology;
mod unsupported;
