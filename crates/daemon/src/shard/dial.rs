//! Makes the links to the tenants' controllers: for each switch, Weir dials each of a tenant's controllers, again and
//! again until a connection is established.

use super::Shard;
use super::connected::{Link, Peer, Progress, Way, shake_hands, tenant_metrics};
use super::contact::Contact;
use super::table::{Entry, HANDSHAKE_TIME, Timer};
use super::turn::CONTROLLER_BUDGET;
use crate::dpid::Dpid;
use crate::metrics::{Kind, Lost, Rejection};
use channel::{
    Address, Backoff, CloseReason, Dialer, Handshake, Liveness, Options, ReadState, Readiness,
};
use hypervisor::TenantId;
use openflow::VersionSet;

/// The hint for a controller that may lack the OpenFlow version.
const MUST_SPEAK: &str = "; it must speak the switch's OpenFlow version";

impl Shard {
    /// Connects the controllers of a tenant that has a part of the switch.
    pub(super) fn serve(&mut self, at: usize, tenant: TenantId) {
        if let Some(key) = self.joined_by(at, tenant) {
            self.add_link(at, tenant, None, key);
            return;
        }
        let addresses = self.snapshot.controllers.get(&tenant).cloned().unwrap_or_default();
        for address in addresses {
            self.add_link(at, tenant, Some(address), 0);
        }
    }

    /// The big switch of which the tenant's switch on this physical switch is a part.
    fn joined_by(&self, at: usize, tenant: TenantId) -> Option<u64> {
        let dpid = self.sessions.get(at)?.as_ref()?.core.dpid();
        let member = self.snapshot.policy.maps.get(&dpid)?.members.get(&tenant)?;
        member.shared_with.then(|| hypervisor::big_switch::key(tenant, member.datapath.0))
    }

    /// After a new map, updates the links: a switch with links to the tenant's controllers may have become a member of
    /// a big switch, or the other way round.
    pub(super) fn rejoin(&mut self, at: usize) {
        let Some(Some(session)) = self.sessions.get(at) else { return };
        let links = session.links.values().map(|link| {
            let joined = match link.dialer {
                Way::Joined(key, _) => Some(key),
                Way::Controller(_) => None,
            };
            (link.tenant, joined)
        });
        let links: Vec<(TenantId, Option<u64>)> = links.collect();
        let dpid = session.core.dpid();
        let Some(map) = self.snapshot.policy.maps.get(&dpid) else { return };
        // The core withdraws a tenant without a network on this switch.
        let other = |(tenant, joined): &(TenantId, Option<u64>)| {
            let differs = self.joined_by(at, *tenant) != *joined;
            (differs && map.members.contains_key(tenant)).then_some(*tenant)
        };
        let changed: std::collections::BTreeSet<TenantId> =
            links.iter().filter_map(other).collect();
        for tenant in changed {
            self.withdraw(at, tenant);
            self.serve(at, tenant);
        }
    }

    /// Disconnects the controllers of a tenant that has no part of the switch any more.
    pub(super) fn withdraw(&mut self, at: usize, tenant: TenantId) {
        let Some(Some(session)) = self.sessions.get(at) else { return };
        let links: Vec<u32> = session
            .links
            .iter()
            .filter(|(_, link)| link.tenant == tenant)
            .map(|(number, _)| *number)
            .collect();
        for link in links {
            self.remove_link(at, link);
        }
    }

    /// After a reload, dials added controllers, and disconnects removed ones.
    pub(super) fn relink(&mut self, at: usize) {
        let controllers = self.snapshot.controllers.clone();
        let Some(Some(session)) = self.sessions.get(at) else { return };
        let mut gone = Vec::new();
        let mut served: Vec<TenantId> = Vec::new();
        for (number, link) in &session.links {
            let Some(address) = link.dialer.address() else { continue };
            let wanted = controllers.get(&link.tenant);
            if wanted.is_none_or(|addresses| !addresses.contains(&address)) {
                gone.push(*number);
            }
            if !served.contains(&link.tenant) {
                served.push(link.tenant);
            }
        }
        let mut new = Vec::new();
        for tenant in served {
            for address in controllers.get(&tenant).into_iter().flatten() {
                let known = session
                    .links
                    .values()
                    .any(|link| link.tenant == tenant && link.dialer.address() == Some(*address));
                if !known {
                    new.push((tenant, *address));
                }
            }
        }
        for link in gone {
            self.remove_link(at, link);
        }
        for (tenant, address) in new {
            self.add_link(at, tenant, Some(address), 0);
        }
    }

