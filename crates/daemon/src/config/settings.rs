//! All that the operator says, as values that have been checked.

use std::sync::Arc;
use std::time::Duration;

use channel::{Address, CertificateName};
use flowspace::Match;
use hypervisor::policy;
use hypervisor::policy::{Limits, Permission, Policy, Statistics, Switches, TenantId};
use hypervisor::sheet::Sheet;

use super::access::Access;
use super::agents::Agents;
use super::api::Api;
use super::diagnostic::Position;
use super::labels::{Labels, Told, Vnic};
use super::maxima::Maxima;
use super::networks::Network;
use super::switches::Listed;
use super::tls::Tls;
use super::topology::Topology;

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
    /// REST, metrics. Default `127.0.0.1:8080`, and changes by [`SOCKET`](super::SOCKET); `"off"` for none.
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
    /// The form of the labels that tell the tenant the free bandwidth of its links, if the tenant gets labels.
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

impl Config {
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

/// Where nobody says which switches there are, as many as this may come.
const UNLISTED: usize = 1024;

impl Listen {
    pub(super) fn new(has_switches: bool) -> Listen {
        let unlisted = if has_switches { 0 } else { UNLISTED };
        Listen { unlisted, ..Listen::default() }
    }
}

impl Default for Listen {
    fn default() -> Self {
        Listen {
            openflow: vec![Address::tcp(([127, 0, 0, 1], 6653).into())],
            api: Api::default(),
            unlisted: UNLISTED,
        }
    }
}

impl Default for Scheduler {
    fn default() -> Self {
        Scheduler {
            tenant_backlog: 256,
            controller_buffer: 1 << 20,
            controller_buffer_limit: 8 << 20,
            switch_buffer: 256 << 10,
            reply_timeout: Duration::from_secs(10),
        }
    }
}

impl Default for Keepalive {
    fn default() -> Self {
        Keepalive { interval: Duration::from_secs(5), timeout: Duration::from_secs(10) }
    }
}

impl Default for Reconnect {
    fn default() -> Self {
        Reconnect { min: Duration::from_millis(100), max: Duration::from_secs(10) }
    }
}
