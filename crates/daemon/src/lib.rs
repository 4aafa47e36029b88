#![forbid(unsafe_code)]
//! Drives the pure core `hypervisor` over real channels.

pub mod dpid;
pub mod metrics;
