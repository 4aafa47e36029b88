//! Code that `insert`, `change`, `delete` and `interaction` share: changes many entries at once while probes pass every
//! entry, and finds from the data plane when each change takes effect.
//!
//! ```text
//!   prepare ─▶ settle ─▶ update ─▶ watch ─▶ conclude ─▶ next repetition or case
//!   entries,   probes    FLOW_MODs  first or last       samples
//!   barrier    flow      + barrier  probe of each entry
//! ```
//!
//! The probes of N entries are sent in rotation, so each entry gets a probe once per *rotation*, which takes N / rate.
//! If the first probe that an entry forwards was sent at *t*, the probe before was sent a rotation earlier and was not
//! forwarded: the entry became active between the two times. Therefore the distance to the barrier is known within a
//! rotation (and the generator's own lateness). A lower bound above zero proves that the barrier came before the
//! change.

use std::collections::HashMap;

use report::Better;

use crate::message::Message;
use crate::module::{Event, Gauge, Module, Orders, Traffic};
use crate::modules::experiment::{Common, MILLISECOND, error_name};
use crate::modules::setup::for_all_probes;
use crate::probe::{MatchKind, flow_match, headers};
use crate::record::{Case, Measure};
use crate::request::Request;
use crate::rule::{Action, Rule};

/// The kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The experiment adds entries that forward.
    Insert,
    /// The experiment modifies entries that drop to entries that forward.
    Change,
    /// The experiment deletes entries that forward, one by one.
    Delete,
}

/// The order of priorities in which entries are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priorities {
    /// Each priority is higher than the priority before.
    Increasing,
    /// Each priority is lower than the priority before.
    Decreasing,
    /// All priorities are equal.
    Equal,
    /// A fixed pseudo-random permutation spreads the priorities.
    Random,
}

impl Priorities {
    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Priorities::Increasing => "increasing",
            Priorities::Decreasing => "decreasing",
            Priorities::Equal => "equal",
            Priorities::Random => "random",
        }
    }

    /// The priority of entry `index` of `count`.
    fn of(self, index: u32, count: u32) -> u16 {
        /// The range is above the guard, and below the priorities of other entries that have to win.
        const LOWEST: u32 = 0x8000;
        const RANGE: u32 = 0x6000;
        let place = |index: u32| (u64::from(index) * u64::from(RANGE) / u64::from(count)) as u32;
        let above = match self {
            Priorities::Equal => 0,
            Priorities::Increasing => place(index),
            Priorities::Decreasing => place(count - 1 - index),
            // Knuth's multiplicative hash spreads consecutive numbers.
            Priorities::Random => index.wrapping_mul(2_654_435_761) % RANGE,
        };
        (LOWEST + above) as u16
    }
}

/// The parameters of the four experiments.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) kind: Kind,
    /// The numbers of entries to change at once.
    pub(crate) rules: Vec<u32>,
    pub(crate) matches: Vec<MatchKind>,
    pub(crate) priorities: Vec<Priorities>,
    /// The polls of flow statistics per second while entries change; 0 for no polls.
    pub(crate) polls: Vec<f64>,
    /// The number of entries besides the changed entries.
    pub(crate) others: u32,
    /// The parameters of all modules; the rate is the rate of the probes of all entries together.
    pub(crate) common: Common,
}

/// One combination of parameters.
#[derive(Clone, Copy, Debug)]
struct Combination {
    rules: u32,
    matches: MatchKind,
    priorities: Priorities,
    polls: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The entries are added; the module waits for the barrier with this id.
    Prepare { barrier: u32 },
    /// Probes flow; the module waits until the data plane has the state before the update.
    Settle,
    /// The update is in progress.
    Watch,
    /// The generator stops.
    Conclude,
}

/// The observations of one entry.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// The times at which the first and the last probe since the update were sent and arrived.
    first: Option<(u64, u64)>,
    last: Option<(u64, u64)>,
}

/// The module of all four experiments.
pub(crate) struct Update {
    plan: Plan,
    /// The combinations to come with the repetitions left; the last combination is the present one.
    todo: Vec<(Combination, u32)>,
    phase: Phase,
    /// The times of this repetition, ns.
    generator_start: u64,
    update_at: u64,
    sent_at: Option<u64>,
    barrier: u32,
    barrier_at: Option<u64>,
    seen: Vec<Seen>,
    unseen: usize,
    last_pass: u64,
    is_late: bool,
    /// The polls in flight: transaction id and time.
    polls: HashMap<u32, u64>,
    skipped_polls: u64,
    cpu: Option<(u64, f64)>,
}

