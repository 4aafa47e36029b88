//! Changes a running bench from outside, over HTTP. A client can add streams during the run, in the format of a
//! scenario file (a [`Stream`], as JSON).
//!
//! ```text
//!   client ──HTTP──▶ thread "bench-http" ──bounded queue──▶ session, between its looks ──▶ the generator's threads
//! ```
//!
//! | request | does |
//! |---|---|
//! | `GET /streams` | returns the streams with their numbers, and the time since the run began |
//! | `POST /streams` | adds a stream |
//! | `PUT /streams/N` | ends stream N and begins another stream in its place, at one moment |
//! | `DELETE /streams/N` | ends stream N |
//!
//! The interface serves one request at a time, each with a bounded length and time. There is no authentication, so the
//! interface listens on loopback only.

use crate::error::{Error, setting};
use crate::load::Stream;
use serde_json::{Value, json};
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// A request to a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    Look,
    Add(Stream),
    Replace(usize, Stream),
    Stop(usize),
}

/// A request, and the channel for its answer.
pub(crate) struct Order {
    pub(crate) change: Change,
    answer: SyncSender<Result<Value, String>>,
}

impl Order {
    pub(crate) fn answer(&self, answer: Result<Value, String>) {
        // The client may have closed its connection.
        let _ = self.answer.try_send(answer);
    }
}

/// The HTTP socket for changes of a running bench.
pub struct Control {
    address: SocketAddr,
    orders: Mutex<Receiver<Order>>,
    /// The changes, for the results.
    log: Mutex<Vec<String>>,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Control({})", self.address)
    }
}

/// The number of requests that may wait for the session. The session checks for requests every few milliseconds.
const QUEUE: usize = 16;
/// The limits of a request: bytes of a line, lines of a header, bytes of a body.
const LINE: u64 = 8 << 10;
const LINES: usize = 100;
const BODY: usize = 256 << 10;
/// The time that a client has for its request, and the session for its answer.
const PATIENCE: Duration = Duration::from_secs(2);

impl Control {
    /// Listens at this address.
    ///
    /// # Errors
    /// [`Error::Setting`] for an address that other machines can reach, [`Error::Io`] for an address that cannot be
    /// bound.
    pub fn bind(address: SocketAddr) -> Result<Control, Error> {
        setting(
            address.ip().is_loopback(),
            "--control",
            address,
            "a loopback address: there is no authentication",
        )?;
        let listener = TcpListener::bind(address).map_err(Error::io(format!("{address}")))?;
        let address = listener.local_addr().map_err(Error::io(format!("{address}")))?;
        let (sender, orders) = sync_channel(QUEUE);
        let serve = move || {
            for client in listener.incoming().flatten() {
                // An error with one client does not affect the bench.
                let _ = serve(&client, &sender);
            }
        };
        // The thread holds only its socket, so the thread ends with the process.
        std::thread::Builder::new()
            .name("bench-http".to_owned())
            .spawn(serve)
            .map_err(Error::io("thread"))?;
        Ok(Control { address, orders: Mutex::new(orders), log: Mutex::default() })
    }

    /// The address of the socket.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The changes so far, one sentence for each change.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        self.log.lock().map(|log| log.clone()).unwrap_or_default()
    }

    pub(crate) fn note(&self, text: String) {
        if let Ok(mut log) = self.log.lock()
            && log.len() < 1000
        {
            log.push(text);
        }
    }

    /// The next request, if there is one.
    pub(crate) fn next(&self) -> Option<Order> {
        self.orders.lock().ok()?.try_recv().ok()
    }
}

/// Answers one request.
fn serve(client: &TcpStream, orders: &SyncSender<Order>) -> std::io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let (status, body) = match read(client).and_then(|request| understand(&request)) {
        Ok(change) => ask(change, orders),
        Err((status, why)) => (status, json!({ "error": why })),
    };
    let reason = match status {
        200 => "OK",
        201 => "Created",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        413 => "Content Too Large",
        _ => "Bad Request",
    };
    let body = format!("{body}\n");
    let mut client = client;
    write!(
        client,
        "HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn ask(change: Change, orders: &SyncSender<Order>) -> (u16, Value) {
    let status = if matches!(change, Change::Add(_)) { 201 } else { 200 };
    let idle = || (409, json!({ "error": "no run is going on" }));
    let (answer, outcome) = sync_channel(1);
    if orders.try_send(Order { change, answer }).is_err() {
        return idle();
    }
    match outcome.recv_timeout(PATIENCE) {
        Ok(Ok(value)) => (status, value),
        Ok(Err(why)) => (400, json!({ "error": why })),
        Err(_) => idle(),
    }
}

