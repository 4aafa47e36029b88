//! The control thread: REST, signals, and the watch over the configuration file.
//!
//! ```text
//!   SIGHUP ───────────────► ┌────────────────── control thread ─────────────────┐
//!   SIGTERM, SIGINT ──────► │ tokio, current-thread                             │ ──► terminate()
//!   every half second ────► │   reloader (on a blocking thread while it works)  │ ──► PolicySink
//!   HTTP ─────────────────► │   api::http ─► api::router                        │ ──► Registry, Pulse
//!                           └───────────────────────────────────────────────────┘
//! ```
//!
//! The control thread is not on the forwarding path: if the thread stalls, packets are not delayed. Start reading at
//! [`Control::start`].

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{self, MissedTickBehavior};

use crate::access::audit::{Audit, Change};
use crate::access::tokens::{Tokens, now};
use crate::api::clients::Clients;
use crate::api::tls::Identity;
use crate::api::{self, Sources, http};
use crate::config::{Api, Config, Position, Socket, Tenant};
use crate::expiry;
use crate::logging;
use crate::metrics::Registry;
use crate::reload::{Current, Outcome, Reloader};
use crate::threads::{Priority, Thread};

/// The time between two looks at the configuration file. A changed file is applied when two looks in a row find the
/// same file.
const POLL: Duration = Duration::from_millis(500);

/// The running control thread.
pub struct Control {
    stop: watch::Sender<bool>,
    thread: Option<Thread>,
    api: Option<SocketAddr>,
    tls: Option<SocketAddr>,
    socket: Option<SocketFile>,
}

/// The setup of the control thread.
pub struct Setup {
    /// The addresses for HTTP, and the addresses where changes are accepted.
    pub api: Api,
    /// The limits of HTTP clients.
    pub limits: http::Limits,
    /// The state folder, which contains the audit log.
    pub state: Option<PathBuf>,
    /// The sources of the answers.
    pub sources: Sources,
    /// The watch over the configuration file.
    pub reloader: Reloader,
    /// Called once, on the control thread, with the name of a signal that asks the process to end.
    pub terminate: Box<dyn FnOnce(&'static str) + Send>,
}

impl Control {
    /// Binds, installs the signal handlers and starts the thread. When this returns, signals are handled and HTTP
    /// clients can connect.
    pub fn start(setup: Setup) -> io::Result<Control> {
        let tcp = setup.api.tcp.map(bind).transpose()?;
        let api = tcp.as_ref().map(TcpListener::local_addr).transpose()?;
        let encrypted = setup.api.tls.map(bind).transpose()?;
        let tls = encrypted.as_ref().map(TcpListener::local_addr).transpose()?;
        let socket = socket(setup.api.socket.as_ref())?;
        let (file, socket) = socket.map_or((None, None), |(file, it)| (Some(file), Some(it)));
        let access = setup.sources.current.get().access.clone();
        let identity = access.files.as_ref().map(Identity::load).transpose();
        let identity = identity.map_err(io::Error::other)?;
        let tokens = Tokens::load(setup.sources.documents.clone()).map_err(io::Error::other)?;
        let audit = Audit::open(setup.state.as_deref()).map_err(io::Error::other)?;
        let accounts = (Arc::new(tokens), Arc::new(audit));
        let can_begin = socket.is_some() || api.is_some() && setup.api.tcp_changes;
        if tls.is_some_and(|it| !it.ip().is_loopback()) && !can_begin {
            let has_account = accounts.0.is_any(now()) || !access.certificates.is_empty();
            if !has_account {
                return Err(io::Error::other(NO_ACCOUNTS));
            }
        }
        let listeners = Listeners { tcp, tls: encrypted.zip(identity), socket };
        let (stop, stopped) = watch::channel(false);
        let (ready, started) = mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(api::THREADS)
            .build()?;
        let thread = Thread::start("control", Priority::Low, move || {
            runtime.block_on(run(setup, listeners, accounts, stopped, ready));
            // A health check may wait for a shard that never answers; the process ends without waiting for the check.
            runtime.shutdown_background();
        })?;
        match started.recv() {
            Ok(Ok(())) => Ok(Control { stop, thread: Some(thread), api, tls, socket: file }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(io::Error::other("the control thread ended at once")),
        }
    }

    /// The HTTP address, with the real port if the configuration has port 0.
    pub fn api(&self) -> Option<SocketAddr> {
        self.api
    }

    /// The HTTPS address, with the real port.
    pub fn tls(&self) -> Option<SocketAddr> {
        self.tls
    }

    /// The socket in the file system, if there is one.
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_ref().map(|file| file.0.as_path())
    }
}

/// Finishes the current requests, then ends the thread.
impl Drop for Control {
    fn drop(&mut self) {
        // Sending fails only if the thread has ended already.
        let _ = self.stop.send(true);
        self.thread.take().into_iter().for_each(Thread::join);
    }
}

const NO_ACCOUNTS: &str = "nobody could come in: there is no account, and nowhere to make one; add \"unix:/run/weir/api.sock\" to [listen] api, where `weir ctl token create` makes the first, or name clients' certificates in [api] certificates";

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let named = |error: io::Error| {
        io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
    };
    let listener = TcpListener::bind(address).map_err(named)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// The listening sockets.
struct Listeners {
    tcp: Option<TcpListener>,
    tls: Option<(TcpListener, Identity)>,
    socket: Option<UnixListener>,
}

/// The path of a socket, which is removed when the process ends normally.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Somebody else may have removed the socket.
        let _ = fs::remove_file(&self.0);
    }
}

