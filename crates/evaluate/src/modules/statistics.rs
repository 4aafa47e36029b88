//! `statistics`: measures the cost of polling (OFLOPS, section 4.3, figure 5).
//!
//! The experiment polls a table of entries at increasing rates, for flow or aggregate statistics, while probes pass.
//! The results are reply time, parts per reply, CPU time of the switch, and delay of the probes. The reply times and
//! parts reveal a switch that limits the rate of its replies.

use std::collections::HashMap;
use std::iter::repeat_n;

use report::Better;

use crate::message::Message;
use crate::module::{Event, Gauge, Module, Orders};
use crate::modules::experiment::{Common, Experiment, MILLISECOND, error_name, traffic};
use crate::modules::path::PATH;
use crate::modules::setup::{Setup, forwarding};
use crate::probe::{MatchKind, headers};
use crate::record::{Case, Measure};
use crate::request::Request;

/// The kind of statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Flow statistics: one item per entry.
    Flow,
    /// Aggregate statistics: one item for all entries.
    Aggregate,
}

impl Kind {
    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Flow => "flow",
            Kind::Aggregate => "aggregate",
        }
    }
}

/// The parameters of the experiment.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// The parameters of all modules; the rate of `common` is the rate of the probes.
    pub common: Common,
    /// The duration of each repetition, ns.
    pub duration: u64,
    /// The number of entries in the table.
    pub rules: u32,
    /// The kinds of statistics.
    pub kinds: Vec<Kind>,
    /// The polls per second.
    pub polls: Vec<f64>,
}

impl Statistics {
    /// 1,024 entries, both kinds, 1 to 100 polls per second, two seconds each.
    pub fn new(common: Common) -> Statistics {
        Statistics {
            common,
            duration: 2_000 * MILLISECOND,
            rules: 1024,
            kinds: vec![Kind::Flow, Kind::Aggregate],
            polls: vec![1.0, 10.0, 50.0, 100.0],
        }
    }
}

impl Experiment for Statistics {
    fn name(&self) -> &str {
        "statistics"
    }

    fn module(&self) -> Box<dyn Module> {
        let mut todo = Vec::new();
        for &kind in &self.kinds {
            for &polls in &self.polls {
                todo.extend(repeat_n((kind, polls), self.common.repetitions.max(1) as usize));
            }
        }
        todo.reverse();
        Box::new(Run {
            plan: self.clone(),
            todo,
            setup: Setup::default(),
            start: 0,
            sent: 0,
            open: HashMap::new(),
            skipped: 0,
            unanswered: 0,
            cpu: None,
            segments: None,
            replies: 0,
            is_over: false,
        })
    }
}

struct Run {
    plan: Statistics,
    /// The kind and the polls per second of the repetitions to come; the last one is the present one.
    todo: Vec<(Kind, f64)>,
    setup: Setup,
    start: u64,
    sent: u32,
    /// Requests without a complete reply: the intended time, the parts and the entries so far.
    open: HashMap<u32, Open>,
    skipped: u64,
    unanswered: u64,
    cpu: Option<(u64, f64)>,
    /// The number of TCP segments before the repetition, and the number of replies in the repetition.
    segments: Option<f64>,
    replies: u32,
    is_over: bool,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    asked: u64,
    parts: u32,
    entries: usize,
}

const GENERATOR: u32 = 1;
const POLL: u32 = 1;
const OVER: u32 = 2;
/// The number of requests without a reply at which the experiment sends no more requests.
const MAX_OPEN: usize = 64;
const PARTS: Measure = Measure { name: "parts", unit: "", better: Better::Lower };
/// The distribution of times from request to the last part of the reply.
pub(crate) const REPLY: &str = "reply";
const CPU: Measure = Measure::percent("cpu_percent");
/// The segments with data on the control channel: the result of the kernel's and the switch's writes of the parts.
const SEGMENTS: Measure = Measure { name: "segments_per_reply", unit: "", better: Better::Lower };

impl Run {
    fn case(&self) -> Option<Case> {
        let (kind, polls) = self.todo.last()?;
        let case = Case::new().with("kind", kind.name()).with("rules", self.plan.rules);
        Some(case.with("polls_per_s", *polls))
    }

    fn begin(&mut self, orders: &mut Orders<'_>) {
        if self.todo.is_empty() {
            for (count, what) in [
                (self.skipped, "not sent because 64 had no answer yet"),
                (self.unanswered, "not answered"),
            ] {
                if count > 0 {
                    let text = format!(
                        "{count} requests were {what}: the switch is slower than the polling"
                    );
                    orders.record.finding("polls-unanswered", text);
                }
            }
            return orders.end();
        }
        (self.start, self.sent, self.is_over, self.cpu) = (orders.now(), 0, false, None);
        (self.segments, self.replies) = (None, 0);
        orders.read(Gauge::Segments);
        orders.read(Gauge::Cpu);
        let common = &self.plan.common;
        let headers = (0..self.plan.rules).map(headers).collect();
        let traffic = traffic(headers, common.length, common.rate, self.plan.duration);
        orders.generate(GENERATOR, traffic);
        self.poll(orders);
    }

