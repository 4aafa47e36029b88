#![forbid(unsafe_code)]
//! Experiments that measure the real behaviour of a switch from outside, in the manner of OFLOPS (Rotsos et al., PAM
//! 2012).
//!
//! ```text
//!                    ┌──────────────── Run (runtime.rs) ───────────────┐
//!   Experiment ────▶ │ Module: events in, orders out   ─▶ Record       │ ──▶ report::Results
//!   (modules/)       └────────────────────┬────────────────────────────┘
//!                                     Testbed
//!                    Emulated: virtual time   Real: socket, AF_PACKET rings
//! ```
//!
//! * [`Module`] is the one trait of all experiments, built-in or scripted; a module does no I/O.
//! * [`run`] runs a module on a [`Testbed`], and restores the switch's tables.
//! * [`modules`] contains the built-in experiments, one file each.
//! * [`Rule`], [`Request`] and [`Message`] describe the messages of the control channel independently of the OpenFlow
//!   version; [`probe`] describes the probes.
//!
//! This crate deliberately does not know the hypervisor (a switch is a black box, and a slice of a switch is also a
//! black box), does not print, and does not make networks.
//!
//! Start reading at [`Module`], then read `modules/insert.rs`.

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
pub use message::Message;
pub use module::{Bench, Channel, Counter, Event, Gauge, Generated, Module, Orders, Traffic};
pub use modules::{Common, Experiment};
pub use record::{Case, Measure, Record};
pub use request::Request;
pub use rule::{Action, Mac, Match, Rule, Vlan};
pub use runtime::{Outcome, RunOptions, run};
#[cfg(feature = "scripts")]
pub use script::Script;
pub use testbed::{
    DataPort, Emulated, Hardware, Looped, Real, RealOptions, SwitchAddress, Testbed,
};
