//! A question to the REST interface of a system under test, and its answer.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Bytes of an answer that are read.
const MOST: u64 = 64 << 20;

/// Asks, and gives the status and what was answered, as JSON.
///
/// # Errors
/// A sentence.
pub(crate) fn ask(
    api: SocketAddr,
    method: &str,
    path: &str,
    body: Option<&Value>,
    limit: Duration,
) -> Result<(u16, Value), String> {
    let failed = |error: std::io::Error| format!("{method} {path}: {error}");
    let mut stream = TcpStream::connect_timeout(&api, limit).map_err(failed)?;
    stream.set_read_timeout(Some(limit)).map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    let body = body.map(Value::to_string).unwrap_or_default();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {api}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let mut answer = String::new();
    stream.take(MOST).read_to_string(&mut answer).map_err(failed)?;
    read(&answer).ok_or_else(|| format!("{method} {path}: the answer cannot be read"))
}

fn read(answer: &str) -> Option<(u16, Value)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split_whitespace().nth(1)?.parse().ok()?;
    Some((status, serde_json::from_str(body).unwrap_or(Value::Null)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        let ok = read("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"flows\": 3}");
        assert_eq!(ok, Some((200, serde_json::json!({"flows": 3}))));
        assert_eq!(read("HTTP/1.1 404 Not Found\r\n\r\n"), Some((404, Value::Null)));
        assert_eq!(read("SSH-2.0-OpenSSH"), None);
    }
}
