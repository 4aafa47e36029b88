//! The events that the benchmarks see at the southbound interface: one small [`Event`] for each
//! message, and for each packet that reaches a host, in a [`Log`]. One thread writes the log, and
//! another thread reads the log.

use super::traffic;
use crate::plan::Version;
use crate::wire::{be16, kind, packet_in_data, packet_out_data};
use emulate::{Seen, SessionId};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An event at the time `at`, in ns of the emulated network's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) at: u64,
    /// The switch, or the host for [`What::Delivered`], counted from 0.
    pub(crate) place: usize,
    /// The controller of the event, in the order in which switches dial the controllers.
    pub(crate) controller: usize,
    pub(crate) what: What,
}

/// The kind of the event, with the fields that are measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum What {
    /// A connection is being made.
    Opened,
    /// A connection has ended.
    Closed,
    /// The switch sent its features: the handshake is complete.
    Introduced,
    /// The switch sent a packet to the controller.
    PacketIn { in_port: u32, tag: Option<u64>, discovery: bool },
    /// The switch reported a port's change.
    PortStatus,
    /// The controller sent a PACKET_OUT.
    PacketOut { discovery: bool },
    /// The controller added or changed a flow entry.
    Provisioned,
    /// A packet reached a host.
    Delivered { tag: Option<u64> },
    /// Another message of the controller.
    OtherReceived,
}

/// The most events of one trial. If there are more events, packets multiply, and the trial is no
/// measurement.
const MOST_EVENTS: usize = 2_000_000;

/// The events so far.
#[derive(Debug, Default)]
pub(crate) struct Log {
    events: Mutex<Events>,
    grown: Condvar,
    /// Connections that ended, over all trials.
    closed: AtomicUsize,
}

#[derive(Debug, Default)]
struct Events {
    all: Vec<Event>,
    overflown: bool,
}

/// The error that there were more events than a trial can have.
#[derive(Debug)]
pub(crate) struct Overflown;

impl Log {
    fn lock(&self) -> MutexGuard<'_, Events> {
        // A thread that panicked with the lock has written complete events only.
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, event: Event) {
        if event.what == What::Closed {
            self.closed.fetch_add(1, Ordering::Relaxed);
        }
        let mut events = self.lock();
        if events.all.len() < MOST_EVENTS {
            events.all.push(event);
        } else {
            events.overflown = true;
        }
        drop(events);
        self.grown.notify_one();
    }

    /// The number of events.
    pub(crate) fn len(&self) -> usize {
        self.lock().all.len()
    }

    /// The events from number `from` on; waits for an event until `deadline`.
    pub(crate) fn since(&self, from: usize, deadline: Instant) -> Result<Vec<Event>, Overflown> {
        let mut events = self.lock();
        loop {
            if events.overflown {
                return Err(Overflown);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if events.all.len() > from || left == Duration::ZERO {
                return Ok(events.all.get(from..).unwrap_or_default().to_vec());
            }
            let waited = self.grown.wait_timeout(events, left);
            events = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(guard, _)| guard);
        }
    }

    /// The number of connections that have ended since the beginning, also before the last
    /// [`Log::clear`].
    pub(crate) fn closed(&self) -> usize {
        self.closed.load(Ordering::Relaxed)
    }

    /// Deletes all events for the next trial.
    pub(crate) fn clear(&self) {
        *self.lock() = Events::default();
    }
}

/// Makes events from the messages at the network's tap.
#[derive(Debug)]
pub(crate) struct Reader {
    version: Version,
    /// The controller of each session of each switch.
    sessions: Vec<(usize, SessionId, usize)>,
}

impl Reader {
    pub(crate) fn new(version: Version) -> Self {
        Self { version, sessions: Vec::new() }
    }

    /// Returns the event of a message, if the event is relevant.
    pub(crate) fn read(&mut self, at: u64, seen: Seen<'_>) -> Option<Event> {
        let event = |place, controller, what| Some(Event { at, place, controller, what });
        match seen {
            Seen::Opened { switch, session, dialled } => {
                let controller = dialled.unwrap_or(0);
                self.sessions.push((switch.0, session, controller));
                event(switch.0, controller, What::Opened)
            }
            Seen::Closed { switch, session } => {
                let controller = self.controller(switch.0, session);
                self.sessions.retain(|(place, id, _)| (*place, *id) != (switch.0, session));
                event(switch.0, controller, What::Closed)
            }
            Seen::Received { switch, session, frame } => {
                event(switch.0, self.controller(switch.0, session), self.received(frame))
            }
            Seen::Sent { switch, session, frame } => {
                event(switch.0, self.controller(switch.0, session), self.sent(frame)?)
            }
            Seen::Delivered { host, frame } => event(host.0, 0, delivered(frame)),
        }
    }

    fn controller(&self, place: usize, session: SessionId) -> usize {
        let found = self.sessions.iter().find(|(at, id, _)| (*at, *id) == (place, session));
        found.map_or(0, |(_, _, controller)| *controller)
    }

    fn received(&self, frame: &[u8]) -> What {
        match frame.get(1) {
            Some(&kind::PACKET_OUT) => {
                let packet = packet_out_data(self.version, frame).unwrap_or_default();
                What::PacketOut { discovery: traffic::is_discovery(packet) }
            }
            Some(&kind::FLOW_MOD) if provisions(self.version, frame) => What::Provisioned,
            _ => What::OtherReceived,
        }
    }

