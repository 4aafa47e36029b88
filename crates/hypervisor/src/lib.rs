//! The pure core of Weir: what becomes of each OpenFlow message of a tenant or a switch.
//!
//! One [`Switch`] stands for one connected switch and all the tenants' controllers that see this switch. A driver calls
//! the `Switch`: bytes, connections and the time go in through `handle_*` and `controller_*` calls; bytes and events
//! come out through `poll_*` and the outboxes. The documentation of [`Switch`] numbers the driver's steps. There is no
//! socket, clock, thread or randomness here; a test with virtual time sees exactly what a network sees.
//!
//! ```text
//!                     +--------------------------- Switch ---------------------------+
//!   controllers  ---> | check, translate (v10, v13) -> Queue per tenant -> scheduler | ---> switch
//!                     |   Ownership  FlowTable  Buffers      Pending <- Window       |
//!                <--- | Outbox per controller <- translate back, prune, attribute    | <---
//!                     +---------------------------------------------------------------+
//! ```
//!
//! The crate [`compile`] turns a tenant's entries, groups and packets into rules and messages for the switch; `compile`
//! knows nothing of sessions and time. Start reading at [`Switch`], then `switch::v10` and `switch::v13` (one file per
//! message family), and `south::scheduler` and `south::window` (fairness).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod account;
pub mod big_switch;
pub mod buffers;
pub mod cookie;
pub mod counters;
pub mod flows;
pub mod ids;
mod label;
mod lookups;
mod messages;
mod named;
mod north;
pub mod outbox;
mod parts;
pub mod policy;
mod pool;
mod port_desc;
pub mod refusals;
mod semantics;
pub mod sheet;
mod south;
pub mod store;
mod switch;
mod tally;
mod v10;
mod v13;
mod work;

pub use account::Account;
pub use cookie::Installation;
pub use fabric::{lldp, time};
pub use ids::{ControllerIndex, TenantIndex};
pub use label::{EXPERIMENTER, EXPERIMENTER_LABEL, Label, UNKNOWN};
pub use lldp::LldpKey;
pub use outbox::Outbox;
pub use policy::{Policy, TenantId};
pub use pool::Pool;
pub use port_desc::PortState;
pub use refusals::{Refusal, RefusedBy};
pub use sheet::{RateBy, RateShare, Standing};
pub use south::rates::share_of;
pub use store::{StoreKey, StoreOp};
pub use switch::event::{Counts, Event};
pub use switch::settings::{Settings, StartError};
pub use switch::shown::{FlowPage, FlowPlace, Known, Side};
pub use switch::space::shares::{Holds, NumberShare, SaidBy, TableShare, divide_table};
pub use switch::tracking::{FlowChange, FlowEntry};
pub use switch::traffic::port_traffic::PortTraffic;
pub use switch::{Switch, TenantState, trace};
pub use tally::Count;
pub use time::{Duration, Instant};
