//! Code that `modify`, `path-delay` and `queue` share: one entry for all probes, probes at a rate, and the results of
//! the probes' way through the switch.

use packet::{Headers, VlanTag};
use report::{Better, Histogram, Precision};

use crate::module::{Event, Generated, Module, Orders};
use crate::modules::experiment::{Common, GUARD, MILLISECOND, traffic};
use crate::modules::setup::Setup;
use crate::probe::{MatchKind, flow_match};
use crate::record::{Case, Measure};
use crate::rule::{Action, Match, Rule, Vlan};

/// One measurement.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    pub(crate) case: Case,
    /// The actions of the entry before its output.
    pub(crate) actions: Vec<Action>,
    /// The queue of the entry's output; `None` for an output without a queue.
    pub(crate) queue: Option<u32>,
    /// The headers of the probes when the generator sends the probes.
    pub(crate) headers: Headers,
    pub(crate) length: usize,
    pub(crate) rate: f64,
}

impl Trial {
    /// All actions of the entry, with the output to `port`.
    fn entry_actions(&self, port: u32) -> Vec<Action> {
        let output = match self.queue {
            Some(queue) => Action::Enqueue { port, queue },
            None => Action::Output(port),
        };
        self.actions.iter().copied().chain([output]).collect()
    }
}

/// The module of the three experiments.
pub(crate) struct Path {
    /// The repetitions of trials to come; the last one is the present one.
    todo: Vec<Trial>,
    duration: u64,
    patience: u64,
    setup: Setup,
    seen: Seen,
    report: Option<Generated>,
}

/// The observations of one repetition.
struct Seen {
    delays: Histogram,
    probes: u32,
    bytes: u64,
    /// The next sequence number without loss and reordering.
    next: u32,
    reordered: u32,
    unchanged: u32,
    broken: u32,
    first: u64,
    last: u64,
}

const GENERATOR: u32 = 1;
const TAIL: u32 = 1;
/// The time for probes that are in flight when the generator is done, ns.
const TAIL_NS: u64 = 500 * MILLISECOND;

impl Path {
    /// A module for the trials; each repetition takes `duration` ns.
    pub(crate) fn new(trials: Vec<Trial>, common: &Common, duration: u64) -> Path {
        let repetitions = common.repetitions.max(1) as usize;
        let repeated = |trial: Trial| std::iter::repeat_n(trial, repetitions);
        Path {
            todo: trials.into_iter().rev().flat_map(repeated).collect(),
            duration,
            patience: common.patience,
            setup: Setup::default(),
            seen: Seen::new(),
            report: None,
        }
    }

    fn begin(&mut self, orders: &mut Orders<'_>) {
        let Some(trial) = self.todo.last() else { return orders.end() };
        self.seen = Seen::new();
        self.report = None;
        // An action can set a field only if the match contains the prerequisites of the field (1.3.5, section 7.2.5).
        let match_ = Match {
            vlan: trial.headers.vlan.map(|tag| Vlan::Id(tag.id)),
            ..flow_match(0, MatchKind::Wildcard, orders.port(0))
        };
        let actions = trial.entry_actions(orders.port(1));
        let rule = Rule { match_, priority: GUARD, actions };
        self.setup.begin(vec![rule], self.patience, orders);
    }

    fn generate(&mut self, orders: &mut Orders<'_>) {
        let Some(trial) = self.todo.last() else { return };
        let traffic = traffic(vec![trial.headers], trial.length, trial.rate, self.duration);
        orders.generate(GENERATOR, traffic);
    }

