//! `packet-in`, `packet-out`, `echo` and `barrier`: measure latency and loss against rate, and the highest rate without
//! loss.
//!
//! ```text
//!   packet-in:   probe ──▶ port ──▶ PACKET_IN     from the probe's timestamp until the message is read
//!   packet-out:  PACKET_OUT ──▶ port ──▶ probe    from the intended time of sending until the arrival
//!   echo, barrier:  request ──▶ reply     from the intended time of sending until the reply is read
//! ```
//!
//! The rate doubles until there is loss; then the search halves the interval between the rates with and without loss. A
//! trial in which the generator itself was late ends the search: the trial shows nothing about higher rates.
//!
//! A switch can queue messages, and lose nothing in a short trial. Therefore the highest rate is at most the number of
//! messages that arrived in the trial, divided by the time until the last arrival.

use packet::ProbeTemplate;

use crate::message::Message;
use crate::module::{Event, Module, Orders, Traffic};
use crate::modules::experiment::{Common, Experiment, MILLISECOND, error_name, traffic};
use crate::modules::path::{LOSS, MEDIAN};
use crate::modules::search::Search;
use crate::modules::setup::{Setup, for_all_probes};
use crate::probe::headers;
use crate::record::{Case, Measure};
use crate::request::Request;
use crate::rule::Action;
use report::{Histogram, Precision};

/// The parameters of the experiment.
#[derive(Clone, Debug)]
pub struct Packets {
    /// The parameters of all modules; the search begins at the rate of `common`.
    pub common: Common,
    /// The duration of each trial, ns.
    pub duration: u64,
    /// The highest rate of the search, per second.
    pub most: f64,
    /// The kind of message.
    pub way: Way,
}

/// The kind of message of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// PACKET_IN messages.
    In,
    /// PACKET_OUT messages.
    Out,
    /// ECHO_REQUEST messages and their replies.
    Echo,
    /// BARRIER_REQUEST messages and their replies.
    Barrier,
}

impl Packets {
    /// From 1,000 messages per second up to 200,000; one second per trial.
    pub fn new(common: Common, way: Way) -> Packets {
        let common = Common { rate: 1_000.0, ..common };
        Packets { common, duration: 1_000 * MILLISECOND, most: 200_000.0, way }
    }
}

impl Experiment for Packets {
    fn name(&self) -> &str {
        match self.way {
            Way::In => "packet-in",
            Way::Out => "packet-out",
            Way::Echo => "echo",
            Way::Barrier => "barrier",
        }
    }

    fn module(&self) -> Box<dyn Module> {
        Box::new(Run {
            search: Search::new(self.common.rate, self.most),
            plan: self.clone(),
            done: 0.0,
            left: self.common.repetitions,
            setup: Setup::default(),
            trial: Trial::default(),
            template: None,
        })
    }
}

struct Run {
    plan: Packets,
    search: Search,
    /// The number of messages per second that the switch processed in the trial with the highest rate without loss.
    done: f64,
    left: u32,
    setup: Setup,
    trial: Trial,
    template: Option<ProbeTemplate>,
}

/// A trial at one rate.
struct Trial {
    start: u64,
    sent: u32,
    count: u32,
    received: u32,
    /// The time of the last arrival, ns after the start.
    took: u64,
    delays: Histogram,
    /// The lateness of the last sent message, ns.
    late: u64,
    /// The transaction id of the first request.
    first_xid: u32,
    /// The first sequence number of the trial; late messages of the trial before have other numbers and are not
    /// counted.
    first: u32,
}

impl Default for Trial {
    fn default() -> Self {
        let delays = Histogram::new(Precision::Fine);
        Trial {
            start: 0,
            sent: 0,
            count: 0,
            received: 0,
            took: 0,
            delays,
            late: 0,
            first_xid: 0,
            first: 0,
        }
    }
}

const GENERATOR: u32 = 1;
const TICK: u32 = 1;
const TAIL: u32 = 2;
/// The interval at which due PACKET_OUTs are sent, ns.
const TICK_NS: u64 = MILLISECOND / 2;
/// The time for messages that are in flight at the end of a trial, ns.
const TAIL_NS: u64 = 500 * MILLISECOND;
/// The maximum lateness of the sender at the end, as a share of the trial.
const LATE: f64 = 0.05;

impl Run {
    fn begin(&mut self, orders: &mut Orders<'_>) {
        let (length, rate) = (self.plan.common.length, self.search.rate());
        let first = self.trial.first.wrapping_add(self.trial.count);
        let traffic =
            Traffic { first, ..traffic(vec![headers(0)], length, rate, self.plan.duration) };
        let count = traffic.count;
        self.trial = Trial { start: orders.now(), count, first, ..Trial::default() };
        match self.plan.way {
            Way::In => orders.generate(GENERATOR, traffic),
            Way::Out | Way::Echo | Way::Barrier => self.send_due(orders),
        }
    }

