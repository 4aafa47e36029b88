//! Applies a changed configuration, as one transaction.
//!
//! ```text
//!   SIGHUP ──► reload() ─┐                    ┌► PolicySink (numbers tenants, notifies shards)
//!                        ├► read ► parse ► Config
//!   each tick ► poll() ──┘      │             └► Current (REST)
//!                               └► any error: logged with its line; what was active stays
//! ```
//!
//! Weir reads a changed file when two polls in a row find the same file: a half-written file could be a valid
//! configuration with fewer tenants. For editors that replace the file by renaming, this wait is not necessary, but
//! Weir cannot distinguish them. SIGHUP means that the file is complete, so Weir reads the file at once.
//!
//! This module deliberately has no threads, timers or signals: [`crate::control`] has them. Start reading at
//! [`Reloader`].

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::config::{self, Config, LoadError};
use crate::lock::lock;
use crate::metrics::Registry;

/// The configuration in force, for all readers; `listen` and `store` are the values from the start of the process.
#[derive(Clone, Debug)]
pub struct Current(Arc<Mutex<Arc<Config>>>);

impl Current {
    /// Starts with a configuration.
    pub fn new(config: Config) -> Current {
        Current(Arc::new(Mutex::new(Arc::new(config))))
    }

    /// The configuration that is in force now.
    pub fn get(&self) -> Arc<Config> {
        Arc::clone(&lock(&self.0))
    }
}

/// Applies a whole configuration. An error (certificates that cannot be loaded, no number for a new tenant) refuses the
/// whole configuration, with the reason.
pub type PolicySink = Box<dyn FnMut(&Config) -> Result<(), String> + Send>;

/// The result of a look at the file.
#[derive(Debug)]
pub enum Outcome {
    /// The file has the same contents as before, or may be incomplete.
    Unchanged,
    /// The new configuration is in force.
    Applied,
    /// The new configuration is refused; the old one stays in force.
    Refused(Refusal),
}

/// The reason why a configuration was refused.
#[derive(Debug)]
pub enum Refusal {
    /// The file could not be read, or has errors.
    Load(LoadError),
    /// The sink refused it.
    Sink(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Load(error) => error.fmt(f),
            Refusal::Sink(error) => f.write_str(error),
        }
    }
}

impl std::error::Error for Refusal {}

/// Watches one configuration file.
pub struct Reloader {
    path: PathBuf,
    sink: PolicySink,
    metrics: Arc<Registry>,
    current: Current,
    /// The state of the file when it was last read.
    read: Option<Look>,
    /// The state of the file at the last poll, if it was different.
    changing: Option<Look>,
    /// The text that was read last, in force or refused; a refused text is not reported again.
    text: Option<String>,
}

/// The properties of a file without its contents. A replaced file has another inode. A file that is rewritten with the
/// same length within the clock's granularity shows no change here; SIGHUP covers this case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Look {
    fn at(path: &Path) -> Option<Look> {
        let meta = fs::metadata(path).ok()?;
        Some(Look {
            device: meta.dev(),
            inode: meta.ino(),
            length: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        })
    }
}

impl Reloader {
    /// Watches the file from which `current` was loaded. The first poll reads the file, so that no change since then is
    /// missed.
    pub fn new(
        path: &Path,
        current: Current,
        sink: PolicySink,
        metrics: Arc<Registry>,
    ) -> Reloader {
        metrics.process.reloads_applied.increment();
        Reloader {
            path: path.to_owned(),
            sink,
            metrics,
            current,
            read: None,
            changing: None,
            text: None,
        }
    }

    /// Looks at the file. The caller calls this function at regular intervals, longer than the time to write a file.
    pub fn poll(&mut self) -> Outcome {
        let look = Look::at(&self.path);
        if look == self.read || look.is_none() {
            // A missing file is being replaced, or the operator has removed it: neither is a new configuration.
            self.changing = None;
            return Outcome::Unchanged;
        }
        if self.changing != look {
            self.changing = look;
            return Outcome::Unchanged;
        }
        self.load(look, false)
    }

    /// Reads the file now, and applies it even if its text is the same: files that the configuration names may have
    /// changed.
    pub fn reload(&mut self) -> Outcome {
        let look = Look::at(&self.path);
        self.load(look, true)
    }

    fn load(&mut self, look: Option<Look>, force: bool) -> Outcome {
        (self.read, self.changing) = (look, None);
        let file = self.path.display().to_string();
        let text = match config::read(&self.path) {
            Ok(text) => text,
            Err(error) => return self.refuse(Refusal::Load(LoadError::Read { file, error })),
        };
        let same = self.text.as_deref() == Some(text.as_str());
        if same && !force {
            return Outcome::Unchanged;
        }
        let parsed = Config::parse(&file, &text);
        self.text = Some(text);
        let config = match parsed {
            Ok(config) => self.keep_fixed(config),
            Err(diagnostics) => return self.refuse(Refusal::Load(LoadError::Invalid(diagnostics))),
        };
        if config == *self.current.get() && !force {
            return Outcome::Unchanged;
        }
        if let Err(error) = (self.sink)(&config) {
            return self.refuse(Refusal::Sink(error));
        }
        tracing::info!(file, tenants = config.tenants.len(), "the configuration was taken over");
        *lock(&self.current.0) = Arc::new(config);
        self.metrics.process.reloads_applied.increment();
        Outcome::Applied
    }

    /// Restores the values that cannot change while the process runs.
    fn keep_fixed(&self, mut config: Config) -> Config {
        let active = self.current.get();
        let file = config.file.clone();
        let file = file.as_str();
        let unlisted = config.listen.unlisted;
        config.listen.unlisted = active.listen.unlisted;
        if config.listen != active.listen {
            tracing::warn!(file, "a change of [listen] takes effect at the next start");
        }
        let access = &mut config.access;
        if (&access.files, access.requests, access.subscribers)
            != (&active.access.files, active.access.requests, active.access.subscribers)
        {
            tracing::warn!(
                file,
                "a change of [api] takes effect at the next start, but for hosts, loopback and certificates"
            );
        }
        access.files.clone_from(&active.access.files);
        (access.requests, access.subscribers) = (active.access.requests, active.access.subscribers);
        if config.store != active.store {
            tracing::warn!(file, "a change of [store] takes effect at the next start");
        }
        if config.topology.tags != active.topology.tags {
            tracing::warn!(file, "a change of [topology] tags takes effect at the next start");
        }
        if let (Some(agents), Some(active)) = (&mut config.agents, &active.agents)
            && agents.listen != active.listen
        {
            tracing::warn!(file, "a change of [agents] listen takes effect at the next start");
            agents.listen = active.listen;
        }
        config.topology.tags = active.topology.tags;
        config.listen = active.listen.clone();
        config.listen.unlisted = unlisted;
        config.store = active.store;
        config
    }

    fn refuse(&self, refusal: Refusal) -> Outcome {
        self.metrics.process.reloads_refused.increment();
        let file = self.path.display();
        match &refusal {
            Refusal::Load(LoadError::Invalid(diagnostics)) => {
                for error in diagnostics.iter() {
                    let (line, column, key) = (error.at.line, error.at.column, &error.key);
                    let help = error.help.as_deref().unwrap_or("");
                    tracing::error!(%file, line, column, key, help, "configuration: {}", error.message);
                }
            }
            other => tracing::error!(%file, "configuration: {other}"),
        }
        tracing::error!(%file, "the configuration was refused; the old one stays in force");
        Outcome::Refused(refusal)
    }
}

#[cfg(test)]
mod tests;
