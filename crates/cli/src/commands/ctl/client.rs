//! Asks a `weir serve` by TCP or by its socket, one request a connection.

use anyhow::{Context, bail};
use daemon::api::Failure;
use daemon::config::{Api, SOCKET, Socket};
use rest::Request;
use serde::Serialize;
use std::fmt;
use std::io::{Read, Write};
use std::net::{AddrParseError, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Until there is an answer; placing a large network takes less than a second.
const PATIENCE: Duration = Duration::from_secs(30);

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
        let (status, body) = self.exchange(method, path, body).with_context(|| no_answer(api))?;
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
        let mut answer =
            self.begin(Request::new("POST", path, &api.host())).with_context(|| no_answer(api))?;
        if answer.status == 200 {
            std::io::copy(&mut answer.body, into).context("the answer cannot be taken")?;
            return Ok(Answer::Done(String::new()));
        }
        let status = answer.status;
        match serde_json::from_str(&answer.text(LARGEST)?) {
            Ok(failure) => Ok(Answer::Refused(failure)),
            Err(_) => bail!("{api} answers {status}: not a Weir of this version"),
        }
    }

    fn begin(&self, request: Request<'_>) -> std::io::Result<rest::Answer<Box<dyn Stream>>> {
        rest::ask(self.0.connect()?, &request)
    }

    fn exchange(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
    ) -> std::io::Result<(u16, String)> {
        let host = self.0.host();
        let request = Request::new(method, path, &host);
        let request = body.map_or(request, |body| request.json(body));
        let answer = self.begin(request)?;
        Ok((answer.status, answer.text(LARGEST)?))
    }
}

fn no_answer(api: &Endpoint) -> String {
    format!("no answer from {api}: is `weir serve` running there, and [listen] api not off?")
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