    /// Sends the PACKET_OUTs that are due.
    fn send_due(&mut self, orders: &mut Orders<'_>) {
        let Some(template) = &mut self.template else { return };
        let (port, now) = (orders.port(1), orders.now());
        let interval = 1e9 / self.search.rate();
        let mut requests = Vec::new();
        while self.trial.sent < self.trial.count {
            let intended = self.trial.start + (f64::from(self.trial.sent) * interval) as u64;
            if intended > now {
                break;
            }
            requests.push(match self.plan.way {
                Way::Echo => Request::Echo(Vec::new()),
                Way::Barrier => Request::Barrier,
                Way::In | Way::Out => {
                    let sequence = self.trial.first.wrapping_add(self.trial.sent);
                    let stamp = orders.bench().day(intended);
                    Request::PacketOut { port, frame: template.stamp(sequence, stamp).to_vec() }
                }
            });
            self.trial.sent += 1;
            self.trial.late = now - intended;
        }
        if let Ok(count @ 1..) = u32::try_from(requests.len()) {
            let last = orders.send_all(&requests, None);
            // No other message is sent during a trial, so the transaction ids of the trial are consecutive.
            let first = last.wrapping_sub(count - 1);
            self.trial.first_xid = first.wrapping_sub(self.trial.sent - count);
        }
        if self.trial.sent < self.trial.count {
            let next = self.trial.start + (f64::from(self.trial.sent) * interval) as u64;
            orders.at(next.max(now + TICK_NS), TICK);
        } else {
            orders.after(TAIL_NS, TAIL);
        }
    }

    fn arrive(&mut self, at: u64, sequence: u32, delay: u64, orders: &mut Orders<'_>) {
        if sequence.wrapping_sub(self.trial.first) >= self.trial.count {
            return;
        }
        self.trial.received += 1;
        self.trial.took = self.trial.took.max(at.saturating_sub(self.trial.start));
        self.trial.delays.record(delay);
        let case = Case::new().with("rate", self.search.rate().round());
        orders.record.delay(&case, "latency", delay);
    }

    /// Handles the reply to a request.
    fn answer(&mut self, at: u64, xid: u32, orders: &mut Orders<'_>) {
        let number = xid.wrapping_sub(self.trial.first_xid);
        if number < self.trial.sent {
            let interval = 1e9 / self.search.rate();
            let intended = self.trial.start + (f64::from(number) * interval) as u64;
            let sequence = self.trial.first.wrapping_add(number);
            self.arrive(at, sequence, at.saturating_sub(intended), orders);
        }
    }

    fn conclude(&mut self, orders: &mut Orders<'_>) {
        let trial = &self.trial;
        let case = Case::new().with("rate", self.search.rate().round());
        let lost = trial.sent.saturating_sub(trial.received);
        let record = &mut *orders.record;
        record.sample(&case, LOSS, f64::from(lost) / f64::from(trial.sent.max(1)) * 100.0);
        if trial.received > 0 {
            record.sample(&case, MEDIAN, trial.delays.summary().p50_us);
        }
        let is_late = trial.late as f64 > LATE * self.plan.duration as f64;
        if is_late {
            record.finding("generator-bottleneck", format!("at {:.0} a second the tool itself fell behind by {:.0} ms: what lies beyond was not measured", self.search.rate(), trial.late as f64 / 1e6));
        }
        if lost == 0 && !is_late {
            let rate = f64::from(trial.received) * 1e9 / trial.took.max(1) as f64;
            self.done = rate.min(self.search.rate());
        }
        let goes_on = self.search.note(lost == 0 && !is_late);
        if goes_on && !(is_late && lost == 0) {
            return self.begin(orders);
        }
        let highest = self.search.highest().map_or(0.0, |_| self.done);
        record.sample(&Case::new(), HIGHEST, highest);
        if highest == 0.0 {
            let text = "packets were lost at every rate that was tried: no rate is safe, or none arrives at all";
            record.finding("always-loss", text);
        }
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return orders.end();
        }
        self.search = Search::new(self.plan.common.rate, self.plan.most);
        self.begin(orders);
    }
}

/// The highest rate without loss.
pub(crate) const HIGHEST: Measure = Measure::rate("highest_loss_free_per_s");

impl Module for Run {
    fn handle(&mut self, at: u64, event: &Event<'_>, orders: &mut Orders<'_>) {
        if self.setup.is_done(event, orders) {
            return self.begin(orders);
        }
        match event {
            Event::Start => {
                let length = self.plan.common.length;
                let template = ProbeTemplate::new(&headers(0), orders.bench().tag, length);
                match template {
                    Ok(template) => self.template = Some(template),
                    Err(error) => return orders.give_up(error.to_string()),
                }
                let actions = match self.plan.way {
                    Way::In => vec![Action::Controller],
                    Way::Out | Way::Echo | Way::Barrier => Vec::new(),
                };
                self.setup.begin(vec![for_all_probes(actions)], self.plan.common.patience, orders);
            }
            Event::Message { message: Message::PacketIn { data }, .. }
                if self.plan.way == Way::In =>
            {
                let probe = orders.bench().probe(data, at);
                if let Some(probe) = probe {
                    self.arrive(at, probe.sequence, at.saturating_sub(probe.sent.0), orders);
                }
            }
            Event::Message { xid, message: Message::EchoReply } if self.plan.way == Way::Echo => {
                self.answer(at, *xid, orders);
            }
            Event::Message { xid, message: Message::BarrierReply }
                if self.plan.way == Way::Barrier =>
            {
                self.answer(at, *xid, orders);
            }
            Event::Probe { channel: 1, probe, .. } if self.plan.way == Way::Out => {
                self.arrive(at, probe.sequence, at.saturating_sub(probe.sent.0), orders);
            }
            Event::Generated { report, .. } => {
                self.trial.sent = report.sent;
                let intended = (f64::from(report.sent) * report.interval) as u64;
                self.trial.late = report.elapsed.saturating_sub(intended);
                orders.after(TAIL_NS, TAIL);
            }
            Event::Timer { timer: TICK } => self.send_due(orders),
            Event::Timer { timer: TAIL } => self.conclude(orders),
            Event::Message { message: Message::Error { code }, .. } => {
                let name = error_name(*code, orders);
                orders.give_up(format!("the switch refused a message: {name}"));
            }
            _ => {}
        }
    }
}
