#![forbid(unsafe_code)]
//! What a switch really does: experiments that measure from outside, in the manner of OFLOPS (Rotsos
//! et al., PAM 2012).
//!
//! ```text
//!                    ┌──────────────── Run (runtime.rs) ───────────────┐
//!   Experiment ────▶ │ Module: events in, orders out   ─▶ Record       │ ──▶ report::Results
//!   (modules/)       └────────────────────┬────────────────────────────┘
//!                                     Testbed
//!                    Emulated: virtual time   Real: socket, AF_PACKET rings
//! ```
//!
//! * [`Module`] is the one trait behind all experiments, built in or scripted; it does no I/O.
//! * [`run`] drives one on a [`Testbed`], and leaves the switch's tables as they were found.
//! * [`modules`] has the built-in experiments, one file each.
//! * [`Rule`], [`Request`] and [`Message`] say what goes over the control channel, in words of no
//!   version; [`probe`] says what the probes look like.
//!
//! What this crate deliberately lacks: knowledge of the hypervisor (a switch is a black box, and so is
//! a slice of one), printing, and making networks.
//!
//! Start reading at [`Module`], then `modules/insert.rs`.

mod counters;
mod datasheet;
mod error;
mod evaluation;
mod gauge;
mod message;
mod module;
pub mod modules;
pub mod probe;
mod record;
mod request;
mod rule;
mod runtime;
#[cfg(feature = "scripts")]
pub mod script;
pub mod snmp;
mod tables;
pub mod testbed;
mod trace;

pub use datasheet::DataSheet;
pub use error::{Error, Result};
pub use evaluation::Evaluation;
pub use gauge::Gauges;
pub use message::{Message, Queues};
pub use module::{Bench, Channel, Counter, Event, Gauge, Generated, Module, Orders, Traffic};
pub use modules::{Common, Experiment};
pub use record::{Case, Measure, Record};
pub use request::Request;
pub use rule::{Action, Mac, Match, Rule, Vlan};
pub use runtime::{Outcome, RunOptions, run};
#[cfg(feature = "scripts")]
pub use script::Script;
pub use tables::Tables;
pub use testbed::{
    DataPort, Emulated, Hardware, Looped, Real, RealOptions, SwitchAddress, Testbed,
};
