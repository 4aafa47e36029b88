//! A switch's session: its begin and end, and the writing of the core's messages to all peers.

use super::Shard;
use super::command::Counting;
use super::connected::{Link, Peer, Progress, Session, tenant_metrics};
use super::past::Ended;
use super::publish::publish_session;
use super::snapshot::Snapshot;
use super::table::{Entry, Timer};
use crate::carry::{carry, room};
use crate::dpid::Dpid;
use crate::metrics::{Kind, Lost, Rejection};
use crate::store::{Batch, Done, Full, Pushed, Stored};
use crate::topology::orders::Orders;
use channel::{Connection, Established, Flushed, Keepalive, Liveness};
use hypervisor::big_switch::is_key;
use hypervisor::{Event, Installation, Policy, Settings, Standing, Switch, TenantId};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Weir's xid in ECHO_REQUESTs. The core uses small numbers, and the type distinguishes replies in any case.
pub(super) const ECHO_XID: u32 = 0xec40_0000;

impl Shard {
    /// Loads the stored state of a switch, then begins its session.
    pub(super) fn load(&mut self, switch: Box<(Connection, Established)>) {
        let Some(features) = &switch.1.switch else { return };
        let dpid = features.dpid;
        if self.behind.contains(&dpid) {
            // Nothing is read from the waiting connection, so Weir does not know whether it is still alive.
            if let Some(mut gone) = self.loading.insert(dpid, switch) {
                gone.0.finish();
            }
            return;
        }
        if self.by_dpid.contains_key(&dpid) || self.loading.contains_key(&dpid) {
            // The connected switch keeps its place while it answers. If it is dead, keepalive closes its connection,
            // and the new switch connects again.
            tracing::warn!(
                dpid = %Dpid(dpid),
                peer = switch.0.peer_address().map(display),
                "a second switch with this datapath id; turned away"
            );
            self.metrics.process.rejected(Kind::Switch, Rejection::DuplicateDpid).increment();
            let mut connection = switch.0;
            connection.finish();
            return;
        }
        match self.store.load(dpid) {
            Ok(Done::Now(stored)) => self.open_session(*switch, stored),
            Ok(Done::Later) => {
                self.loading.insert(dpid, switch);
            }
            Err(Full(_)) => {
                tracing::warn!(dpid = %Dpid(dpid), "the store is busy; the switch has to come again");
            }
        }
    }

    pub(super) fn open_session(
        &mut self,
        (mut connection, established): (Connection, Established),
        stored: Vec<Stored>,
    ) {
        let Some(features) = established.switch else { return };
        if !self.pin(features.dpid, &connection) {
            return connection.finish();
        }
        let now = self.now();
        let settings = Settings {
            installation: Installation::of_secret(&self.lldp.0),
            takes_over: self.takes_over,
            adopts: self.adopts,
            ..self.snapshot.settings
        };
        let core = Switch::new(
            &features.frame,
            self.snapshot.policy.clone(),
            settings,
            self.lldp,
            stored,
            self.volatile,
            now,
        );
        let core = match core {
            Ok(mut core) => {
                core.track_flows(self.snapshot.tracks_flows);
                // A big switch is Weir's own.
                if !is_key(features.dpid) && !self.snapshot.admission.lists(features.dpid) {
                    core.share_memory(self.unlisted.memory());
                }
                core
            }
            Err(error) => {
                tracing::error!(dpid = %Dpid(features.dpid), %error, "the switch cannot be served");
                connection.finish();
                return;
            }
        };
        let known_as = core.known_as();
        let token = match self.events.register(&mut connection) {
            Ok(token) => token,
            Err(error) => {
                tracing::error!(%error, "cannot watch a switch's connection");
                return;
            }
        };
        let dpid = features.dpid;
        let peer = connection.peer_address();
        let keepalive = self.keepalive();
        self.metrics.process.connections(Kind::Switch).increment();
        let metrics = self.metrics.switch(dpid, established.version.0);
        let session = Session {
            core,
            switch: Peer { token, connection, keepalive },
            links: HashMap::new(),
            by_controller: HashMap::new(),
            next_link: 0,
            touched: false,
            granted: (0, 0),
            until_ports: 0,
            epoch: self.next_batch,
            metrics,
            tenants: HashMap::new(),
        };
        let at = self.sessions.iter().position(Option::is_none).unwrap_or_else(|| {
            self.sessions.push(None);
            self.sessions.len() - 1
        });
        let deadline = session.switch.keepalive.deadline();
        self.sessions[at] = Some(session);
        self.by_dpid.insert(dpid, at);
        self.table.put(token, Entry::Switch(at));
        self.events.set_timer(Timer::Alive(at).key(), deadline);
        // Messages may have arrived together with the handshake.
        self.events.again(token);
        self.touch(at);
        tracing::info!(
            dpid = %Dpid(known_as), openflow = %established.version, peer = peer.map(display),
            "switch connected"
        );
    }