const SENT: u32 = 1;
const GENERATOR: u32 = 1;
/// The timers: the timeout of a step, a check of the data plane, the next poll.
const PATIENCE: u32 = 1;
const LOOK: u32 = 2;
const POLL: u32 = 3;
/// The number of polls without a reply at which the module sends no more polls.
const MAX_POLLS: usize = 64;

impl Update {
    pub(crate) fn new(plan: Plan) -> Update {
        let mut todo = Vec::new();
        for &rules in &plan.rules {
            for &matches in &plan.matches {
                for &priorities in &plan.priorities {
                    for &polls in &plan.polls {
                        let combination = Combination { rules, matches, priorities, polls };
                        todo.push((combination, plan.common.repetitions));
                    }
                }
            }
        }
        todo.reverse();
        Update {
            plan,
            todo,
            phase: Phase::Conclude,
            generator_start: 0,
            update_at: 0,
            sent_at: None,
            barrier: 0,
            barrier_at: None,
            seen: Vec::new(),
            unseen: 0,
            last_pass: 0,
            is_late: false,
            polls: HashMap::new(),
            skipped_polls: 0,
            cpu: None,
        }
    }

    fn current(&self) -> Option<Combination> {
        self.todo.last().map(|(combination, _)| *combination)
    }

    fn case(&self, of: Combination) -> Case {
        let case = Case::new().with("rules", of.rules).with("match", of.matches.name());
        let case = case.with("priority", of.priorities.name());
        match self.plan.others {
            0 => case,
            others => case.with("others", others).with("polls_per_s", of.polls),
        }
    }

    /// The time between two probes of the same entry, ns.
    fn rotation(&self, of: Combination) -> u64 {
        (f64::from(of.rules) * 1e9 / self.plan.common.rate) as u64
    }

    /// The time without probes after which the traffic counts as stopped.
    fn quiet(&self, of: Combination) -> u64 {
        (2 * self.rotation(of)).max(50 * MILLISECOND)
    }

    fn rule(&self, of: Combination, index: u32, forwards: bool, orders: &Orders<'_>) -> Rule {
        let out = orders.port(1);
        Rule {
            match_: flow_match(index, of.matches, orders.port(0)),
            priority: of.priorities.of(index, of.rules + self.plan.others),
            actions: if forwards { vec![Action::Output(out)] } else { Vec::new() },
        }
    }

    fn prepare(&mut self, orders: &mut Orders<'_>) {
        let Some(of) = self.current() else {
            if self.skipped_polls > 0 {
                let text = format!(
                    "{} polls were not sent because {MAX_POLLS} had no answer yet: the switch is slower than the polling",
                    self.skipped_polls
                );
                orders.record.finding("polls-skipped", text);
            }
            return orders.end();
        };
        // The guard drops probes without an entry. Otherwise such probes would flood the controller, as a table miss
        // does in 1.0.
        let guard = for_all_probes(Vec::new());
        let mut requests = vec![Request::DeleteOwn, Request::Add(guard)];
        let there: u32 = if self.plan.kind == Kind::Insert { 0 } else { of.rules };
        let forwards = self.plan.kind == Kind::Delete;
        requests
            .extend((0..there).map(|index| Request::Add(self.rule(of, index, forwards, orders))));
        let behind = of.rules..of.rules + self.plan.others;
        requests.extend(behind.map(|index| Request::Add(self.rule(of, index, true, orders))));
        requests.push(Request::Barrier);
        let barrier = orders.send_all(&requests, None);
        self.phase = Phase::Prepare { barrier };
        self.seen = vec![Seen::default(); of.rules as usize];
        self.unseen = self.seen.len();
        (self.sent_at, self.barrier_at, self.is_late, self.last_pass) = (None, None, false, 0);
        orders.after(self.plan.common.patience, PATIENCE);
    }