    fn poll(&mut self, orders: &mut Orders<'_>) {
        let Some(&(kind, polls)) = self.todo.last() else { return };
        let intended = self.start + (f64::from(self.sent) * 1e9 / polls) as u64;
        if intended >= self.start + self.plan.duration {
            let patience = self.plan.common.patience;
            orders.after(if self.open.is_empty() { 0 } else { patience }, OVER);
            self.is_over = true;
            return;
        }
        if self.open.len() < MAX_OPEN {
            let request = match kind {
                Kind::Flow => Request::FlowStatistics { own: true },
                Kind::Aggregate => Request::AggregateStatistics,
            };
            let xid = orders.send(&request);
            // The measurement is open loop: the time of a reply begins at the intended time of the request, so a stall
            // counts.
            self.open.insert(xid, Open { asked: intended, parts: 0, entries: 0 });
        } else {
            self.skipped += 1;
        }
        self.sent += 1;
        orders.at(self.start + (f64::from(self.sent) * 1e9 / polls) as u64, POLL);
    }

    fn part(&mut self, at: u64, xid: u32, entries: usize, more: bool, orders: &mut Orders<'_>) {
        let Some(open) = self.open.get_mut(&xid) else { return };
        open.parts += 1;
        open.entries += entries;
        if more {
            return;
        }
        let open = *open;
        self.open.remove(&xid);
        self.replies += 1;
        let Some(case) = self.case() else { return };
        let record = &mut *orders.record;
        record.delay(&case, REPLY, at.saturating_sub(open.asked));
        record.sample(&case, PARTS, f64::from(open.parts));
        if open.entries != self.plan.rules as usize {
            record.finding(
                "statistics-incomplete",
                format!(
                    "a reply has {} entries; the switch acknowledged {}",
                    open.entries, self.plan.rules
                ),
            );
        }
        if self.is_over && self.open.is_empty() {
            orders.after(0, OVER);
        }
    }

    fn over(&mut self, orders: &mut Orders<'_>) {
        if !std::mem::take(&mut self.is_over) {
            return;
        }
        self.unanswered += self.open.len() as u64;
        self.open.clear();
        orders.stop(GENERATOR);
        // The segments are read before the CPU time, because the reading of the CPU time ends the repetition.
        orders.read(Gauge::Segments);
        orders.read(Gauge::Cpu);
    }

    fn segments(&mut self, value: Option<f64>, orders: &mut Orders<'_>) {
        let Some(before) = self.segments else {
            self.segments = value;
            return;
        };
        if let (Some(after), Some(case), 1..) = (value, self.case(), self.replies) {
            let each = (after - before) / f64::from(self.replies);
            orders.record.sample(&case, SEGMENTS, each);
        }
    }

    fn cpu(&mut self, at: u64, value: Option<f64>, orders: &mut Orders<'_>) {
        let Some(before) = self.cpu.take() else {
            // This is the first reading of a repetition; an unknown value is NaN.
            self.cpu = Some((at, value.unwrap_or(f64::NAN)));
            return;
        };
        let Some(case) = self.case() else { return };
        let percent =
            (value.unwrap_or(f64::NAN) - before.1) / (at - before.0).max(1) as f64 * 100.0;
        if percent.is_finite() {
            orders.record.sample(&case, CPU, percent);
        } else {
            let text = "nothing reports the switch's CPU time: give --pid or --snmp";
            orders.record.finding("cpu-unknown", text);
        }
        self.todo.pop();
        self.begin(orders);
    }
}

impl Module for Run {
    fn handle(&mut self, at: u64, event: &Event<'_>, orders: &mut Orders<'_>) {
        if self.setup.is_done(event, orders) {
            return self.begin(orders);
        }
        match event {
            Event::Start => {
                let rule = |index| forwarding(index, MatchKind::Exact, orders);
                let rules = (0..self.plan.rules).map(rule).collect();
                self.setup.begin(rules, self.plan.common.patience, orders);
            }
            Event::Message { xid, message } => match message {
                Message::FlowStatistics { entries, more } => {
                    self.part(at, *xid, *entries, *more, orders);
                }
                Message::AggregateStatistics { flows } => {
                    self.part(at, *xid, *flows as usize, false, orders);
                }
                Message::Error { code } if self.open.contains_key(xid) => {
                    let name = error_name(*code, orders);
                    orders.give_up(format!("the switch refused to send statistics: {name}"));
                }
                _ => {}
            },
            Event::Probe { channel: 1, probe, .. } => {
                if let Some(case) = self.case() {
                    orders.record.delay(&case, PATH, at.saturating_sub(probe.sent.0));
                }
            }
            Event::Timer { timer: POLL } => self.poll(orders),
            Event::Timer { timer: OVER } => self.over(orders),
            Event::Reading { gauge: Gauge::Segments, value } => self.segments(*value, orders),
            Event::Reading { gauge: Gauge::Cpu, value } => self.cpu(at, *value, orders),
            _ => {}
        }
    }
}
