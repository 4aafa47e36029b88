//! Hostile clients of the REST interface: requests that never end, and subscribers that do not
//! read.

use super::attack::Attack;
use super::orders::Orders;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Clients of each kind.
const EACH: usize = 64;
/// Clients that are made in one turn.
const AT_ONCE: usize = 4;
/// The bytes of a body that are sent in one turn.
const PIECE: usize = 64 << 10;
/// The declared length of a body, which is never sent completely.
const BODY: usize = 16 << 20;
const PAUSE: Duration = Duration::from_millis(100);
const CONNECTING: Duration = Duration::from_millis(20);

/// All hostile clients.
#[derive(Debug)]
pub(super) struct Clients {
    api: Option<SocketAddr>,
    clients: Vec<Client>,
    next: usize,
    look_at: Instant,
}

#[derive(Debug)]
struct Client {
    stream: TcpStream,
    /// The remaining bytes of the body; one byte is never sent.
    left: usize,
}

impl Clients {
    pub(super) fn new(orders: &Orders) -> Self {
        let api = orders.api.filter(|_| orders.attack.includes(Attack::Api));
        Self { api, clients: Vec::new(), next: 0, look_at: Instant::now() }
    }

    pub(super) fn turn(&mut self, now: Instant) -> u64 {
        let Some(api) = self.api else { return 0 };
        if now >= self.look_at {
            self.look_at = now + PAUSE;
            self.clients.retain(|client| !is_over(&client.stream));
        }
        let mut made = 0;
        while made < AT_ONCE && self.clients.len() < 3 * EACH {
            self.next = (self.next + 1) % 3;
            let Some(client) = client(api, self.next) else { break };
            self.clients.push(client);
            made += 1;
        }
        let piece = [b' '; PIECE];
        for client in self.clients.iter_mut().filter(|client| client.left > 1) {
            let most = piece.len().min(client.left - 1);
            client.left -= client.stream.write(piece.get(..most).unwrap_or_default()).unwrap_or(0);
        }
        made as u64
    }
}

fn client(api: SocketAddr, which: usize) -> Option<Client> {
    let mut stream = TcpStream::connect_timeout(&api, CONNECTING).ok()?;
    let (request, left) = match which {
        0 => ("GET /healthz HTTP/1.1\r\nHost: ".to_owned(), 0),
        1 => (format!("GET /api/v1/events HTTP/1.1\r\nHost: {api}\r\n\r\n"), 0),
        _ => (
            format!(
                "PUT /api/v1/networks/tenant1 HTTP/1.1\r\nHost: {api}\r\nContent-Type: application/json\r\n\
                 Content-Length: {BODY}\r\n\r\n"
            ),
            BODY,
        ),
    };
    stream.write_all(request.as_bytes()).ok()?;
    stream.set_nonblocking(true).ok()?;
    Some(Client { stream, left })
}

/// Whether the system has closed the connection. Events for a subscriber stay unread.
fn is_over(stream: &TcpStream) -> bool {
    let mut byte = [0];
    match stream.peek(&mut byte) {
        Ok(0) => true,
        Ok(_) => {
            // The stream has an answer, and perhaps the end after the answer.
            let mut some = [0; 512];
            let mut stream = stream;
            matches!(stream.read(&mut some), Ok(0))
        }
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}
