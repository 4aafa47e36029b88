//! Where connections come from: a [`Listener`] accepts them, a [`Dialer`] makes them again and
//! again.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use mio::event::Source;
use mio::net::TcpListener;
use mio::{Interest, Registry, Token};

use crate::{Address, Backoff, Connection, Error, Options, Scheme, Tls};

/// Accepts connections on one address, plain or TLS; several stand side by side.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: Address,
    tls: Option<Tls>,
    options: Options,
}

impl Listener {
    /// Listens (with SO_REUSEADDR). An `ssl:` address needs `tls`. Port 0 takes a free one, which
    /// [`address`](Self::address) returns.
    pub fn bind(address: &Address, tls: Option<&Tls>, options: Options) -> Result<Self, Error> {
        let tls = Tls::for_address(address, tls)?.cloned();
        let failed = |error| Error::io(format!("listen on {address}"), error);
        let socket = TcpListener::bind(address.addr).map_err(failed)?;
        let addr = socket.local_addr().map_err(failed)?;
        Ok(Listener { socket, address: Address { addr, ..*address }, tls, options })
    }

    /// The address, with the port that the kernel chose.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Changes the identity for connections to come, as after a reload of the files. A plain
    /// listener stays plain.
    pub fn set_tls(&mut self, tls: &Tls) {
        if self.address.scheme == Scheme::Ssl {
            self.tls = Some(tls.clone());
        }
    }

    /// The next waiting connection; `None` if none waits. Call until it says so, or ask for another turn by
    /// [`EventLoop::again`](crate::EventLoop::again) (events are edge-triggered). After an error (say, no file
    /// descriptors are left) ask again later, by a timer.
    pub fn accept(&self) -> Result<Option<(Connection, SocketAddr)>, Error> {
        loop {
            match self.socket.accept() {
                Ok((stream, peer)) => {
                    let connection =
                        Connection::accepted(stream, self.tls.as_ref(), &self.options)?;
                    return Ok(Some((connection, peer)));
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(None),
                    // The peer gave up while it waited: not our trouble.
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted => {}
                    _ => return Err(Error::io(format!("accept on {}", self.address), error)),
                },
            }
        }
    }
}

impl Source for Listener {
    fn register(
        &mut self,
        registry: &Registry,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        self.socket.register(registry, token, interest)
    }

    fn reregister(
        &mut self,
        registry: &Registry,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        self.socket.reregister(registry, token, interest)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.socket.deregister(registry)
    }
}

/// Remembers whom to call, how, and how long to wait after each failure. It makes no decision:
/// when to dial is up to the caller.
#[derive(Debug, Clone)]
pub struct Dialer {
    address: Address,
    tls: Option<Tls>,
    options: Options,
    backoff: Backoff,
}

impl Dialer {
    /// Checks that an `ssl:` address has its identity. Nothing is dialled yet.
    pub fn new(
        address: Address,
        tls: Option<&Tls>,
        options: Options,
        backoff: Backoff,
    ) -> Result<Self, Error> {
        let tls = Tls::for_address(&address, tls)?.cloned();
        Ok(Dialer { address, tls, options, backoff })
    }

    /// Whom we call.
    pub fn address(&self) -> Address {
        self.address
    }

    /// Changes the identity for connections to come, as after a reload of the files. A plain one stays plain.
    pub fn set_tls(&mut self, tls: &Tls) {
        if self.address.scheme == Scheme::Ssl {
            self.tls = Some(tls.clone());
        }
    }

    /// Starts one attempt; see [`Connection::dial`].
    pub fn dial(&self) -> Result<Connection, Error> {
        Connection::dial(&self.address, self.tls.as_ref(), &self.options)
    }

    /// After a failed attempt or a lost connection: how long to wait before the next.
    pub fn failed(&mut self) -> Duration {
        self.backoff.next_delay()
    }

    /// After the peer has proven itself (its HELLO came): the next failure waits the least time
    /// again. A bare TCP connection proves nothing.
    pub fn succeeded(&mut self) {
        self.backoff.reset();
    }
}
