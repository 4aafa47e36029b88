//! The connections of the REST interface, and the choice of a connection to close when there are too many.
//!
//! A connection waits for a request (the header is incomplete, or the connection is kept open), works on a request, or
//! streams events. If all connections are in use, Weir closes the connection that has waited longest, first among
//! clients without an account, for a new connection. So a client that opens many connections and sends nothing, or half
//! of a request, keeps nobody out. A request has a limited total time: for the body, the answer, and the reading of the
//! answer.
//!
//! Requests in progress, and streams of events, use at most seven eighths of the connections, and the requests of one
//! account or address at most half of these. Further requests are refused at once. So a connection is always left for
//! `/healthz` and for the socket in the file system, to which this bound does not apply.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use channel::PeerCertificate;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::access::caller::{Account, Caller, Known};
use crate::access::rates::origin;
use crate::access::tokens::Seconds;
use crate::lock::lock;

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
    /// The caller of the last request; `None` if the client has shown no valid account yet.
    caller: Mutex<Option<Caller>>,
    gives_way: Notify,
    among: Weak<Clients>,
}

impl Client {
    fn new(peer: Peer, among: Weak<Clients>) -> Arc<Client> {
        Arc::new(Client {
            peer,
            certificate: OnceLock::new(),
            state: Mutex::new((Phase::Waiting, Instant::now())),
            caller: Mutex::default(),
            gives_way: Notify::new(),
            among,
        })
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
    pub(super) fn shows(&self, caller: &Caller) {
        *lock(&self.caller) = Some(caller.clone());
    }

    /// Whether the client's request may go on: whether there is room among the requests in progress.
    pub(super) fn may_work(&self) -> bool {
        self.is_operators() || self.among.upgrade().is_none_or(|all| all.have_room_for(self))
    }

    /// The socket in the file system is for the operator of this machine.
    fn is_operators(&self) -> bool {
        matches!(self.peer, Peer::Unix(_))
    }

    /// Those whose requests in progress are counted together: an account, or all clients of an address without one.
    fn source(&self) -> (Option<Account>, Option<IpAddr>) {
        let account = lock(&self.caller).as_ref().and_then(Caller::account);
        let address = match self.peer {
            Peer::Tcp(address) | Peer::Tls(address) if account.is_none() => {
                Some(origin(address.ip()))
            }
            _ => None,
        };
        (account, address)
    }

    fn is_stranger(&self) -> bool {
        lock(&self.caller).is_none()
    }

    /// Whether the token of the present answer or event stream is not valid any more.
    pub(super) fn is_shut_out(&self, now: Seconds) -> bool {
        let caller = lock(&self.caller);
        let known = caller.as_ref().map(|caller| &caller.known);
        matches!(known, Some(Known::Token(token)) if !token.is_in_force(now))
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
        let (phase, since) = *lock(&self.state);
        phase == Phase::Working && since.elapsed() >= limit
    }

    fn set(&self, phase: Phase) {
        *lock(&self.state) = (phase, Instant::now());
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
        lock(&self.of.all).1.remove(&self.number);
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
        let mut all = lock(&self.all);
        let is_full = all.1.len() >= self.most;
        if is_full {
            let waiting = all.1.iter().filter_map(|(number, client)| {
                let (phase, since) = *lock(&client.state);
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
        let client = Client::new(peer, Arc::downgrade(self));
        all.1.insert(number, Arc::clone(&client));
        Some((Place { of: Arc::clone(self), number, client }, is_full))
    }

    /// Whether this client's request, which has begun, is within the bounds for all requests and for those of one
    /// source.
    fn have_room_for(&self, client: &Client) -> bool {
        let most = self.most.saturating_sub(self.most / 8).max(1);
        let source = client.source();
        let all = lock(&self.all);
        let (mut of_all, mut of_source) = (0, 0);
        for it in all.1.values().filter(|it| !it.is_operators()) {
            let (phase, _) = *lock(&it.state);
            of_all += usize::from(phase != Phase::Waiting);
            // Streams of events have bounds of their own.
            of_source += usize::from(phase == Phase::Working && it.source() == source);
        }
        of_all <= most && of_source <= most.div_ceil(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Reach, Role};

    fn here() -> Caller {
        Caller { reach: Reach::All(Role::Operator), known: Known::Here }
    }

    fn of_tenant(name: &str) -> Caller {
        let known = Known::Certificate(format!("client of {name}"));
        Caller { reach: Reach::Tenant(name.to_owned()), known }
    }

    #[tokio::test]
    async fn one_account_has_half_of_the_requests_in_progress_and_connections_are_left() {
        let clients = Clients::new(16);
        let far = |last| Peer::Tls(([10, 0, 0, last], 1).into());
        let mut held = Vec::new();
        let mut begin = |peer, caller: &Caller| {
            let (place, _) = clients.admit(peer)?;
            place.client.shows(caller);
            let working = place.client.works();
            let may_work = place.client.may_work();
            if may_work {
                held.push((working, place));
            }
            Some(may_work)
        };
        // Another address does not help: both connections are of one account.
        let red: Vec<_> = (0..10).map(|at| begin(far(at), &of_tenant("red"))).collect();
        assert_eq!(red.iter().filter(|it| **it == Some(true)).count(), 7, "{red:?}");
        let blue: Vec<_> = (0..10).map(|_| begin(far(1), &of_tenant("blue"))).collect();
        assert_eq!(blue.iter().filter(|it| **it == Some(true)).count(), 7, "{blue:?}");
        assert_eq!(begin(far(2), &of_tenant("green")), Some(false), "all are in use");
        // Weir answers `/healthz` without this question, and the operator's socket has no such bound.
        assert_eq!(begin(Peer::Unix(None), &here()), Some(true));
        assert!(clients.admit(far(3)).is_some(), "a connection for /healthz is left");
        held.truncate(3);
        let begin = |peer, caller: &Caller| {
            let (place, _) = clients.admit(peer)?;
            place.client.shows(caller);
            let _working = place.client.works();
            Some(place.client.may_work())
        };
        assert_eq!(begin(far(2), &of_tenant("green")), Some(true));
    }

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
        known.client.shows(&here());
        tokio::time::advance(Duration::from_secs(1)).await;
        let (stranger, _) = clients.admit(Peer::Unix(None)).unwrap();
        tokio::time::advance(Duration::from_secs(1)).await;
        let (another, made_room) = clients.admit(Peer::Unix(None)).unwrap();
        assert!(made_room);
        stranger.client.gives_way().await;
        another.client.shows(&here());
        let _last = clients.admit(Peer::Unix(None)).unwrap();
        known.client.gives_way().await;
    }
}
