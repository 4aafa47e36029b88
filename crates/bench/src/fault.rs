//! Faults of the system under test, counted by name. No fault is ever counted as latency.

use std::collections::BTreeMap;
use std::fmt;

/// A fault of the system under test.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A tenant's packet reached another tenant's controller.
    Leak {
        /// The tenant of the packet.
        of: usize,
        /// The tenant whose controller got the message.
        to: usize,
    },
    /// A controller received a reply to a request of another tenant: the other tenant's xid is in the reply.
    ForeignXid {
        /// The tenant of the request.
        of: usize,
        /// The tenant whose controller got the reply.
        to: usize,
    },
    /// A controller received a reply with an xid that no request had.
    UnknownXid {
        /// The tenant whose controller got the message.
        tenant: usize,
    },
    /// A reply came too late: a later request has the place of its request.
    TooLate {
        /// The tenant whose controller got the message.
        tenant: usize,
    },
    /// A reply of another type than the request requires.
    WrongReply {
        /// The tenant whose controller got the message.
        tenant: usize,
    },
    /// An ECHO_REPLY without the request's payload.
    EchoPayload {
        /// The tenant whose controller got the message.
        tenant: usize,
    },
    /// A packet without a tag of this program.
    Untagged,
    /// A packet or reply of an earlier run.
    Stale,
    /// A tenant's packet came out of another port than the requested one.
    Misdelivered {
        /// The tenant of the packet.
        of: usize,
        /// The port, by its place in the order of the setup.
        port: usize,
    },
    /// An interface did not accept a probe, or packets could not be captured there.
    Interface {
        /// The tenant of the probe, or the port.
        port: usize,
    },
    /// A frame whose length field is below 8.
    BadLength,
    /// A message that is too short for its content.
    Truncated,
    /// A message, or a HELLO, of another version than the negotiated one.
    WrongVersion {
        /// The version byte.
        version: u8,
    },
    /// An ERROR.
    Error {
        /// The error's type.
        error_type: u16,
        /// The error's code.
        code: u16,
    },
    /// A controller's connection was closed.
    ControllerClosed {
        /// The tenant.
        tenant: usize,
    },
    /// A switch's connection was closed, or refused.
    SwitchClosed {
        /// The switch.
        switch: usize,
    },
    /// The TLS handshake failed, or the TLS connection broke.
    Tls {
        /// The message of the other end, or the error at the other end.
        reason: String,
    },
}

impl Fault {
    /// A stable name for `result.json`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Leak { .. } => "leak",
            Self::ForeignXid { .. } => "foreign-xid",
            Self::UnknownXid { .. } => "unknown-xid",
            Self::TooLate { .. } => "too-late",
            Self::WrongReply { .. } => "wrong-reply",
            Self::EchoPayload { .. } => "echo-payload",
            Self::Untagged => "untagged",
            Self::Stale => "stale",
            Self::Misdelivered { .. } => "misdelivered",
            Self::Interface { .. } => "interface",
            Self::BadLength => "bad-length",
            Self::Truncated => "truncated",
            Self::WrongVersion { .. } => "wrong-version",
            Self::Error { .. } => "error",
            Self::ControllerClosed { .. } => "controller-closed",
            Self::SwitchClosed { .. } => "switch-closed",
            Self::Tls { .. } => "tls",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leak { of, to } => write!(f, "a packet of tenant {of} leaked to tenant {to}"),
            Self::ForeignXid { of, to } => write!(f, "a reply to tenant {of} went to tenant {to}"),
            Self::UnknownXid { tenant } => {
                write!(f, "tenant {tenant} got a reply with an xid that nobody used")
            }
            Self::TooLate { tenant } => {
                write!(f, "tenant {tenant} got a reply too late to be measured")
            }
            Self::WrongReply { tenant } => {
                write!(f, "tenant {tenant} got a reply of the wrong type")
            }
            Self::EchoPayload { tenant } => {
                write!(f, "tenant {tenant} got an ECHO_REPLY without its request's payload")
            }
            Self::Untagged => f.write_str("a packet came that nobody had sent"),
            Self::Stale => f.write_str("a message of an earlier run arrived"),
            Self::Misdelivered { of, port } => {
                write!(f, "a packet of tenant {of} came out of port {port}")
            }
            Self::Interface { port } => write!(f, "the interface of port {port} failed"),
            Self::BadLength => f.write_str("a frame's length field was below 8"),
            Self::Truncated => f.write_str("a message was too short for its type"),
            Self::WrongVersion { version } => write!(f, "a message had version {version:#04x}"),
            Self::Error { error_type, code } => {
                write!(f, "an ERROR of type {error_type}, code {code} came back")
            }
            Self::ControllerClosed { tenant } => {
                write!(f, "tenant {tenant}'s controller connection was closed")
            }
            Self::SwitchClosed { switch } => {
                write!(f, "switch {switch}'s connection was closed or refused")
            }
            Self::Tls { reason } => write!(f, "TLS ended a connection: {reason}"),
        }
    }
}

/// The number of occurrences of each fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults(BTreeMap<Fault, u64>);

impl Faults {
    pub(crate) fn count(&mut self, fault: Fault) {
        *self.0.entry(fault).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (fault, count) in &other.0 {
            *self.0.entry(fault.clone()).or_default() += count;
        }
    }

    /// Each fault with its number, in a stable order.
    pub fn iter(&self) -> impl Iterator<Item = (&Fault, u64)> {
        self.0.iter().map(|(fault, &count)| (fault, count))
    }

    /// The number of occurrences of the faults with this [`Fault::code`].
    #[must_use]
    pub fn of(&self, code: &str) -> u64 {
        self.iter().filter(|(fault, _)| fault.code() == code).map(|(_, count)| count).sum()
    }

    /// Whether there were no faults.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The faults as sentences, the most frequent fault first.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let mut all: Vec<_> = self.iter().collect();
        all.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        all.into_iter().map(|(fault, count)| format!("{fault} ({count} times)")).collect()
    }
}
