//! A linked network of emulated switches that dial the controller under test, with a log of all
//! messages between switches and controller.
//!
//! ```text
//!   near traffic port ─▶ leaf ─ spine ─ leaf ─▶ far traffic port     (emulate::Network, one thread)
//!                          ╲      │      ╱
//!                           controller under test                    (TCP)
//! ```
//!
//! Links have no delay, so that only the controller's time is measured. A packet that the
//! controller sends out of one port arrives at the other end of the link, and becomes a PACKET_IN
//! there unless a flow entry matches the packet. Discovery by LLDP needs nothing else.

use super::event::{Event, Log, Overflown, Reader, What, delivered};
use crate::controller::plan::ControllerPlan;
use crate::error::Error;
use crate::worker::identity;
use channel::Address;
use emulate::{
    HostIndex, Layout, Network, Point, Runner, Running, SessionId, SwitchIndex, port_config,
};
use openflow::VersionSet;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The number of slices of a wait for silence.
const SLICES: u32 = 10;

/// The network, connected.
pub(crate) struct Fabric {
    running: Arc<Running>,
    log: Arc<Log>,
    layout: Layout,
    controllers: usize,
    handshake: Duration,
}

/// A traffic port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Near,
    Far,
}

impl End {
    fn host(self) -> HostIndex {
        match self {
            Self::Near => Layout::NEAR,
            Self::Far => Layout::FAR,
        }
    }

    /// Whether a delivery at `place` is at this end.
    pub(crate) fn is(self, place: usize) -> bool {
        self.host().0 == place
    }
}

impl Fabric {
    /// Connects a network of this shape to all these controllers, and waits until each controller
    /// has requested the features of each switch.
    pub(crate) fn raise(
        plan: &ControllerPlan,
        layout: Layout,
        controllers: &[SocketAddr],
    ) -> Result<Self, Error> {
        let versions = VersionSet::only(plan.version.openflow());
        let network = layout.build(|config| {
            config.versions = versions;
            // A controller gets whole packets, as from cbench, because buffers would be a second
            // limit.
            config.n_buffers = 0;
            config.n_tables = 4;
        });
        let log = Arc::new(Log::default());
        let mut reader = Reader::new(plan.version);
        let written = Arc::clone(&log);
        let runner = Runner::new(network).tap(move |at, seen| {
            if let Some(event) = reader.read(at, seen) {
                written.push(event);
            }
        });
        let tls = identity(plan.tls.as_ref())?;
        let scheme = if tls.is_some() { Address::ssl } else { Address::tcp };
        let runner = tls.into_iter().fold(runner, Runner::tls);
        let dial = |runner: Runner, address: &SocketAddr| runner.dial_all(scheme(*address));
        let runner = controllers.iter().fold(runner, dial);
        let running = Arc::new(runner.start().map_err(|error| emulated(&error))?);
        let handshake = Duration::from_millis(plan.handshake_ms);
        let fabric = Self { running, log, layout, controllers: controllers.len(), handshake };
        fabric.wait_introduced()?;
        Ok(fabric)
    }