fn socket(socket: Option<&Socket>) -> io::Result<Option<(SocketFile, UnixListener)>> {
    let made = match socket {
        None => return Ok(None),
        Some(Socket::Wanted(path)) => bind_socket(path).map_err(|error| {
            let message = format!("cannot listen on unix:{}: {error}", path.display());
            io::Error::new(error.kind(), message)
        })?,
        Some(Socket::Possible(path)) => {
            // The folder is created if the process may create it.
            let _ = path.parent().map(fs::create_dir_all);
            match bind_socket(path) {
                Ok(made) => made,
                Err(error) => {
                    let path = path.display();
                    tracing::warn!(%error, "REST takes no changes: no socket can be made at {path}");
                    return Ok(None);
                }
            }
        }
    };
    Ok(Some(made))
}

fn bind_socket(path: &Path) -> io::Result<(SocketFile, UnixListener)> {
    // A socket that a killed process has left is removed; a socket with a listener belongs to another process.
    let is_socket = fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
    let is_left = is_socket
        && UnixStream::connect(path).is_err_and(|it| it.kind() == io::ErrorKind::ConnectionRefused);
    if is_left {
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    let file = SocketFile(path.to_owned());
    fs::set_permissions(path, Permissions::from_mode(0o660))?;
    listener.set_nonblocking(true)?;
    Ok((file, listener))
}

struct Signals {
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn install() -> io::Result<Signals> {
        Ok(Signals {
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }
}

async fn run(
    setup: Setup,
    listeners: Listeners,
    (tokens, audit): (Arc<Tokens>, Arc<Audit>),
    mut stop: watch::Receiver<bool>,
    ready: mpsc::Sender<io::Result<()>>,
) {
    let Setup { api: listen, limits, sources, reloader, terminate, .. } = setup;
    let prepared = Signals::install().and_then(|signals| {
        let tcp = listeners.tcp.map(tokio::net::TcpListener::from_std).transpose()?;
        let socket = listeners.socket.map(tokio::net::UnixListener::from_std).transpose()?;
        let identity = listeners.tls.as_ref().map(|(_, identity)| identity.clone());
        let tls = listeners.tls.map(|(listener, identity)| {
            Ok::<_, io::Error>((tokio::net::TcpListener::from_std(listener)?, identity))
        });
        let tls = tls.transpose()?.map(|(listener, it)| http::Listener::Tls(listener, it));
        let all = [tcp.map(http::Listener::Tcp), tls, socket.map(http::Listener::Unix)];
        Ok((signals, all, identity))
    });
    let (mut signals, listeners, identity) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return drop(ready.send(Err(error))),
    };
    let (metrics, current) = (sources.metrics.clone(), sources.current.clone());
    let mut expiry = expiry::Watch::default();
    let serving = http::Server {
        limits,
        clients: Clients::new(limits.connections),
        metrics: sources.metrics.clone(),
        router: api::router(sources, tokens, Arc::clone(&audit), listen.tcp_changes),
    };
    let serve = |listener| tokio::spawn(http::serve(listener, serving.clone(), stop.clone()));
    let servers: Vec<_> = listeners.into_iter().flatten().map(serve).collect();
    // Sending fails only if the caller has ended already.
    let _ = ready.send(Ok(()));

    let mut terminate = Some(terminate);
    let mut reloader = Some(reloader);
    let mut tick = time::interval(POLL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let work: fn(&mut Reloader) -> Outcome = tokio::select! {
            _ = stop.changed() => break,
            _ = signals.hangup.recv() => {
                if let Some(identity) = &identity {
                    identity.reload();
                }
                Reloader::reload
            }
            _ = tick.tick() => {
                logging::log_left_out();
                log_expiry(&mut expiry, &metrics);
                Reloader::poll
            }
            name = async { tokio::select! {
                _ = signals.terminate.recv() => "SIGTERM",
                _ = signals.interrupt.recv() => "SIGINT",
            } } => {
                if let Some(terminate) = terminate.take() {
                    terminate(name);
                }
                continue;
            }
        };
        reloader = off_thread(reloader, work, &current, &audit).await;
    }
    for server in servers {
        // The same `stop` ends this server.
        let _ = server.await;
    }
}

fn log_expiry(watch: &mut expiry::Watch, metrics: &Registry) {
    if let Some(warning) = watch.look(metrics.process.certificate_not_after.get(), now()) {
        tracing::warn!("[tls] or [api]: Weir's own certificate {warning}");
    }
}

/// Reading a large file takes a while, and requests are answered meanwhile.
async fn off_thread(
    reloader: Option<Reloader>,
    work: fn(&mut Reloader) -> Outcome,
    current: &Current,
    audit: &Arc<Audit>,
) -> Option<Reloader> {
    let mut reloader = reloader?;
    let (current, audit) = (current.clone(), Arc::clone(audit));
    let worked = tokio::task::spawn_blocking(move || {
        let before = current.get();
        if let Outcome::Applied = work(&mut reloader) {
            audit_reload(&audit, &before, &current.get());
        }
        reloader
    });
    match worked.await {
        Ok(reloader) => Some(reloader),
        Err(error) => {
            tracing::error!(%error, "reloading panicked; the configuration will not be reloaded any more");
            None
        }
    }
}

/// Writes to the audit log that the file was applied, and which tenants have changed.
fn audit_reload(audit: &Audit, before: &Config, after: &Config) {
    let named = |config: &Config, name: &str| {
        let mut tenants = config.tenants.iter();
        tenants
            .find(|it| it.name == name)
            .map(|it| Tenant { at: Position::default(), ..it.clone() })
    };
    let names = before.tenants.iter().chain(&after.tenants).map(|tenant| tenant.name.as_str());
    let names: BTreeSet<&str> = names.collect();
    let difference = names.into_iter().filter_map(|name| {
        let what = match (named(before, name), named(after, name)) {
            (None, Some(_)) => "comes",
            (Some(_), None) => "goes",
            (was, is) if was != is => "becomes another",
            _ => return None,
        };
        Some(format!("tenant {name} {what}").into())
    });
    let mut change = Change {
        who: "the configuration file",
        role: "admin",
        from: &after.file,
        what: "take the configuration over",
        tenant: None,
        difference: difference.collect(),
    };
    if let Err(error) = audit.write(&mut change) {
        tracing::error!(%error, "a line is missing in the audit log: the configuration was taken over");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The default socket is created together with its folder. If the folder cannot be created, Weir serves without the
    /// default socket; a configured socket is an error.
    #[test]
    fn the_default_rest_socket_has_mode_0660_and_is_omitted_after_an_error() {
        let folder = std::env::temp_dir().join(format!("weir-control-{}", std::process::id()));
        let path = folder.join("run/weir/api.sock");
        let (file, _listener) = socket(Some(&Socket::Possible(path.clone()))).unwrap().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
        drop(file);
        assert!(!path.exists(), "an orderly end removes the socket");

        let no_folder = folder.join("file");
        fs::write(&no_folder, "").unwrap();
        let path = no_folder.join("api.sock");
        assert!(socket(Some(&Socket::Possible(path.clone()))).unwrap().is_none());
        assert!(socket(Some(&Socket::Wanted(path))).is_err(), "a socket of the file must be made");
        fs::remove_dir_all(&folder).unwrap();
    }
}