    /// After a reload, new connections use the certificate and the authorities in the present files.
    pub(super) fn renew_identity(&mut self) {
        let identity = &self.snapshot.identity;
        for token in self.table.tokens() {
            if let Some(Entry::Listener(listener)) = self.table.get(token)
                && let Some(tls) = &identity.switches
            {
                listener.set_tls(tls);
            }
        }
        let Some(tls) = &identity.controllers else { return };
        for session in self.sessions.iter_mut().flatten() {
            for link in session.links.values_mut() {
                if let Way::Controller(dialer) = &mut link.dialer {
                    dialer.set_tls(tls);
                }
            }
        }
    }

    /// Adds a link to a controller or, without an address, to a big switch.
    fn add_link(&mut self, at: usize, tenant: TenantId, address: Option<Address>, key: u64) {
        let crate::config::Reconnect { min, max } = self.snapshot.reconnect;
        let Some(Some(session)) = self.sessions.get_mut(at) else { return };
        let number = session.next_link;
        session.next_link += 1;
        // The seed differs for each link, so that links that lost the same controller do not dial at the same times.
        let seed = session.core.dpid() << 16 ^ u64::from(tenant.0) << 40 ^ u64::from(number);
        let backoff = Backoff::new(min, max, seed);
        // Controllers often leave Nagle's algorithm on.
        let options = Options { acknowledge_reads: true, ..Options::default() };
        let tls = self.snapshot.identity.controllers.clone();
        let dialer = match address {
            None => Way::Joined(key, backoff),
            Some(address) => match Dialer::new(address, tls.as_ref(), options, backoff) {
                Ok(dialer) => Way::Controller(dialer),
                Err(error) => {
                    tracing::error!(%address, %error, "the controller cannot be dialled");
                    return;
                }
            },
        };
        let (progress, contact) = (Progress::Waiting, Contact::default());
        session.links.insert(number, Link { tenant, dialer, progress, has_spoken: false, contact });
        self.dial(at, number);
    }

    fn remove_link(&mut self, at: usize, link: u32) {
        self.events.cancel_timer(Timer::Link(at, link).key());
        let Some(Some(session)) = self.sessions.get_mut(at) else { return };
        if let Some(state) = session.links.remove(&link) {
            if let Some(metrics) = session.tenants.get(&state.tenant)
                && let Some(address) = state.dialer.address()
            {
                metrics.contacts.forget(&address.to_string());
            }
            if let Progress::Up { controller, .. } = state.progress {
                session.by_controller.remove(&controller);
                session.core.controller_disconnected(controller);
            }
            self.drop_progress(state.progress);
        }
    }

    pub(super) fn drop_progress(&mut self, progress: Progress) {
        match progress {
            Progress::Waiting => {}
            Progress::Greeting { token, mut connection, .. } => {
                connection.finish();
                self.table.take(token);
                let _ = self.events.deregister(token, &mut *connection);
            }
            Progress::Up { peer, .. } => self.drop_peer(*peer),
        }
    }

