#![forbid(unsafe_code)]
//! Emulated OpenFlow switches, networks of them, and controllers: the peers in everybody's tests.
//!
//! [`Switch`] is a whole switch without sockets and without a clock: flow tables that really match,
//! actions that really rewrite, groups, meters, buffers, statistics, in 1.0 and 1.3, with the error
//! codes that Open vSwitch would send, and with [`Fault`]s planted on request. What it costs a slow
//! switch's CPU to handle a message is [`ServiceTime`].
//!
//! ```
//! use emulate::frame::build::{Path, host_mac};
//! use emulate::{HostIndex, Network, SessionId, SwitchIndex};
//! use openflow::{Hello, Version, VersionSet, v10};
//!
//! // One switch with two hosts, and a controller of 1.0 that is played by hand.
//! let mut network = Network::single(2, |config| config.n_buffers = 0);
//! let switch = SwitchIndex(0);
//! network.connect(switch, &mut Vec::new());
//! let mut hello = Vec::new();
//! Hello::write_message(VersionSet::only(Version::V1_0), 1, &mut hello)?;
//! network.handle_message(0, switch, &hello);
//!
//! let path = Path { eth_src: host_mac(1), eth_dst: host_mac(2), ip_src: 1, ip_dst: 2 };
//! let journey = network.inject(0, HostIndex(0), &path.udp(1, 2, b"data"));
//! assert_eq!(journey.packet_ins, [switch]);
//! let told = network.take_output(switch, SessionId::MAIN);
//! let (_, message) = v10::Message::parse(&told)?;
//! assert!(matches!(message, v10::Message::PacketIn(packet) if packet.in_port.0 == 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What this crate deliberately lacks: measuring, and any knowledge of a hypervisor.
//!
//! Around it:
//! - [`Network`] joins switches by links, with hosts that answer ping, all in memory;
//! - [`Runner`] puts a network on real sockets, as slow as is wanted;
//! - [`SlowSwitch`] is a slow switch in virtual time;
//! - [`controller`] has controllers, good and bad, with and without sockets;
//! - [`scripted`] has peers that a test scripts message by message;
//! - [`frame`](mod@frame) builds frames and edits them (it is `flowspace`'s).
//!
//! Start reading in `switch.rs`; then `dispatch.rs` (sessions), `pipeline.rs` (packets),
//! `datapath.rs` (commands), `v10` and `v13` (the wire).

mod action;
mod buffers;
mod config;
pub mod controller;
mod datapath;
mod dispatch;
mod effects;
mod error;
mod fault;
mod groups;
mod host;
mod layout;
mod meters;
mod network;
mod parts;
mod pipeline;
mod ports;
mod refusal;
mod request;
mod rewrite;
mod runner;
pub mod scripted;
mod service;
mod session;
mod slow;
mod state;
mod switch;
mod table;
mod v10;
mod v13;

pub use action::{ANY_GROUP, Action, Instructions, port};
pub use config::Config;
pub use effects::{Outcome, PacketInReason, Transmit};
pub use error::Error;
pub use fault::Fault;
pub use flowspace::frame;
pub use host::Host;
pub use layout::{Hop, Layout};
pub use network::{HostIndex, Journey, Network, Point, SwitchIndex};
pub use ports::{Port, PortConfig, PortCounters, QueueCounters, config as port_config};
pub use runner::{Counters, Runner, Running, Seen};
pub use service::{Cpu, ServiceTime};
pub use session::{Role, SessionId};
pub use slow::SlowSwitch;
pub use switch::Switch;
pub use table::{Flow, Removed, flags as flow_flags};
