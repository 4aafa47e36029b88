//! The addresses of the controllers of a lab's switches.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::address::ControlLink;
use crate::error::Error;

/// The address of a controller: `tcp:HOST:PORT` or `ssl:HOST:PORT`.
///
/// A loopback host (`127.0.0.1`, `localhost`, `[::1]`) means the machine that runs the lab. The
/// namespace of the switches has its own loopback interface, so the switches get
/// [`crate::Lab::controller_address`] instead. The controller must listen on that address or on
/// `0.0.0.0`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Controller {
    scheme: String,
    host: String,
    port: u16,
}

impl Controller {
    /// The target for Open vSwitch.
    pub(crate) fn target(&self, here: &ControlLink) -> String {
        let host = if self.is_here() { here.host.to_string() } else { self.host.clone() };
        format!("{}:{host}:{}", self.scheme, self.port)
    }

    fn is_here(&self) -> bool {
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        bare == "localhost" || bare.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.scheme, self.host, self.port)
    }
}

impl FromStr for Controller {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::Option {
            option: "controller",
            message: format!(
                "{text:?} is not a controller such as tcp:127.0.0.1:6653 or ssl:192.0.2.1:6653"
            ),
        };
        let (scheme, rest) = text
            .split_once(':')
            .filter(|(scheme, _)| matches!(*scheme, "tcp" | "ssl"))
            .ok_or_else(wrong)?;
        let (host, port) = rest.rsplit_once(':').ok_or_else(wrong)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
        let v6 = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let right = match v6 {
            Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.chars().all(is_name),
        };
        let port = port.parse().ok().filter(|port| right && *port != 0).ok_or_else(wrong)?;
        Ok(Controller { scheme: scheme.to_owned(), host: host.to_owned(), port })
    }
}

impl TryFrom<String> for Controller {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Controller> for String {
    fn from(controller: Controller) -> String {
        controller.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers() {
        let here = ControlLink {
            interface: "x".to_owned(),
            host: [198, 18, 0, 1].into(),
            switches: [198, 18, 0, 2].into(),
        };
        let cases = [
            ("tcp:127.0.0.1:6653", Some("tcp:198.18.0.1:6653")),
            ("tcp:127.9.9.9:6653", Some("tcp:198.18.0.1:6653")),
            ("ssl:localhost:6653", Some("ssl:198.18.0.1:6653")),
            ("tcp:[::1]:6653", Some("tcp:198.18.0.1:6653")),
            ("tcp:192.0.2.1:6653", Some("tcp:192.0.2.1:6653")),
            ("tcp:[2001:db8::1]:6653", Some("tcp:[2001:db8::1]:6653")),
            ("tcp:2001:db8::1:6653", None),
            ("tcp:127.0.0.1", None),
            ("tcp:127.0.0.1:0", None),
            ("tcp::6653", None),
            ("ptcp:6653", None),
            ("udp:127.0.0.1:6653", None),
            ("tcp:a\" b:1", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let controller = text.parse::<Controller>().ok();
            assert_eq!(
                controller.as_ref().map(|one| one.target(&here)).as_deref(),
                expected,
                "{text:?}"
            );
            let printed = controller.map(|one| one.to_string());
            assert_eq!(printed.as_deref(), expected.map(|_| text), "{text:?}");
        }
    }
}
