//! The connections of the REST interface, and the choice of a connection to close when there are too many.
//!
//! A connection waits for a request (the header is incomplete, or the connection is kept open), works on a request, or
//! streams events. If all connections are in use, Weir closes the connection that has waited longest, first among
//! clients without an account, for a new connection. So a client that opens many connections and sends nothing, or half
//! of a request, keeps nobody out. A request has a limited total time: for the body, the answer, and the reading of the
//! answer.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use channel::PeerCertificate;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::access::caller::Known;
use crate::access::tokens::{Seconds, Token};

/// The peer of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// TCP, from this address.
    Tcp(SocketAddr),
    /// TCP with TLS, from this address.
    Tls(SocketAddr),
    /// The socket in the file system: the user id, if the kernel reports it.
    Unix(Option<u32>),
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Tcp(address) | Peer::Tls(address) => address.fmt(f),
            Peer::Unix(Some(user)) => write!(f, "unix user {user}"),
            Peer::Unix(None) => f.write_str("unix"),
        }
    }
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Working,
    Streaming,
}

/// One connection.
#[derive(Debug)]
pub struct Client {
    peer: Peer,
    /// The client's certificate, with a verified chain.
    certificate: OnceLock<PeerCertificate>,
    state: Mutex<(Phase, Instant)>,
    shown: Mutex<Shown>,
    gives_way: Notify,
}

/// The account that the client has shown.
#[derive(Debug, Default)]
enum Shown {
    /// No account yet.
    #[default]
    Nothing,
    /// A valid account.
    Something,
    /// The token of its last request.
    Token(Arc<Token>),
}

impl Client {
    fn new(peer: Peer) -> Arc<Client> {
        let state = Mutex::new((Phase::Waiting, Instant::now()));
        let (certificate, shown) = (OnceLock::new(), Mutex::default());
        Arc::new(Client { peer, certificate, state, shown, gives_way: Notify::new() })
    }

    /// The peer of the connection.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// The certificate of the client.
    pub(super) fn certificate(&self) -> Option<&PeerCertificate> {
        self.certificate.get()
    }

    /// Sets the certificate that the client has shown in the handshake.
    pub(super) fn has_certificate(&self, certificate: PeerCertificate) {
        // A connection has one handshake.
        let _ = self.certificate.set(certificate);
    }

    /// Sets the account that the client has shown.
    pub(super) fn shows(&self, known: &Known) {
        let shown = match known {
            Known::Token(token) => Shown::Token(Arc::clone(token)),
            Known::Here | Known::Certificate(_) => Shown::Something,
        };
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = shown;
    }

    fn is_stranger(&self) -> bool {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(*shown, Shown::Nothing)
    }

    /// Whether the token of the present answer or event stream is not valid any more.
    pub(super) fn is_shut_out(&self, now: Seconds) -> bool {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(&*shown, Shown::Token(token) if !token.is_in_force(now))
    }

    /// Returns when the connection has to be closed for another one.
    pub(super) async fn gives_way(&self) {
        self.gives_way.notified().await;
    }

    /// Notes that a request has begun. Dropping the result notes that the request is done.
    pub(super) fn works(self: &Arc<Self>) -> Working {
        self.set(Phase::Working);
        Working(Arc::clone(self))
    }

    /// Notes that the answer to the request is a stream of events.
    pub(super) fn streams(&self) {
        self.set(Phase::Streaming);
    }

    /// Whether the present request takes longer than this limit.
    pub(super) fn is_slow(&self, limit: Duration) -> bool {
        let (phase, since) = self.now();
        phase == Phase::Working && since.elapsed() >= limit
    }

    fn set(&self, phase: Phase) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = (phase, Instant::now());
    }

    fn now(&self) -> (Phase, Instant) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request in progress.
#[derive(Debug)]
pub(super) struct Working(Arc<Client>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.set(Phase::Waiting);
    }
}

/// All connections.
#[derive(Debug)]
pub struct Clients {
    most: usize,
    all: Mutex<(u64, BTreeMap<u64, Arc<Client>>)>,
}

/// A connection's place, which becomes free when this value is dropped.
#[derive(Debug)]
pub(super) struct Place {
    of: Arc<Clients>,
    number: u64,
    pub(super) client: Arc<Client>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.of.all.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&self.number);
    }
}

impl Clients {
    /// At most `most` connections.
    pub fn new(most: usize) -> Arc<Clients> {
        Arc::new(Clients { most: most.max(1), all: Mutex::default() })
    }

    /// A place for another connection, and whether an old connection was closed for it; `None` if all connections have
    /// requests in progress.
    pub(super) fn admit(self: &Arc<Self>, peer: Peer) -> Option<(Place, bool)> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = all.1.len() >= self.most;
        if is_full {
            let waiting = all.1.iter().filter_map(|(number, client)| {
                let (phase, since) = client.now();
                // Clients without an account come first: they keep nobody out who has an account.
                let order = (!client.is_stranger(), since, *number);
                (phase == Phase::Waiting).then_some(order)
            });
            let (.., oldest) = waiting.min()?;
            if let Some(gone) = all.1.remove(&oldest) {
                gone.gives_way.notify_one();
            }
        }
        let number = all.0;
        all.0 += 1;
        let client = Client::new(peer);
        all.1.insert(number, Arc::clone(&client));
        Some((Place { of: Arc::clone(self), number, client }, is_full))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_waits_longest_gives_way_and_who_works_does_not() {
        let clients = Clients::new(3);
        let mut places = Vec::new();
        for _ in 0..3 {
            places.push(clients.admit(Peer::Unix(None)).unwrap().0);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let working = places[0].client.works();
        let (fourth, made_room) = clients.admit(Peer::Unix(None)).unwrap();
        assert!(made_room);
        places[1].client.gives_way().await;
        drop(places.remove(1));
        fourth.client.streams();
        let last = places[1].client.works();
        assert!(clients.admit(Peer::Unix(None)).is_none(), "all others work");
        assert!(!places[0].client.is_slow(Duration::from_secs(30)));
        tokio::time::advance(Duration::from_secs(30)).await;
        assert!(places[0].client.is_slow(Duration::from_secs(30)));
        assert!(!fourth.client.is_slow(Duration::from_secs(30)), "events go on");
        drop((working, last));
        assert!(clients.admit(Peer::Unix(None)).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_give_way_before_those_who_have_shown_an_account() {
        let clients = Clients::new(2);
        let (known, _) = clients.admit(Peer::Unix(None)).unwrap();
        known.client.shows(&Known::Here);
        tokio::time::advance(Duration::from_secs(1)).await;
        let (stranger, _) = clients.admit(Peer::Unix(None)).unwrap();
        tokio::time::advance(Duration::from_secs(1)).await;
        let (another, made_room) = clients.admit(Peer::Unix(None)).unwrap();
        assert!(made_room);
        stranger.client.gives_way().await;
        another.client.shows(&Known::Here);
        let _last = clients.admit(Peer::Unix(None)).unwrap();
        known.client.gives_way().await;
    }
}