struct Request {
    method: String,
    path: String,
    body: Vec<u8>,
}

type Refusal = (u16, String);

fn read(client: &TcpStream) -> Result<Request, Refusal> {
    let bad = |why: &str| (400, why.to_owned());
    let mut reader = BufReader::new(client);
    let mut line = || -> Result<String, Refusal> {
        let mut text = String::new();
        let read = reader.by_ref().take(LINE).read_line(&mut text);
        read.map_err(|_| bad("the request ended early, or is no text"))?;
        if !text.ends_with('\n') {
            return Err(bad("a line ended early or is too long"));
        }
        Ok(text.trim_end().to_owned())
    };
    let first = line()?;
    let mut words = first.split(' ');
    let (Some(method), Some(path), Some(version)) = (words.next(), words.next(), words.next())
    else {
        return Err(bad("this is not HTTP"));
    };
    if !version.starts_with("HTTP/1.") {
        return Err(bad("only HTTP/1 is spoken here"));
    }
    let (method, path) = (method.to_owned(), path.to_owned());
    let mut length = 0;
    for count in 0.. {
        let header = line()?;
        if header.is_empty() {
            break;
        }
        if count == LINES {
            return Err(bad("too many headers"));
        }
        let (name, value) = header.split_once(':').ok_or_else(|| bad("a header has no colon"))?;
        match name.to_ascii_lowercase().as_str() {
            "content-length" => {
                length = value.trim().parse().map_err(|_| bad("Content-Length is no number"))?;
            }
            "transfer-encoding" => return Err(bad("a Content-Length is needed")),
            // Web pages in a browser on this machine may not change the bench.
            "origin" => return Err(bad("requests of web pages are refused")),
            _ => {}
        }
    }
    if length > BODY {
        return Err((413, format!("a request has at most {BODY} bytes")));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).map_err(|_| bad("the body ended early"))?;
    Ok(Request { method, path, body })
}

fn understand(request: &Request) -> Result<Change, Refusal> {
    let stream = || {
        serde_json::from_slice::<Stream>(&request.body)
            .map_err(|error| (400, format!("the stream: {error}")))
    };
    let rest = request.path.strip_prefix("/streams").map(|rest| rest.trim_end_matches('/'));
    let number = rest.and_then(|rest| rest.strip_prefix('/')).and_then(|it| it.parse().ok());
    match (request.method.as_str(), rest, number) {
        ("GET", Some(""), _) => Ok(Change::Look),
        ("POST", Some(""), _) => Ok(Change::Add(stream()?)),
        ("PUT", _, Some(number)) => Ok(Change::Replace(number, stream()?)),
        ("DELETE", _, Some(number)) => Ok(Change::Stop(number)),
        (_, Some(""), _) | (_, _, Some(_)) => {
            Err((405, "GET and POST /streams, PUT and DELETE /streams/N".to_owned()))
        }
        _ => Err((404, format!("{}: there is only /streams and /streams/N", request.path))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::Arrivals;
    use crate::load::Kind;

    #[test]
    fn rest_requests_are_parsed_to_stream_changes_or_refused_with_a_status() {
        let stream = Stream::new(1, Kind::Echo, Arrivals::Poisson { rate: 100.0 });
        let text = serde_json::to_string(&stream).unwrap();
        for (method, path, body, expected) in [
            ("GET", "/streams", "", Ok(Change::Look)),
            ("POST", "/streams", text.as_str(), Ok(Change::Add(stream.clone()))),
            ("PUT", "/streams/3", text.as_str(), Ok(Change::Replace(3, stream))),
            ("DELETE", "/streams/0", "", Ok(Change::Stop(0))),
            ("POST", "/streams", "{}", Err(400)),
            ("PATCH", "/streams/1", "", Err(405)),
            ("PUT", "/streams", "", Err(405)),
            ("GET", "/", "", Err(404)),
            ("DELETE", "/streams/-1", "", Err(404)),
        ] {
            let (method, path) = (method.to_owned(), path.to_owned());
            let request = Request { method, path, body: body.as_bytes().to_vec() };
            let found = understand(&request).map_err(|(status, _)| status);
            assert_eq!(found, expected, "{} {}", request.method, request.path);
        }
    }

    #[test]
    fn the_control_api_refuses_an_address_that_is_not_loopback() {
        let error = Control::bind("0.0.0.0:0".parse().unwrap()).unwrap_err().to_string();
        assert!(error.contains("loopback"), "{error}");
    }
}