    /// Writes the core's messages to all peers, once for each peer.
    pub(super) fn pump(&mut self, at: usize) {
        self.take_changes(at);
        self.take_events(at);
        self.take_flow_changes(at);
        let Some(Some(session)) = self.sessions.get_mut(at) else { return };
        let dpid = session.core.dpid();
        if let Err(reason) = carry(session.core.switch_outbox(), &mut session.switch.connection) {
            self.close_session(at, &reason.to_string(), dpid);
            return;
        }
        self.pump_controllers(at);
        let Some(Some(session)) = self.sessions.get_mut(at) else { return };
        while let Some(controller) = session.core.poll_resumed() {
            if let Some(link) = session.by_controller.get(&controller)
                && let Some(Link { progress: Progress::Up { peer, .. }, .. }) =
                    session.links.get(link)
            {
                self.events.again(peer.token);
            }
        }
        if session.core.is_turn_awaited() && !self.in_line.contains(&at) {
            self.in_line.push_back(at);
        }
        match session.core.poll_timeout() {
            Some(when) => {
                let when = self.origin + std::time::Duration::from_nanos(when.0);
                self.events.set_timer(Timer::Core(at).key(), when);
            }
            None => self.events.cancel_timer(Timer::Core(at).key()),
        }
    }

    /// Each controller in turn gets its share, until no controller can accept more.
    fn pump_controllers(&mut self, at: usize) {
        let mut broken = Vec::new();
        let began = self.events.now();
        let Some(Some(session)) = self.sessions.get_mut(at) else { return };
        while let Some(controller) = session.core.poll_controller() {
            let share = session.core.share(controller);
            let peer = session
                .by_controller
                .get(&controller)
                .and_then(|link| session.links.get_mut(link).map(|state| (*link, state)));
            let Some((link, &mut Link { tenant, progress: Progress::Up { ref mut peer, .. }, .. })) =
                peer
            else {
                continue;
            };
            let Some(outbox) = session.core.controller_outbox(controller) else { continue };
            let n = outbox.len().min(share).min(room(&peer.connection));
            let taken = outbox.as_slice().get(..n).unwrap_or_default();
            if n > 0 && peer.connection.push(taken).is_ok() {
                outbox.consume(n);
                // The time from the beginning of the turn, when the message was read.
                let added = began.elapsed().as_nanos() as u64;
                tenant_metrics(
                    &mut session.tenants,
                    &session.metrics,
                    &self.snapshot.policy,
                    tenant,
                )
                .added_northbound
                .observe(added);
            }
            match peer.connection.flush() {
                Ok(flushed) => session.core.written(controller, flushed == Flushed::Blocked),
                Err(reason) => broken.push((link, reason.to_string())),
            }
        }
        for (link, reason) in broken {
            self.link_failed(at, link, Lost::Closed, &reason);
        }
    }

    fn take_changes(&mut self, at: usize) {
        let Some(Some(session)) = self.sessions.get_mut(at) else { return };
        let Some((number, ops)) = session.core.poll_store() else { return };
        let dpid = session.core.dpid();
        let seq = self.next_batch;
        self.next_batch += 1;
        self.storing.push_back((seq, dpid, number));
        self.unstored.push_back(Batch { seq, dpid, ops });
        self.push_unstored();
    }

    /// Gives changes to the store as far as the store has room. Otherwise the changes wait in the switches' queues, and
    /// Weir stops reading from the tenants.
    pub(super) fn push_unstored(&mut self) {
        while let Some(batch) = self.unstored.pop_front() {
            let seq = batch.seq;
            match self.store.push(batch) {
                Ok(Pushed::Later) => {}
                Ok(Pushed::Journaled) => self.safe(seq),
                Ok(Pushed::Stored) => self.stored(crate::store::Event::Stored(seq)),
                Err(Full(batch)) => {
                    self.unstored.push_front(batch);
                    return;
                }
            }
        }
    }

