#![forbid(unsafe_code)]
//! Measures any OpenFlow switch, controller or hypervisor from outside.
//!
//! The crate connects emulated switches on one side and emulated tenant controllers on the other
//! side of a system under test, sends tagged messages on an open-loop schedule and accounts for
//! each message. The crate deliberately has no knowledge of Weir's own hypervisor: every system is
//! a black box behind addresses.
//!
//! There are three kinds of measurements. A [`Comparison`] of systems is a [`Matrix`] of systems,
//! messages, rates and tenants, one of the named [`scenarios`], or a tenant beside [`hostile`]
//! tenants. A [`Search`] finds the highest rate. The [`controller`] benchmarks are in [`rfc8456`].
//! Below all of these, a [`Session`] runs any [`Load`].
//!
//! Start reading at [`plan`] (the connections), [`load`] (the messages) and [`session`] (the runs).
//! The other parts have a file each: the times of messages (`arrivals`, `sender`, `template`), one
//! thread's event loop (`worker`, `conn`; `dataplane` for real interfaces), the handling of frames
//! (`endpoint`, `switch`, `wire`, `tag`, `probing`), the accounts (`track`, `run`, `fault`,
//! `outcome`, `measure`) and the system under test as seen from outside (`system`, `observe`,
//! `segments`).

mod accounts;
pub mod arrivals;
mod beside;
mod clock;
pub mod comparison;
mod conn;
mod control;
pub mod controller;
pub mod cpus;
mod criterion;
mod dataplane;
mod endpoint;
pub mod error;
pub mod fault;
mod flow_change;
pub mod hostile;
mod kind;
pub mod load;
pub mod matrix;
pub mod measure;
pub mod observe;
pub mod outcome;
mod pacing;
pub mod plan;
mod probing;
mod progress;
pub mod provisioning;
pub mod real;
pub mod recorded;
mod rest;
pub mod rfc8456;
mod run;
pub mod scenarios;
pub mod search;
pub mod segments;
mod sender;
mod service;
pub mod session;
mod stop;
mod switch;
pub mod system;
mod tag;
mod template;
mod track;
mod viewers;
mod wire;
mod worker;

pub use comparison::{Case, Comparison, Options, Verdict};
pub use control::Control;
pub use controller::ControllerPlan;
pub use criterion::{Criterion, Judge, Ruling};
pub use error::Error;
pub use hostile::{Attack, Hostile};
pub use load::{Kind, Load, Plan, Stream};
pub use matrix::{Matrix, Shape};
pub use measure::{Collector, Measurement, ceiling};
pub use observe::Watched;
pub use outcome::{Outcome, StreamOutcome};
pub use plan::{DataPort, Identity, Setup, Slicing, SwitchModel, TlsSides, Topology, Version};
pub use provisioning::Provisioning;
pub use real::{RealSwitches, Size, Stand};
pub use rfc8456::Test;
pub use search::{Found, Goal, Search, Trial};
pub use session::{Controllers, Session};
pub use stop::Stop;
pub use system::{System, Target, Tenancy};
pub use track::{Counts, Second};