    fn dial(&mut self, at: usize, number: u32) {
        let Some(Some(session)) = self.sessions.get_mut(at) else { return };
        let version = session.core.version();
        let Some(link) = session.links.get_mut(&number) else { return };
        let handshake = Handshake::towards_controller(VersionSet::only(version), 0);
        let mut hello = Vec::new();
        let dpid = session.core.dpid();
        // A connection within the process needs a descriptor for each end.
        let descriptors = if let Some(address) = link.dialer.address() {
            let tenants = &mut session.tenants;
            let policy = &self.snapshot.policy;
            let metrics = tenant_metrics(tenants, &session.metrics, policy, link.tenant);
            metrics.totals.contacts.dials.increment();
            metrics.contacts.dialled(&address.to_string());
            1
        } else {
            2
        };
        let tenants = self.snapshot.policy.tenants.len();
        let Some(permit) = self.descriptors.controller(link.tenant, tenants, descriptors) else {
            let reason =
                "no file descriptor is left for this controller: raise the limit (ulimit -n)";
            self.link_failed(at, number, Lost::Descriptors, reason);
            return;
        };
        let dialled = link.dialer.dial(dpid, &self.joiner).and_then(|mut connection| {
            connection.hold(permit);
            handshake.start(&mut hello);
            let token = self.events.register(&mut connection)?;
            Ok((connection, token))
        });
        match dialled {
            Ok((connection, token)) => {
                let until = self.events.now() + HANDSHAKE_TIME;
                let connection = Box::new(connection);
                link.progress = Progress::Greeting { token, connection, handshake, hello, until };
                self.table.put(token, Entry::Controller(at, number));
                self.events.set_timer(Timer::Link(at, number).key(), until);
            }
            Err(error @ channel::Error::TlsIdentity(_)) => {
                self.link_failed(at, number, Lost::Tls, &error.to_string());
            }
            Err(error) => self.link_failed(at, number, Lost::Unreachable, &error.to_string()),
        }
    }

    /// The connection ended or failed: dials again, after a longer wait each time until a connection has lasted.
    pub(super) fn link_failed(&mut self, at: usize, number: u32, why: Lost, reason: &str) {
        let (now, lasting) = (self.events.now(), self.snapshot.reconnect.max);
        let Some(Some(session)) = self.sessions.get_mut(at) else { return };
        let Some(link) = session.links.get_mut(&number) else { return };
        let progress = std::mem::replace(&mut link.progress, Progress::Waiting);
        let verdict = link.contact.lost(why, now, lasting);
        if verdict.lasted {
            link.dialer.succeeded();
        }
        let delay = link.dialer.failed();
        let (tenants, policy) = (&mut session.tenants, &self.snapshot.policy);
        let metrics = tenant_metrics(tenants, &session.metrics, policy, link.tenant);
        let was_up = matches!(progress, Progress::Up { .. });
        let (tenant, switch, way) = (&metrics.name, Dpid(session.core.known_as()), &link.dialer);
        // A link to a big switch is no link to a controller, so its failure is not logged.
        let is_news = verdict.log && (was_up || way.address().is_some());
        // A controller without the version answers with an ERROR, or closes the connection at once.
        let is_mute = if was_up { !link.has_spoken } else { why == Lost::Handshake };
        let hint = if is_mute { MUST_SPEAK } else { "" };
        match (is_news, was_up) {
            (true, true) => tracing::warn!(
                tenant, %switch, controller = %way, reason, ?delay, "controller disconnected{hint}"
            ),
            (true, false) => tracing::warn!(
                tenant, %switch, controller = %way, reason, ?delay, "no connection to a controller{hint}"
            ),
            (false, _) => tracing::debug!(
                tenant, %switch, controller = %way, reason, ?delay, "still no connection to a controller"
            ),
        }
        if let Some(address) = link.dialer.address() {
            metrics.totals.contacts.lost(why).increment();
            metrics.contacts.lost(&address.to_string(), why, reason, delay);
            if let Some(rejection) = rejection(why).filter(|_| !was_up) {
                self.metrics.process.rejected(Kind::Controller, rejection).increment();
            }
        }
        if let Progress::Up { controller, .. } = &progress {
            session.by_controller.remove(controller);
            session.core.controller_disconnected(*controller);
        }
        self.drop_progress(progress);
        self.events.set_timer(Timer::Link(at, number).key(), self.events.now() + delay);
        self.touch(at);
    }

