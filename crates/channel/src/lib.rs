#![forbid(unsafe_code)]
//! OpenFlow endpoints: listen and dial, plain TCP and mutual TLS, framing, bounded buffers, and an
//! event loop to run on each core. An in-memory transport stands in for sockets in tests.
//!
//! It deliberately has no policy: it never decides what a frame means, when to dial again, or what
//! to do when a buffer is full. It bounds, counts and reports. It starts no threads and reads no
//! clock, except where [`EventLoop`] waits.
//!
//! Start reading at [`Connection`] (one stream of frames, and the rules for driving it), then
//! [`EventLoop`] (who is ready). [`Listener`] and [`Dialer`] make connections; [`Backoff`]
//! and [`Timers`] are pure data.

mod address;
mod backoff;
mod buffer;
mod connection;
mod endpoint;
mod error;
mod event_loop;
pub mod memory;
mod timers;
mod tls;

pub use address::{Address, OPENFLOW_PORT, Scheme};
pub use backoff::Backoff;
pub use buffer::{Full, SendBuffer};
pub use connection::{Connection, Counters, Flushed, ReadState, Received};
pub use endpoint::{Dialer, Listener, Options};
pub use error::{CloseReason, Error};
pub use event_loop::{Event, EventLoop, Readiness, TimerKey, Token, Waker};
pub use timers::Timers;
pub use tls::{Tls, TlsFiles};
