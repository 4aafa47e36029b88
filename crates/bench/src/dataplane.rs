//! Measures the data plane of a real switch. Probes enter the far ends of the switch's ports, and packets are captured
//! there with the kernel's time of arrival.
//!
//! ```text
//!   injector thread ──probe──▶ interface ═▶ switch under test ──PACKET_IN──▶ emulated controller
//!   capturer thread ◀─packet── interface ◀═ switch under test ◀──PACKET_OUT── emulated controller
//! ```
//!
//! Both threads take orders and return parts of results like [`crate::worker`], so a session treats all threads alike.

use crate::clock::Clock;
use crate::error::Error;
use crate::fault::{Fault, Faults};
use crate::kind::PROBED;
use crate::load::Kind;
use crate::plan::{DataPort, Setup};
use crate::probing::AT_ONCE;
use crate::run::{Due, Run, Sides};
use crate::sender::Next;
use crate::tag::Tag;
use crate::worker::{Command, Wiring};
use packet::{Capture, CaptureOptions, Timestamp, TransmitOptions, Transmitter};
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::mpsc::TryRecvError;
use std::time::Duration;

/// The time between two checks for commands and captured packets. The kernel records the arrival time of each packet,
/// so the capturer need not wake for each packet on each port, and does not take CPU time from the system under test.
const IDLE_NS: u64 = 2_000_000;

const INJECTS: Sides = Sides { switches: true, controllers: false, sends: true };
const CAPTURES: Sides = Sides { switches: true, controllers: false, sends: false };

/// Opens a socket on a port's interface, in the namespace of the interface.
fn on_port<T: Send>(
    port: &DataPort,
    open: impl FnOnce(&str) -> packet::Result<T> + Send,
) -> Result<T, Error> {
    let opened = match &port.namespace {
        Some(namespace) => {
            packet::in_namespace(namespace, || open(&port.interface)).and_then(|it| it)
        }
        None => open(&port.interface),
    };
    opened.map_err(|error| Error::Interface(port.interface.clone(), error))
}

/// Sends a probe for each PACKET_IN that is due.
pub(crate) struct Injector {
    setup: Arc<Setup>,
    ports: Vec<Transmitter>,
    wiring: Wiring,
    run: Option<Run>,
    faults: Faults,
    frame: Vec<u8>,
}

impl Injector {
    pub(crate) fn open(
        setup: Arc<Setup>,
        ports: &[DataPort],
        wiring: Wiring,
    ) -> Result<Self, Error> {
        let options = TransmitOptions { batch: 1, ..TransmitOptions::default() };
        let open = |port| on_port(port, |interface| Transmitter::open(interface, &options));
        let ports = ports.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Self { setup, ports, wiring, run: None, faults: Faults::default(), frame: Vec::new() })
    }

    /// Works until the session closes the channel.
    pub(crate) fn work(mut self) {
        // If the kernel refuses the call, the measured lag shows the effect.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        loop {
            match self.wiring.commands.try_recv() {
                Ok(Command::Run { id, load, start, forwarded, .. }) => {
                    self.faults = Faults::default();
                    let run = Run::new(id, &self.setup, load, INJECTS, start, forwarded);
                    self.run = Some(run);
                }
                Ok(Command::Change(load)) => {
                    if let Some(run) = &mut self.run {
                        run.change(&self.setup, load, INJECTS);
                    }
                }
                Ok(Command::Finish) => {
                    let faults = std::mem::take(&mut self.faults);
                    if let Some(run) = self.run.take() {
                        // A session that has ended does not need this part of the result.
                        let _ = self.wiring.parts.send(run.into_part(faults));
                    }
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return,
            }
            let wait = self.send_due();
            if let Some(run) = &self.run {
                run.publish(&self.wiring.progress, self.wiring.clock.now());
            }
            if wait > 0 {
                std::thread::sleep(Duration::from_nanos(wait));
            }
        }
    }

    /// Sends the messages that are due. Returns the time in ns that the thread may sleep.
    fn send_due(&mut self) -> u64 {
        let Some(run) = &mut self.run else { return IDLE_NS };
        let clock = self.wiring.clock;
        for _ in 0..256 {
            let Some(&Reverse((at, due))) = run.due.peek() else { return IDLE_NS };
            let now = clock.now();
            if at > now {
                return run.pacing.sleep_ns(at - now).min(IDLE_NS);
            }
            run.due.pop();
            let place = match due {
                Due::Send(place) => place,
                Due::Probe => {
                    let (setup, faults) = (&self.setup, &mut self.faults);
                    if let Some(at) = probe_rules(run, setup, &mut self.ports, clock, faults) {
                        run.due.push(Reverse((at, Due::Probe)));
                    }
                    continue;
                }
                // Real switches take their own time.
                Due::Service(_) => continue,
            };
            let Some(sender) = run.senders.get_mut(place) else { continue };
            let intended = match sender.next(now) {
                Next::At(at) if at <= now => at,
                Next::Now => now,
                Next::At(at) => {
                    run.due.push(Reverse((at, Due::Send(place))));
                    continue;
                }
                Next::Reply | Next::Over => continue,
            };
            let tenant = sender.tenant;
            let Some(port) = self.ports.get_mut(self.setup.place(tenant)) else { continue };
            if intended >= sender.excused_until && !sender.is_unscheduled() {
                run.part.lag.record(now - intended);
            }
            self.frame.clear();
            let stream = sender.stream;
            let waiting = sender.build(run.id, intended, &mut self.frame);
            run.due.push(Reverse((now, Due::Send(place))));
            run.left(stream, waiting, false);
            run.part.writes += 1;
            if !hand_over(port, &self.frame, clock) {
                self.faults.count(Fault::Interface { port: tenant });
            }
        }
        0
    }
}

