//! `[listen] api`: where REST is served, and where it takes changes.
//!
//! Without passwords whoever reaches it may do all that it takes. So it is on the loopback alone, where it is read, and on a
//! socket in the file system, whose owner and group may change things.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::reader::{Table, Value};

/// Where REST is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Api {
    /// By TCP, on the loopback.
    pub tcp: Option<SocketAddr>,
    /// By a socket in the file system.
    pub socket: Option<Socket>,
    /// Whether changes are taken by TCP, too.
    pub tcp_changes: bool,
}

/// A socket in the file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Socket {
    /// The operator wants it there.
    Wanted(PathBuf),
    /// It is there unless it cannot be.
    Possible(PathBuf),
}

/// Where changes are taken if nobody says otherwise.
pub const SOCKET: &str = "/run/weir/api.sock";

impl Default for Api {
    fn default() -> Self {
        Api {
            tcp: Some(([127, 0, 0, 1], 8080).into()),
            socket: Some(Socket::Possible(SOCKET.into())),
            tcp_changes: false,
        }
    }
}

impl Api {
    /// By TCP alone, also changes.
    pub fn by_tcp(address: SocketAddr) -> Api {
        Api { tcp: Some(address), socket: None, tcp_changes: true }
    }
}

enum Place {
    Off,
    Tcp(SocketAddr),
    Socket(PathBuf),
}

pub(super) fn read(table: &mut Table<'_, '_>, file: &str) -> Api {
    let places = table.get("api", |value| value.one_or_list(|value| place(value, file)));
    let choices = [("socket", false), ("loopback", true)];
    let tcp_changes = table.get("api_changes", |value| value.choice(&choices)).unwrap_or(false);
    let Some(places) = places else { return Api { tcp_changes, ..Api::default() } };
    let mut api = Api { tcp: None, socket: None, tcp_changes };
    for place in places {
        match place {
            Place::Off => {}
            Place::Tcp(address) => api.tcp = Some(address),
            Place::Socket(path) => api.socket = Some(Socket::Wanted(path)),
        }
    }
    api
}

fn place(value: &Value<'_, '_>, file: &str) -> Option<Place> {
    let text = value.string()?;
    if text == "off" {
        return Some(Place::Off);
    }
    if let Some(path) = text.strip_prefix("unix:") {
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        return Some(Place::Socket(folder.join(path)));
    }
    let address = value.socket_address()?;
    if !address.ip().is_loopback() {
        let help = "keep it on the loopback, and put before it what asks for one".to_owned();
        return value.refuse("the REST interface asks for no password", Some(help));
    }
    Some(Place::Tcp(address))
}
