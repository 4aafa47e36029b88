//! Probe frames, and their way onto an interface and off it again with the kernel's timestamps.
//!
//! ```text
//!   ProbeTemplate ── stamp(sequence, time) ──▶ Transmitter ══ interface ══▶ system under test
//!                                                                                  │
//!   Observation ◀── Observation::parse ◀── Block of Frames ◀── Capture ══ interface ═┘
//!                                               └──▶ PcapngWriter
//! ```
//!
//! * [`ProbeTemplate`] builds UDP probes that carry a tag, a sequence number and a time;
//!   [`Observation`] reads them back, with whatever a switch changed in their headers.
//! * [`Transmitter`] sends batches, [`generate`] sends them at a rate (open loop).
//! * [`Capture`] is a TPACKET_V3 ring with the kernel's receive timestamps and a socket filter, so
//!   that other traffic does not wake it.
//! * [`Tap`] is a packet socket without a ring, to compare with.
//! * [`PcapngWriter`] writes what was captured for `tcpdump` and Wireshark.
//! * [`VlanProgram`] tags frames where the kernel has no VLAN interfaces.
//! * [`run_first`] is for threads that must not be late.
//! * [`free_port`] finds a port for a program that must be given one.
//! * [`in_namespace`] opens any of these inside a network namespace: a socket stays in the
//!   namespace in which it was made, whatever thread uses it later.
//!
//! What this crate deliberately lacks: OpenFlow, matching of probes with replies, histograms.
//!
//! `unsafe` is confined to the module `system`, which wraps the system calls, and to the ring
//! that [`Capture`] reads.
//!
//! Start reading at [`Capture`] and [`generate`].

#![deny(unsafe_code)]

mod checksum;
mod error;
mod filter;
mod generate;
mod interface;
mod namespace;
mod observation;
mod pcapng;
mod port;
mod priority;
mod probe;
mod receive;
mod system;
mod tap;
mod tcp;
mod timestamp;
mod transmit;
mod vlan;

pub use error::{Error, Result};
pub use filter::{Filter, RandomSample};
pub use generate::{GenerateOptions, GenerateReport, generate};
pub use interface::Interface;
pub use namespace::in_namespace;
pub use observation::Observation;
pub use pcapng::{InterfaceId, PcapngWriter};
pub use port::free_port;
pub use priority::run_first;
pub use probe::{Headers, ProbeTemplate, Probes, VlanTag};
pub use receive::{Block, Capture, CaptureOptions, Frame, Frames, Statistics};
pub use tap::Tap;
pub use tcp::{TcpConnection, tcp_connections};
pub use timestamp::Timestamp;
pub use transmit::{TransmitOptions, Transmitter};
pub use vlan::VlanProgram;
