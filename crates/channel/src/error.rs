//! What can go wrong: [`Error`] for what is ours to mend (configuration, operating system) and
//! [`CloseReason`] for why a connection is over (mostly the peer's doing).

use std::fmt;
use std::io;
use std::path::PathBuf;

use openflow::FrameError;

use crate::address::Address;
use crate::handshake::HandshakeError;

/// A fault on our side: a setting that cannot work, or the operating system's refusal.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A private key or certificate file cannot be used.
    TlsFile {
        /// The file.
        path: PathBuf,
        /// What it was to give: "private key", "certificate", "CA certificate".
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// The files are readable, but do not make a TLS identity (say, the key is another
    /// certificate's).
    TlsIdentity(String),
    /// An `ssl:` address was used without a [`Tls`](crate::Tls) identity.
    TlsMissing(Address),
    /// The operating system refused.
    Io {
        /// What was tried, with the address: "listen on tcp:127.0.0.1:6653".
        what: String,
        /// Its answer.
        source: io::Error,
    },
    /// The connection ended while a [`blocking::Client`](crate::blocking::Client) used it.
    Closed(CloseReason),
    /// The peer's bytes cannot be cut into frames.
    Frame(FrameError),
    /// The peer failed the handshake.
    Handshake(HandshakeError),
    /// Nothing arrived in the time that a blocking call allowed.
    TimedOut {
        /// What was waited for.
        what: &'static str,
    },
}

impl Error {
    pub(crate) fn io(what: impl Into<String>, source: io::Error) -> Self {
        Error::Io { what: what.into(), source }
    }

    pub(crate) fn identity(error: impl fmt::Display) -> Self {
        Error::TlsIdentity(error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::TlsFile { path, what, reason } => {
                write!(f, "{what} {}: {reason}", path.display())
            }
            Error::TlsIdentity(reason) => write!(f, "TLS identity: {reason}"),
            Error::TlsMissing(address) => {
                write!(f, "{address}: needs a private key, a certificate and a CA certificate")
            }
            Error::Io { what, source } => write!(f, "{what}: {source}"),
            Error::Closed(reason) => write!(f, "connection closed: {reason}"),
            Error::Frame(error) => error.fmt(f),
            Error::Handshake(error) => write!(f, "handshake: {error}"),
            Error::TimedOut { what } => write!(f, "timed out waiting for {what}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            Error::Closed(reason) => Some(reason),
            Error::Frame(error) => Some(error),
            Error::Handshake(error) => Some(error),
            _ => None,
        }
    }
}

/// Why a connection can no longer be read or written.
///
/// Frames that arrived before the end can still be taken out of the connection.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CloseReason {
    /// The peer will send no more (TCP FIN, or TLS close_notify). It may still read.
    PeerClosed,
    /// The peer is gone: reset, broken pipe, aborted, timed out.
    Reset(io::ErrorKind),
    /// Dialling failed: refused, unreachable, timed out.
    ConnectFailed(io::ErrorKind),
    /// The peer of a TLS (`ssl:`) endpoint speaks plain OpenFlow.
    PlainPeer,
    /// The peer of a plain (`tcp:`) endpoint speaks TLS.
    TlsPeer,
    /// The peer closed in the middle of the TLS handshake, without an alert. Perhaps it speaks no
    /// TLS.
    TlsHandshakeCut,
    /// The TCP stream under TLS ended without close_notify: data may be missing (RFC 8446 §6.1).
    TlsTruncated,
    /// TLS failed: certificate, alert, protocol. The peer has been sent the alert, if any.
    Tls(rustls::Error),
    /// Any other answer of the operating system.
    Io(io::ErrorKind),
}

impl CloseReason {
    pub(crate) fn from_io(error: &io::Error) -> Self {
        use io::ErrorKind as Kind;
        match error.kind() {
            kind @ (Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::BrokenPipe
            | Kind::NotConnected
            | Kind::TimedOut) => CloseReason::Reset(kind),
            kind => CloseReason::Io(kind),
        }
    }

    /// True if TLS failed. A missing close_notify is no such failure.
    pub fn is_tls(&self) -> bool {
        use CloseReason::{PlainPeer, Tls, TlsHandshakeCut, TlsPeer};
        matches!(self, PlainPeer | TlsPeer | TlsHandshakeCut | Tls(_))
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CloseReason::PeerClosed => f.write_str("closed by the peer"),
            CloseReason::Reset(kind) => write!(f, "lost: {kind}"),
            CloseReason::ConnectFailed(kind) => write!(f, "cannot connect: {kind}"),
            CloseReason::PlainPeer => {
                f.write_str("the peer speaks plain OpenFlow to a TLS (ssl:) endpoint")
            }
            CloseReason::TlsPeer => f.write_str("the peer speaks TLS to a plain (tcp:) endpoint"),
            CloseReason::TlsHandshakeCut => {
                f.write_str("the peer closed in the middle of the TLS handshake")
            }
            CloseReason::TlsTruncated => f.write_str("the TLS stream ended without close_notify"),
            CloseReason::Tls(error) => write_tls(f, error),
            CloseReason::Io(kind) => write!(f, "input/output error: {kind}"),
        }
    }
}

impl std::error::Error for CloseReason {}

/// rustls speaks to TLS engineers; these cases are met by people who set up switches.
fn write_tls(f: &mut fmt::Formatter<'_>, error: &rustls::Error) -> fmt::Result {
    use rustls::{AlertDescription as Alert, CertificateError as Certificate, Error as Tls};
    let hint = match error {
        Tls::NoCertificatesPresented => "the peer presented no certificate",
        Tls::InvalidCertificate(Certificate::UnknownIssuer) => {
            "the peer's certificate is not signed by our CA"
        }
        // Two CAs made by ovs-pki within one second have the same name.
        Tls::InvalidCertificate(Certificate::BadSignature) => {
            "the peer's certificate is not signed by our CA but by one of the same name, or the \
             peer does not have its key"
        }
        Tls::InvalidCertificate(Certificate::Expired | Certificate::ExpiredContext { .. }) => {
            "the peer's certificate has expired"
        }
        Tls::InvalidCertificate(
            Certificate::NotValidYet | Certificate::NotValidYetContext { .. },
        ) => "the peer's certificate is not valid yet; is one of the clocks wrong?",
        Tls::AlertReceived(Alert::CertificateExpired) => {
            "our certificate has expired, or is not valid yet, by the peer's clock"
        }
        Tls::AlertReceived(Alert::UnknownCA) => "our certificate is not signed by the peer's CA",
        Tls::AlertReceived(Alert::CertificateRequired) => "the peer wants a certificate from us",
        _ if is_unsupported_version(error) => {
            return write!(f, "TLS: the peer's certificate cannot be used: {NOT_VERSION_3}");
        }
        _ => return write!(f, "TLS: {error}"),
    };
    write!(f, "TLS: {hint} ({error})")
}

pub(crate) const NOT_VERSION_3: &str =
    "it is not X.509 version 3 (sign it with extensions, as ovs-pki does)";

/// rustls hands the reason through as an opaque error; a test with a real certificate holds this.
pub(crate) fn is_unsupported_version(error: &rustls::Error) -> bool {
    match error {
        rustls::Error::InvalidCertificate(rustls::CertificateError::Other(other)) => {
            other.0.to_string() == "UnsupportedCertVersion"
        }
        _ => false,
    }
}