    pub(super) fn link_timer(&mut self, at: usize, number: u32) {
        let now = self.events.now();
        let Some(Some(session)) = self.sessions.get_mut(at) else { return };
        let version = session.core.version();
        let Some(link) = session.links.get_mut(&number) else { return };
        match &mut link.progress {
            Progress::Waiting => self.dial(at, number),
            Progress::Greeting { until, connection, .. } => {
                if now >= *until {
                    let (why, reason) = if !connection.is_connected() {
                        (Lost::Unreachable, "cannot connect: no answer in time")
                    } else if connection.is_tls_handshaking() {
                        (Lost::Tls, "TLS: the peer does not finish the handshake in time")
                    } else {
                        (Lost::Timeout, "no HELLO in time")
                    };
                    self.link_failed(at, number, why, reason);
                }
            }
            Progress::Up { peer, .. } => {
                match peer.probe(version, now) {
                    Liveness::Idle => {}
                    Liveness::SendEcho => {
                        if let Err(reason) = peer.connection.flush() {
                            self.link_failed(at, number, Lost::Closed, &reason.to_string());
                            return;
                        }
                    }
                    Liveness::Dead => {
                        let reason = "the controller does not answer";
                        self.link_failed(at, number, Lost::Silent, reason);
                        return;
                    }
                }
                if link.contact.stands(now, self.snapshot.reconnect.max) {
                    let (tenants, policy) = (&mut session.tenants, &self.snapshot.policy);
                    let metrics = tenant_metrics(tenants, &session.metrics, policy, link.tenant);
                    tracing::info!(
                        tenant = metrics.name, switch = %Dpid(session.core.known_as()),
                        controller = %link.dialer, "controller connected, and it stays"
                    );
                }
                let deadline = peer.keepalive.deadline();
                self.events.set_timer(Timer::Link(at, number).key(), deadline);
            }
        }
    }

    pub(super) fn link_ready(&mut self, at: usize, number: u32, readiness: Readiness) {
        let Some(Some(session)) = self.sessions.get_mut(at) else { return };
        match session.links.get_mut(&number).map(|link| &link.progress) {
            Some(Progress::Greeting { .. }) => self.greet(at, number, readiness),
            Some(Progress::Up { .. }) => self.controller_ready(at, number, readiness),
            _ => {}
        }
    }

    fn greet(&mut self, at: usize, number: u32, readiness: Readiness) {
        let Some(Some(session)) = self.sessions.get_mut(at) else { return };
        let Some(link) = session.links.get_mut(&number) else { return };
        let Progress::Greeting { connection, handshake, hello, .. } = &mut link.progress else {
            return;
        };
        let state = connection.receive(CONTROLLER_BUDGET).state;
        // Weir sends nothing to a controller of another tenant.
        if let Some(shown) = connection.peer_certificate()
            && let Err(reason) = self.snapshot.identity.judge(link.tenant, &shown)
        {
            self.link_failed(at, number, Lost::Tls, &reason);
            return;
        }
        let mut out = Vec::new();
        if !connection.is_tls_handshaking() {
            out.append(hello);
        }
        let verdict = shake_hands(connection, handshake, &mut out);
        let pushed = connection.push(&out);
        let flushed = connection.flush();
        let handshake = Lost::Handshake;
        let failure = match (verdict, state, flushed) {
            (Some(Ok(_)), _, _) => {
                self.link_up(at, number, readiness);
                return;
            }
            (Some(Err(reason)), _, _) => Some((handshake, reason)),
            (None, ReadState::Closed(reason), _) | (None, _, Err(reason)) => {
                Some((before_hello(&reason), reason.to_string()))
            }
            (None, _, _) if pushed.is_err() => {
                Some((handshake, "the send buffer is full".to_owned()))
            }
            (None, ReadState::More, _) => {
                self.events.again(readiness.token);
                None
            }
            (None, ReadState::Drained, _) => None,
        };
        if let Some((why, reason)) = failure {
            self.link_failed(at, number, why, &reason);
        }
    }

