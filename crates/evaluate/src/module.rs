//! The one trait of every experiment: events are inputs, orders are outputs; a module has no I/O and no clock.
//!
//! ```text
//!             Event (with its time)                 Orders
//!   testbed ─────────────────────────▶ Module ─────────────────▶ testbed
//!                                         └──── samples ───────▶ Record
//! ```
//!
//! Events of different channels may arrive a millisecond out of order, because each channel has its own thread; the
//! times of the events are correct. A module uses the times, not the order of its calls.

use std::collections::VecDeque;

use openflow::Version;
use packet::{Headers, Observation, Timestamp};

use crate::message::Message;
use crate::record::Record;
use crate::request::Request;
use crate::snmp::{Oid, Value};

/// An experiment.
pub trait Module {
    /// Handles an event at `at` (ns on the testbed's clock).
    fn handle(&mut self, at: u64, event: &Event<'_>, orders: &mut Orders<'_>);
}

/// An event of an experiment.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// The experiment starts.
    Start,
    /// The kernel has accepted all bytes up to the message with this mark.
    Sent {
        /// The mark.
        mark: u32,
    },
    /// The switch sent a message.
    Message {
        /// The transaction id of the message.
        xid: u32,
        /// The parsed message.
        message: Message<'a>,
    },
    /// A probe left the switch through a data channel; the time of the event is the arrival of the probe.
    Probe {
        /// The index of the channel.
        channel: usize,
        /// The probe; the times of the probe are on the testbed's clock.
        probe: &'a Observation,
        /// The time at which this process saw the probe, ns: the arrival plus the delay of a capture in user space.
        seen: u64,
    },
    /// A timer expired.
    Timer {
        /// The number of the timer.
        timer: u32,
    },
    /// A generator has sent all its probes, or was stopped.
    Generated {
        /// The number of the generator.
        generator: u32,
        /// The report of the generator.
        report: &'a Generated,
    },
    /// The reply to [`Orders::read`].
    Reading {
        /// The gauge.
        gauge: &'a Gauge,
        /// The value; `None` when no source has the value.
        value: Option<f64>,
    },
    /// The reply to [`Orders::ask`].
    Object {
        /// The identifier of the object.
        oid: &'a Oid,
        /// The value from the switch's SNMP agent; `None` without a value.
        value: Option<&'a Value>,
    },
}

/// A value outside the control channel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Gauge {
    /// The CPU time of the switch so far, ns.
    Cpu,
    /// The number of received TCP segments with data on the control channel so far.
    Segments,
    /// A counter of one of the switch's interfaces, from its SNMP agent.
    Interface {
        /// The name of the interface in the agent's settings.
        name: String,
        /// The counter.
        counter: Counter,
    },
}

/// The counters of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counter {
    /// Received unicast packets.
    PacketsIn,
    /// Sent unicast packets.
    PacketsOut,
    /// Received packets without errors that the interface discarded.
    DiscardsIn,
    /// Packets without errors that the interface discarded instead of sending.
    DiscardsOut,
}

impl Counter {
    /// All counters with their names in results.
    pub const ALL: [(Counter, &str); 4] = [
        (Counter::PacketsIn, "snmp_packets_in"),
        (Counter::PacketsOut, "snmp_packets_out"),
        (Counter::DiscardsIn, "snmp_discards_in"),
        (Counter::DiscardsOut, "snmp_discards_out"),
    ];
}

/// Probes at a rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// The data channel that sends the probes.
    pub channel: usize,
    /// The headers in rotation: probe n has the headers with the index n modulo the number of headers.
    pub headers: Vec<Headers>,
    /// The length of a frame, without the frame check sequence.
    pub length: usize,
    /// Probes per second.
    pub rate: f64,
    /// The number of probes.
    pub count: u32,
    /// The sequence number of the first probe.
    pub first: u32,
}

/// The report of a generator.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Generated {
    /// The number of sent probes; the sent probes have the first sequence numbers.
    pub sent: u32,
    /// The intended time of the first probe, ns.
    pub start: u64,
    /// The time between two intended times, ns.
    pub interval: f64,
    /// The time from the first intended time until the kernel got the last probe, ns.
    pub elapsed: u64,
    /// The mean lateness of probes, ns.
    pub mean_lateness: u64,
    /// The largest lateness of probes, ns.
    pub worst_lateness: u64,
}

/// One order of a module.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    Send { bytes: Vec<u8>, mark: Option<u32> },
    Generate { generator: u32, traffic: Traffic },
    Stop { generator: u32 },
    Timer { timer: u32, at: u64 },
    Read(Gauge),
    Ask(Oid),
    SetLink { channel: usize, up: bool },
    End,
    GiveUp(String),
}

