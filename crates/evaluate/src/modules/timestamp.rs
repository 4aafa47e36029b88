//! `timestamp`: measures the precision of this tool's own capture (the question of OFLOPS, section 2, figure 2).
//!
//! The generator sends probes at a constant rate. The paper compared the timestamps with those of a DAG card behind an
//! optical tap. The reference here is the generator's own timestamp of each probe, on the clock of the same machine.
//! The experiment measures the delay from that timestamp to the kernel's timestamp, and to the moment at which user
//! space sees the frame. The experiment also measures the slope of each delay over time (drift, in parts per million:
//! µs per second). On two looped interfaces, these delays are the floor of the tool: a figure of another experiment
//! below the floor has no meaning.

use report::Better;

use crate::message::Message;
use crate::module::{Event, Module, Orders};
use crate::modules::experiment::{Common, Experiment, traffic};
use crate::modules::setup::for_all_probes;
use crate::probe::headers;
use crate::record::{Case, Measure};
use crate::request::Request;
use crate::rule::Action;

/// The parameters of the experiment.
#[derive(Clone, Debug)]
pub struct Timestamp {
    /// The parameters of all modules; the rate of `common` is the rate of the probes.
    pub common: Common,
    /// The duration, ns.
    pub duration: u64,
}

impl Experiment for Timestamp {
    fn name(&self) -> &str {
        "timestamp"
    }

    fn module(&self) -> Box<dyn Module> {
        Box::new(Run {
            plan: self.clone(),
            kernel: Line::default(),
            user: Line::default(),
            planned: 0,
            left: 0,
            barrier: 0,
            order: 0,
            reordered: 0,
            report: None,
        })
    }
}

/// The distribution of delays to the kernel's timestamp.
pub(crate) const KERNEL: &str = "kernel";
/// The distribution of delays to user space.
pub(crate) const USER: &str = "user space";

struct Run {
    plan: Timestamp,
    kernel: Line,
    user: Line,
    /// The number of probes to send, and the number of these probes that have not arrived.
    planned: u32,
    left: u32,
    barrier: u32,
    /// The next sequence number without loss and reordering.
    order: u32,
    reordered: u64,
    report: Option<crate::module::Generated>,
}

const GENERATOR: u32 = 1;
/// The time for probes that are in flight when the generator is done, ns.
const TAIL: u64 = 200_000_000;

impl Run {
    fn case(&self) -> Case {
        Case::new().with("rate", self.plan.common.rate).with("length", self.plan.common.length)
    }

    fn generate(&mut self, orders: &mut Orders<'_>) {
        let Common { length, rate, .. } = self.plan.common;
        let traffic = traffic(vec![headers(0)], length, rate, self.plan.duration);
        (self.planned, self.left) = (traffic.count, traffic.count);
        orders.generate(GENERATOR, traffic);
    }

    fn conclude(&mut self, orders: &mut Orders<'_>) {
        let Some(report) = self.report else { return };
        let case = self.case();
        let record = &mut *orders.record;
        let seconds = (report.elapsed as f64 / 1e9).max(1e-9);
        record.sample(&case, Measure::rate("sent_per_s"), f64::from(report.sent) / seconds);
        let lost = f64::from(self.left.saturating_sub(self.planned - report.sent));
        record.sample(
            &case,
            Measure::percent("loss_percent"),
            lost / f64::from(report.sent.max(1)) * 100.0,
        );
        let reordered = Measure { name: "reordered", unit: "", better: Better::Lower };
        record.sample(&case, reordered, self.reordered as f64);
        record.sample(&case, Measure::us("lateness_us"), report.mean_lateness as f64 / 1e3);
        record.sample(&case, Measure::us("worst_lateness_us"), report.worst_lateness as f64 / 1e3);
        for (name, line) in [("kernel_drift_ppm", &self.kernel), ("user_drift_ppm", &self.user)] {
            if let Some(slope) = line.slope() {
                let measure = Measure { name, unit: "ppm", better: Better::Neither };
                record.sample(&case, measure, slope * 1e6);
            }
        }
        orders.end();
    }
}

impl Module for Run {
    fn handle(&mut self, at: u64, event: &Event<'_>, orders: &mut Orders<'_>) {
        match event {
            Event::Start if orders.bench().has_switch => {
                let rule = for_all_probes(vec![Action::Output(orders.port(1))]);
                self.barrier = orders.send_all(&[Request::Add(rule), Request::Barrier], None);
                orders.after(self.plan.common.patience, 1);
            }
            Event::Start => self.generate(orders),
            Event::Message { xid, message: Message::BarrierReply } if *xid == self.barrier => {
                // A data plane may be behind its barrier.
                orders.after(TAIL, 2);
                orders.after(u64::MAX, 1);
            }
            Event::Timer { timer: 1 } => {
                orders.give_up("the switch has not answered a BARRIER_REQUEST");
            }
            Event::Timer { timer: 2 } => self.generate(orders),
            Event::Timer { timer: 3 } => self.conclude(orders),
            Event::Probe { channel: 1, probe, seen } => {
                let case = self.case();
                let sent = probe.sent.0;
                orders.record.delay(&case, KERNEL, at.saturating_sub(sent));
                orders.record.delay(&case, USER, seen.saturating_sub(sent));
                self.kernel.add(sent, at);
                self.user.add(sent, *seen);
                self.left = self.left.saturating_sub(1);
                self.reordered += u64::from(probe.sequence < self.order);
                self.order = self.order.max(probe.sequence.saturating_add(1));
            }
            Event::Generated { report, .. } => {
                self.report = Some(**report);
                orders.after(TAIL, 3);
            }
            _ => {}
        }
    }
}

/// Computes the least squares line of a delay over time, without storing the points.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    origin: Option<u64>,
    n: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
}

impl Line {
    fn add(&mut self, sent: u64, arrived: u64) {
        let origin = *self.origin.get_or_insert(sent);
        let x = (sent as f64 - origin as f64) / 1e9;
        let y = (arrived as f64 - sent as f64) / 1e9;
        self.n += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
    }

    /// The seconds of delay per second; `None` for fewer than two different times.
    fn slope(&self) -> Option<f64> {
        let spread = self.n * self.xx - self.x * self.x;
        (self.n >= 2.0 && spread > 0.0).then(|| (self.n * self.xy - self.x * self.y) / spread)
    }
}
