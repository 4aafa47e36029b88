//! Asking `/metrics` and `/healthz`.

use rest::Request;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const TIME: Duration = Duration::from_secs(5);
/// More bytes than metrics have.
const MOST: u64 = 64 << 20;

/// Status and body; `None` if nobody answers.
pub fn get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    let stream = TcpStream::connect_timeout(&address, TIME).ok()?;
    stream.set_read_timeout(Some(TIME)).ok()?;
    let answer = rest::ask(stream, &Request::new("GET", path, &address.to_string())).ok()?;
    Some((answer.status, answer.text(MOST).ok()?))
}
