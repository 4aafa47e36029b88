//! The whole configuration, as checked values.

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
use super::labels::{LabelPolicy, Labels, Vnic};
use super::maxima::Maxima;
use super::networks::Network;
use super::switches::Listed;
use super::tls::Tls;
use super::topology::Topology;

/// The whole configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The file name that the user gave.
    pub file: String,
    /// `[listen]`
    pub listen: Listen,
    /// `[api]`
    pub access: Access,
    /// `[tls]`; present if there is an `ssl:` address. Relative paths are relative to the configuration file's folder.
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
    /// `[agents]`, if Weir listens to agents.
    pub agents: Option<Agents>,
    /// `[[switches]]`, in the file's order.
    pub switches: Vec<Listed>,
    /// The data sheet of all switches for which `switches` names none.
    pub datasheet: Option<Arc<Sheet>>,
    /// `[[tenants]]`, in the file's order.
    pub tenants: Vec<Tenant>,
}

/// The addresses where Weir listens. Read at start only, except `unlisted`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// Switches connect here. Default `tcp:127.0.0.1:6653`.
    pub openflow: Vec<Address>,
    /// REST, metrics. Default `127.0.0.1:8080`, and changes by [`SOCKET`](super::SOCKET); `"off"` for none.
    pub api: Api,
    /// The most connected switches that `[[switches]]` does not list. Default 0 if `[[switches]]` lists any switch,
    /// else 1024.
    pub unlisted: usize,
}

/// The bounds of queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduler {
    /// The most unfinished messages of one tenant for one switch; beyond, Weir stops reading from the tenant's
    /// controllers. Default 256.
    pub tenant_backlog: usize,
    /// The most bytes that wait for one controller; beyond, asynchronous messages to the controller are dropped and
    /// counted. Default 1 MiB.
    pub controller_buffer: usize,
    /// The most bytes that wait for one controller, replies included; beyond, Weir disconnects the controller. Default
    /// 8 MiB.
    pub controller_buffer_limit: usize,
    /// The most bytes that wait for one switch. Default 256 KiB.
    pub switch_buffer: usize,
    /// The longest wait for a switch's reply. Default 10 s.
    pub reply_timeout: Duration,
}

/// The detection of dead peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// Silence after which Weir sends an ECHO_REQUEST. Default 5 s.
    pub interval: Duration,
    /// Silence after the ECHO_REQUEST after which Weir closes the connection. Default 10 s.
    pub timeout: Duration,
}

/// Exponential back-off between attempts to reach a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reconnect {
    /// The wait after the first failure. Default 100 ms.
    pub min: Duration,
    /// The longest wait. Default 10 s.
    pub max: Duration,
}

/// The store under `--state DIR`. Read at start only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Store {
    /// When changes reach the disk. Default: every 100 ms.
    pub sync: crate::store::Sync,
}

/// One tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    /// The name: unique, with letters, digits, `_` and `-`.
    pub name: String,
    /// The place of the tenant in the file.
    pub at: Position,
    /// The controllers. Weir connects to all of them, for each switch.
    pub controllers: Vec<Address>,
    /// Accepted certificates of controllers over TLS; empty: a certificate with the tenant's name.
    pub controller_certificates: Vec<CertificateName>,
    /// Share of control-plane service, 1 to 1000. Default 1.
    pub weight: u32,
    /// The tenant's part of the physical network.
    pub flowspace: Vec<Entry>,
    /// The tenant's own network; a tenant with a network has no flowspace.
    pub network: Option<Network>,
    /// The maximum size of the tenant's network.
    pub maxima: Maxima,
    /// The tenant's limits.
    pub limits: Limits,
    /// The most bytes of the tenant in the store, on all switches together.
    pub state_bytes: u64,
    /// Queues that the tenant may use.
    pub queues: Vec<u32>,
    /// Vendor / experimenter ids whose messages and actions may pass.
    pub experimenters: Vec<u32>,
    /// The source of answers to the tenant's statistics requests.
    pub statistics: Statistics,
    /// How Weir sends labels, the free bandwidth of links, to the tenant; `None`: the tenant gets no labels.
    pub labels: Option<LabelPolicy>,
    /// The tenant's virtual interfaces.
    pub vnics: Vec<Vnic>,
}

/// One `[[tenants.flowspace]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The place of the entry in the file.
    pub at: Position,
    /// The headers, possibly with an input port.
    pub match_: Match,
    /// The text of the match in the file.
    pub text: String,
    /// The priority. Default 100.
    pub priority: u16,
    /// The switches. Default: any.
    pub switches: Switches,
    /// The permission. Default: write.
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
            labels: self.labels.and_then(|policy| match policy {
                LabelPolicy::Rest => None,
                LabelPolicy::OpenFlow(form) => Some(form),
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

/// The most switches if the file lists no switch.
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
