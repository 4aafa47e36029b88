#![forbid(unsafe_code)]
//! Drives the pure core `hypervisor` over real channels.

pub mod config;
pub mod dpid;
pub mod metrics;
pub mod store;