    fn sent(&self, frame: &[u8]) -> Option<What> {
        match frame.get(1) {
            Some(&kind::FEATURES_REPLY) => Some(What::Introduced),
            Some(&kind::PORT_STATUS) => Some(What::PortStatus),
            Some(&kind::PACKET_IN) => {
                let packet = packet_in_data(self.version, frame).unwrap_or_default();
                let in_port = in_port(self.version, frame).unwrap_or(0);
                let discovery = traffic::is_discovery(packet);
                Some(What::PacketIn { in_port, tag: traffic::tag(packet), discovery })
            }
            _ => None,
        }
    }
}

/// A packet at a host.
pub(crate) fn delivered(frame: &[u8]) -> What {
    What::Delivered { tag: traffic::tag(frame) }
}

/// Whether a FLOW_MOD adds or modifies entries, and does not delete entries.
fn provisions(version: Version, frame: &[u8]) -> bool {
    let command = match version {
        Version::V1_0 => be16(frame, 56),
        Version::V1_3 => frame.get(25).copied().map(u16::from),
    };
    command.is_some_and(|command| command < 3)
}

/// The port of a PACKET_IN. In 1.3 the port is the first field of the match: section 7.4.1
/// recommends this place, and the emulated switch uses this place.
fn in_port(version: Version, frame: &[u8]) -> Option<u32> {
    match version {
        Version::V1_0 => be16(frame, 14).map(u32::from),
        Version::V1_3 => match openflow::v13::Message::parse(frame) {
            Ok((_, openflow::v13::Message::PacketIn(body))) => body.match_.in_port().map(|p| p.0),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emulate::{HostIndex, SwitchIndex};

    #[test]
    fn messages_and_delivered_packets_of_a_switch_are_read_as_events() {
        let session = SessionId::MAIN;
        let switch = SwitchIndex(3);
        let lldp = [&[0; 12][..], &[0x88, 0xcc, 0, 0]].concat();
        let probe = traffic::Probe { near: 1, far: 2 }.there(7, 128);
        for version in [Version::V1_0, Version::V1_3] {
            let frame = |message: u8, body: &[u8]| {
                let mut out = Vec::new();
                crate::wire::message(&mut out, version, message, 1, body);
                out
            };
            let (mut flow_mod, at) = match version {
                Version::V1_0 => (frame(14, &[0; 64]), 57),
                Version::V1_3 => (frame(14, &[0; 48]), 25),
            };
            let mut reader = Reader::new(version);
            let mut read = |seen: Seen<'_>| reader.read(9, seen).map(|event| event.what);
            for (command, expected) in [(0, What::Provisioned), (3, What::OtherReceived)] {
                flow_mod[at] = command;
                let received = Seen::Received { switch, session, frame: &flow_mod };
                assert_eq!(read(received), Some(expected), "command {command}");
            }
            let packet_in = packet_in(version, &lldp);
            let expected = What::PacketIn { in_port: 5, tag: None, discovery: true };
            assert_eq!(read(Seen::Sent { switch, session, frame: &packet_in }), Some(expected));
            let status = frame(12, &[0; 72]);
            assert_eq!(
                read(Seen::Sent { switch, session, frame: &status }),
                Some(What::PortStatus)
            );
            let host = HostIndex(1);
            let delivered = read(Seen::Delivered { host, frame: &probe });
            assert_eq!(delivered, Some(What::Delivered { tag: Some(7) }));
        }
    }

    fn packet_in(version: Version, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        match version {
            Version::V1_0 => {
                let in_port = openflow::v10::PortNo(5);
                let reason = openflow::v10::PacketInReason::NO_MATCH;
                let (buffer_id, total_len) = (openflow::NO_BUFFER, data.len() as u16);
                let body = openflow::v10::PacketIn { buffer_id, total_len, in_port, reason, data };
                openflow::v10::Message::PacketIn(body).write(1, &mut out).unwrap();
            }
            Version::V1_3 => {
                let mut match_ = openflow::v13::MatchBuf::new();
                match_.exact(openflow::v13::OxmField::IN_PORT, 5);
                let body = openflow::v13::PacketIn {
                    buffer_id: openflow::NO_BUFFER,
                    total_len: data.len() as u16,
                    reason: openflow::v13::PacketInReason::NO_MATCH,
                    table_id: 0,
                    cookie: 0,
                    match_: match_.as_match(),
                    data,
                };
                openflow::v13::Message::PacketIn(body).write(1, &mut out).unwrap();
            }
        }
        out
    }

    #[test]
    fn the_event_log_returns_events_after_an_index_and_fails_when_full() {
        let log = Log::default();
        let event = Event { at: 1, place: 0, controller: 0, what: What::PortStatus };
        let now = Instant::now();
        assert_eq!(log.since(0, now).unwrap(), []);
        log.push(event);
        assert_eq!((log.since(0, now).unwrap(), log.since(1, now).unwrap()), (vec![event], vec![]));
        for _ in 0..MOST_EVENTS {
            log.push(event);
        }
        assert!(log.since(0, now).is_err());
        log.clear();
        assert_eq!(log.len(), 0);
    }
}
