#![forbid(unsafe_code)]
//! Plans which server samples how much of whose traffic: the cost model of *Collaborative Traffic Measurement in
//! Virtualized Data Center Networks* (Elbouanani, Barakat, Urvoy-Keller and Lopez-Pacheco, 2019), its fit, and the
//! optimal plan.
//!
//! ```text
//!   text ── input ──▶ Problem ── solve ──▶ Plan
//!   (rate, throughput) ── fit ──▶ α, β
//! ```
//!
//! * [`cost`]: the costs of forwarding, sampling and mirroring; [`fit`]: α and β from measured throughput.
//! * [`Problem`] is valid by construction; [`input`] reads a problem from JSON or CSV, and reports where a value is
//!   wrong.
//! * [`mod@solve`]: three solvers that find the same optimum: the paper's linear program, the reduced program, and an
//!   exact combinatorial solver. `docs/sampling.md` has the derivation and the proof.
//! * [`Plan`] lists what each server samples and where, and can check itself against the constraints.
//! * [`simulate`]: the paper's numerical evaluation. [`estimate`]: estimated totals of samples, with confidence intervals.
//! * [`control`]: the closed loop: it estimates capacities, plans when loads change, and enacts each plan on all
//!   servers or on none.
//!
//! This crate deliberately has no sockets, files, clocks or randomness: numbers come in, numbers go out. `clippy.toml`
//! and the architecture test check this.
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
pub mod simulate;
pub mod solve;
mod solver;

pub use cost::Costs;
pub use error::{Error, Result, Shortfall};
pub use plan::{Flow, Plan, ServerLoad, Violation};
pub use problem::{Entry, LinkLimit, Problem, Server, Tenant};
pub use solve::{Solver, solve};
