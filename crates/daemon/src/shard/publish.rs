//! Copies the core's counters to the metrics, which other threads read.

use super::Shard;
use super::connected::{Session, tenant_metrics};
use super::table::Timer;
use crate::lock::lock;
use crate::metrics::{Direction, DropReason, Grant, SheetUse};
use hypervisor::Policy;
use std::time::Duration;

/// The largest age of the figures at `/metrics`.
const INTERVAL: Duration = Duration::from_millis(250);
/// The number of publications between two requests for port counters: every 10 s.
const BETWEEN_PORTS: u32 = 40;

impl Shard {
    pub(super) fn schedule_publishing(&mut self) {
        self.events.set_timer(Timer::Publish.key(), self.events.now() + INTERVAL);
    }

    pub(super) fn publish(&mut self) {
        for session in self.sessions.iter_mut().flatten() {
            publish_session(session, &self.snapshot.policy);
        }
        self.ask_ports();
        self.publish_descriptors();
        self.schedule_publishing();
    }
}

/// Copies the counters of one session.
pub(super) fn publish_session(session: &mut Session, policy: &Policy) {
    let counters = session.core.counters();
    session.metrics.set_known_as(session.core.known_as());
    session.metrics.received.publish(&counters.from_switch);
    session.metrics.sent.publish(&counters.to_switch);
    session.metrics.own_messages.publish(counters.own_messages);
    session.metrics.packet_in_unclaimed.publish(counters.unclaimed);
    session.metrics.unexpected.publish(counters.unexpected);
    session.metrics.unanswered.publish(counters.unanswered);
    session.metrics.own_refused.publish(counters.own_refused);
    session.metrics.others_rules.set(counters.others_entries);
    let (limit, in_flight) = session.core.window();
    session.metrics.window.set(u64::from(limit));
    session.metrics.outstanding.set(u64::from(in_flight));
    let served = || session.core.tenants().filter(|state| state.served);
    let weights: u64 = served().map(|state| u64::from(state.weight)).sum();
    // A hash of the inputs of all grants.
    let made_of = served().fold(0u64, |sum, state| {
        let limits = u64::from(state.weight) << 32 | u64::from(state.most_rules);
        (sum ^ u64::from(state.id.0)).wrapping_mul(0x0100_0000_01b3) ^ limits
    });
    let stand = (session.core.space_changes(), made_of);
    let is_granted_anew = std::mem::replace(&mut session.granted, stand) != stand;
    if is_granted_anew {
        let sheet = SheetUse {
            standing: session.core.sheet().clone(),
            description: session.core.description().cloned(),
        };
        *lock(&session.metrics.sheet) = sheet;
    }
    session.until_ports = session.until_ports.checked_sub(1).unwrap_or(BETWEEN_PORTS);
    // The answer to the last request has arrived since.
    let copies_ports = session.until_ports == BETWEEN_PORTS;
    if copies_ports {
        let loads = session.core.port_loads().collect();
        *lock(&session.metrics.port_loads) = loads;
    }
    for state in session.core.tenants() {
        let counters = state.counters;
        let metrics = tenant_metrics(&mut session.tenants, &session.metrics, policy, state.id);
        let publish = |direction, by_type: &[u64]| {
            metrics.messages(direction).publish(by_type);
        };
        publish(Direction::FromSwitch, &counters.from_switch);
        publish(Direction::ToController, &counters.to_controller);
        publish(Direction::FromController, &counters.from_controller);
        publish(Direction::ToSwitch, &counters.to_switch);
        metrics.dropped(DropReason::TenantAbsent).publish(counters.absent);
        let full = counters.overflowed;
        metrics.dropped(DropReason::QueueFull).publish(full);
        metrics.dropped(DropReason::RateLimited).publish(counters.limited);
        metrics.dropped(DropReason::PortConfig).publish(counters.unwanted);
        for (code, total) in &counters.refusals {
            metrics.publish_refused(code.type_, code.code, *total);
        }
        metrics.queue_southbound.set(state.waiting_south as u64);
        metrics.queue_northbound.set(state.waiting_north as u64);
        metrics.controllers.set(state.controllers as u64);
        metrics.flows.set(state.flows as u64);
        metrics.entries.set(state.entries as u64);
        metrics.groups.set(state.groups as u64);
        metrics.meters.set(state.meters as u64);
        metrics.held.set(state.held as u64);
        if is_granted_anew {
            let grant = Grant {
                served: state.served,
                weight: state.weight,
                weights,
                most_rules: state.most_rules,
                shares: session.core.shares_of(state.id),
                numbers: session.core.number_shares_of(state.id),
                rates: session.core.rates_of(state.id),
            };
            *lock(&metrics.grant) = grant;
        }
        if copies_ports {
            let ports = session.core.traffic_of(state.id);
            *lock(&metrics.ports) = ports;
        }
        metrics.examined.publish(counters.examined);
        metrics.added_southbound.publish(&counters.waited.buckets, counters.waited.sum);
    }
}

impl Shard {
    /// Asks switches for their port counters, each at its time.
    fn ask_ports(&mut self) {
        let now = self.now();
        for at in 0..self.sessions.len() {
            if let Some(session) = self.sessions[at].as_mut().filter(|it| it.until_ports == 0) {
                session.core.ask_traffic(now);
                self.touch(at);
            }
        }
    }
}
