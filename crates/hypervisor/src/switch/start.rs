//! Beginnings: a switch connects and is asked what it holds.

use super::follow::Upcoming;
use super::refused::without;
use super::replay::Applying;
use super::{Event, Features, Settings, StartError, Switch};
use crate::ids::TenantIndex;
use crate::lldp::LldpKey;
use crate::north::{Controllers, NorthLimits};
use crate::policy::{self, Limits, Policy};
use crate::port_desc;
use crate::south::Session;
use crate::south::pending::{Awaits, Purpose};
use crate::store::{Kind, StoreKey, StoreOp};
use crate::tenant::Tenant;
use crate::time::Instant;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use compile::Network;
use compile::ownership::{Claims, Ownership};
use hashbrown::HashMap;
use openflow::{ErrorCode, Header, Version, frame, v10, v13};

/// How far the switch is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// This many questions about its state are open.
    Learning(u32),
    /// Tenants are served.
    Ready,
    /// The driver was told to close the session.
    Closed,
}

/// What the switch said of its tables, until they are reconciled: entries as they came.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    pub flows: Parts,
    pub groups: Vec<u8>,
    pub meters: Vec<u8>,
}

/// Entries of a statistics reply in rules, each of whole entries. One rule for all would be copied with each doubling of its
/// room: tens of milliseconds for tens of megabytes, in which no other switch is served.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    rules: Vec<Vec<u8>>,
    bytes: usize,
}

impl Parts {
    /// Room of one rule, if one message does not need more.
    const RULE: usize = 64 << 10;

    /// Appends the entries of one message.
    pub(crate) fn push(&mut self, entries: &[u8]) {
        self.bytes += entries.len();
        match self.rules.last_mut() {
            Some(last) if last.capacity() - last.len() >= entries.len() => {
                last.extend_from_slice(entries);
            }
            _ => {
                let mut rule = Vec::with_capacity(entries.len().max(Self::RULE));
                rule.extend_from_slice(entries);
                self.rules.push(rule);
            }
        }
    }

    /// Bytes of all entries.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// The entries, in the order of their coming.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &[u8]> {
        self.rules.iter().map(Vec::as_slice)
    }
}

/// Error codes that mean the same on both versions.
pub(crate) struct Codes {
    /// The switch did not answer in time. OpenFlow has no code for that before 1.4: "permissions error" comes closest
    /// to "not now".
    pub unanswered: ErrorCode,
    /// The answer is too large to be kept.
    pub too_much: ErrorCode,
}

/// OFPCML_NO_BUFFER, in both versions: packets are sent whole.
const MISS_SEND_ALL: u16 = 0xffff;