    fn take_events(&mut self, at: usize) {
        loop {
            let Some(Some(session)) = self.sessions.get_mut(at) else { return };
            let dpid = session.core.dpid();
            match session.core.poll_event() {
                None => return,
                Some(Event::Serve(tenant)) => self.serve(at, tenant),
                Some(Event::Withdraw(tenant)) => self.withdraw(at, tenant),
                Some(Event::CloseController(controller)) => {
                    if let Some(&link) = session.by_controller.get(&controller) {
                        let reason = "the controller does not read its replies";
                        self.link_failed(at, link, Lost::Fault, reason);
                    }
                }
                // The topology has physical switches only.
                Some(Event::Ports(_) | Event::Probe(..)) if is_key(dpid) => {}
                Some(Event::RefusedPorts(_) | Event::RefusedTransits(_)) if is_key(dpid) => {}
                Some(Event::RefusedPorts(ports)) => self.refused.set_ports(Dpid(dpid), ports),
                Some(Event::RefusedTransits(all)) => self.refused.add_transits(Dpid(dpid), all),
                Some(Event::OwnRefused { match_, priority }) => {
                    tracing::warn!(
                        dpid = %Dpid(session.core.known_as()), %match_, priority,
                        "the switch refuses an entry of Weir's own"
                    );
                }
                Some(Event::Ports(ports)) => {
                    self.topology.ports(dpid, session.core.version(), ports);
                }
                Some(Event::Probe(port, frame)) => self.topology.probe(dpid, port, frame),
                Some(Event::CountersRequest { of, tenant }) => {
                    self.count(Counting::Ask { of, tenant, by: dpid });
                }
                Some(Event::CountersReply { to, counts }) => {
                    self.count(Counting::Answer { to, counts, from: dpid });
                }
                Some(Event::CloseSwitch(reason)) => {
                    self.close_session(at, reason, dpid);
                    return;
                }
                Some(Event::TableFull { table, rules }) => {
                    tracing::warn!(
                        dpid = %Dpid(dpid), table, rules,
                        "a table of the switch is full: so many rules are divided among the tenants"
                    );
                }
                Some(Event::SheetOfAnother) => {
                    let Standing::OfAnother(sheet) = session.core.sheet() else { continue };
                    tracing::warn!(
                        dpid = %Dpid(dpid), file = sheet.file,
                        "the data sheet is not used, since it is of another switch: {}",
                        crate::sheets::difference(sheet, session.core.description())
                    );
                }
                Some(Event::Reconciled { kept, installed, removed, foreign }) => {
                    tracing::info!(
                        dpid = %Dpid(session.core.known_as()), kept, installed, removed, foreign,
                        "the switch's tables are reconciled"
                    );
                }
                Some(Event::Adopted { entries, left }) => tracing::info!(
                    dpid = %Dpid(dpid), entries, left,
                    "tenants' entries are made of the rules that the lost state had on the switch"
                ),
                Some(Event::LeftOthers(left)) => {
                    for (installation, rules) in left {
                        let whose = match installation == Installation::of_secret(&self.lldp.0) {
                            true => "the lost state of which no entry can be made",
                            false => "another installation of Weir",
                        };
                        tracing::warn!(
                            dpid = %Dpid(dpid), %installation, rules,
                            "the switch holds rules of {whose}, which are left there: \
                             `weir serve --take-over {installation}` deletes them"
                        );
                    }
                }
            }
        }
    }

    /// Sends the topology's probes and labels to the switches of this shard.
    pub(super) fn take_orders(&mut self, orders: Orders) {
        let now = self.now();
        for (dpid, port, frame) in &orders.frames {
            if let Some(&at) = self.by_dpid.get(dpid)
                && let Some(Some(session)) = self.sessions.get_mut(at)
                && session.core.send_own_packet_out(*port, frame, now)
            {
                self.touch(at);
            }
        }
        for (dpid, tenant, port, label) in &orders.labels {
            if let Some(&at) = self.by_dpid.get(dpid)
                && let Some(Some(session)) = self.sessions.get_mut(at)
            {
                session.core.report_label(*tenant, *port, *label);
                self.touch(at);
            }
        }
    }

    /// Reports changes of tenants' flow tables to the topology.
    fn take_flow_changes(&mut self, at: usize) {
        let Some(Some(session)) = self.sessions.get_mut(at) else { return };
        let changes = session.core.take_flow_changes();
        if !changes.is_empty() && !is_key(session.core.dpid()) {
            self.topology.flows(session.core.dpid(), session.core.version(), changes);
        }
    }

    /// A keepalive with the current configuration's times.
    pub(super) fn keepalive(&self) -> Keepalive {
        let crate::config::Keepalive { interval, timeout } = self.snapshot.keepalive;
        Keepalive::new(interval, timeout, ECHO_XID, self.events.now())
    }

