//! The compiler: turns a tenant's entries, groups and packets into rules, buckets and actions for a physical switch.
//!
//! All functions are pure. A [`Context`] names the tenant and the switch; the results are [`Rule`]s, buckets, and lists
//! of actions. The crate has no sessions, no queues, no transaction ids, no time and no state between calls, so a test
//! of a few lines can show each result (`tests/fixtures.rs`).
//!
//! ```text
//!   a tenant's   entry ─────► entry::compile ──┐                    ┌──► Rules of one physical switch
//!                buckets ───► group::buckets ──┤  slice   (flowspace)│
//!                PACKET_OUT ► packet::compile ─┤     or             ├──► buckets
//!                                              └─ list    (network) ─┴──► actions
//!   the map of the physical network ─────────► infra::rules ───────────► Weir's own rules
//! ```
//! Start reading at [`entry`]. [`slice`](mod@slice) and [`list`] are the two modes of a list of actions: in a slice a
//! packet must stay in the tenant's flowspace; in a network virtual ports become physical ports and labels. [`Target`]
//! and [`wire`] contain the differences between OpenFlow 1.0 and 1.3; the other modules only call these two.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod action_set;
pub mod class;
pub mod context;
pub mod delivery;
pub mod egress_group;
pub mod entry;
pub mod group;
pub mod ids;
pub mod infra;
pub mod instances;
pub mod last_table;
pub mod list;
pub mod metadata;
pub mod network;
pub mod ownership;
pub mod packet;
pub mod packet_in_len;
pub mod refusal;
pub mod rule;
pub mod slice;
pub mod target;
pub mod wire;

pub use context::{Context, GroupTable, Slice, Space};
pub use entry::EntrySpec;
pub use fabric::TenantId;
pub use ids::TenantIndex;
pub use instances::{Instances, Variant};

pub use network::Network;
pub use ownership::Ownership;
pub use refusal::{Reason, Refused};
pub use rule::{CountedPort, InfraRule, Rule, RuleKey};
pub use target::{PhysicalPort, Target};
pub use wire::{Action, Actions, Wire};
