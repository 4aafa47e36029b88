//! The HTTP server under the routes: bounded in connections, header size and time, so that no client can hold more than
//! a little of the process.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time;

/// What a client may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time; further ones wait in the listener's backlog.
    pub connections: usize,
    /// Until a request's header is complete, also on a connection that is kept open.
    pub header: Duration,
    /// For a connection as a whole; it is then closed after the request at hand, or after as long again.
    pub connection: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 64,
            header: Duration::from_secs(30),
            connection: Duration::from_secs(120),
        }
    }
}

/// Bytes that may be buffered of a connection, header included; hyper's least.
const BUFFER: usize = 8192;

/// How long requests at hand may take when the server ends.
const GRACE: Duration = Duration::from_secs(2);

/// Serves until `stop` changes (or its sender is gone), then finishes the requests at hand.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    mut stop: watch::Receiver<bool>,
) {
    let free = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    loop {
        let accepted = async {
            // Never closed, so this fails never; a failure would only mean one connection more.
            let permit = Arc::clone(&free).acquire_owned().await.ok();
            (listener.accept().await, permit)
        };
        tokio::select! {
            _ = stop.changed() => break,
            (accepted, permit) = accepted => match accepted {
                Ok((stream, _)) => {
                    let connection = connection(stream, router.clone(), limits, stop.clone());
                    connections.spawn(async move {
                        connection.await;
                        drop(permit);
                    });
                }
                Err(error) => refused(&error).await,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
    drop(listener);
    let _ = time::timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
}

/// Out of descriptors, most likely: waiting is all that helps, and a loop would only burn time.
async fn refused(error: &io::Error) {
    tracing::warn!(%error, "an API connection could not be accepted");
    time::sleep(Duration::from_millis(100)).await;
}

async fn connection(
    stream: TcpStream,
    router: Router,
    limits: Limits,
    mut stop: watch::Receiver<bool>,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.header).max_buf_size(BUFFER);
    let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = pin!(connection);
    tokio::select! {
        // Its errors are the client's: cut off, too slow, not HTTP.
        _ = connection.as_mut() => return,
        () = time::sleep(limits.connection) => {}
        _ = stop.changed() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = time::timeout(limits.connection, connection).await;
}