    fn settle(&mut self, orders: &mut Orders<'_>) {
        let Some(of) = self.current() else { return };
        self.phase = Phase::Settle;
        self.generator_start = orders.now();
        self.last_pass = orders.now();
        let Common { rate, length, patience, .. } = self.plan.common;
        let headers = (0..of.rules).map(headers).collect();
        let count = (rate * (3.0 * patience as f64 / 1e9)) as u32;
        let traffic = Traffic { channel: 0, headers, length, rate, count, first: 0 };
        orders.generate(GENERATOR, traffic);
        orders.after(patience, PATIENCE);
        orders.after(self.quiet(of), LOOK);
        if of.polls > 0.0 {
            orders.read(Gauge::Cpu);
            orders.after(0, POLL);
        }
    }

    fn update(&mut self, orders: &mut Orders<'_>) {
        let Some(of) = self.current() else { return };
        let change = |index| match self.plan.kind {
            Kind::Insert => Request::Add(self.rule(of, index, true, orders)),
            Kind::Change => Request::Modify(self.rule(of, index, true, orders)),
            Kind::Delete => Request::Delete(self.rule(of, index, true, orders)),
        };
        let mut requests: Vec<_> = (0..of.rules).map(change).collect();
        requests.push(Request::Barrier);
        self.phase = Phase::Watch;
        // The last packet before a deletion stays the last packet if no packet arrives after the deletion.
        if self.plan.kind != Kind::Delete {
            self.seen.fill(Seen::default());
            self.unseen = self.seen.len();
        }
        self.update_at = orders.now();
        self.last_pass = orders.now();
        self.barrier = orders.send_all(&requests, Some(SENT));
        orders.after(self.plan.common.patience, PATIENCE);
        if self.plan.kind == Kind::Delete {
            orders.after(self.quiet(of), LOOK);
        }
    }

    /// Checks whether the observations are complete, and starts the next phase.
    fn look(&mut self, orders: &mut Orders<'_>) {
        let Some(of) = self.current() else { return };
        let is_quiet = orders.now().saturating_sub(self.last_pass) >= self.quiet(of);
        match (self.phase, self.plan.kind) {
            (Phase::Settle, Kind::Delete) if self.unseen == 0 => self.update(orders),
            (Phase::Settle, Kind::Insert | Kind::Change) if is_quiet => self.update(orders),
            (Phase::Watch, Kind::Delete) if is_quiet && self.barrier_at.is_some() => {
                self.stop(orders);
            }
            (Phase::Watch, Kind::Insert | Kind::Change)
                if self.unseen == 0 && self.barrier_at.is_some() =>
            {
                self.stop(orders);
            }
            (Phase::Settle, _) | (Phase::Watch, Kind::Delete) => {
                orders.after(self.quiet(of) / 4, LOOK);
            }
            _ => {}
        }
    }

    fn stop(&mut self, orders: &mut Orders<'_>) {
        self.phase = Phase::Conclude;
        orders.stop(GENERATOR);
        if self.current().is_some_and(|of| of.polls > 0.0) {
            orders.read(Gauge::Cpu);
        }
    }

    fn out_of_patience(&mut self, orders: &mut Orders<'_>) {
        let seconds = self.plan.common.patience as f64 / 1e9;
        match self.phase {
            Phase::Settle if self.plan.kind == Kind::Delete => orders.give_up(format!(
                "{} of {} entries that were added, and acknowledged by a barrier, do not forward after {seconds} s: no room for them, or probes do not reach the switch's port",
                self.unseen,
                self.seen.len()
            )),
            Phase::Settle => orders.give_up(
                "probes pass although no entry of the experiment forwards them: other entries do; evaluate a switch without them".to_owned(),
            ),
            Phase::Watch if self.barrier_at.is_some() => {
                self.is_late = true;
                self.stop(orders);
            }
            Phase::Prepare { .. } | Phase::Watch => orders.give_up(format!(
                "the switch has not answered a BARRIER_REQUEST within {seconds} s"
            )),
            Phase::Conclude => {}
        }
    }

    fn pass(&mut self, sequence: u32, sent: u64, arrived: u64, orders: &mut Orders<'_>) {
        if sent < self.generator_start || !matches!(self.phase, Phase::Settle | Phase::Watch) {
            return;
        }
        self.last_pass = self.last_pass.max(arrived);
        if self.phase == Phase::Watch && sent < self.update_at && self.plan.kind != Kind::Delete {
            return;
        }
        let index = (sequence as usize).checked_rem(self.seen.len()).unwrap_or(0);
        let Some(seen) = self.seen.get_mut(index) else { return };
        if seen.first.is_none() {
            seen.first = Some((sent, arrived));
            self.unseen = self.unseen.saturating_sub(1);
        }
        seen.last = Some((sent, arrived));
        if self.unseen == 0 && self.plan.kind != Kind::Delete {
            self.look(orders);
        }
    }

