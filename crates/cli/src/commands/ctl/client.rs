//! As much of HTTP/1.1 as asking Weir takes: one request a connection.

use anyhow::{Context, bail};
use daemon::api::Failure;
use daemon::config::{Api, SOCKET, Socket};
use serde::Serialize;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{AddrParseError, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Until there is an answer; placing a large network takes less than a second.
const PATIENCE: Duration = Duration::from_secs(30);

/// Longest header of an answer.
const LARGEST_LINE: u64 = 64 << 10;

/// Longest answer that is read.
const LARGEST: u64 = 64 << 20;

pub struct Client(Endpoint);

/// Where Weir's REST interface is.
#[derive(Clone, Debug)]
pub enum Endpoint {
    /// By TCP.
    Tcp(SocketAddr),
    /// By a socket in the file system.
    Unix(PathBuf),
}

impl Default for Endpoint {
    fn default() -> Self {
        match PathBuf::from(SOCKET) {
            socket if socket.exists() => Endpoint::Unix(socket),
            _ => Endpoint::Tcp(([127, 0, 0, 1], 8080).into()),
        }
    }
}

impl FromStr for Endpoint {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        match text.strip_prefix("unix:") {
            Some(path) => Ok(Endpoint::Unix(path.into())),
            None => text.parse().map(Endpoint::Tcp),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp(address) => write!(f, "http://{address}"),
            Endpoint::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Endpoint {
    /// Where a `weir serve` of this configuration is asked: by the socket, which takes changes, if it is there.
    pub fn of(api: &Api) -> Option<Endpoint> {
        let socket = match &api.socket {
            Some(Socket::Wanted(path)) => Some(path),
            Some(Socket::Possible(path)) => Some(path).filter(|path| path.exists()),
            None => None,
        };
        let socket = socket.filter(|path| path.exists() || api.tcp.is_none());
        socket.cloned().map(Endpoint::Unix).or(api.tcp.map(Endpoint::Tcp))
    }
}

trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

impl Endpoint {
    fn connect(&self) -> std::io::Result<Box<dyn Stream>> {
        match self {
            Endpoint::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, PATIENCE)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                Ok(Box::new(stream))
            }
            Endpoint::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                Ok(Box::new(stream))
            }
        }
    }

    fn host(&self) -> String {
        match self {
            Endpoint::Tcp(address) => address.to_string(),
            Endpoint::Unix(_) => "localhost".to_owned(),
        }
    }
}

pub enum Answer {
    /// The body.
    Done(String),
    /// It was understood and not done.
    Refused(Failure),
}

impl Client {
    pub fn new(api: Endpoint) -> Client {
        Client(api)
    }

    pub fn get(&self, path: &str) -> anyhow::Result<Answer> {
        self.ask("GET", path, None)
    }

    pub fn send(&self, method: &str, path: &str, body: &impl Serialize) -> anyhow::Result<Answer> {
        self.ask(method, path, Some(&serde_json::to_string(body)?))
    }

    fn ask(&self, method: &str, path: &str, body: Option<&str>) -> anyhow::Result<Answer> {
        let api = &self.0;
        let (status, body) = self.exchange(method, path, body).with_context(|| {
            format!(
                "no answer from {api}: is `weir serve` running there, and [listen] api not off?"
            )
        })?;
        match status {
            200 => Ok(Answer::Done(body)),
            400..=499 | 503 => match serde_json::from_str(&body) {
                Ok(failure) => Ok(Answer::Refused(failure)),
                Err(_) => bail!("{api} answers {status}: not a Weir of this version"),
            },
            _ => bail!("{api} answers {status}: {body}"),
        }
    }

    /// Asks for something to be made, and writes it somewhere as it comes.
    pub fn download(&self, path: &str, into: &mut impl Write) -> anyhow::Result<Answer> {
        let api = &self.0;
        let (status, mut body) = self.begin_download(path).with_context(|| {
            format!(
                "no answer from {api}: is `weir serve` running there, and [listen] api not off?"
            )
        })?;
        if status == 200 {
            std::io::copy(&mut body, into).context("the answer cannot be taken")?;
            return Ok(Answer::Done(String::new()));
        }
        let mut text = String::new();
        body.take(LARGEST).read_to_string(&mut text)?;
        match serde_json::from_str(&text) {
            Ok(failure) => Ok(Answer::Refused(failure)),
            Err(_) => bail!("{api} answers {status}: not a Weir of this version"),
        }
    }

    /// The status, and the rest of the connection, which is the body.
    fn begin_download(&self, path: &str) -> anyhow::Result<(u16, impl Read)> {
        let mut stream = self.0.connect()?;
        // Of HTTP/1.0 a body of unknown length comes as it is, and ends with the connection.
        let request =
            format!("POST {path} HTTP/1.0\r\nHost: {}\r\nContent-Length: 0\r\n\r\n", self.0.host());
        stream.write_all(request.as_bytes())?;
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = reader.by_ref().take(LARGEST_LINE).read_line(&mut head)?;
            if read == 0 || head.len() as u64 > LARGEST_LINE {
                bail!("not HTTP");
            }
        }
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Ok((status.context("not HTTP")?, reader))
    }

    fn exchange(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
    ) -> anyhow::Result<(u16, String)> {
        let host = self.0.host();
        let mut stream = self.0.connect()?;
        let mut request =
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        if let Some(body) = body {
            let length = body.len();
            request.push_str(&format!(
                "Content-Type: application/json\r\nContent-Length: {length}\r\n"
            ));
        }
        request.push_str("\r\n");
        request.push_str(body.unwrap_or_default());
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.take(LARGEST).read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("not HTTP")?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Ok((status.context("not HTTP")?, body.to_owned()))
    }
}

/// A name as a part of a path, whatever is in it: it may have been mistyped.
pub fn segment(name: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_:".contains(byte);
    name.bytes()
        .map(|byte| match is_plain(&byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}
