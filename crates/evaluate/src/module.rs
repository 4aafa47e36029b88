//! The one trait behind every experiment: events in, orders out, no I/O and no clock.
//!
//! ```text
//!             Event (with its time)                 Orders
//!   testbed ─────────────────────────▶ Module ─────────────────▶ testbed
//!                                         └──── samples ───────▶ Record
//! ```
//!
//! Events of different channels may come a millisecond out of order, because each channel has its
//! own thread; their times are right. A module judges by times, not by the order of its calls.

use std::collections::VecDeque;

use openflow::Version;
use packet::{Headers, Observation, Timestamp};

use crate::message::Message;
use crate::record::Record;
use crate::request::Request;
use crate::snmp::{Oid, Value};

/// An experiment.
pub trait Module {
    /// Something happened at `at` (ns on the testbed's clock).
    fn handle(&mut self, at: u64, event: &Event<'_>, orders: &mut Orders<'_>);
}

/// What can happen.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The experiment begins.
    Start,
    /// Everything up to the message that was sent with this mark is in the kernel's hands.
    Sent {
        /// The mark.
        mark: u32,
    },
    /// The switch says something.
    Message {
        /// Its transaction id.
        xid: u32,
        /// What.
        message: Message<'a>,
        /// The same, as it came.
        frame: &'a [u8],
    },
    /// A probe left the switch by a data channel; the event's time is its arrival.
    Probe {
        /// The channel.
        channel: usize,
        /// The probe; its times are on the testbed's clock.
        probe: &'a Observation,
        /// When we got to see it, ns: behind the arrival by what a capture in user space adds.
        seen: u64,
    },
    /// A time that was asked for has come.
    Timer {
        /// Which.
        timer: u32,
    },
    /// A generator has sent all its probes, or was stopped.
    Generated {
        /// Which.
        generator: u32,
        /// What it did.
        report: &'a Generated,
    },
    /// The answer to [`Orders::read`].
    Reading {
        /// What was read.
        gauge: &'a Gauge,
        /// Its value; `None` where nobody could tell.
        value: Option<f64>,
    },
    /// The answer to [`Orders::ask`].
    Object {
        /// What was asked for.
        oid: &'a Oid,
        /// What the switch's SNMP agent told; `None` if it did not.
        value: Option<&'a Value>,
    },
}

/// Something to read beside the control channel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Gauge {
    /// Time that the switch had the CPU so far, ns.
    Cpu,
    /// TCP segments with data that came over the control channel so far.
    Segments,
    /// A counter of one of the switch's interfaces, by its SNMP agent.
    Interface {
        /// As the agent was told to watch it.
        name: String,
        /// Which.
        counter: Counter,
    },
}

/// What interfaces count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counter {
    /// Unicast packets that came in.
    PacketsIn,
    /// Unicast packets that went out.
    PacketsOut,
    /// Packets that came in and were thrown away without being wrong.
    DiscardsIn,
    /// The same for sent packets.
    DiscardsOut,
}

impl Counter {
    /// All of them, and what results call them.
    pub const ALL: [(Counter, &str); 4] = [
        (Counter::PacketsIn, "snmp_packets_in"),
        (Counter::PacketsOut, "snmp_packets_out"),
        (Counter::DiscardsIn, "snmp_discards_in"),
        (Counter::DiscardsOut, "snmp_discards_out"),
    ];
}

/// Probes to send at a rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Into which data channel.
    pub channel: usize,
    /// Headers, used in turn: probe n has those at n modulo their number.
    pub headers: Vec<Headers>,
    /// Length of a frame, without the frame check sequence.
    pub length: usize,
    /// Probes per second.
    pub rate: f64,
    /// How many.
    pub count: u32,
    /// Sequence number of the first.
    pub first: u32,
}

/// What a generator did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Generated {
    /// Probes that were sent: those with the first sequence numbers.
    pub sent: u32,
    /// Intended time of the first, ns.
    pub start: u64,
    /// Time between the intended times, ns.
    pub interval: f64,
    /// From the first intended time until the last was handed over, ns.
    pub elapsed: u64,
    /// Mean and largest time by which probes left late, ns.
    pub mean_lateness: u64,
    /// See `mean_lateness`.
    pub worst_lateness: u64,
}

/// One thing to do.
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

/// Where a module's orders and samples go.
pub struct Orders<'a> {
    pub(crate) now: u64,
    pub(crate) bench: &'a Bench,
    pub(crate) next_xid: &'a mut u32,
    pub(crate) queue: &'a mut VecDeque<Order>,
    /// What was measured so far.
    pub record: &'a mut Record,
}

