//! The HTTP server under the routes. Connections, header size, memory and time are bounded, so each client can use only
//! a small part of the process.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header;
use axum::response::Response;
use channel::PeerCertificate;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time;
use tokio_rustls::TlsAcceptor;

use super::clients::{Client, Clients, Peer, Place, Working};
use super::tls::Identity;
use crate::access::tokens::now;
use crate::metrics::{ApiRefusal, Registry};

/// The resources that clients may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most connections; for a further connection the one that has waited longest for a request is closed.
    pub connections: usize,
    /// The time until a request's header is complete, also on a connection that is kept open.
    pub header: Duration,
    /// The time from the header until the client has read the answer.
    pub request: Duration,
    /// The time of a connection; then it is closed after the present request, or after the same time again.
    pub connection: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 256,
            header: Duration::from_secs(10),
            request: Duration::from_secs(30),
            connection: Duration::from_secs(120),
        }
    }
}

/// The most buffered bytes of a connection, header included; this is hyper's minimum.
const BUFFER: usize = 8192;

/// The bytes of an answer that are given to a connection at a time.
const PIECE: usize = 64 << 10;

/// The time for requests in progress when the server ends.
const GRACE: Duration = Duration::from_secs(2);

/// The data of a server.
#[derive(Clone)]
pub struct Server {
    /// The routes.
    pub router: Router,
    /// The resources that clients may use.
    pub limits: Limits,
    /// All connections, of all listeners.
    pub clients: Arc<Clients>,
    /// The metrics.
    pub metrics: Arc<Registry>,
}

/// A listening socket.
pub enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// TCP with TLS.
    Tls(TcpListener, Identity),
    /// A socket in the file system.
    Unix(UnixListener),
}

/// A client's stream.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// An accepted connection, and whether TLS comes first.
enum Accepted {
    Plain(Box<dyn Stream>),
    Tls(TcpStream, TlsAcceptor),
}

impl Listener {
    async fn accept(&self) -> io::Result<(Accepted, Peer)> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                Ok((Accepted::Plain(Box::new(stream)), Peer::Tcp(address)))
            }
            Listener::Tls(listener, identity) => {
                let (stream, address) = listener.accept().await?;
                Ok((Accepted::Tls(stream, identity.acceptor()), Peer::Tls(address)))
            }
            Listener::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let user = stream.peer_cred().ok().map(|it| it.uid());
                Ok((Accepted::Plain(Box::new(stream)), Peer::Unix(user)))
            }
        }
    }
}

/// Serves until `stop` changes (or its sender is dropped), then finishes the requests in progress.
pub async fn serve(listener: Listener, server: Server, mut stop: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = stop.changed() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let admitted = server.clients.admit(peer);
                    if admitted.as_ref().is_none_or(|(_, made_room)| *made_room) {
                        server.metrics.process.api.refused(ApiRefusal::Connections).increment();
                        tracing::warn!(
                            %peer,
                            "all connections of the REST interface are in use; who has waited longest gives way"
                        );
                    }
                    if let Some((place, _)) = admitted {
                        connections.spawn(connection(stream, place, server.clone(), stop.clone()));
                    }
                }
                Err(error) => refused(&error).await,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
    drop(listener);
    let _ = time::timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
}

/// Waits after a failed accept: probably no descriptor is left, and a loop without a pause would only use CPU time.
async fn refused(error: &io::Error) {
    tracing::warn!(%error, "an API connection could not be accepted");
    time::sleep(Duration::from_millis(100)).await;
}

/// The stream of requests, and the client's certificate. A handshake may take as long as a header.
async fn begin(accepted: Accepted, client: &Client, limit: Duration) -> Option<Box<dyn Stream>> {
    let (stream, acceptor) = match accepted {
        Accepted::Plain(stream) => return Some(stream),
        Accepted::Tls(stream, acceptor) => (stream, acceptor),
    };
    let stream = tokio::select! {
        stream = time::timeout(limit, acceptor.accept(stream)) => stream.ok()?,
        () = client.gives_way() => return None,
    };
    let stream = match stream {
        Ok(stream) => stream,
        Err(error) => {
            tracing::debug!(peer = %client.peer(), %error, "a REST client speaks no TLS that is accepted");
            return None;
        }
    };
    let shown = stream.get_ref().1.peer_certificates().and_then(|all| all.first());
    if let Some(der) = shown {
        client.has_certificate(PeerCertificate::new(der));
    }
    Some(Box::new(stream))
}

async fn connection(
    accepted: Accepted,
    place: Place,
    server: Server,
    mut stop: watch::Receiver<bool>,
) {
    let Server { router, limits, metrics, .. } = server;
    let client = Arc::clone(&place.client);
    let begun = tokio::select! {
        begun = begin(accepted, &client, limits.header) => begun,
        _ = stop.changed() => None,
    };
    let Some(stream) = begun else { return };
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.header).max_buf_size(BUFFER);
    let answering = Arc::clone(&client);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        let working = answering.works();
        request.extensions_mut().insert(Arc::clone(&answering));
        let router = router.clone();
        let client = Arc::clone(&answering);
        async move {
            let request: Request = request.map(Body::new);
            let response = router.call(request).await?;
            if is_events(&response) {
                client.streams();
            }
            let answer = |body| Body::new(Answer { body, rest: Bytes::new(), _working: working });
            Ok::<_, std::convert::Infallible>(response.map(answer))
        }
    });
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    let over = time::sleep(limits.connection);
    let mut over = pin!(over);
    let mut ending = false;
    loop {
        tokio::select! {
            // Errors here are the client's: a lost connection, too slow, not HTTP.
            _ = connection.as_mut() => return,
            () = client.gives_way() => return,
            () = time::sleep(limits.request / 4) => {
                if client.is_shut_out(now()) {
                    return;
                }
                if client.is_slow(limits.request) {
                    metrics.process.api.refused(ApiRefusal::Slow).increment();
                    tracing::warn!(peer = %client.peer(), "a REST request takes too long; cut off");
                    return;
                }
                continue;
            }
            () = over.as_mut() => if ending { return },
            _ = stop.changed(), if !ending => {}
        }
        ending = true;
        connection.as_mut().graceful_shutdown();
        over.as_mut().reset(time::Instant::now() + limits.connection);
    }
}

fn is_events(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// An answer that is given to the connection in parts, so that the request counts as in progress until the client has
/// read almost all of the answer.
struct Answer {
    body: Body,
    rest: Bytes,
    _working: Working,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            let frame = match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => frame,
                other => return other,
            };
            match frame.into_data() {
                Ok(data) => self.rest = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        let piece = self.rest.len().min(PIECE);
        let piece = self.rest.split_to(piece);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (body, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower() + rest);
        if let Some(upper) = body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}
