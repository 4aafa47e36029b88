//! The address of Weir's REST interface, and the connection to this address.

use anyhow::{Context, bail};
use channel::ServiceTrust;
use daemon::config::{Api, SOCKET, Socket};
use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The longest wait for an answer. The placement of a large network takes less than a second.
const PATIENCE: Duration = Duration::from_secs(30);

/// The address of Weir's REST interface.
#[derive(Clone, Debug)]
pub enum Endpoint {
    /// A TCP address.
    Tcp(SocketAddr),
    /// TCP with TLS: a name or an address, and a port.
    Tls(String, u16),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl Default for Endpoint {
    fn default() -> Self {
        match PathBuf::from(SOCKET) {
            socket if socket.exists() => Endpoint::Unix(socket),
            _ => Endpoint::Tcp(([127, 0, 0, 1], 8080).into()),
        }
    }
}

impl FromStr for Endpoint {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Endpoint::Unix(path.into()));
        }
        let expected = "IP:PORT, https://HOST:PORT or unix:PATH is expected";
        if let Some(rest) = text.strip_prefix("https://") {
            let (host, port) = rest.trim_end_matches('/').rsplit_once(':').ok_or(expected)?;
            let port = port.parse().map_err(|_| expected)?;
            return match host.is_empty() {
                true => Err(expected),
                false => Ok(Endpoint::Tls(host.to_owned(), port)),
            };
        }
        text.parse().map(Endpoint::Tcp).map_err(|_| expected)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp(address) => write!(f, "http://{address}"),
            Endpoint::Tls(host, port) => write!(f, "https://{host}:{port}"),
            Endpoint::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Endpoint {
    /// The address of a `weir serve` with this configuration. If the socket exists, the address is the socket, which
    /// accepts changes.
    pub fn of(api: &Api) -> Option<Endpoint> {
        let socket = match &api.socket {
            Some(Socket::Wanted(path)) => Some(path),
            Some(Socket::Possible(path)) => Some(path).filter(|path| path.exists()),
            None => None,
        };
        let is_alone = api.tcp.is_none() && api.tls.is_none();
        let socket = socket.filter(|path| path.exists() || is_alone);
        let tls = api.tls.map(|address| {
            let host = match address.ip() {
                ip if ip.is_unspecified() => "localhost".to_owned(),
                ip => SocketAddr::new(ip, 0).to_string().trim_end_matches(":0").to_owned(),
            };
            Endpoint::Tls(host, address.port())
        });
        socket.cloned().map(Endpoint::Unix).or(api.tcp.map(Endpoint::Tcp)).or(tls)
    }

    /// Whether other hosts on the path could read the messages.
    pub fn is_overheard(&self) -> bool {
        matches!(self, Endpoint::Tcp(address) if !address.ip().is_loopback())
    }

    /// The value of the header `Host`.
    pub fn host(&self) -> String {
        match self {
            Endpoint::Tcp(address) => address.to_string(),
            Endpoint::Tls(host, port) => format!("{host}:{port}"),
            Endpoint::Unix(_) => "localhost".to_owned(),
        }
    }

    /// Connects to the address.
    pub fn connect(&self, trust: Option<&ServiceTrust>) -> anyhow::Result<Box<dyn Stream>> {
        match self {
            Endpoint::Tcp(address) => Ok(Box::new(tcp(*address)?)),
            Endpoint::Tls(host, port) => {
                let Some(trust) = trust else {
                    bail!("--ca FILE has to say who signs for {host}");
                };
                let bare = host.trim_start_matches('[').trim_end_matches(']');
                let mut addresses = (bare, *port).to_socket_addrs()?;
                let stream = tcp(addresses.next().context("the name has no address")?)?;
                Ok(Box::new(trust.connect(bare, stream)?))
            }
            Endpoint::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                Ok(Box::new(stream))
            }
        }
    }
}

/// A connection to Weir.
pub trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

fn tcp(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_endpoints_are_printed_as_written_and_bad_endpoints_are_refused() {
        for (text, host) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080"),
            ("https://weir.example:8443", "weir.example:8443"),
            ("https://[::1]:8443", "[::1]:8443"),
            ("unix:/run/weir/api.sock", "localhost"),
        ] {
            let place: Endpoint = text.trim_start_matches("http://").parse().unwrap();
            assert_eq!((place.to_string().as_str(), place.host().as_str()), (text, host));
        }
        for text in ["", "8080", "https://", "https://weir", "https://:1", "https://a:b"] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
    }
}