/// What a module may know of its surroundings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bench {
    /// What results call the switch.
    pub name: String,
    /// The version that was agreed on.
    pub version: Version,
    /// Datapath id.
    pub dpid: u64,
    /// The data channels.
    pub channels: Vec<Channel>,
    /// The switch's interfaces whose counters its SNMP agent tells.
    pub interfaces: Vec<String>,
    /// Whether there is a switch, or just two interfaces that are joined.
    pub has_switch: bool,
    /// What probes carry to be told from all else.
    pub tag: u64,
    /// What the time of day, which probes carry, is ahead of the testbed's clock, ns.
    pub day_ahead: u64,
}

impl Bench {
    /// A time of the testbed's clock as the time of day that probes carry.
    pub fn day(&self, at: u64) -> Timestamp {
        Timestamp(at.saturating_add(self.day_ahead))
    }

    /// The probe in a frame that came at a time, its times on the testbed's clock.
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
    /// What results call it: the interface, as a rule.
    pub name: String,
    /// The switch's port at its other end.
    pub port: u32,
}

impl Orders<'_> {
    /// The time, ns.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The surroundings.
    pub fn bench(&self) -> &Bench {
        self.bench
    }

    /// The switch's port at a channel's other end; 0, which no port has, if there is no such channel.
    pub fn port(&self, channel: usize) -> u32 {
        self.bench.channels.get(channel).map_or(0, |channel| channel.port)
    }

    /// Sends a request; the answer is its transaction id.
    pub fn send(&mut self, request: &Request) -> u32 {
        self.send_all([request], None)
    }

    /// Sends requests in one go, with [`Event::Sent`] when they are gone; the answer is the last
    /// one's transaction id.
    pub fn send_all<'r>(
        &mut self,
        requests: impl IntoIterator<Item = &'r Request>,
        mark: Option<u32>,
    ) -> u32 {
        let mut bytes = Vec::new();
        for request in requests {
            *self.next_xid = self.next_xid.wrapping_add(1);
            // Only a frame of 64 KiB can be too long, and no probe is.
            let _ = request.write(self.bench.version, *self.next_xid, &mut bytes);
        }
        self.send_bytes(bytes, mark);
        *self.next_xid
    }

    /// Sends whole messages as they are.
    pub fn send_bytes(&mut self, bytes: Vec<u8>, mark: Option<u32>) {
        self.queue.push_back(Order::Send { bytes, mark });
    }

    /// Starts a generator.
    pub fn generate(&mut self, generator: u32, traffic: Traffic) {
        self.queue.push_back(Order::Generate { generator, traffic });
    }

    /// Stops a generator; its report comes.
    pub fn stop(&mut self, generator: u32) {
        self.queue.push_back(Order::Stop { generator });
    }

    /// Asks for [`Event::Timer`] after so many ns. The same timer asked for again replaces it.
    pub fn after(&mut self, ns: u64, timer: u32) {
        self.at(self.now.saturating_add(ns), timer);
    }

    /// Asks for [`Event::Timer`] at a time.
    pub fn at(&mut self, at: u64, timer: u32) {
        self.queue.push_back(Order::Timer { timer, at });
    }

    /// Withdraws the wish to end that was the last order: of a part, in a module that goes on.
    pub(crate) fn take_end(&mut self) -> bool {
        let is_end = matches!(self.queue.back(), Some(Order::End));
        if is_end {
            self.queue.pop_back();
        }
        is_end
    }

    /// Asks for a reading.
    pub fn read(&mut self, gauge: Gauge) {
        self.queue.push_back(Order::Read(gauge));
    }

    /// Asks the switch's SNMP agent for any object, with [`Event::Object`] as the answer.
    pub fn ask(&mut self, oid: Oid) {
        self.queue.push_back(Order::Ask(oid));
    }

    /// Takes the link of a data channel down or up.
    pub fn set_link(&mut self, channel: usize, up: bool) {
        self.queue.push_back(Order::SetLink { channel, up });
    }

    /// The experiment is done.
    pub fn end(&mut self) {
        self.queue.push_back(Order::End);
    }

    /// The experiment cannot go on; what was recorded stays. `why` is a sentence.
    pub fn give_up(&mut self, why: impl Into<String>) {
        self.queue.push_back(Order::GiveUp(why.into()));
    }
}
