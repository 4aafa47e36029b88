//! A testbed with a real switch: OpenFlow over a socket, probes over AF_PACKET.
//!
//! ```text
//!   thread "capture", one per channel ──┐ probes, stamped by the kernel
//!   thread "generator", while running ──┤
//!   thread "snmp", if it has an agent ──┼──▶ bounded queue ──▶ next() ──▶ module
//!   the caller's thread: control socket ┘ messages, stamped when read
//! ```
//!
//! The caller's own thread reads and writes the control channel, so the times contain no hand-over between threads.
//! When the queue is full, a capture waits; then the ring of the capture loses frames, and the lost frames are counted.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::Duration;

use channel::Tls;
use openflow::VersionSet;

use super::clock::Clock;
use super::control::{ControlLink, SwitchAddress};
use super::data::{DataPlane, DataPort, Outlet};
use super::interface::{Arrival, Happening, Testbed};
use super::poller::{Poller, Question};
use crate::error::{Error, Result};
use crate::gauge::{Gauges, process_cpu};
use crate::module::{Bench, Channel, Gauge, Traffic};
use crate::snmp::Oid;
use crate::trace::Trace;

/// The options of a connection to a real switch.
#[derive(Debug)]
pub struct RealOptions {
    /// The name of the switch in results.
    pub name: String,
    /// The control channel of the switch.
    pub address: SwitchAddress,
    /// The identity for `ssl:`.
    pub tls: Option<Tls>,
    /// The OpenFlow versions for the negotiation.
    pub versions: VersionSet,
    /// The data channels, in the order in which experiments use the channels: ingress, egress, further channels.
    pub ports: Vec<DataPort>,
    /// The timeout for the switch.
    pub patience: Duration,
    /// The sources of CPU time and other numbers.
    pub gauges: Gauges,
    /// The file of the control channel's trace.
    pub trace: Option<PathBuf>,
}

/// A real switch.
pub struct Real {
    bench: Bench,
    clock: Clock,
    // The inbox is above `data` and `poller`: Rust drops the inbox first. So no thread waits for room in the inbox
    // when `data` and `poller` wait for the end of their threads.
    inbox: Receiver<Result<Arrival>>,
    data: DataPlane,
    control: ControlLink,
    pending: VecDeque<Arrival>,
    process: Option<u32>,
    poller: Option<Poller>,
}

/// The most arrivals (usually blocks of probes) that may wait for the module.
const INBOX: usize = 4096;

impl Real {
    /// Opens the data channels, then waits for the switch.
    ///
    /// # Errors
    /// An interface is missing or down, the process lacks privileges, the switch does not connect, the handshake fails,
    /// or the switch lacks a port.
    pub fn open(options: RealOptions) -> Result<Real> {
        let clock = Clock::start();
        let trace = options.trace.as_deref().map(Trace::create).transpose()?;
        // The tag depends on the process and the time, so two tools on one machine do not take each other's probes.
        let tag = 0x5745_4952_0000_0000 | u64::from(std::process::id()) << 12 | clock.now() & 0xfff;
        let (sender, inbox) = sync_channel(INBOX);
        let (control, greeting) = ControlLink::open(
            options.address,
            options.tls.as_ref(),
            options.versions,
            options.patience,
            clock,
            trace,
        )?;
        for port in &options.ports {
            if !greeting.ports.contains(&port.switch_port) {
                let ports = greeting.ports.into_iter().filter(|port| *port < 0xff00).collect();
                return Err(Error::NoSuchPort { port: port.switch_port, ports });
            }
        }
        let outlet = Outlet { sender, waker: Some(control.waker()) };
        let Gauges { process, snmp } = options.gauges;
        let interfaces = snmp.as_ref().map(|agent| agent.interfaces.clone()).unwrap_or_default();
        let poller = match snmp {
            Some(agent) => Some(Poller::start(agent, process, clock, outlet.clone())?),
            None => None,
        };
        let data = DataPlane::open(&options.ports, tag, clock, outlet)?;
        let channel =
            |port: &DataPort| Channel { name: port.interface.clone(), port: port.switch_port };
        let bench = Bench {
            name: options.name,
            version: greeting.version,
            dpid: greeting.dpid,
            channels: options.ports.iter().map(channel).collect(),
            interfaces,
            has_switch: true,
            tag,
            day_ahead: clock.day_ahead(),
        };
        let pending = VecDeque::new();
        Ok(Real { bench, clock, inbox, data, control, pending, process, poller })
    }
}

impl Testbed for Real {
    fn bench(&self) -> &Bench {
        &self.bench
    }

    fn now(&self) -> u64 {
        self.clock.now()
    }

    fn send(&mut self, bytes: Vec<u8>, mark: Option<u32>) -> Result<()> {
        self.control.send(bytes, mark)
    }

    fn generate(&mut self, generator: u32, traffic: &Traffic) -> Result<()> {
        self.data.generate(generator, traffic)
    }

    fn stop(&mut self, generator: u32) {
        self.data.stop(generator);
    }

    fn set_link(&mut self, channel: usize, up: bool) -> Result<()> {
        self.data.set_link(channel, up)
    }

    fn read(&mut self, gauge: Gauge) {
        let poller = self.poller.as_ref().filter(|_| gauge != Gauge::Segments);
        let asked = poller.map(|poller| poller.ask(Question::Gauge(gauge.clone())));
        let (value, remark) = match asked {
            Some(Ok(())) => return,
            Some(Err(why)) => (None, Some(why)),
            None if gauge == Gauge::Segments => (self.control.segments(), None),
            None => (self.process.filter(|_| gauge == Gauge::Cpu).and_then(process_cpu), None),
        };
        let what = Happening::Reading { gauge, value, remark };
        self.pending.push_back(Arrival { at: self.clock.now(), what });
    }

    fn ask(&mut self, oid: Oid) {
        let asked = self.poller.as_ref().map(|poller| poller.ask(Question::Object(oid.clone())));
        let why = match asked {
            Some(Ok(())) => return,
            Some(Err(why)) => why,
            None => "nobody said where the switch's SNMP agent is: give --snmp".to_owned(),
        };
        let what = Happening::Object { oid, value: None, remark: Some(why) };
        self.pending.push_back(Arrival { at: self.clock.now(), what });
    }

    fn next(&mut self, until: u64) -> Result<Option<Arrival>> {
        loop {
            self.control.collect(&mut self.pending)?;
            if let Some(arrival) = self.pending.pop_front() {
                return Ok(Some(arrival));
            }
            match self.inbox.try_recv() {
                Ok(arrival) => return arrival.map(Some),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => {
                    return Err(Error::Thread("the data channels' threads ended".to_owned()));
                }
            }
            let now = self.clock.now();
            if now >= until {
                return Ok(None);
            }
            if !self.control.is_readable() {
                self.control.wait(Duration::from_nanos(until - now))?;
            }
        }
    }

    fn capture_drops(&mut self) -> u64 {
        self.data.drops()
    }

    fn finish(&mut self) -> Result<()> {
        self.control.finish()
    }
}
