//! An emulated switch in virtual time: every experiment runs without root, sockets or waiting, and
//! has to find planted faults.
//!
//! ```text
//!   send ──control latency──▶ SlowSwitch ──control latency──▶ Message
//!   generator ──probe──▶ tables, actions ──forwarding, rewriting, queue──▶ Probes
//! ```

use std::collections::{BTreeMap, HashMap};

use emulate::{Config, ServiceTime, SlowSwitch, Switch, Transmit};
use openflow::{Hello, Version, VersionSet};
use packet::{Observation, ProbeTemplate, Probes, Timestamp};

use super::interface::{Arrival, Happening, Testbed};
use crate::error::{Error, Result};
use crate::module::{Bench, Channel, Gauge, Generated, Traffic};
use crate::snmp::{Oid, Value};

/// The properties of the emulated switch's hardware around the switch model.
#[derive(Clone, Debug, PartialEq)]
pub struct Hardware {
    /// The one-way latency of the control channel, ns.
    pub control_latency: u64,
    /// The latency from port to port, ns.
    pub forwarding: u64,
    /// The additional latency of a packet that an action changes, ns.
    pub rewriting: u64,
    /// The most PACKET_INs per second, and the most PACKET_INs that may wait; further PACKET_INs
    /// are lost.
    pub packet_ins: Option<(f64, u32)>,
    /// The bits per second of queues; other queues are as fast as the port.
    pub queues: Vec<(u32, u64)>,
    /// The time from a link's change until the switch detects the change, ns.
    pub link_detection: u64,
    /// The drift of the capture's clock against the generator's clock, parts per million.
    pub clock_drift_ppm: f64,
    /// The CPU time of the switch for messages.
    pub service: ServiceTime,
    /// The constant objects of the switch's SNMP agent.
    pub objects: Vec<(Oid, Value)>,
}

impl Default for Hardware {
    /// 50 µs to the controller, 5 µs from port to port, no limits.
    fn default() -> Self {
        Hardware {
            control_latency: 50_000,
            forwarding: 5_000,
            rewriting: 0,
            packet_ins: None,
            queues: Vec::new(),
            link_detection: 1_000_000,
            clock_drift_ppm: 0.0,
            service: ServiceTime::default(),
            objects: Vec::new(),
        }
    }
}

/// The most bytes that wait at a slow queue before the queue drops.
const QUEUE_BYTES: u64 = 64 << 10;
/// The delay of a user-space timestamp after the kernel's timestamp in virtual time, ns.
const SEEN_AFTER: u64 = 20_000;

/// An emulated switch and its clock.
pub struct Emulated {
    bench: Bench,
    switch: SlowSwitch,
    hardware: Hardware,
    now: u64,
    /// The future steps: by time, then in the order of their causes.
    ahead: BTreeMap<(u64, u64), Step>,
    causes: u64,
    generators: BTreeMap<u32, Generator>,
    /// The times until which the path of PACKET_INs and each slow queue are busy.
    packet_ins_free: f64,
    queues_free: HashMap<(u32, u32), u64>,
    /// Whether the switch closed the connection.
    is_cut: bool,
}

enum Step {
    /// Bytes reach the switch.
    ToSwitch(Vec<u8>),
    /// A link changes.
    Link { port: u32, up: bool },
    /// The module gets an event.
    Event(Happening),
}

struct Generator {
    traffic: Traffic,
    templates: Vec<ProbeTemplate>,
    start: u64,
    sent: u32,
}

impl Generator {
    fn interval(&self) -> f64 {
        1e9 / self.traffic.rate
    }

    fn next(&self) -> u64 {
        self.start + (f64::from(self.sent) * self.interval()) as u64
    }
}

impl Emulated {
    /// A switch with the ports 1 to n as data channels; the version `version` is already
    /// negotiated.
    ///
    /// # Errors
    /// The switch does not support that version, or a planted fault ends the handshake.
    pub fn new(mut config: Config, hardware: Hardware, version: Version) -> Result<Emulated> {
        config.versions = VersionSet::only(version);
        let channels =
            config.ports.iter().map(|port| Channel { name: port.name.clone(), port: port.number });
        let bench = Bench {
            name: "emulated".to_owned(),
            version,
            dpid: config.dpid,
            channels: channels.collect(),
            interfaces: Vec::new(),
            has_switch: true,
            tag: 0x5745_4952_0000_0001,
            day_ahead: 0,
        };
        let mut switch = Switch::new(config);
        let (mut out, mut hello) = (Vec::new(), Vec::new());
        switch.connect(&mut out);
        // A message of eight or sixteen bytes is never too long.
        let _ = Hello::write_message(VersionSet::only(version), 1, &mut hello);
        let outcome = switch.handle_message(0, &hello, &mut out);
        if outcome.disconnect || switch.version() != Some(version) {
            return Err(Error::Disconnected(channel::CloseReason::PeerClosed));
        }
        let service = hardware.service.clone();
        Ok(Emulated {
            bench,
            switch: SlowSwitch::new(switch, service),
            hardware,
            now: 0,
            ahead: BTreeMap::new(),
            causes: 0,
            generators: BTreeMap::new(),
            packet_ins_free: 0.0,
            queues_free: HashMap::new(),
            is_cut: false,
        })
    }

