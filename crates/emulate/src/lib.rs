#![forbid(unsafe_code)]
//! Emulated OpenFlow switches, networks of them, and controllers.
pub mod frame;
