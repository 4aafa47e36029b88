//! `[listen] api`: the addresses of REST, and the addresses where changes are accepted.
//!
//! Without an account, clients can read on the loopback, and the owner and the group of a socket in the file system can
//! make changes. Other addresses use TLS, and always require an account (`[api]`).

use std::net::SocketAddr;
use std::path::PathBuf;

use super::reader::{Table, Value};

/// The addresses of REST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Api {
    /// TCP on the loopback.
    pub tcp: Option<SocketAddr>,
    /// TCP with TLS.
    pub tls: Option<SocketAddr>,
    /// A socket in the file system.
    pub socket: Option<Socket>,
    /// Whether changes by TCP are accepted, too.
    pub tcp_changes: bool,
}

/// A socket in the file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Socket {
    /// The operator has configured the socket.
    Wanted(PathBuf),
    /// The default socket, if it can be created.
    Possible(PathBuf),
}

/// The default socket for changes.
pub const SOCKET: &str = "/run/weir/api.sock";

impl Default for Api {
    fn default() -> Self {
        Api {
            tcp: Some(([127, 0, 0, 1], 8080).into()),
            tls: None,
            socket: Some(Socket::Possible(SOCKET.into())),
            tcp_changes: false,
        }
    }
}

impl Api {
    /// TCP alone, also for changes.
    pub fn by_tcp(address: SocketAddr) -> Api {
        Api { tcp: Some(address), tls: None, socket: None, tcp_changes: true }
    }
}

enum Place {
    Off,
    Tcp(SocketAddr),
    Tls(SocketAddr),
    Socket(PathBuf),
}

pub(super) fn read(table: &mut Table<'_, '_>, has_files: bool) -> Api {
    let places = table.get("api", |value| value.one_or_list(|value| place(value, has_files)));
    let choices = [("socket", false), ("loopback", true)];
    let tcp_changes = table.get("api_changes", |value| value.choice(&choices)).unwrap_or(false);
    let Some(places) = places else { return Api { tcp_changes, ..Api::default() } };
    let mut api = Api { tcp: None, tls: None, socket: None, tcp_changes };
    for place in places {
        match place {
            Place::Off => {}
            Place::Tcp(address) => api.tcp = Some(address),
            Place::Tls(address) => api.tls = Some(address),
            Place::Socket(path) => api.socket = Some(Socket::Wanted(path)),
        }
    }
    api
}

fn place(value: &Value<'_, '_>, has_files: bool) -> Option<Place> {
    let text = value.string()?;
    if text == "off" {
        return Some(Place::Off);
    }
    if let Some(path) = text.strip_prefix("unix:") {
        return Some(Place::Socket(value.beside(path)));
    }
    if let Some(address) = text.strip_prefix("ssl:") {
        let Ok(address) = address.parse() else {
            let help = "expected ssl:IP:PORT, such as \"ssl:0.0.0.0:8443\"".to_owned();
            return value.refuse(format!("bad address \"{text}\""), Some(help));
        };
        if !has_files {
            let help = "add a section [api] with private_key and certificate".to_owned();
            return value.refuse("an ssl: address needs a certificate", Some(help));
        }
        return Some(Place::Tls(address));
    }
    let address = value.socket_address()?;
    if !address.ip().is_loopback() {
        let help = format!(
            "write \"ssl:{address}\", with private_key and certificate in [api], and make accounts with `weir ctl token create`"
        );
        let message = "off the loopback the REST interface needs TLS and accounts";
        return value.refuse(message, Some(help));
    }
    Some(Place::Tcp(address))
}