    pub(super) fn check_switch(&mut self, at: usize) {
        let now = self.events.now();
        let Some(Some(session)) = self.sessions.get_mut(at) else { return };
        let (dpid, version) = (session.core.dpid(), session.core.version());
        match session.switch.probe(version, now) {
            Liveness::Idle => {}
            Liveness::SendEcho => self.touch(at),
            Liveness::Dead => {
                self.close_session(at, "the switch does not answer", dpid);
                return;
            }
        }
        if let Some(Some(session)) = self.sessions.get(at) {
            let deadline = session.switch.keepalive.deadline();
            self.events.set_timer(Timer::Alive(at).key(), deadline);
        }
    }

    /// Ends a session. The tenants' tables stay in the store and on the switch.
    pub(super) fn close_session(&mut self, at: usize, reason: &str, dpid: u64) {
        // The last changes of the core are stored.
        self.take_changes(at);
        let Some(mut session) = self.sessions.get_mut(at).and_then(Option::take) else { return };
        tracing::warn!(dpid = %Dpid(session.core.known_as()), reason, "switch disconnected");
        // The totals get the counts since the last publication, too.
        publish_session(&mut session, &self.snapshot.policy);
        for (tenant, lost) in session.core.lost() {
            if let Some(metrics) = session.tenants.get(&tenant) {
                metrics.lose(session.core.version().0, &lost);
            }
        }
        let core = &session.core;
        let ended = |&refusal| Ended { version: core.version(), refusal };
        let refusals = core.all_refusals().map(|(tenant, it)| (tenant, ended(it)));
        self.past.take(core.known_as(), refusals);
        self.metrics.retire(&session.metrics);
        self.by_dpid.remove(&dpid);
        if !is_key(dpid) {
            self.topology.gone(dpid);
            self.refused.set_ports(Dpid(dpid), Vec::new());
        }
        self.events.cancel_timer(Timer::Core(at).key());
        self.events.cancel_timer(Timer::Alive(at).key());
        for (link, state) in session.links.drain() {
            self.events.cancel_timer(Timer::Link(at, link).key());
            self.drop_progress(state.progress);
        }
        self.drop_peer(session.switch);
    }

    pub(super) fn drop_peer(&mut self, mut peer: Peer) {
        peer.connection.finish();
        self.table.take(peer.token);
        let _ = self.events.deregister(peer.token, &mut peer.connection);
    }

    /// Applies a new configuration to all connections.
    pub(super) fn apply(&mut self, snapshot: Snapshot) {
        self.snapshot = snapshot;
        let known: BTreeSet<TenantId> =
            self.snapshot.policy.tenants.iter().map(|tenant| tenant.id).collect();
        self.past.retain(|tenant| known.contains(&tenant));
        self.renew_identity();
        self.judge_again();
        let now = self.now();
        for at in 0..self.sessions.len() {
            let policy = self.snapshot.policy.clone();
            if let Some(Some(session)) = self.sessions.get_mut(at) {
                session.core.handle_policy(policy, now);
                session.core.forget_full_tables();
                session.core.track_flows(self.snapshot.tracks_flows);
                self.rejoin(at);
                self.relink(at);
                self.touch(at);
            }
        }
    }

    /// Applies new maps to some switches. The other switches do not change, and use the new policy when they connect
    /// again.
    pub(super) fn apply_maps(&mut self, policy: Arc<Policy>, switches: &BTreeSet<u64>) {
        self.snapshot.policy = Arc::clone(&policy);
        let now = self.now();
        for dpid in switches {
            if let Some(&at) = self.by_dpid.get(dpid)
                && let Some(Some(session)) = self.sessions.get_mut(at)
            {
                session.core.handle_policy(Arc::clone(&policy), now);
                self.rejoin(at);
                self.touch(at);
            }
        }
        // The maps of all members decide whether a big switch exists.
        for at in 0..self.sessions.len() {
            if let Some(Some(session)) = self.sessions.get_mut(at)
                && is_key(session.core.dpid())
            {
                session.core.handle_policy(Arc::clone(&policy), now);
                self.touch(at);
            }
        }
    }

    pub(super) fn close_everything(&mut self) {
        for at in 0..self.sessions.len() {
            if let Some(Some(session)) = self.sessions.get(at) {
                let dpid = session.core.dpid();
                self.pump(at);
                self.close_session(at, "Weir stops", dpid);
            }
        }
        self.push_unstored();
        for token in self.table.tokens() {
            self.table.take(token);
        }
    }
}
