#![forbid(unsafe_code)]
//! Drives the pure core `hypervisor` over real channels.

pub mod api;
pub mod check;
pub mod config;
pub mod control;
pub mod dpid;
pub mod logging;
pub mod metrics;
pub mod reload;
pub mod serve;
pub mod shard;
pub mod store;