/// Sends a packet for each rule that waits for its first packet. Returns the time of the next such call.
fn probe_rules(
    run: &mut Run,
    setup: &Setup,
    ports: &mut [Transmitter],
    clock: Clock,
    faults: &mut Faults,
) -> Option<u64> {
    let now = clock.now();
    let mut next: Option<u64> = None;
    for prober in &mut run.probers {
        prober.forget(&run.forwarded);
        let tenant = prober.tenant;
        let port = ports.get_mut(setup.place(tenant))?;
        prober.probe(now, AT_ONCE, |_, packet| {
            if !hand_over(port, packet, clock) {
                faults.count(Fault::Interface { port: tenant });
            }
            // The capturing thread reports whether the packet came out.
            false
        });
        next = next.into_iter().chain(prober.due(now)).min();
    }
    next
}

/// Sends a frame by the interface. If the queue is full, waits up to a millisecond for space.
fn hand_over(port: &mut Transmitter, frame: &[u8], clock: Clock) -> bool {
    let deadline = clock.now() + 1_000_000;
    let fill = |slot: &mut [u8]| {
        slot.iter_mut().zip(frame).for_each(|(to, from)| *to = *from);
        frame.len()
    };
    loop {
        match port.send(1, |_, slot| fill(slot)) {
            Ok(1) => return true,
            Ok(_) if clock.now() < deadline => {}
            _ => return false,
        }
    }
}

/// Captures the packets that leave the ports of the switch.
pub(crate) struct Capturer {
    setup: Arc<Setup>,
    ports: Vec<Capture>,
    wiring: Wiring,
    run: Option<Run>,
    faults: Faults,
    /// The kernel's time of day minus the session's clock.
    offset: u64,
}

impl Capturer {
    pub(crate) fn open(
        setup: Arc<Setup>,
        ports: &[DataPort],
        wiring: Wiring,
    ) -> Result<Self, Error> {
        let options = CaptureOptions::default();
        let open = |port| on_port(port, |interface| Capture::open(interface, &options));
        let ports: Vec<Capture> = ports.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Self { setup, ports, wiring, run: None, faults: Faults::default(), offset: 0 })
    }

    /// Works until the session closes the channel.
    pub(crate) fn work(mut self) {
        loop {
            match self.wiring.commands.try_recv() {
                Ok(Command::Run { id, load, start, forwarded, .. }) => {
                    self.faults = Faults::default();
                    self.offset = offset(self.wiring.clock);
                    let run = Run::new(id, &self.setup, load, CAPTURES, start, forwarded);
                    self.run = Some(run);
                }
                Ok(Command::Change(load)) => {
                    if let Some(run) = &mut self.run {
                        run.change(&self.setup, load, CAPTURES);
                    }
                }
                Ok(Command::Finish) => {
                    let faults = std::mem::take(&mut self.faults);
                    if let Some(run) = self.run.take() {
                        // A session that has ended does not need this part of the result.
                        let _ = self.wiring.parts.send(run.into_part(faults));
                    }
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return,
            }
            std::thread::sleep(Duration::from_nanos(IDLE_NS));
            for port in 0..self.ports.len() {
                self.drain(port);
            }
            if let Some(run) = &self.run {
                run.publish(&self.wiring.progress, self.wiring.clock.now());
            }
        }
    }

    fn drain(&mut self, index: usize) {
        let Some(port) = self.ports.get_mut(index) else { return };
        loop {
            let block = match port.next_block(Duration::ZERO) {
                Ok(Some(block)) => block,
                Ok(None) => return,
                Err(_) => return self.faults.count(Fault::Interface { port: index }),
            };
            let Some(run) = &mut self.run else { continue };
            for frame in block.frames() {
                // Other packets on a real interface do not belong to the measurement.
                let Some(tag) = Tag::read_end(frame.data).filter(|tag| tag.run == run.id) else {
                    continue;
                };
                let stream = usize::from(tag.stream);
                let Some(tenant) = run.tenant_of(stream) else { continue };
                let probed = run.is_probed(stream);
                let place = if probed { Setup::other_place } else { Setup::place };
                if place(&self.setup, tenant) != index {
                    self.faults.count(Fault::Misdelivered { of: tenant, port: index });
                    continue;
                }
                let arrival = frame.timestamp.0.saturating_sub(self.offset);
                let kind = if probed { PROBED } else { Kind::PacketOut };
                // Only the first packet of a rule counts.
                if !probed || run.forwarded.mark(stream, tag.sequence) {
                    run.arrive(stream, kind, tag.sequence, tag.intended, arrival);
                }
            }
        }
    }
}

/// The kernel's time of day minus the session's clock, from the pair of readings that took the least time.
fn offset(clock: Clock) -> u64 {
    let pair = || {
        let before = clock.now();
        let day = Timestamp::now().0;
        let after = clock.now();
        (after - before, day.saturating_sub(u64::midpoint(before, after)))
    };
    (0..16).map(|_| pair()).min().map_or(0, |(_, offset)| offset)
}
