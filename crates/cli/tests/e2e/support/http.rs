//! The few lines of HTTP that asking Weir takes.

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

/// The same after a change by JSON.
pub fn post(address: SocketAddr, path: &str, body: &str) -> Option<(u16, String)> {
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close");
    let kind = "Content-Type: application/json";
    exchange(address, &format!("{head}\r\n{kind}\r\nContent-Length: {length}\r\n\r\n{body}"))
}

fn ask(address: SocketAddr, path: &str, version: &str) -> Option<(u16, String)> {
    let head = format!("GET {path} HTTP/{version}\r\nHost: {address}");
    exchange(address, &format!("{head}\r\nConnection: close\r\n\r\n"))
}

fn exchange(address: SocketAddr, request: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&address, TIME).ok()?;
    stream.set_read_timeout(Some(TIME)).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}