    /// The generator is done: makes samples of the observations.
    fn conclude(&mut self, lateness: u64, orders: &mut Orders<'_>) {
        let Some(of) = self.current() else { return };
        let case = self.case(of);
        let since = |at: u64| at.saturating_sub(self.update_at) as f64 / 1e3;
        let record = &mut *orders.record;
        if let Some(sent) = self.sent_at {
            record.sample(&case, SENT_US, since(sent));
        }
        let barrier = self.barrier_at.unwrap_or(u64::MAX);
        if self.barrier_at.is_some() {
            record.sample(&case, BARRIER_US, since(barrier));
        }
        let uncertain = self.rotation(of) + lateness;
        record.sample(&case, RESOLUTION_US, uncertain as f64 / 1e3);
        // For each entry: the latest and the earliest time at which the change took effect.
        let edge = |seen: &Seen| match self.plan.kind {
            Kind::Delete => seen.last.map(|(sent, arrived)| (sent, sent + uncertain, arrived)),
            _ => seen.first.map(|(sent, arrived)| (sent.saturating_sub(uncertain), sent, arrived)),
        };
        let edges: Vec<_> = self.seen.iter().map(edge).collect();
        for (_, _, arrived) in edges.iter().flatten() {
            record.delay(&case, EACH_RULE, arrived.saturating_sub(self.update_at));
        }
        let missing = match self.plan.kind {
            Kind::Delete if self.is_late => self.seen.len(),
            Kind::Delete => 0,
            _ => self.unseen,
        };
        record.sample(&case, NEVER, missing as f64);
        if missing > 0 {
            let what =
                if self.plan.kind == Kind::Delete { "still forward" } else { "do not forward" };
            record.finding("rules-not-real", format!("{missing} of {} entries {what} {} s after the change, in the data plane: the switch acknowledged what it did not do, or probes were lost", self.seen.len(), self.plan.common.patience / 1_000_000_000));
        }
        if missing < self.seen.len() {
            if let Some(Some((_, _, arrived))) = edges.last() {
                record.sample(&case, LAST_RULE_US, since(*arrived));
            }
            if let Some(latest) = edges.iter().flatten().map(|edge| edge.2).max() {
                record.sample(&case, ALL_RULES_US, since(latest));
            }
            let lie = |times: Option<u64>| times.map(|at| at as f64 / 1e3 - barrier as f64 / 1e3);
            let least = lie(edges.iter().flatten().map(|edge| edge.0).max());
            let most = lie(edges.iter().flatten().map(|edge| edge.1).max());
            if let (Some(least), Some(most), Some(_)) = (least, most, self.barrier_at) {
                record.sample(&case, LIE_AT_LEAST_US, least.max(0.0));
                record.sample(&case, LIE_AT_MOST_US, most.max(0.0));
                record.sample(&case, HONEST, if least <= 0.0 { 1.0 } else { 0.0 });
            }
        }
        if let Some((_, left)) = self.todo.last_mut() {
            *left = left.saturating_sub(1);
            if *left == 0 {
                verdict(orders, &case, of.rules);
                self.todo.pop();
            }
        }
        self.prepare(orders);
    }

    fn poll(&mut self, orders: &mut Orders<'_>) {
        let Some(of) = self.current().filter(|of| of.polls > 0.0) else { return };
        if !matches!(self.phase, Phase::Settle | Phase::Watch) {
            return;
        }
        if self.polls.len() < MAX_POLLS {
            let xid = orders.send(&Request::FlowStatistics { own: true });
            self.polls.insert(xid, orders.now());
        } else {
            self.skipped_polls += 1;
        }
        orders.after((1e9 / of.polls) as u64, POLL);
    }

