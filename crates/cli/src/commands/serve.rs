//! `weir serve`: the hypervisor.
//!
//! ```text
//!   main thread                 control thread                      shard threads
//!   load, start ──────────────► SIGHUP, file change ─► reload ────► take the new policy over
//!   wait for the end ◄───────── SIGINT, SIGTERM
//!   stop ─────────────────────────────────────────────────────────► close connections, end
//! ```
//!
//! Start reading at [`Serve::run`]; everything that is not waiting or wiring is in the crate `daemon`.

use crate::exit::Exit;
use crate::signals;
use anyhow::Context;
use daemon::api::{Sources, http};
use daemon::config::{self, Config};
use daemon::control::{Control, Setup};
use daemon::logging;
use daemon::reload::{Current, Reloader};
use daemon::serve::{Daemon, Installation, ServeOptions};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::{fs, process};

/// Run the hypervisor between switches and tenants' controllers
///
/// Switches connect to Weir, Weir connects to each tenant's controllers, and each controller sees only its tenant's
/// slice. SIGHUP, or a change of the file, applies a new configuration without closing connections. SIGINT and
/// SIGTERM end Weir and leave the rules on the switches; a second signal ends Weir at once.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir check weir.toml && weir serve weir.toml --state /var/lib/weir

Logs go to stderr; WEIR_LOG=debug says more, WEIR_LOG=warn less.
See docs/serve.md, docs/configuration.md and docs/metrics.md.")]
pub struct Serve {
    /// Configuration file
    config: PathBuf,
    /// Keep the state in this folder, so that a restart loses no tenant's rule [default: in memory]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Fill the empty folder of --state from a backup that `weir ctl backup` made
    #[arg(long, value_name = "FILE", requires = "state")]
    restore: Option<PathBuf>,
    /// Event loops, 1 to 256 [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    /// Make a new state in the empty folder of --state from the rules on the switches, for the installation with this
    /// number (see the log)
    ///
    /// The rules stay on the switches, and Weir makes tenants' entries of the rules. See docs/serve.md.
    #[arg(long, value_name = "ID", value_parser = installation, requires = "state")]
    #[arg(conflicts_with_all = ["restore", "take_over"])]
    adopt: Option<Installation>,
    /// Delete the rules that the installation of Weir with this number (see the log) has left on switches
    ///
    /// Without this option such rules stay. See docs/serve.md.
    #[arg(long, value_name = "ID", value_parser = installation)]
    take_over: Option<Installation>,
    /// The format of log lines
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
    /// Write the process id to this file as soon as switches can connect; Weir removes the file at the end
    #[arg(long, value_name = "FILE")]
    pid_file: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum LogFormat {
    /// One readable line per event
    Text,
    /// One JSON object per event
    Json,
}

impl Serve {
    pub fn run(self) -> anyhow::Result<Exit> {
        if let Err(error) = self.start_logging() {
            return Ok(Exit::usage(&error));
        }
        let config = match config::load(&self.config) {
            Ok(config) => config,
            Err(error) => return Ok(Exit::configuration(&error)),
        };
        self.serve(&config)
    }

    fn start_logging(&self) -> Result<(), logging::LogError> {
        let format = match self.log_format {
            LogFormat::Text => logging::Format::Text,
            LogFormat::Json => logging::Format::Json,
        };
        logging::init(format, std::env::var("WEIR_LOG").ok().as_deref())
    }