    fn link_up(&mut self, at: usize, number: u32, readiness: Readiness) {
        let keepalive = self.keepalive();
        let Some(Some(session)) = self.sessions.get_mut(at) else { return };
        let Some(link) = session.links.get_mut(&number) else { return };
        session.core.share_account(link.tenant, self.metrics.account(link.tenant));
        let controller = match link.dialer {
            Way::Joined(..) => session.core.joint_connected(link.tenant),
            Way::Controller(_) => session.core.controller_connected(link.tenant),
        };
        let Some(controller) = controller else {
            // The tenant was withdrawn during the handshake.
            self.remove_link(at, number);
            return;
        };
        let Progress::Greeting { token, connection, .. } =
            std::mem::replace(&mut link.progress, Progress::Waiting)
        else {
            return;
        };
        let deadline = keepalive.deadline();
        let peer = Box::new(Peer { token, connection: *connection, keepalive });
        link.progress = Progress::Up { peer, controller };
        link.has_spoken = false;
        self.metrics.process.connections(Kind::Controller).increment();
        let (tenants, policy) = (&mut session.tenants, &self.snapshot.policy);
        let metrics = tenant_metrics(tenants, &session.metrics, policy, link.tenant);
        match link.dialer.address() {
            Some(address) => metrics.contacts.connected(&address.to_string()),
            // Nobody outside the process can open and close this connection.
            None => link.dialer.succeeded(),
        }
        if link.contact.connected(self.events.now()) {
            tracing::info!(
                tenant = metrics.name, switch = %Dpid(session.core.known_as()),
                controller = %link.dialer, "controller connected"
            );
        }
        session.by_controller.insert(controller, number);
        self.events.set_timer(Timer::Link(at, number).key(), deadline);
        self.controller_ready(at, number, readiness);
    }

    fn controller_ready(&mut self, at: usize, number: u32, readiness: Readiness) {
        let now = self.now();
        let instant = self.events.now();
        let Some(Some(session)) = self.sessions.get_mut(at) else { return };
        let Some(link) = session.links.get_mut(&number) else { return };
        let Progress::Up { peer, controller } = &mut link.progress else { return };
        let Peer { connection, keepalive, token } = &mut **peer;
        connection.note(&readiness);
        let received = connection.receive(CONTROLLER_BUDGET);
        if received.bytes > 0 {
            keepalive.heard(instant);
        }
        let mut failure = None;
        let mut paused = false;
        loop {
            if !session.core.wants_read(*controller) {
                // The core reports when there is room again; read messages stay in the connection.
                paused = true;
                break;
            }
            match connection.next_frame() {
                Ok(Some(frame)) => {
                    link.has_spoken |= openflow::frame::type_(frame).is_some_and(|kind| kind > 1);
                    session.core.handle_controller_message(*controller, frame, now);
                }
                Ok(None) => break,
                Err(error) => {
                    failure = Some(error.to_string());
                    break;
                }
            }
        }
        match (received.state, failure) {
            (_, Some(reason)) => self.link_failed(at, number, Lost::Fault, &reason),
            (ReadState::Closed(reason), None) if !paused => {
                self.link_failed(at, number, Lost::Closed, &reason.to_string());
            }
            (ReadState::More, None) if !paused => self.events.again(*token),
            _ => {}
        }
        if readiness.writable
            && let Some(Some(session)) = self.sessions.get_mut(at)
            && let Some(link) = session.links.get(&number)
            && let Progress::Up { controller, .. } = link.progress
        {
            session.core.written(controller, false);
        }
        self.touch(at);
    }
}

/// The reason for a connection that ended before the controller's HELLO.
fn before_hello(reason: &CloseReason) -> Lost {
    match reason {
        CloseReason::ConnectFailed(_) => Lost::Unreachable,
        reason if reason.is_tls() => Lost::Tls,
        _ => Lost::Handshake,
    }
}

/// The rejection of a connection that was never established.
fn rejection(why: Lost) -> Option<Rejection> {
    match why {
        Lost::Unreachable => Some(Rejection::Unreachable),
        Lost::Tls => Some(Rejection::Tls),
        Lost::Handshake => Some(Rejection::Handshake),
        Lost::Timeout => Some(Rejection::Timeout),
        Lost::Descriptors => Some(Rejection::Descriptors),
        Lost::Closed | Lost::Silent | Lost::Fault => None,
    }
}
