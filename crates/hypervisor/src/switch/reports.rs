//! Reports about the switch: events for the driver, and counters.

use super::event::Event;
use crate::counters::SwitchCounters;
use crate::policy::TenantId;
use crate::time::Instant;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// How many probes may wait for the driver. A host can send received probes back as fast as it likes.
const PROBES: usize = 256;

/// See the module.
pub(crate) struct Reports {
    events: VecDeque<Event>,
    counters: SwitchCounters,
    /// The time of the last call of the driver.
    clock: Instant,
}

impl Reports {
    /// Nothing has happened yet.
    pub(super) fn new(now: Instant) -> Reports {
        Reports { events: VecDeque::new(), counters: SwitchCounters::default(), clock: now }
    }

    /// The driver calls at this time.
    #[inline]
    pub(super) fn set_clock(&mut self, now: Instant) {
        self.clock = now;
    }

    /// When the driver called last.
    pub(super) fn clock(&self) -> Instant {
        self.clock
    }

    // ---- Events

    /// The next event for the driver.
    pub(super) fn next(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Adds an event for the driver.
    pub(crate) fn push(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// These ports are down. An earlier list that the driver has not fetched is dropped.
    pub(super) fn push_refused_ports(&mut self, ports: Vec<(TenantId, u32)>) {
        self.events.retain(|event| !matches!(event, Event::RefusedPorts(_)));
        self.push(Event::RefusedPorts(ports));
    }

    /// A link probe has come in by this port.
    pub(super) fn push_probe(&mut self, port: u32, frame: &[u8]) {
        let is_probe = |event: &&Event| matches!(event, Event::Probe(..));
        if self.events.iter().filter(is_probe).count() < PROBES {
            self.push(Event::Probe(port, frame.to_vec()));
        } else {
            self.counters.unexpected += 1;
        }
    }

    // ---- Counters

    /// All counters except those of sent messages.
    pub(super) fn counters(&self) -> &SwitchCounters {
        &self.counters
    }

    /// See [`counters`](Self::counters).
    #[inline]
    pub(crate) fn counters_mut(&mut self) -> &mut SwitchCounters {
        &mut self.counters
    }
}
