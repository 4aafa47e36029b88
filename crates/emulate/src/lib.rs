#![forbid(unsafe_code)]
//! Emulated OpenFlow switches, networks of them, and controllers: the peers in everybody's tests.
//!
//! [`Switch`] is a whole switch without sockets and without a clock: flow tables that really match,
//! actions that really rewrite, groups, meters, buffers, statistics, in 1.0 and 1.3, with the error
//! codes that Open vSwitch would send, and with [`Fault`]s planted on request. What it costs a slow
//! switch's CPU to handle a message is [`ServiceTime`].
//!
//! What this crate deliberately lacks: measuring, and any knowledge of a hypervisor.
//!
//! Around it:
//! - [`Network`] joins switches by links, with hosts that answer ping, all in memory;
//! - [`Runner`] puts a network on real sockets, as slow as is wanted;
//! - [`SlowSwitch`] is a slow switch in virtual time;
//! - [`controller`] has controllers, good and bad, with and without sockets;
//! - [`puppet`] has peers that a test scripts message by message;
//! - [`frame`](mod@frame) builds frames and edits them.
//!
//! Start reading in `switch.rs`; then `dispatch.rs` (sessions), `pipeline.rs` (packets),
//! `datapath.rs` (commands), `v10` and `v13` (the wire).

mod action;
mod buffers;
pub mod controller;
mod datapath;
mod dispatch;
mod effects;
mod error;
mod fault;
pub mod frame;
mod groups;
mod host;
mod meters;
mod network;
mod parts;
mod pipeline;
mod ports;
pub mod puppet;
mod refusal;
mod rewrite;
mod runner;
mod service;
mod session;
mod slow;
mod switch;
mod table;
mod v10;
mod v13;

pub use action::{ANY_GROUP, Action, Instructions, port};
pub use effects::{Outcome, PacketInReason, Transmit};
pub use error::Error;
pub use fault::Fault;
pub use host::Host;
pub use network::{HostIndex, Journey, Network, Point, SwitchIndex};
pub use ports::{Port, PortConfig, PortCounters, QueueCounters, config as port_config};
pub use runner::{Counters, Runner, Running};
pub use service::{Cpu, ServiceTime};
pub use session::{Role, SessionId};
pub use slow::SlowSwitch;
pub use switch::{Config, Switch};
pub use table::{Flow, Removed, flags as flow_flags};