    fn serve(&self, config: &Config) -> anyhow::Result<Exit> {
        // These handlers are installed before the control thread's own handlers, so that no signal during the start is
        // lost.
        let ending = signals::end_at_once_on_second()?;
        let options = ServeOptions {
            state: self.state.clone(),
            restore: self.restore.clone(),
            threads: self.threads.map_or(0, usize::from),
            adopts: self.adopt,
            takes_over: self.take_over,
        };
        let daemon = Arc::new(Daemon::start(config, &options).context("cannot start")?);
        let (sender, ended) = mpsc::channel();
        let early = sender.clone();
        let terminate = Box::new(move |signal| {
            // The receiver is missing only if the process is already ending.
            let _ = sender.send(signal);
        });
        let control = control(&self.config, config, &daemon, self.state.clone(), terminate)?;
        let pid_file = self.pid_file.as_deref().map(PidFile::write).transpose()?;
        for address in daemon.addresses() {
            tracing::info!(%address, "switches can connect");
        }
        if let Some(address) = control.api() {
            tracing::info!("REST, metrics and health are at http://{address}");
        }
        if let Some(address) = control.tls() {
            tracing::info!("REST, metrics and health are for accounts at https://{address}");
        }
        if let Some(socket) = control.socket() {
            tracing::info!("REST takes changes at unix:{}", socket.display());
        }
        notify("READY=1");
        if ending.load(Ordering::SeqCst) {
            let _ = early.send("a signal during the start");
        }
        let signal = ended.recv().context("the control thread ended by itself")?;
        tracing::info!("{signal}: closing connections; rules stay on the switches");
        notify("STOPPING=1");
        drop(pid_file);
        // The control thread ends first: its reloader is the other owner of the daemon.
        drop(control);
        if let Some(daemon) = Arc::into_inner(daemon) {
            daemon.stop();
        }
        Ok(Exit::Success)
    }
}

/// Sends the state to the supervisor that started this process, if the supervisor expects notifications (systemd's
/// `Type=notify`).
fn notify(state: &str) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let send = || {
        let bytes = path.as_encoded_bytes();
        let address = match bytes.strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(&path)?,
        };
        UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)
    };
    if let Err(error) = send() {
        tracing::warn!(%error, "the supervisor (NOTIFY_SOCKET) cannot be notified: {state}");
    }
}

/// Reads three hexadecimal digits, as in the log.
fn installation(text: &str) -> Result<Installation, String> {
    let bits = u16::from_str_radix(text, 16).ok();
    bits.and_then(Installation::new)
        .ok_or_else(|| "three hexadecimal digits are expected".to_owned())
}

fn control(
    path: &Path,
    config: &Config,
    daemon: &Arc<Daemon>,
    state: Option<PathBuf>,
    terminate: Box<dyn FnOnce(&'static str) + Send>,
) -> anyhow::Result<Control> {
    let current = Current::new(config.clone());
    let metrics = daemon.metrics();
    let sources = Sources {
        metrics: Arc::clone(&metrics),
        current: current.clone(),
        pulse: Arc::new(daemon.pulse()),
        reader: daemon.reader(),
        topology: daemon.topology(),
        labels: daemon.labels(),
        networks: daemon.networks(),
        documents: daemon.documents(),
        pins: daemon.pins(),
    };
    let target = Arc::clone(daemon);
    let sink = move |config: &Config| target.apply(config).map_err(|error| error.to_string());
    let reloader = Reloader::new(path, current, Box::new(sink), metrics);
    let limits =
        http::Limits { connections: daemon.descriptors().api(), ..http::Limits::default() };
    let api = config.listen.api.clone();
    let setup = Setup { api, limits, state, sources, reloader, terminate };
    Control::start(setup).context("cannot start the REST interface ([listen] api)")
}

/// A file with the id of the process that serves. The file is removed at a regular end of the process.
struct PidFile<'a>(&'a Path);

impl<'a> PidFile<'a> {
    fn write(path: &'a Path) -> anyhow::Result<Self> {
        fs::write(path, format!("{}\n", process::id()))
            .with_context(|| format!("cannot write --pid-file {}", path.display()))?;
        Ok(PidFile(path))
    }
}

impl Drop for PidFile<'_> {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(self.0) {
            tracing::warn!(file = %self.0.display(), %error, "the pid file cannot be removed");
        }
    }
}
