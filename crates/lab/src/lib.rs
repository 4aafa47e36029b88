#![forbid(unsafe_code)]
//! Emulates networks on one Linux machine with real network namespaces and switches, as Mininet
//! does.
//!
//! Hosts are network namespaces. Switches are bridges of a private Open vSwitch, with its userspace datapath or the
//! datapath of the kernel ([`Datapath`]). Links are veth pairs with an optional rate (HTB). This crate is the only code
//! of Weir that runs `ip`, `tc`, `ethtool` and `ovs-*`. The module [`programs`] starts programs that run beside a lab.
//!
//! ```text
//!          the caller's namespace                      weir-NAME.switches
//!   controller ── 198.18.a.b ═══ veth "control" ═══ ovs-vswitchd, ovsdb-server
//!                                                     │ bridges s1, s2, ...
//!                                 veth s1-eth1 ═══════╪═══════ veth s1-eth2
//!                               ┌───────┴──────┐      │      ┌───────┴──────┐
//!                               │ weir-NAME.h1 │             │ weir-NAME.h2 │
//!                               │     eth0     │             │     eth0     │
//!                               └──────────────┘             └──────────────┘
//! ```
//!
//! Two userspace `ovs-vswitchd` cannot share a network namespace, so the `ovs-vswitchd` of each lab has its own
//! namespace. Several labs can run side by side, and interface names inside a lab are the names of Mininet. The control
//! channel uses one veth pair: see [`Lab::controller_address`]. The veth pair adds no measurable latency: the round
//! trip of 82 bytes over TCP takes 62 to 68 µs (median of 20,000, three runs), and 61 to 70 µs over the loopback
//! interface.
//!
//! [`Lab::up`] records a lab *before* the lab is made. So [`Lab::down`] removes exactly the lab's
//! parts, even after the process that made the lab was killed.
//!
//! This crate deliberately has no link delay and loss (small kernels lack netem), no OpenFlow code,
//! and no output to a terminal.
//!
//! Start reading at [`Lab`], which makes labs, and at [`Topology`], the network model, which does not depend on the
//! machine.

mod address;
mod command;
mod controller;
mod cpu;
mod error;
mod guard;
mod interrupt;
mod iperf;
mod lab;
mod missing;
mod names;
mod namespace;
mod openvswitch;
mod options;
mod ping;
mod plan;
mod process;
pub mod programs;
mod requirements;
mod state;
pub mod testing;
pub mod tools;
pub mod topology;

pub use address::ControlLink;
pub use controller::Controller;
pub use cpu::CpuBound;
pub use error::{Error, Result};
pub use guard::LabGuard;
pub use interrupt::{Interrupt, Interrupted};
pub use iperf::{IperfOptions, IperfReport};
pub use lab::Lab;
pub use missing::Missing;
pub use openvswitch::OpenVSwitch;
pub use options::{Datapath, FailMode, Options, Protocol};
pub use ping::{Ping, PingOptions, PingReport};
pub use process::ProcessIdentity;
pub use requirements::Requirements;
pub use state::{Phase, StateDirectory, Summary};
pub use topology::{Host, Link, LinkEnd, MacAddress, Rate, Switch, Topology, TopologyBuilder};
