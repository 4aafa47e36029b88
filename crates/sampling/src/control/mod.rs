//! The closed loop of `weir sampling run`, without sockets and clocks.
//!
//! ```text
//!   counters, CPU, latency ──▶ Conduct ── capacity of each server
//!                                 │   └── who samples what (solve), at an interval and on change
//!                                 ▼
//!                            Enactment: prepare, commit, retire; or restore  ──▶ orders to servers
//!   headroom gone (guard), server gone ──▶ cut off at once, plan again
//! ```
//!
//! * [`Conduct`]: the loop. The caller passes in the servers' reports (`handle_*`, with the time) and carries out the
//!   orders (`poll_*`).
//! * [`Enactment`]: one plan on all servers or on none.
//! * [`CostModel`]: the costs of sampling for a server, learnt from the server's reports.
//! * [`CpuModel`], [`ActiveSearch`], [`PassiveSearch`]: the capacity of a server. [`Guard`]: whether the server's
//!   headroom has vanished.

mod capacity;
mod conduct;
mod enact;
mod guard;
mod learn;
mod words;

pub use capacity::{ActiveSearch, CpuModel, PassiveSearch};
pub use conduct::Conduct;
pub use enact::{Enactment, Epoch, Outcome, Step};
pub use guard::Guard;
pub use learn::{CostModel, Estimate, Work};
pub use words::{
    Assignment, Estimator, Event, Import, Member, Observation, Order, Sampled, Settings, Share,
    Traffic,
};