    /// The emulated switch, for inspection.
    pub fn switch(&self) -> &Switch {
        self.switch.switch()
    }

    fn plan(&mut self, at: u64, step: Step) {
        self.causes += 1;
        self.ahead.insert((at, self.causes), step);
    }

    /// Lets the switch work until the present time, and plans the arrival of its messages.
    fn advance(&mut self) {
        let mut out = Vec::new();
        let outcome = self.switch.advance(self.now, &mut out);
        self.is_cut |= outcome.disconnect;
        for transmit in outcome.sent {
            self.forward(&transmit, None);
        }
        self.deliver(&out);
    }

    /// Plans the arrival of the switch's bytes at the controller.
    fn deliver(&mut self, out: &[u8]) {
        let mut rest = out;
        while let Ok(Some(length)) = openflow::frame::next(rest) {
            let (frame, others) = rest.split_at(length);
            rest = others;
            let mut at = self.now + self.hardware.control_latency;
            if openflow::frame::type_(frame) == Some(openflow::v10::MessageType::PACKET_IN.0)
                && let Some((per_second, waiting)) = self.hardware.packet_ins
            {
                let (now, interval) = (self.now as f64, 1e9 / per_second);
                let free = self.packet_ins_free.max(now);
                if (free - now) / interval > f64::from(waiting) {
                    continue;
                }
                self.packet_ins_free = free + interval;
                at += (self.packet_ins_free - now) as u64;
            }
            self.plan(at, Step::Event(Happening::Message(frame.to_vec())));
        }
        if !rest.is_empty() {
            // The rest is a partial message, or bytes that are not OpenFlow: the reader has to
            // detect both.
            self.plan(
                self.now + self.hardware.control_latency,
                Step::Event(Happening::Message(rest.to_vec())),
            );
        }
    }

    /// Handles a frame that leaves a port; `original` is the received frame, if the frame arrived
    /// at a port.
    fn forward(&mut self, transmit: &Transmit, original: Option<&[u8]>) {
        let Some(channel) = self.bench.channels.iter().position(|it| it.port == transmit.port)
        else {
            return;
        };
        let mut at = self.now + self.hardware.forwarding;
        if original.is_some_and(|original| original != transmit.frame) {
            at += self.hardware.rewriting;
        }
        let rate = self.hardware.queues.iter().find(|(queue, _)| *queue == transmit.queue);
        if let Some((queue, bits)) = rate {
            let free = self.queues_free.entry((transmit.port, *queue)).or_default();
            let start = at.max(*free);
            if (start - at) as f64 * *bits as f64 / 8e9 > QUEUE_BYTES as f64 {
                return;
            }
            *free = start + (transmit.frame.len() as f64 * 8e9 / *bits as f64) as u64;
            at = *free;
        }
        let drift = (at as f64 * self.hardware.clock_drift_ppm / 1e6) as i64;
        let stamp = Timestamp(at.saturating_add_signed(drift));
        if let Some(probe) = Observation::parse(&transmit.frame, self.bench.tag, stamp) {
            let probes = vec![(probe, at + SEEN_AFTER)];
            self.plan(at, Step::Event(Happening::Probes { channel, probes }));
        }
    }

    /// Sends one probe of the due generator.
    fn inject(&mut self, id: u32) {
        let Some(generator) = self.generators.get_mut(&id) else { return };
        let sequence = generator.traffic.first.wrapping_add(generator.sent);
        let frame = generator.templates.stamp(sequence, Timestamp(self.now)).to_vec();
        generator.sent += 1;
        let is_done = generator.sent >= generator.traffic.count;
        let port = self.bench.channels.get(generator.traffic.channel).map_or(0, |it| it.port);
        let mut out = Vec::new();
        let outcome = self.switch.switch_mut().receive_packet(self.now, port, &frame, &mut out);
        for transmit in outcome.sent {
            self.forward(&transmit, Some(&frame));
        }
        self.deliver(&out);
        if is_done {
            self.stop(id);
        }
    }

