//! A client of Weir's REST interface.

use rest::Request;
use std::net::{SocketAddr, TcpStream};

use super::PATIENCE;

/// The most bytes of a response. Metrics have fewer bytes.
const MOST: u64 = 64 << 20;

/// Sends a GET request. Returns status and body, or `None` without an answer.
pub fn get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    ask(address, &Request::new("GET", path, &address.to_string()))
}

/// Sends a POST request with a JSON body. Returns status and body, or `None` without an answer.
pub fn post(address: SocketAddr, path: &str, body: &str) -> Option<(u16, String)> {
    ask(address, &Request::new("POST", path, &address.to_string()).json(body))
}

fn ask(address: SocketAddr, request: &Request<'_>) -> Option<(u16, String)> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let answer = rest::ask(stream, request).ok()?;
    Some((answer.status, answer.text(MOST).ok()?))
}
