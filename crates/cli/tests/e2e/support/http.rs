//! Asking Weir's REST interface.

use rest::Request;
use std::net::{SocketAddr, TcpStream};

use super::PATIENCE;

/// More bytes than metrics have.
const MOST: u64 = 64 << 20;

/// Status and body; `None` if nobody answers.
pub fn get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    ask(address, &Request::new("GET", path, &address.to_string()))
}

/// The same after a change by JSON.
pub fn post(address: SocketAddr, path: &str, body: &str) -> Option<(u16, String)> {
    ask(address, &Request::new("POST", path, &address.to_string()).json(body))
}

fn ask(address: SocketAddr, request: &Request<'_>) -> Option<(u16, String)> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let answer = rest::ask(stream, request).ok()?;
    Some((answer.status, answer.text(MOST).ok()?))
}