    /// Waits until every switch has sent its features to every controller.
    fn wait_introduced(&self) -> Result<(), Error> {
        let wanted = self.layout.switches() * self.controllers;
        let mut introduced = BTreeSet::new();
        let mut closed = 0;
        let all = self.watch(0, self.handshake, |event| {
            let who = (event.place, event.controller);
            match event.what {
                What::Introduced => {
                    introduced.insert(who);
                }
                What::Closed => {
                    introduced.remove(&who);
                    closed += 1;
                }
                _ => {}
            }
            if introduced.len() == wanted {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        if all.is_some() {
            return Ok(());
        }
        let seen = match closed {
            0 => "the others were never asked for their features".to_owned(),
            _ => format!("connections failed or were closed {closed} times"),
        };
        Err(Error::Handshake { ready: introduced.len(), wanted, seen: vec![seen] })
    }

    /// The network's time, in ns.
    pub(crate) fn now(&self) -> u64 {
        self.running.now()
    }

    /// A place in the log, from which later events can be read.
    pub(crate) fn mark(&self) -> usize {
        self.log.len()
    }

    /// The number of connections that have ended since the start of the network.
    pub(crate) fn closed(&self) -> usize {
        self.log.closed()
    }

    /// Forgets all events so far.
    pub(crate) fn forget(&self) {
        self.log.clear();
    }

    /// The events from `from` on that have occurred already.
    pub(crate) fn events(&self, from: usize) -> Result<Vec<Event>, Error> {
        self.log.since(from, Instant::now()).map_err(|Overflown| multiplying(self.layout))
    }

    /// Passes each event from `from` on to `look` when the event occurs, until `look` breaks or the
    /// time is over.
    pub(crate) fn watch<T>(
        &self,
        mut from: usize,
        limit: Duration,
        mut look: impl FnMut(&Event) -> ControlFlow<T>,
    ) -> Result<Option<T>, Error> {
        let deadline = Instant::now() + limit;
        loop {
            let events = self.log.since(from, deadline);
            let events = events.map_err(|Overflown| multiplying(self.layout))?;
            if events.is_empty() {
                return Ok(None);
            }
            from += events.len();
            for event in &events {
                if let ControlFlow::Break(found) = look(event) {
                    return Ok(Some(found));
                }
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
        }
    }

    /// Waits until no event that `matters` has occurred for `quiet`, at most for `limit`. The wait has slices, and all
    /// slices have to be quiet. If this process gets no CPU for a while, that time is one slice at most.
    pub(crate) fn settle(
        &self,
        quiet: Duration,
        limit: Duration,
        matters: impl Fn(&What) -> bool,
    ) -> Result<(), Error> {
        let deadline = Instant::now() + limit;
        let (mut from, mut silent) = (self.mark(), 0);
        while silent < SLICES && Instant::now() < deadline {
            let came = self.watch(from, quiet / SLICES, |event| match matters(&event.what) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })?;
            (from, silent) = match came {
                Some(()) => (self.mark(), 0),
                None => (from, silent + 1),
            };
        }
        Ok(())
    }

    /// Sends packets into a traffic port, one after the other. Returns the time, and the path of
    /// the last packet.
    pub(crate) fn inject(
        &self,
        end: End,
        packets: Vec<Vec<u8>>,
    ) -> Result<(u64, Vec<Point>), Error> {
        let log = Arc::clone(&self.log);
        self.call(move |network, now| {
            let mut hops = Vec::new();
            for packet in &packets {
                let journey = network.inject(now, end.host(), packet);
                for (host, frame) in &journey.delivered {
                    let what = delivered(frame);
                    log.push(Event { at: now, place: host.0, controller: 0, what });
                }
                hops = journey.hops;
            }
            (now, hops)
        })
    }

    /// Calls a function with the network, between two messages.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Network, u64) -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.running.call(work).map_err(|error| emulated(&error))
    }

    /// The ports at which discovery messages have to arrive: each link, in both directions.
    pub(crate) fn link_ends(&self) -> Result<BTreeSet<Point>, Error> {
        self.call(|network, _| network.links().map(|(_, end)| end).collect())
    }

    /// The number of flow entries of all switches.
    pub(crate) fn flow_count(&self) -> Result<usize, Error> {
        self.call(|network, _| network.switches().map(|(_, switch)| switch.flow_count()).sum())
    }

    /// Sets every port to muted or not muted. A muted port does not send packets without an entry to the controller.
    pub(crate) fn set_muted(&self, muted: bool) -> Result<(), Error> {
        let bits = if muted { port_config::NO_PACKET_IN } else { 0 };
        self.call(move |network, _| {
            for index in network.switch_indices() {
                let Some(switch) = network.switch_mut(index) else { continue };
                let ports: Vec<u32> = switch.ports().map(|port| port.made.number).collect();
                ports.into_iter().for_each(|port| switch.set_port_config(port, bits));
            }
        })
    }

    /// Takes a device down with all its links, or up again. Its neighbours notify the controller.
    pub(crate) fn set_device(&self, switch: SwitchIndex, up: bool) -> Result<(), Error> {
        self.running.set_powered(switch, up).map_err(|error| emulated(&error))?;
        self.call(move |network, _| {
            let ends: Vec<Point> =
                network.links().map(|(from, _)| from).filter(|end| end.switch == switch).collect();
            ends.into_iter().for_each(|end| network.set_link_up(end, up));
        })
    }

    /// Access to the switches' main sessions, for further messages to the controller.
    pub(crate) fn main_sessions(&self) -> MainSessions {
        MainSessions { running: Arc::clone(&self.running) }
    }
}

/// Adds bytes to the data that switches send.
pub(crate) struct MainSessions {
    running: Arc<Running>,
}

impl MainSessions {
    /// Appends bytes to a switch's output; a switch that is not connected sends nothing.
    pub(crate) fn say(&self, messages: Vec<(usize, Vec<u8>)>) -> Result<(), Error> {
        let say = move |network: &mut Network, _: u64| {
            for (switch, bytes) in messages {
                let Some(switch) = network.switch_mut(SwitchIndex(switch)) else { continue };
                if switch.version().is_some()
                    && let Some(output) = switch.output(SessionId::MAIN)
                {
                    output.extend_from_slice(&bytes);
                }
            }
        };
        self.running.call(say).map_err(|error| emulated(&error))
    }
}

fn emulated(error: &emulate::Error) -> Error {
    Error::System(format!("emulated network: {error}"))
}

fn multiplying(layout: Layout) -> Error {
    let why = if layout.has_loops() {
        "the topology has loops, and the controller floods into them"
    } else {
        "the controller sends without end"
    };
    Error::System(format!("more messages than a trial can hold: {why}"))
}
