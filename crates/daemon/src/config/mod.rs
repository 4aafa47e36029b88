//! The configuration file: TOML in, [`Config`] out, or every error in it with its place.
//!
//! Parse, don't validate: what a [`Config`] holds has been checked, and nothing that reads one checks again. Deliberately
//! without I/O beyond [`load`] and the data sheets that a file names, and without defaults elsewhere: each default stands here, once, and in
//! `docs/configuration.md`.
//!
//! Start reading at [`Config`]; `sections` and `tenants` read the file's tables with the help of `reader`.

mod access;
mod agents;
mod api;
mod datasheet;
mod diagnostic;
mod labels;
mod maxima;
mod networks;
mod own;
mod reader;
mod sections;
mod switches;
mod tenants;
mod tls;
mod topology;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, fs, io};

use channel::{Address, CertificateName};
use flowspace::Match;
use hypervisor::policy;
use hypervisor::policy::{Limits, Permission, Policy, Statistics, Switches, TenantId};
use hypervisor::sheet::Sheet;

pub use access::Access;
pub use agents::Agents;
pub use api::{Api, SOCKET, Socket};
pub use diagnostic::{Diagnostic, Diagnostics, Position};
pub use labels::{Labels, Told, Vnic};
pub use maxima::{Edge, Maxima};
pub use networks::Network;
pub(crate) use networks::wanted;
pub use switches::Listed;
pub use tls::Tls;
pub use topology::{Link, Topology};

/// Everything that the operator says.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The file, as it was named by the user.
    pub file: String,
    /// `[listen]`
    pub listen: Listen,
    /// `[api]`
    pub access: Access,
    /// `[tls]`; there whenever an `ssl:` address is. Relative paths are relative to the configuration file's folder.
    pub tls: Option<Tls>,
    /// `[scheduler]`
    pub scheduler: Scheduler,
    /// `[keepalive]`
    pub keepalive: Keepalive,
    /// `[reconnect]`
    pub reconnect: Reconnect,
    /// `[store]`
    pub store: Store,
    /// `[topology]`
    pub topology: Topology,
    /// `[labels]`
    pub labels: Labels,
    /// `[agents]`, if any are listened to.
    pub agents: Option<Agents>,
    /// `[[switches]]`, in the file's order.
    pub switches: Vec<Listed>,
    /// The data sheet of all switches for which `switches` names none.
    pub datasheet: Option<Arc<Sheet>>,
    /// `[[tenants]]`, in the file's order.
    pub tenants: Vec<Tenant>,
}

/// Where Weir listens. Read at start only, but for `unlisted`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// Switches connect here. Default `tcp:127.0.0.1:6653`.
    pub openflow: Vec<Address>,
    /// REST, metrics. Default `127.0.0.1:8080`, and changes by [`SOCKET`]; `"off"` for none.
    pub api: Api,
    /// How many switches may be here that `[[switches]]` does not list. Default 0 if it lists any, else 1024.
    pub unlisted: usize,
}

/// Bounds on what may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduler {
    /// Messages of one tenant for one switch that may be accepted and not finished; then reading from its controllers
    /// stops. Default 256.
    pub tenant_backlog: usize,
    /// Bytes that may wait for one controller; then asynchronous messages to it are dropped and counted. Default 1 MiB.
    pub controller_buffer: usize,
    /// Bytes that may wait for one controller before it is disconnected, since replies cannot be dropped. Default 8 MiB.
    pub controller_buffer_limit: usize,
    /// Bytes that may wait for one switch. Default 256 KiB.
    pub switch_buffer: usize,
    /// How long a switch's reply is waited for. Default 10 s.
    pub reply_timeout: Duration,
}

/// How a dead peer is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// Silence after which an ECHO_REQUEST is sent. Default 5 s.
    pub interval: Duration,
    /// Silence after that ECHO_REQUEST which ends the connection. Default 10 s.
    pub timeout: Duration,
}

/// Exponential back-off between attempts to reach a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reconnect {
    /// After the first failure. Default 100 ms.
    pub min: Duration,
    /// At most. Default 10 s.
    pub max: Duration,
}

/// How state is kept under `--state DIR`. Read at start only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Store {
    /// When changes reach the disk. Default: every 100 ms.
    pub sync: crate::store::Sync,
}