/// Receives a module's orders and samples.
pub struct Orders<'a> {
    pub(crate) now: u64,
    pub(crate) bench: &'a Bench,
    pub(crate) next_xid: &'a mut u32,
    pub(crate) queue: &'a mut VecDeque<Order>,
    /// The record of the measurement so far.
    pub record: &'a mut Record,
}

/// A module's information about the testbed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bench {
    /// The name of the switch in results.
    pub name: String,
    /// The negotiated OpenFlow version.
    pub version: Version,
    /// The datapath id.
    pub dpid: u64,
    /// The data channels.
    pub channels: Vec<Channel>,
    /// The interfaces of the switch with counters from the SNMP agent.
    pub interfaces: Vec<String>,
    /// Whether there is a switch; otherwise the testbed is two joined interfaces.
    pub has_switch: bool,
    /// The tag that identifies the probes of this testbed.
    pub tag: u64,
    /// The time of day minus the testbed's clock, ns. Probes carry the time of day.
    pub day_ahead: u64,
}

impl Bench {
    /// Converts a time of the testbed's clock to the time of day that probes carry.
    pub fn day(&self, at: u64) -> Timestamp {
        Timestamp(at.saturating_add(self.day_ahead))
    }

    /// Parses the probe in a frame that arrived at `at`; the times of the result are on the testbed's clock.
    pub fn probe(&self, frame: &[u8], at: u64) -> Option<Observation> {
        let mut probe = Observation::parse(frame, self.tag, self.day(at))?;
        probe.sent = Timestamp(probe.sent.0.saturating_sub(self.day_ahead));
        probe.arrived = Timestamp(at);
        Some(probe)
    }
}

/// A data channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The name of the channel in results: usually the interface.
    pub name: String,
    /// The port of the switch at the other end of the channel.
    pub port: u32,
}

impl Orders<'_> {
    /// The present time, ns.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The information about the testbed.
    pub fn bench(&self) -> &Bench {
        self.bench
    }

    /// The port of the switch at the other end of a channel; 0 if there is no such channel. No port has the number 0.
    pub fn port(&self, channel: usize) -> u32 {
        self.bench.channels.get(channel).map_or(0, |channel| channel.port)
    }

    /// Sends a request; the result is the transaction id of the request.
    pub fn send(&mut self, request: &Request) -> u32 {
        self.send_all([request], None)
    }

    /// Sends requests together, with [`Event::Sent`] after the last byte; the result is the transaction id of the last
    /// request.
    pub fn send_all<'r>(
        &mut self,
        requests: impl IntoIterator<Item = &'r Request>,
        mark: Option<u32>,
    ) -> u32 {
        let mut bytes = Vec::new();
        for request in requests {
            *self.next_xid = self.next_xid.wrapping_add(1);
            // Only a frame of 64 KiB can be too long, and a probe is shorter.
            let _ = request.write(self.bench.version, *self.next_xid, &mut bytes);
        }
        self.queue.push_back(Order::Send { bytes, mark });
        *self.next_xid
    }

    /// Starts a generator.
    pub fn generate(&mut self, generator: u32, traffic: Traffic) {
        self.queue.push_back(Order::Generate { generator, traffic });
    }

    /// Stops a generator; the generator still sends its report.
    pub fn stop(&mut self, generator: u32) {
        self.queue.push_back(Order::Stop { generator });
    }

    /// Requests an [`Event::Timer`] after `ns` nanoseconds. A second request for the same timer replaces the first
    /// request.
    pub fn after(&mut self, ns: u64, timer: u32) {
        self.at(self.now.saturating_add(ns), timer);
    }

    /// Requests an [`Event::Timer`] at a time.
    pub fn at(&mut self, at: u64, timer: u32) {
        self.queue.push_back(Order::Timer { timer, at });
    }

    /// Withdraws the last order if the order was to end. A module uses this function when a part has ended and the
    /// module continues.
    pub(crate) fn take_end(&mut self) -> bool {
        let is_end = matches!(self.queue.back(), Some(Order::End));
        if is_end {
            self.queue.pop_back();
        }
        is_end
    }

    /// Requests a reading of a gauge.
    pub fn read(&mut self, gauge: Gauge) {
        self.queue.push_back(Order::Read(gauge));
    }

    /// Requests an object from the switch's SNMP agent; the reply is [`Event::Object`].
    pub fn ask(&mut self, oid: Oid) {
        self.queue.push_back(Order::Ask(oid));
    }

    /// Sets the link of a data channel down or up.
    pub fn set_link(&mut self, channel: usize, up: bool) {
        self.queue.push_back(Order::SetLink { channel, up });
    }

    /// Ends the experiment.
    pub fn end(&mut self) {
        self.queue.push_back(Order::End);
    }

    /// Ends an experiment that cannot continue; the record stays. `why` is a sentence.
    pub fn give_up(&mut self, why: impl Into<String>) {
        self.queue.push_back(Order::GiveUp(why.into()));
    }
}
