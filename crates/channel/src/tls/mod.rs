//! Mutual TLS as OpenFlow networks use it: both sides have a certificate, and each trusts one CA.
//!
//! Start with [`Tls`]; `stream` drives rustls over a non-blocking socket; `service` is TLS for REST.

mod certificate;
mod config;
mod service;
mod stream;

pub use certificate::{CertificateName, PeerCertificate};
pub use config::{Tls, TlsFiles, certificates_not_after, issuers};
pub use service::{ServiceFiles, ServiceTrust};
pub use stream::TlsStream;
