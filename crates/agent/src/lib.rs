#![forbid(unsafe_code)]
//! What runs on a server: shapers and meters of virtual interfaces; samplers, their output, and the collector that reads
//! it.
//!
//! ```text
//!   interface ══ Shaper, meters (netlink) ◀──▶ eyeq::Control: who may send how much to whom ◀── edge::Edge ══ UDP ══▶ agents
//! ```
//!
//! * [`edge`] is the daemon: it drives [`eyeq`], which is pure, with what [`shaper`]
//!   and [`fabric::meter`] read and other agents say.
//!
//! ```text
//!   interface ══ Sampler (kernel draws, only samples are copied) ──▶ DatagramBuilder ──▶ Exporter ══ UDP ══▶ Collector
//!   Open vSwitch's own sFlow ◀── ovsdb ── set or clear                                        any sFlow v5 collector ▲
//!   interface ══ mirror (tc: the kernel draws and clones) ══ VXLAN ══▶ another server's Sampler
//! ```
//!
//! * [`Sampler`] reads a random sample of an interface's frames: a socket filter with the kernel's random numbers, into
//!   a ring.
//! * [`sflow`] writes and reads sFlow v5; [`Exporter`] sends it, many datagrams per system call.
//! * [`ovsdb`] tells Open vSwitch to sample by itself.
//! * [`standing`]: samplers of either kind that go on beside an agent's other work.
//! * [`remains`]: what an agent that is killed leaves behind, and the end of it.
//! * [`mirror`] writes down, for `tc`, which random share of an interface's frames goes where, each frame to at most one
//!   place.
//! * [`station`]: one server's part of a plan that all servers enact together: what receives, what sends, step by step.
//! * [`Tagging`] holds an interface in a VLAN.
//! * [`Collector`] estimates totals, per agent, tenant and flow, with their error bounds.
//!
//! [`config`] is the file that says what each agent does.
//!
//! It deliberately does not plan (that is `sampling`) and runs no program (that is `lab`).
//!
//! Start reading at [`edge::Edge`] for bandwidth, at [`Sampler`] and [`Collector`] for sampling.

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