    fn take(&mut self, step: Step) -> Option<Arrival> {
        match step {
            Step::Event(what) => return Some(Arrival { at: self.now, what }),
            Step::ToSwitch(bytes) => {
                let mut rest = bytes.as_slice();
                while let Ok(Some(length)) = openflow::frame::next(rest) {
                    let (frame, others) = rest.split_at(length);
                    self.switch.offer(self.now, frame);
                    rest = others;
                }
                self.advance();
            }
            Step::Link { port, up } => {
                let mut out = Vec::new();
                self.switch.switch_mut().set_port_up(port, up, &mut out);
                self.deliver(&out);
            }
        }
        None
    }
}

impl Testbed for Emulated {
    fn bench(&self) -> &Bench {
        &self.bench
    }

    fn now(&self) -> u64 {
        self.now
    }

    fn send(&mut self, bytes: Vec<u8>, mark: Option<u32>) -> Result<()> {
        self.plan(self.now + self.hardware.control_latency, Step::ToSwitch(bytes));
        if let Some(mark) = mark {
            self.plan(self.now, Step::Event(Happening::Sent(mark)));
        }
        Ok(())
    }

    fn generate(&mut self, generator: u32, traffic: &Traffic) -> Result<()> {
        let template = |headers| ProbeTemplate::new(headers, self.bench.tag, traffic.length);
        let templates = traffic.headers.iter().map(template).collect::<packet::Result<_>>();
        let templates = templates.map_err(|source| {
            let name = self.bench.channels.get(traffic.channel).map(|it| it.name.clone());
            Error::Data { interface: name.unwrap_or_default(), source }
        })?;
        let start = self.now;
        let traffic = traffic.clone();
        self.generators.insert(generator, Generator { traffic, templates, start, sent: 0 });
        Ok(())
    }

    fn stop(&mut self, generator: u32) {
        let Some(it) = self.generators.remove(&generator) else { return };
        let report = Generated {
            sent: it.sent,
            start: it.start,
            interval: it.interval(),
            elapsed: self.now - it.start,
            mean_lateness: 0,
            worst_lateness: 0,
        };
        self.plan(self.now, Step::Event(Happening::Generated { generator, report }));
    }

    fn set_link(&mut self, channel: usize, up: bool) -> Result<()> {
        let port = self.bench.channels.get(channel).map_or(0, |channel| channel.port);
        self.plan(self.now + self.hardware.link_detection, Step::Link { port, up });
        Ok(())
    }

    fn read(&mut self, gauge: Gauge) {
        let value = (gauge == Gauge::Cpu).then(|| self.switch.busy(self.now) as f64);
        self.plan(self.now, Step::Event(Happening::Reading { gauge, value, remark: None }));
    }

    fn ask(&mut self, oid: Oid) {
        let value = self.hardware.objects.iter().find(|(known, _)| *known == oid);
        let value = value.map(|(_, value)| value.clone());
        let remark = value.is_none().then(|| format!("the emulated switch's agent has no {oid}"));
        let at = self.now + self.hardware.control_latency;
        self.plan(at, Step::Event(Happening::Object { oid, value, remark }));
    }

    fn next(&mut self, until: u64) -> Result<Option<Arrival>> {
        loop {
            let planned = self.ahead.keys().next().map(|(at, _)| *at);
            let generator =
                self.generators.iter().map(|(id, generator)| (generator.next(), *id)).min();
            let deadline = self.switch.next_deadline();
            let due = [planned, generator.map(|(at, _)| at), deadline];
            let Some(at) = due.into_iter().flatten().min().filter(|at| *at <= until) else {
                if self.is_cut {
                    return Err(Error::Disconnected(channel::CloseReason::PeerClosed));
                }
                self.now = self.now.max(until);
                return Ok(None);
            };
            self.now = self.now.max(at);
            // Planned steps come before the steps that the same moment causes.
            if planned == Some(at) {
                let step = self.ahead.pop_first();
                if let Some(arrival) = step.and_then(|(_, step)| self.take(step)) {
                    return Ok(Some(arrival));
                }
            } else if deadline == Some(at) {
                self.advance();
            } else if let Some((_, id)) = generator {
                self.inject(id);
            }
        }
    }

    fn capture_drops(&mut self) -> u64 {
        0
    }
}
