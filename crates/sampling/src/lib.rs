#![forbid(unsafe_code)]
//! Who samples how much of whose traffic: the cost model of *Collaborative Traffic Measurement in Virtualized Data
//! Center Networks* (Elbouanani, Barakat, Urvoy-Keller and Lopez-Pacheco, 2019), its fit, and the optimal plan.
//!
//! ```text
//!   text ── input ──▶ Problem ── solve ──▶ Plan ── ranges ──▶ which random numbers lead where, per server
//!   (rate, throughput) ── fit ──▶ α, β
//! ```
//!
//! * [`cost`]: what forwarding, sampling and mirroring cost a server; [`fit`]: α and β from measured throughput.
//! * [`Problem`] is valid by construction; [`input`] reads it from JSON or CSV and says where a value is wrong.
//! * [`mod@solve`]: three solvers that find the same optimum: the linear program as printed, the reduced one, and an exact
//!   combinatorial one. The derivation and its proof are in `docs/sampling.md`.
//! * [`Plan`] says what each server samples where, and checks itself against the constraints.
//! * [`simulate`]: the paper's numerical evaluation. [`ranges`]: a plan as disjoint ranges of a random number.
//!   [`estimate`]: what a sample says about the whole, and how surely.
//! * [`control`]: the closed loop: capacities from observations, plans as loads change, each enacted on all servers or on
//!   none.
//!
//! It deliberately has no sockets, files, clocks or randomness: numbers come in, numbers go out. `clippy.toml` and the
//! architecture test hold that.
//!
//! Start reading at [`Problem`] and [`mod@solve`].

pub mod control;
pub mod cost;
mod error;
pub mod estimate;
pub mod fit;
pub mod input;
mod plan;
mod problem;
pub mod ranges;
pub mod simulate;
pub mod solve;
mod solver;

pub use cost::Costs;
pub use error::{Error, Result, Shortfall};
pub use plan::{Flow, Plan, ServerLoad, Violation};
pub use problem::{Entry, LinkLimit, Problem, Server, Tenant};
pub use solve::{Solver, solve};
