#![forbid(unsafe_code)]
//! Real emulated networks on one Linux machine, in the manner of Mininet.
//!
//! Hosts are network namespaces, switches are bridges of a private Open vSwitch, with its userspace
//! datapath or the kernel's ([`Datapath`]), links are veth pairs with an optional rate (HTB). This
//! crate is the only code of Weir that runs `ip`, `tc`, `ethtool` and `ovs-*`. [`programs`] run beside a lab.
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
//! Two userspace `ovs-vswitchd` cannot share a network namespace, so each lab's has its own; several
//! labs run side by side, and interface names inside a lab are Mininet's, unchanged. The control
//! channel crosses one veth pair: see [`Lab::controller_address`]. The veth pair has no measurable
//! cost: 82 bytes there and back over TCP take 62 to 68 µs (median of 20,000, three runs), over
//! the loopback interface 61 to 70 µs.
//!
//! A lab is recorded *before* it is made ([`Lab::up`]), so that [`Lab::down`] removes exactly the
//! lab's parts, even after the process that made them was killed.
//!
//! What this crate deliberately lacks: link delay and loss (netem is absent from small kernels),
//! anything of OpenFlow, and printing.
//!
//! Start reading at [`Lab`], which makes labs, and at [`Topology`], the model, which knows nothing of
//! the machine.

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