    fn hear(&mut self, at: u64, xid: u32, message: &Message<'_>, orders: &mut Orders<'_>) {
        match (message, self.phase) {
            (Message::BarrierReply, Phase::Prepare { barrier }) if xid == barrier => {
                self.settle(orders);
            }
            (Message::BarrierReply, Phase::Watch) if xid == self.barrier => {
                self.barrier_at.get_or_insert(at);
                self.look(orders);
            }
            (Message::FlowStatistics { more: false, .. }, _) => {
                if let (Some(asked), Some(of)) = (self.polls.remove(&xid), self.current()) {
                    let case = self.case(of);
                    orders.record.delay(&case, "statistics reply", at.saturating_sub(asked));
                }
            }
            (Message::Error { code }, _) if self.polls.remove(&xid).is_none() => {
                let name = error_name(*code, orders);
                orders.give_up(format!("the switch refused a message: {name}"));
            }
            _ => {}
        }
    }

    fn measure_cpu(&mut self, at: u64, value: Option<f64>, orders: &mut Orders<'_>) {
        let Some(of) = self.current() else { return };
        match (self.cpu.take(), value) {
            (Some((since, before)), Some(after)) if at > since => {
                let percent = (after - before) / (at - since) as f64 * 100.0;
                let case = self.case(of);
                orders.record.sample(&case, Measure::percent("cpu_percent"), percent);
            }
            (_, Some(value)) => self.cpu = Some((at, value)),
            (_, None) => orders.record.finding(
                "cpu-unknown",
                "nothing reports the switch's CPU time: give --pid or --snmp",
            ),
        }
    }
}

pub(crate) const SENT_US: Measure = Measure::us("sent_us");
pub(crate) const BARRIER_US: Measure = Measure::us("barrier_us");
pub(crate) const LAST_RULE_US: Measure = Measure::us("last_rule_us");
pub(crate) const ALL_RULES_US: Measure = Measure::us("all_rules_us");
pub(crate) const LIE_AT_LEAST_US: Measure = Measure::us("lie_at_least_us");
pub(crate) const LIE_AT_MOST_US: Measure = Measure::us("lie_at_most_us");
pub(crate) const RESOLUTION_US: Measure = Measure::us("resolution_us");
pub(crate) const HONEST: Measure =
    Measure { name: "barrier_honest", unit: "", better: Better::Higher };
pub(crate) const NEVER: Measure =
    Measure { name: "rules_never_real", unit: "", better: Better::Lower };
/// The distribution of the times at which entries took effect, over all entries.
pub(crate) const EACH_RULE: &str = "each rule";

/// Adds a finding when a BARRIER_REPLY came before a change took effect.
fn verdict(orders: &mut Orders<'_>, case: &Case, rules: u32) {
    let lies = orders.record.samples(case, LIE_AT_LEAST_US.name);
    let shown = lies.iter().filter(|lie| **lie > 0.0).count();
    let most = orders.record.samples(case, LIE_AT_MOST_US.name);
    let (Some(worst), Some(most)) =
        (lies.iter().copied().reduce(f64::max), most.iter().copied().reduce(f64::max))
    else {
        return;
    };
    if shown > 0 {
        let text = format!(
            "the barrier is not honest: in {shown} of {} repetitions with {rules} entries changes became real after it was answered, at worst by {:.3} to {:.3} ms",
            lies.len(),
            worst / 1e3,
            most / 1e3
        );
        orders.record.finding("barrier-lies", text);
    }
}

impl Module for Update {
    fn handle(&mut self, at: u64, event: &Event<'_>, orders: &mut Orders<'_>) {
        match event {
            Event::Start => self.prepare(orders),
            Event::Sent { mark: SENT } => self.sent_at = Some(at),
            Event::Message { xid, message } => self.hear(at, *xid, message, orders),
            Event::Probe { channel: 1, probe, .. } => {
                self.pass(probe.sequence, probe.sent.0, at, orders);
            }
            Event::Timer { timer: PATIENCE } => self.out_of_patience(orders),
            Event::Timer { timer: LOOK } => self.look(orders),
            Event::Timer { timer: POLL } => self.poll(orders),
            Event::Generated { generator: GENERATOR, report } => match self.phase {
                Phase::Conclude => self.conclude(report.worst_lateness, orders),
                _ => orders.give_up("the generator ended before the experiment"),
            },
            Event::Reading { gauge: Gauge::Cpu, value } => self.measure_cpu(at, *value, orders),
            _ => {}
        }
    }
}
