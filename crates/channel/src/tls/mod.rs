//! Mutual TLS as OpenFlow networks use it: both sides have a certificate, and each trusts one CA.
//!
//! Start with [`Tls`]; `stream` drives rustls over a non-blocking socket.

mod config;
mod stream;

pub(crate) use config::{NOT_VERSION_3, is_unsupported_version};
pub use config::{Tls, TlsFiles};
pub use stream::TlsStream;
