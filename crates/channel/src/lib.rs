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
mod socket;
mod timers;
mod tls;

pub use address::{Address, OPENFLOW_PORT, Scheme};
pub use backoff::Backoff;
pub use buffer::{Full, SendBuffer};
pub use connection::{Connection, Counters, Flushed, ReadState, Received};
pub use endpoint::{Dialer, Listener, Options};
pub use error::{CloseReason, Error};
pub use event_loop::{Event, EventLoop, Readiness, TimerKey, Token, Waker};
pub use handshake::{Established, Handshake, HandshakeError, Step, SwitchFeatures};
pub use keepalive::{Keepalive, Liveness};
pub use timers::Timers;
pub use tls::{Tls, TlsFiles};