    fn conclude(&mut self, orders: &mut Orders<'_>) {
        let Some(report) = self.report.take() else { return };
        let Some(trial) = self.todo.pop() else { return };
        let actions = format!("{:?}", trial.entry_actions(orders.port(1)));
        let actions = actions.trim_matches(['[', ']']);
        let (case, seen, record) = (&trial.case, &self.seen, &mut *orders.record);
        let summary = seen.delays.summary();
        let sent = f64::from(report.sent.max(1));
        record.sample(case, LOSS, (1.0 - f64::from(seen.probes) / sent).max(0.0) * 100.0);
        if seen.probes > 0 {
            record.sample(case, MEDIAN, summary.p50_us);
            record.sample(case, DEVIATION, summary.stdev_us);
            record.sample(case, REORDERED, f64::from(seen.reordered));
            let seconds = seen.last.saturating_sub(seen.first) as f64 / 1e9;
            if seen.probes > 1 && seconds > 0.0 {
                // The bytes of the first probe arrived before the measured time.
                let bits = (seen.bytes as f64 - trial.length as f64) * 8.0;
                record.sample(case, RECEIVED, f64::from(seen.probes - 1) / seconds);
                record.sample(case, THROUGHPUT, bits / seconds / 1e6);
            }
        }
        if seen.unchanged > 0 {
            record.finding(
                "not-changed",
                format!(
                    "{} of {} probes came without what the entry's actions should have done ({actions})",
                    seen.unchanged, seen.probes
                ),
            );
        }
        if seen.broken > 0 {
            record.finding(
                "checksum",
                format!(
                    "{} of {} probes came with a wrong IPv4 or UDP checksum ({actions})",
                    seen.broken, seen.probes
                ),
            );
        }
        let achieved = f64::from(report.sent) / (report.elapsed as f64 / 1e9).max(1e-9);
        if achieved < 0.95 * trial.rate && report.sent > 1 {
            record.finding("generator-bottleneck", format!("the generator reached {achieved:.0} of {:.0} probes a second: losses and delays may be its own", trial.rate));
        }
        self.begin(orders);
    }
}

pub(crate) const MEDIAN: Measure = Measure::us("median_us");
pub(crate) const DEVIATION: Measure = Measure::us("deviation_us");
pub(crate) const LOSS: Measure = Measure::percent("loss_percent");
const REORDERED: Measure = Measure { name: "reordered", unit: "", better: Better::Lower };
const RECEIVED: Measure = Measure::rate("received_per_s");
pub(crate) const THROUGHPUT: Measure =
    Measure { name: "throughput_mbps", unit: "Mb/s", better: Better::Higher };
/// The distribution of delays from port to port.
pub(crate) const PATH: &str = "path";

impl Seen {
    fn new() -> Seen {
        Seen {
            delays: Histogram::new(Precision::Fine),
            probes: 0,
            bytes: 0,
            next: 0,
            reordered: 0,
            unchanged: 0,
            broken: 0,
            first: u64::MAX,
            last: 0,
        }
    }
}

impl Module for Path {
    fn handle(&mut self, at: u64, event: &Event<'_>, orders: &mut Orders<'_>) {
        if self.setup.is_done(event, orders) {
            return self.generate(orders);
        }
        match event {
            Event::Start => self.begin(orders),
            Event::Probe { channel: 1, probe, .. } => {
                let Some(trial) = self.todo.last() else { return };
                let delay = at.saturating_sub(probe.sent.0);
                orders.record.delay(&trial.case, PATH, delay);
                let seen = &mut self.seen;
                seen.delays.record(delay);
                seen.probes += 1;
                seen.bytes += trial.length as u64;
                seen.reordered += u32::from(probe.sequence < seen.next);
                seen.next = seen.next.max(probe.sequence.saturating_add(1));
                seen.unchanged += u32::from(probe.headers != changed(trial));
                let is_right = probe.ip_checksum_is_right && probe.udp_checksum_is_right;
                seen.broken += u32::from(!is_right);
                seen.first = seen.first.min(at);
                seen.last = seen.last.max(at);
            }
            Event::Generated { report, .. } => {
                self.report = Some(**report);
                orders.after(TAIL_NS, TAIL);
            }
            Event::Timer { timer: TAIL } => self.conclude(orders),
            _ => {}
        }
    }
}

/// The expected headers of a probe after the actions.
fn changed(trial: &Trial) -> Headers {
    let mut headers = trial.headers;
    let tag = |headers: &Headers| headers.vlan.unwrap_or(VlanTag { id: 0, priority: 0 });
    for action in &trial.actions {
        match *action {
            Action::SetSourceMac(mac) => headers.source_mac = mac,
            Action::SetDestinationMac(mac) => headers.destination_mac = mac,
            Action::SetSource(address) => headers.source = address,
            Action::SetDestination(address) => headers.destination = address,
            // A switch does not change ECN.
            Action::SetTos(tos) => headers.tos = tos & 0xfc | headers.tos & 3,
            Action::SetSourcePort(port) => headers.source_port = port,
            Action::SetDestinationPort(port) => headers.destination_port = port,
            Action::PushVlan => headers.vlan = Some(tag(&headers)),
            Action::SetVlanId(id) => headers.vlan = Some(VlanTag { id, ..tag(&headers) }),
            Action::SetVlanPriority(priority) => {
                headers.vlan = Some(VlanTag { priority, ..tag(&headers) });
            }
            Action::StripVlan => headers.vlan = None,
            Action::Output(_) | Action::Controller | Action::Enqueue { .. } => {}
        }
    }
    headers
}
