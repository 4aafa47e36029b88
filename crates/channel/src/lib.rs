#![forbid(unsafe_code)]
//! OpenFlow endpoints: listen and dial, plain TCP and mutual TLS, framing, bounded buffers, and an
//! event loop to run on each core. An in-memory transport stands in for sockets in tests.
//!
//! It deliberately has no policy: it never decides what a frame means, when to dial again, or what
//! to do when a buffer is full. It bounds, counts and reports. It starts no threads and reads no
//! clock, except that [`EventLoop`] and [`blocking`] wait.
//!
//! Start reading at [`Connection`] (one stream of frames, and the rules for driving it), then
//! [`EventLoop`] (who is ready). [`Listener`] and [`Dialer`] make connections.
//! [`Handshake`], [`Keepalive`], [`Backoff`] and [`Timers`] are pure: time and randomness come in as
//! arguments.
//!
//! A controller's side and a switch's side greet each other, in memory:
//!
//! ```
//! use channel::{Connection, Handshake, Options, Step, memory};
//! use openflow::{Version, VersionSet};
//!
//! let (left, right) = memory::pair(4096);
//! let mut switch = Connection::in_memory(left, &Options::default());
//! let mut controller = Connection::in_memory(right, &Options::default());
//!
//! // Each side sends its HELLO at once.
//! let mut handshake = Handshake::towards_controller(VersionSet::SUPPORTED, 1);
//! switch.send_buffer().build(|out| handshake.start(out))?;
//! let old = Handshake::towards_switch(VersionSet::only(Version::V1_0), 1);
//! controller.send_buffer().build(|out| old.start(out))?;
//! controller.flush()?;
//!
//! // The switch's turn: receive within a budget, take frames, flush what they caused.
//! switch.receive(64 << 10);
//! let mut answer = Vec::new();
//! while let Some(frame) = switch.next_frame()? {
//!     match handshake.handle(frame, &mut answer)? {
//!         Step::Done(established) => assert_eq!(established.version, Version::V1_0),
//!         Step::Continue | Step::NotOurs => {}
//!     }
//! }
//! switch.push(&answer)?;
//! switch.flush()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
mod backoff;
pub mod blocking;
mod buffer;
mod connection;
mod endpoint;
mod error;
mod event_loop;
mod handshake;
mod keepalive;
pub mod memory;
mod message_type;
mod options;
mod socket;
mod timers;
mod tls;

pub use address::{Address, AddressError, OPENFLOW_PORT, Scheme};
pub use backoff::Backoff;
pub use buffer::{Full, SendBuffer};
pub use connection::{Connection, Counters, Flushed, ReadState, Received};
pub use endpoint::{Dialer, Listener};
pub use error::{CloseReason, Error};
pub use event_loop::{Event, EventLoop, Readiness, TimerKey, Token, Waker};
pub use handshake::{Established, Handshake, HandshakeError, Step, SwitchFeatures};
pub use keepalive::{Keepalive, Liveness};
pub use options::Options;
pub use timers::Timers;
pub use tls::{
    CertificateName, PeerCertificate, ServiceFiles, ServiceTrust, Tls, TlsFiles, TlsStream,
    certificates_not_after, issuers,
};