/// One tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    /// Unique, of letters, digits, `_` and `-`.
    pub name: String,
    /// Where the tenant stands in the file.
    pub at: Position,
    /// Weir connects to all of these, for each switch.
    pub controllers: Vec<Address>,
    /// Certificates of which they may show one, over TLS; none: one with the tenant's name.
    pub controller_certificates: Vec<CertificateName>,
    /// Share of control-plane service, 1 to 1000. Default 1.
    pub weight: u32,
    /// What the tenant may see and touch of the physical network.
    pub flowspace: Vec<Entry>,
    /// A network of its own; then it has no flowspace.
    pub network: Option<Network>,
    /// How large its network may be.
    pub maxima: Maxima,
    /// Bounds on what the tenant may use.
    pub limits: Limits,
    /// Bytes that it may have in the store, on all switches together.
    pub state_bytes: u64,
    /// Queues that it may enqueue to.
    pub queues: Vec<u32>,
    /// Vendor / experimenter ids whose messages and actions may pass.
    pub experimenters: Vec<u32>,
    /// Where the answers to its statistics requests come from.
    pub statistics: Statistics,
    /// How it is told what is left of links, if at all.
    pub labels: Option<Told>,
    /// Its virtual interfaces.
    pub vnics: Vec<Vnic>,
}

/// One `[[tenants.flowspace]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Where the entry stands in the file.
    pub at: Position,
    /// The headers, possibly with an input port.
    pub match_: Match,
    /// The match as it was written.
    pub text: String,
    /// Default 100.
    pub priority: u16,
    /// Default: any.
    pub switches: Switches,
    /// Default: write.
    pub permission: Permission,
}

/// A configuration could not be had.
#[derive(Debug)]
pub enum LoadError {
    /// The file could not be read.
    Read {
        /// The file.
        file: String,
        /// Why.
        error: io::Error,
    },
    /// There are errors in it.
    Invalid(Diagnostics),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Read { file, error } => write!(f, "cannot read {file}: {error}"),
            LoadError::Invalid(diagnostics) => diagnostics.fmt(f),
        }
    }
}

impl std::error::Error for LoadError {}

/// A configuration of this size would be a mistake; reading it would stall a reload.
pub const MAX_FILE_SIZE: u64 = 64 << 20;

/// Reads and parses a file.
pub fn load(path: &Path) -> Result<Config, LoadError> {
    let file = path.display().to_string();
    match read(path) {
        Ok(text) => sections::parse(&file, &text, own::is_here).map_err(LoadError::Invalid),
        Err(error) => Err(LoadError::Read { file, error }),
    }
}

/// Reads a configuration file's text, within [`MAX_FILE_SIZE`].
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let length = fs::metadata(path)?.len();
    if length > MAX_FILE_SIZE {
        let message = format!(
            "{length} bytes are more than the {MAX_FILE_SIZE} that a configuration may have"
        );
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    fs::read_to_string(path)
}

impl Config {
    /// Parses the text of a file; its name is used in errors, and its folder for relative paths. Which addresses this machine has
    /// is not looked at.
    pub fn parse(file: &str, text: &str) -> Result<Config, Diagnostics> {
        sections::parse(file, text, |_| false)
    }

    /// The snapshot that the hypervisor enforces. `ids` are the tenants' numbers, in the order of `self.tenants`.
    pub fn policy(&self, ids: &[TenantId]) -> Policy {
        debug_assert_eq!(ids.len(), self.tenants.len());
        let sheets = self.switches.iter();
        let sheets = sheets.filter_map(|it| Some((it.dpid, Arc::clone(it.datasheet.as_ref()?))));
        Policy {
            tenants: self.tenants.iter().zip(ids).map(|(tenant, &id)| tenant.policy(id)).collect(),
            sheets: sheets.collect(),
            any_sheet: self.datasheet.clone(),
            ..Policy::default()
        }
    }
}

impl Tenant {
    fn policy(&self, id: TenantId) -> policy::Tenant {
        policy::Tenant {
            id,
            name: self.name.clone(),
            weight: self.weight,
            flowspace: self.flowspace.iter().map(Entry::policy).collect(),
            limits: self.limits,
            queues: self.queues.clone(),
            experimenters: self.experimenters.clone(),
            statistics: self.statistics,
            labels: self.labels.and_then(|told| match told {
                Told::Rest => None,
                Told::OpenFlow(form) => Some(form),
            }),
        }
    }
}

impl Entry {
    fn policy(&self) -> policy::FlowspaceEntry {
        policy::FlowspaceEntry {
            match_: self.match_,
            priority: self.priority,
            switches: self.switches.clone(),
            permission: self.permission,
        }
    }
}

#[cfg(test)]
mod tests;