impl Switch {
    /// A switch has connected. `features` is its whole FEATURES_REPLY; `restored` is what the store holds for it;
    /// `volatile` says that there is no store to wait for.
    ///
    /// The switch is asked what it holds; when it has answered and its tables are reconciled, [`Event::Serve`] names
    /// the tenants to connect.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        features: &[u8],
        policy: Arc<Policy>,
        settings: Settings,
        lldp: LldpKey,
        restored: Vec<(StoreKey, Vec<u8>)>,
        volatile: bool,
        now: Instant,
    ) -> Result<Switch, StartError> {
        let version = frame::version(features).unwrap_or(Version(0));
        let body = features.get(Header::LEN..).unwrap_or_default();
        let mut ports = BTreeMap::new();
        let (dpid, features) = match version {
            Version::V1_0 => {
                let reply = v10::FeaturesReply::parse(body).map_err(StartError::Features)?;
                for port in reply.ports {
                    let (number, port) = crate::v10::ports::known(&port);
                    ports.insert(number, port);
                }
                let features = Features {
                    n_buffers: reply.n_buffers,
                    n_tables: reply.n_tables,
                    capabilities: reply.capabilities.0,
                    actions: reply.actions.0,
                };
                (reply.datapath_id, features)
            }
            Version::V1_3 => {
                let reply = v13::FeaturesReply::parse(body).map_err(StartError::Features)?;
                if reply.n_tables < 2 && !crate::big_switch::is_key(reply.datapath_id) {
                    return Err(StartError::TooFewTables);
                }
                let features = Features {
                    n_buffers: reply.n_buffers,
                    n_tables: reply.n_tables,
                    capabilities: reply.capabilities.0,
                    actions: 0,
                };
                (reply.datapath_id, features)
            }
            other => return Err(StartError::Version(other)),
        };
        let mut switch = Switch {
            dpid,
            version,
            features,
            ports,
            joins: crate::big_switch::is_key(dpid).then_some(dpid),
            ownership: Ownership::new(&Claims::default()),
            policy: Arc::new(Policy::default()),
            tenants: Vec::new(),
            by_id: HashMap::new(),
            controllers: Controllers::new(NorthLimits {
                dropped_beyond: settings.controller_bytes,
                closed_beyond: settings.controller_bytes_limit,
                of_tenant: settings.tenant_unread,
            }),
            session: Session::new(version, settings.switch_bytes, now),
            next_settle: now + settings.reply_timeout,
            operations: HashMap::new(),
            next_operation: 0,
            uninstalled: Default::default(),
            freed: Default::default(),
            statistics: Default::default(),
            learned: Learned::default(),
            journal: Default::default(),
            restored,
            phase: Phase::Learning(0),
            upcoming: Upcoming::default(),
            has_refused_ports: false,
            refused_transits: BTreeSet::new(),
            told_refused: 0,
            turns: Default::default(),
            postponed: BTreeMap::new(),
            asks: false,
            waiting: BTreeSet::new(),
            recovering: BTreeSet::new(),
            applying: Applying::default(),
            asynchronous: Default::default(),
            events: VecDeque::new(),
            lldp,
            settings,
            counters: Default::default(),
            scratch: Vec::new(),
            expects_probes: false,
            tracks_flows: false,
            kept: HashMap::new(),
            ids: Default::default(),
            space: Default::default(),
            described: Default::default(),
            traffic: Default::default(),
            own: Vec::new(),
            fields: v13::MatchBuf::new(),
            clock: now,
        };
        switch.journal.volatile = volatile;
        switch.adopt(policy);
        // The first barrier, alone on the connection, tells how fast the switch is.
        switch.session.send_barrier(now);
        switch.ask(now);
        Ok(switch)
    }

    /// Codes that differ between the versions.
    pub(crate) fn codes(&self) -> Codes {
        match self.version {
            Version::V1_0 => Codes {
                unanswered: openflow::error::v10::BAD_REQUEST_EPERM,
                too_much: openflow::error::v10::BAD_REQUEST_BAD_LEN,
            },
            _ => Codes {
                unanswered: openflow::error::v13::BAD_REQUEST_EPERM,
                too_much: openflow::error::v13::BAD_REQUEST_MULTIPART_BUFFER_OVERFLOW,
            },
        }
    }

    /// Whether a tenant may change anything at all.
    pub(crate) fn may_write(&self, tenant: TenantIndex) -> bool {
        self.tenants[tenant.0 as usize].network.is_some() || self.ownership.may_write(tenant)
    }

    /// The datapath id that a tenant is told.
    pub(crate) fn datapath_of(&self, tenant: TenantIndex) -> u64 {
        let network = &self.tenants[tenant.0 as usize].network;
        let own = self.joins.unwrap_or(self.dpid);
        network.as_ref().map_or(own, |network| network.datapath())
    }

    /// Descriptions of the ports that a tenant sees, by their numbers.
    pub(crate) fn described_ports(&self, tenant: TenantIndex) -> BTreeMap<u32, Vec<u8>> {
        match &self.tenants[tenant.0 as usize].network {
            Some(network) => port_desc::of_network(network, self.version),
            None => {
                let seen = |port: &&u32| self.ownership.sees_port(tenant, **port);
                let described = |port: &u32| {
                    Some((
                        *port,
                        self.with_label(tenant, *port, self.ports.get(port)?.description.clone()),
                    ))
                };
                self.ports.keys().filter(seen).filter_map(described).collect()
            }
        }
    }

    /// One of the hypervisor's own questions is answered in full.
    pub(crate) fn learned_one(&mut self, now: Instant) {
        if let Phase::Learning(open) = self.phase {
            if open > 1 {
                self.phase = Phase::Learning(open - 1);
                return;
            }
            self.phase = Phase::Ready;
            self.reconcile(now);
            self.report_topology();
            self.ask_space(now);
            self.ask_description(now);
            for (at, served) in self.served().into_iter().enumerate() {
                if served {
                    self.events.push_back(Event::Serve(self.tenants[at].id));
                }
            }
        }
    }

    /// One of the hypervisor's own questions is refused or never answered.
    pub(crate) fn own_request_failed(&mut self, purpose: Purpose, now: Instant) {
        match purpose {
            // Not every switch has groups or meters: then there are none to reconcile.
            Purpose::Groups | Purpose::Meters => self.learned_one(now),
            Purpose::Space | Purpose::Full(_) => self.space_failed(purpose),
            Purpose::Description => self.is_described(None),
            Purpose::PortCounters => self.traffic.answered(),
            Purpose::Ports | Purpose::Flows => {
                self.close("the switch does not tell its ports or its flows");
            }
        }
    }

    fn ask(&mut self, now: Instant) {
        let questions = match self.version {
            Version::V1_0 => crate::v10::questions(MISS_SEND_ALL),
            _ => crate::v13::questions(MISS_SEND_ALL),
        };
        let open = questions.iter().filter(|(awaits, _)| *awaits != Awaits::Nothing).count();
        self.phase = Phase::Learning(open as u32);
        for (awaits, message) in questions {
            self.send_own(awaits, &message, now);
        }
    }

    /// Takes over a policy: places for new tenants, none for those that are gone, a new view.
    pub(super) fn adopt(&mut self, policy: Arc<Policy>) {
        let policy = match self.joins {
            None => policy,
            Some(_) => {
                let (datapath, policy) = crate::big_switch::policy(&policy, self.dpid);
                self.joins = Some(datapath.unwrap_or(self.dpid));
                Arc::new(policy)
            }
        };
        for tenant in &mut self.tenants {
            tenant.present = false;
        }
        for tenant in &policy.tenants {
            match self.by_id.get(&tenant.id) {
                Some(at) => self.tenants[at.0 as usize].configure(tenant),
                None => {
                    let at = TenantIndex(self.tenants.len() as u32);
                    let mut state = Tenant::new(tenant);
                    state.flows.track(self.tracks_flows);
                    self.tenants.push(state);
                    self.by_id.insert(tenant.id, at);
                }
            }
        }
        for (at, tenant) in self.tenants.iter().enumerate() {
            let (weight, limits) = (tenant.weight, tenant.limits);
            self.session.configure(TenantIndex(at as u32), weight, limits);
            self.turns.set_weight(at as u32, tenant.weight);
        }
        let map = policy.maps.get(&self.dpid);
        let is_same = self.policy.maps.get(&self.dpid) == map;
        if !is_same {
            self.forget_refused();
        }
        for tenant in &mut self.tenants {
            let member = map.and_then(|map| map.members.get(&tenant.id));
            let member = member.filter(|_| tenant.present);
            // With a port goes what was said of it.
            let has_port = |number: &u32| member.is_some_and(|it| it.ports.contains_key(number));
            for &number in tenant.port_config.keys().filter(|number| !has_port(number)) {
                let key = StoreKey::new(tenant.id, Kind::Port, number);
                self.journal.push(StoreOp::Delete(key));
            }
            tenant.port_config.retain(|number, _| has_port(number));
            let config = || tenant.port_config.clone();
            let network = member.map(|member| {
                let member = without(member, &tenant.refused_ports);
                Network::new(&member, config())
            });
            tenant.network = network.map(Arc::new);
            if member.is_some_and(|member| member.shared_with) {
                // What limits it, and what is cached for it, is where the members are joined.
                let Limits { flows, entries, .. } = tenant.limits;
                tenant.limits = Limits { flows, entries, ..Limits::default() };
                tenant.statistics = Default::default();
            }
        }
        for at in 0..self.tenants.len() {
            self.keep_counts(TenantIndex(at as u32));
        }
        let index = |id| self.tenant_of(id);
        self.ownership = policy.ownership(self.dpid, self.tenants.len(), index);
        self.policy = policy;
        self.divide_space();
    }
}

