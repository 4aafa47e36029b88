//! Where an endpoint is: `tcp:127.0.0.1:6653` or `ssl:[::1]:6653`, as Open vSwitch writes it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// The port that IANA gave to OpenFlow; used where an address names none, as `ovs-vsctl` does.
pub const OPENFLOW_PORT: u16 = 6653;

/// Plain TCP or TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// `tcp:`: no encryption.
    Tcp,
    /// `ssl:`: TLS with certificates on both sides.
    Ssl,
}

impl Scheme {
    /// `"tcp"` or `"ssl"`.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Tcp => "tcp",
            Scheme::Ssl => "ssl",
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Scheme, IP address and port.
///
/// Parsed from `tcp:IP[:PORT]`, `ssl:IP[:PORT]` or `IP[:PORT]` (plain TCP); an IPv6 address stands
/// in brackets when a port follows it. Host names are refused: looking them up would block an
/// event loop, and a tenant's isolation should not depend on a name server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// Plain TCP or TLS.
    pub scheme: Scheme,
    /// IP address and port.
    pub addr: SocketAddr,
}

impl Address {
    /// A plain TCP address.
    pub fn tcp(addr: SocketAddr) -> Self {
        Address { scheme: Scheme::Tcp, addr }
    }

    /// A TLS address.
    pub fn ssl(addr: SocketAddr) -> Self {
        Address { scheme: Scheme::Ssl, addr }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.scheme, self.addr)
    }
}

/// The text is no [`Address`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressError {
    text: String,
    reason: &'static str,
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "address {:?}: {}", self.text, self.reason)
    }
}

impl std::error::Error for AddressError {}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let refuse = |reason| AddressError { text: text.to_owned(), reason };
        let (scheme, rest) = match text.split_once(':') {
            Some(("tcp", rest)) => (Scheme::Tcp, rest),
            Some(("ssl" | "tls", rest)) => (Scheme::Ssl, rest),
            Some(("ptcp" | "pssl" | "unix" | "punix", _)) => {
                return Err(refuse("only tcp: and ssl: are understood"));
            }
            _ => (Scheme::Tcp, text),
        };
        if rest.is_empty() {
            return Err(refuse("the IP address is missing"));
        }
        if let Ok(addr) = rest.parse::<SocketAddr>() {
            return Ok(Address { scheme, addr });
        }
        let bare = rest.strip_prefix('[').and_then(|r| r.strip_suffix(']')).unwrap_or(rest);
        if let Ok(ip) = bare.parse::<IpAddr>() {
            return Ok(Address { scheme, addr: SocketAddr::new(ip, OPENFLOW_PORT) });
        }
        Err(refuse(reason_for(rest)))
    }
}

/// Says which half of `host:port` is wrong, since the standard parser only says "invalid".
fn reason_for(rest: &str) -> &'static str {
    match rest.rsplit_once(':') {
        Some((host, port)) => {
            let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
            match (host.parse::<IpAddr>().is_ok(), port.parse::<u16>().is_ok()) {
                (true, false) => "the port must be a number from 0 to 65535",
                (false, true) if !host.contains(':') => {
                    "the host must be an IP address; names are not looked up"
                }
                _ => "expected tcp:IP:PORT or ssl:IP:PORT, with IPv6 in brackets",
            }
        }
        None => "expected an IP address and a port; names are not looked up",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        match (text.parse::<Address>(), expected) {
            (Ok(address), Ok(printed)) => {
                assert_eq!(address.to_string(), printed, "{text}");
                assert_eq!(printed.parse::<Address>().unwrap(), address, "{printed} read again");
            }
            (Err(error), Err(part)) => {
                let error = error.to_string();
                assert!(error.contains(part), "{text}: {error:?} lacks {part:?}");
                assert!(error.contains(text), "{error:?} does not quote {text:?}");
            }
            (got, _) => panic!("{text}: {got:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn addresses_are_parsed_or_refused_with_a_reason() {
        check("tcp:127.0.0.1:6653", Ok("tcp:127.0.0.1:6653"));
        check("ssl:[::1]:6640", Ok("ssl:[::1]:6640"));
        check("tls:10.0.0.1:1", Ok("ssl:10.0.0.1:1"));
        check("127.0.0.1:6701", Ok("tcp:127.0.0.1:6701"));
        check("127.0.0.1:0", Ok("tcp:127.0.0.1:0"));
        check("[::1]:6701", Ok("tcp:[::1]:6701"));
        check("tcp:127.0.0.1", Ok("tcp:127.0.0.1:6653"));
        check("ssl:[fe80::1]", Ok("ssl:[fe80::1]:6653"));
        check("fe80::1", Ok("tcp:[fe80::1]:6653"));
        check("tcp:localhost:6653", Err("names are not looked up"));
        check("localhost", Err("names are not looked up"));
        check("tcp:127.0.0.1:70000", Err("port must be a number"));
        check("tcp:[::1]:http", Err("port must be a number"));
        check("tcp:", Err("address is missing"));
        check("", Err("address is missing"));
        check("unix:/run/x", Err("only tcp: and ssl:"));
        check("ptcp:6653", Err("only tcp: and ssl:"));
        check("udp:127.0.0.1:6653", Err("expected tcp:IP:PORT"));
        check("tcp:1.2.3:6653", Err("must be an IP address"));
    }
}
