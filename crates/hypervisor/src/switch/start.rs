//! The beginning of a session: a switch connects, and Weir asks for its rules, groups and meters.

use super::datapath::Datapath;
use super::map::Map;
use super::reports::Reports;
use super::settings::StartError;
use super::tenants::Tenants;
use super::{Event, Operations, Settings, Switch};
use crate::ids::TenantIndex;
use crate::lldp::LldpKey;
use crate::messages;
use crate::north::{Controllers, NorthLimits};
use crate::policy::Policy;
use crate::semantics::Semantics;
use crate::south::Session;
use crate::south::pending::{Awaits, Purpose};
use crate::store::{Journal, Kind, StoreKey, StoreOp};
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use openflow::{Header, Version, frame};

/// OFPCML_NO_BUFFER, in both versions: packets are sent whole.
const MISS_SEND_ALL: u16 = 0xffff;

impl Switch {
    /// Step 1: a switch has connected. `features` is its whole FEATURES_REPLY; `restored` is what the store holds for
    /// the switch; `volatile` says that there is no store to wait for.
    ///
    /// Weir asks the switch for its rules. When the switch has answered and its tables are reconciled, [`Event::Serve`]
    /// names the tenants to connect.
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
        let wire = Semantics::spoken(version).ok_or(StartError::Version(version))?;
        let datapath = Datapath::new(wire, body)?;
        let mut switch = Switch {
            wire,
            datapath,
            map: Map::new(lldp),
            tenants: Tenants::default(),
            controllers: Controllers::new(NorthLimits {
                dropped_beyond: settings.controller_bytes,
                closed_beyond: settings.controller_bytes_limit,
                of_tenant: settings.tenant_unread,
            }),
            session: Session::new(wire, settings.switch_bytes, settings.reply_timeout, now),
            operations: Operations::default(),
            statistics: Default::default(),
            journal: Journal::new(restored, volatile),
            inbox: Default::default(),
            settings,
            reports: Reports::new(now),
            scratch: Default::default(),
            ids: Default::default(),
            space: Default::default(),
        };
        switch.adopt(policy);
        // The first barrier, alone on the connection, shows how fast the switch is.
        switch.session.send_barrier(now);
        switch.ask(now);
        Ok(switch)
    }

    /// Whether a tenant may change anything.
    pub(crate) fn may_write(&self, tenant: TenantIndex) -> bool {
        self.tenants[tenant].network.is_some() || self.map.ownership().may_write(tenant)
    }

    /// The datapath id that a tenant sees.
    pub(crate) fn datapath_of(&self, tenant: TenantIndex) -> u64 {
        let network = &self.tenants[tenant].network;
        network.as_ref().map_or(self.known_as(), |network| network.datapath())
    }

    /// Descriptions of the ports that a tenant sees, by their numbers.
    pub(crate) fn described_ports(&self, tenant: TenantIndex) -> BTreeMap<u32, Vec<u8>> {
        match &self.tenants[tenant].network {
            Some(network) => messages::ports_of(self.wire, network),
            None => {
                let described = |port| Some((port, self.described_port(tenant, port)?));
                self.slice_ports(tenant).filter_map(described).collect()
            }
        }
    }

    /// The ports that a slice sees, in order.
    pub(super) fn slice_ports(&self, tenant: TenantIndex) -> impl Iterator<Item = u32> {
        let ports = self.datapath.ports().keys().copied();
        ports.filter(move |port| self.map.ownership().sees_port(tenant, *port))
    }

    /// The description of a port of the switch for a tenant.
    pub(super) fn described_port(&self, tenant: TenantIndex, port: u32) -> Option<Vec<u8>> {
        let known = self.datapath.ports().get(&port)?;
        Some(self.with_label(tenant, port, known.description.clone()))
    }

    /// One of Weir's own questions is answered in full.
    pub(crate) fn learned_one(&mut self, now: Instant) {
        if self.datapath.question_answered() {
            self.begin_to_reconcile(now);
        }
    }

    /// The tables are reconciled: Weir serves the tenants.
    pub(super) fn begin_to_serve(&mut self, now: Instant) {
        if self.has_exceeded_a_bound() {
            return;
        }
        self.report_topology();
        self.ask_space(now);
        self.ask_description(now);
        for tenant in self.tenants.indices() {
            if self.is_served(tenant) {
                self.reports.push(Event::Serve(self.tenants[tenant].id));
            }
        }
    }

    /// One of Weir's own questions is refused or never answered.
    pub(crate) fn own_request_failed(&mut self, purpose: Purpose, now: Instant) {
        match purpose {
            // Not every switch has groups or meters: if not, there are none to reconcile.
            Purpose::Groups | Purpose::Meters => self.learned_one(now),
            Purpose::Space | Purpose::Full(_) => self.space_failed(purpose),
            Purpose::Description => self.is_described(None),
            Purpose::PortCounters => self.datapath.traffic_mut().answered(),
            Purpose::Ports | Purpose::Flows => {
                self.close("the switch does not report its ports or its flows");
            }
        }
    }

    fn ask(&mut self, now: Instant) {
        let questions = messages::questions(self.wire, MISS_SEND_ALL);
        let open = questions.iter().filter(|(awaits, _)| *awaits != Awaits::Nothing).count();
        self.datapath.begin(open as u32);
        for (awaits, message) in questions {
            self.send_own(awaits, &message, now);
        }
    }

    /// Puts a policy into force: places for new tenants, the present networks, and the owners of packets.
    pub(super) fn adopt(&mut self, policy: Arc<Policy>) {
        let dpid = self.dpid();
        let policy = match self.datapath.is_joined() {
            false => policy,
            true => {
                let (seen_as, policy) = crate::policy::big_switches::policy(&policy, dpid);
                self.datapath.set_joined(seen_as.unwrap_or(dpid));
                Arc::new(policy)
            }
        };
        self.tenants.follow(&policy, self.wire);
        for tenant in self.tenants.indices() {
            let terms = &self.tenants[tenant].terms;
            self.session.queues_mut().configure(tenant, terms.weight, terms.limits);
            self.inbox.turns_mut().set_weight(tenant.0, terms.weight);
        }
        let map = policy.maps.get(&dpid);
        let is_same = self.map.policy().maps.get(&dpid) == map;
        if !is_same {
            self.forget_refused();
        }
        for tenant in self.tenants.iter_mut() {
            let member = map.and_then(|map| map.members.get(&tenant.id));
            let member = member.filter(|_| tenant.terms.is_present());
            // The configuration of a port goes with the port.
            let has_port = |number| member.is_some_and(|it| it.ports.contains_key(&number));
            for number in tenant.ports.keep(has_port) {
                let key = StoreKey::new(tenant.id, Kind::Port, number);
                self.journal.push(StoreOp::Delete(key));
            }
            tenant.network = member.map(|member| Arc::new(tenant.ports.network(member)));
            if member.is_some_and(|member| member.shared_with) {
                tenant.terms.keep_those_of_member();
            }
            tenant.counts.keep(tenant.network.as_deref());
        }
        let index = |id| self.tenant_of(id);
        let ownership = policy.ownership(dpid, self.tenants.len(), index);
        self.map.set(policy, ownership);
        self.divide_space();
    }
}