/// Appends a PORT_STATUS with a port description as the switch gave it.
pub(crate) fn write_port_status(
    version: Version,
    reason: u8,
    wire: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), openflow::TooLong> {
    const PORT_STATUS: u8 = 12;
    frame::write(version, PORT_STATUS, 0, out, |out| {
        out.extend_from_slice(&[reason, 0, 0, 0, 0, 0, 0, 0]);
        out.extend_from_slice(wire);
    })
}

impl Tenant {
    fn new(tenant: &policy::Tenant) -> Tenant {
        /// OFP_DEFAULT_MISS_SEND_LEN, in both versions.
        const DEFAULT_MISS_SEND_LEN: u16 = 128;
        let mut state = Tenant {
            id: tenant.id,
            name: Default::default(),
            present: true,
            limits: tenant.limits,
            queues: Vec::new(),
            experimenters: Vec::new(),
            statistics: tenant.statistics,
            labels: tenant.labels,
            port_labels: Default::default(),
            weight: tenant.weight,
            network: None,
            port_config: BTreeMap::new(),
            refused_ports: Default::default(),
            asking: Default::default(),
            elsewhere: BTreeMap::new(),
            controllers: Vec::new(),
            log: Default::default(),
            recovery: None,
            unanswered: 0,
            ahead: 0,
            held: Default::default(),
            account: Default::default(),
            rests: None,
            paused: false,
            is_decided: false,
            flows: Default::default(),
            leaving: Default::default(),
            idle: Default::default(),
            changes: 0,
            buffers: Default::default(),
            has_loose_numbers: false,
            groups: Default::default(),
            meters: Default::default(),
            miss_send_len: DEFAULT_MISS_SEND_LEN,
            generation: None,
            packet_ins: Default::default(),
            packet_in_share: None,
            lookups: Default::default(),
            counters: Default::default(),
            refused: Default::default(),
        };
        state.configure(tenant);
        state
    }

    fn configure(&mut self, tenant: &policy::Tenant) {
        self.present = true;
        self.name.clone_from(&tenant.name);
        self.limits = tenant.limits;
        self.queues.clone_from(&tenant.queues);
        self.experimenters.clone_from(&tenant.experimenters);
        self.statistics = tenant.statistics;
        self.labels = tenant.labels;
        self.weight = tenant.weight;
    }
}
