#![forbid(unsafe_code)]
//! Emulates OpenFlow switches, networks of switches, and controllers, as the peers in tests of all
//! crates.
//!
//! [`Switch`] is a complete switch of OpenFlow 1.0 and 1.3 without sockets and without a clock. The
//! switch has flow tables that match packets, actions that rewrite packets, groups, meters, buffers
//! and statistics. The error codes are those of Open vSwitch. A test can plant a [`Fault`].
//! [`ServiceTime`] is the CPU time that a slow switch needs for a message.
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
//! let output = network.take_output(switch, SessionId::MAIN);
//! let (_, message) = v10::Message::parse(&output)?;
//! assert!(matches!(message, v10::Message::PacketIn(packet) if packet.in_port.0 == 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate deliberately measures nothing, and does not depend on the hypervisor.
//!
//! The other parts of the crate:
//! - [`Network`] connects switches by links in memory, with hosts that answer ping;
//! - [`Runner`] runs a network on real sockets, with a configured service time;
//! - [`SlowSwitch`] is a switch with a service time, in virtual time;
//! - [`controller`] has correct and faulty controllers, with and without sockets;
//! - [`scripted`] has peers that a test scripts message by message;
//! - [`frame`](mod@frame) builds and edits frames (the module of the crate `flowspace`).
//!
//! Start reading in `switch.rs`. Then read `dispatch.rs` (sessions), `pipeline.rs` (packets),
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
