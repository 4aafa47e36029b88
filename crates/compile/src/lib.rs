//! The compiler: what a tenant's entries, groups and packets come to on a physical switch.
//!
//! All of it is pure functions. A [`Context`] says for whom is compiled and on which switch; the results are [`Rule`]s,
//! buckets, and lists of actions. There are no sessions here, no queues, no transaction ids, no time and no state between
//! calls, so each result can be shown by a test of a few lines (`tests/fixtures.rs`).
//!
//! ```text
//!   a tenant's   entry ─────► entry::compile ──┐                    ┌──► Rules of one physical switch
//!                buckets ───► group::buckets ──┤  slice   (flowspace)│
//!                PACKET_OUT ► packet::compile ─┤     or             ├──► buckets
//!                                              └─ list    (network) ─┴──► actions
//!   the map of the physical network ─────────► infra::rules ───────────► Weir's own rules
//! ```
//! Start reading at [`entry`]. [`slice`](mod@slice) and [`list`] are the two modes of a list of actions: in a slice a packet must stay
//! in the tenant's flowspace; in a network virtual ports become physical ports and labels. OpenFlow 1.0 and 1.3 differ in
//! [`Target`] and in [`wire`], and nowhere else by more than a question to these two.
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
