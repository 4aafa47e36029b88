//! The few lines of HTTP that asking `/metrics` and `/healthz` takes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const TIME: Duration = Duration::from_secs(5);

/// Status and body; `None` if nobody answers.
pub fn get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    ask(address, path, "1.1")
}

/// The same of a server that would send large bodies in chunks, which HTTP/1.0 has not.
pub fn get_whole(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    ask(address, path, "1.0")
}

fn ask(address: SocketAddr, path: &str, version: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&address, TIME).ok()?;
    stream.set_read_timeout(Some(TIME)).ok()?;
    write!(stream, "GET {path} HTTP/{version}\r\nHost: {address}\r\nConnection: close\r\n\r\n")
        .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}
