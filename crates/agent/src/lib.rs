#![forbid(unsafe_code)]
//! Runs on a server: shapers and meters of virtual interfaces; samplers, their output, and the collector that reads the
//! output.
//!
//! ```text
//!   interface ══ Shaper, meters (netlink) ◀──▶ eyeq::Control: the rates between VNICs ◀── edge::Edge ══ UDP ══▶ agents
//! ```
//!
//! * [`edge`] is the daemon. The daemon gives [`eyeq`], which has no I/O, the counters of [`shaper`] and
//!   [`fabric::meter`] and the messages of other agents.
//!
//! ```text
//!   interface ══ Sampler (kernel draws, only samples are copied) ──▶ DatagramBuilder ──▶ Exporter ══ UDP ══▶ Collector
//!   Open vSwitch's own sFlow ◀── ovsdb ── set or clear                                        any sFlow v5 collector ▲
//!   interface ══ mirror (tc: the kernel draws and clones) ══ VXLAN ══▶ another server's Sampler
//! ```
//!
//! * [`Sampler`] reads a random sample of an interface's frames: a socket filter draws the kernel's random numbers and
//!   copies sampled frames into a ring.
//! * [`sflow`] writes and reads sFlow v5; [`Exporter`] sends sFlow v5, many datagrams per system call.
//! * [`ovsdb`] configures sFlow of Open vSwitch.
//! * [`standing`]: samplers of both kinds that run beside the other tasks of an agent.
//! * [`remains`]: the state that a killed agent leaves behind, and the removal of that state.
//! * [`mirror`] writes the commands of `tc` that mirror random shares of an interface's frames to destinations; each
//!   frame goes to at most one destination.
//! * [`station`]: one server's part of a plan that all servers enact together: receivers and filters, step by step.
//! * [`Tagging`] puts an interface into a VLAN.
//! * [`Collector`] estimates totals per agent, tenant and flow, with error bounds.
//!
//! [`config`] reads the file with the tasks of each agent.
//!
//! This crate does not plan (the crate `sampling` plans) and runs no program (the crate `lab` runs programs).
//!
//! Start reading at [`edge::Edge`] for bandwidth, and at [`Sampler`] and [`Collector`] for sampling.

mod collector;
pub mod config;
pub mod edge;
mod error;
mod exporter;
pub mod eyeq;
mod flow;
pub mod mirror;
mod netlink;
pub mod ovsdb;
pub mod remains;
mod sampler;
pub mod sflow;
pub mod shaper;
pub mod standing;
pub mod station;
mod vlan;

pub use collector::{Collector, Limits, Row, Tenant};
pub use error::{Error, Result};
pub use exporter::{Exporter, Sent};
pub use flow::FlowKey;
pub use sampler::{Sampler, SamplerOptions, Taken};
pub use vlan::Tagging;
