//! `capacity`: the number of entries that fit, and the time of an insertion as the table fills.
//!
//! The experiment adds entries in batches, each with a barrier, until the switch refuses an entry or the limit is
//! reached. Then the experiment requests the number of entries. That number reveals a switch that accepts entries and
//! does not keep the entries.

use crate::message::Message;
use crate::module::{Event, Module, Orders};
use crate::modules::experiment::{Common, Experiment, error_name};
use crate::modules::setup::forwarding;
use crate::probe::MatchKind;
use crate::record::{Case, Measure};
use crate::request::Request;

/// The parameters of the experiment.
#[derive(Clone, Debug)]
pub struct Capacity {
    /// The parameters of all modules.
    pub common: Common,
    /// The kind of match of the entries.
    pub match_: MatchKind,
    /// The number of entries at which the experiment ends even if the switch accepts more.
    pub limit: u32,
    /// The number of entries per barrier.
    pub batch: u32,
}

impl Capacity {
    /// Exact entries in batches of 100, at most 10,000 entries.
    pub fn new(common: Common) -> Capacity {
        Capacity { common, match_: MatchKind::Exact, limit: 10_000, batch: 100 }
    }
}

impl Experiment for Capacity {
    fn name(&self) -> &str {
        "capacity"
    }

    fn module(&self) -> Box<dyn Module> {
        Box::new(Run {
            plan: self.clone(),
            left: self.common.repetitions,
            filled: 0,
            batch: 0,
            started: 0,
            first: 0,
            barrier: 0,
            refused: None,
            asked: None,
        })
    }
}

struct Run {
    plan: Capacity,
    left: u32,
    /// The number of accepted entries.
    filled: u32,
    /// The number of entries in the present batch.
    batch: u32,
    started: u64,
    /// The transaction ids of the batch's first FLOW_MOD and of its barrier.
    first: u32,
    barrier: u32,
    /// The first refusal: the number of accepted entries of the batch before the refusal, and the error code.
    refused: Option<(u32, (u16, u16))>,
    /// The transaction id of the request for the number of entries.
    asked: Option<u32>,
}

const PATIENCE: u32 = 1;
/// The number of parts of the fill that have separate times.
const PARTS: u32 = 20;
/// `OFPFMFC_ALL_TABLES_FULL` of 1.0 and `OFPFMFC_TABLE_FULL` of 1.3.
const FULL: [(u16, u16); 2] = [(3, 0), (5, 1)];
/// The number of entries that fit.
pub(crate) const CAPACITY: Measure =
    Measure { name: "capacity_rules", unit: "", better: report::Better::Higher };
const FULL_SEEN: Measure = Measure::plain("full_seen");
const RULE_US: Measure = Measure::us("rule_us");

impl Run {
    fn case(&self) -> Case {
        Case::new().with("match", self.plan.match_.name())
    }

    fn add(&mut self, orders: &mut Orders<'_>) {
        self.batch = self.plan.batch.min(self.plan.limit - self.filled);
        if self.batch == 0 {
            return self.ask(orders);
        }
        let mut requests: Vec<_> = (self.filled..self.filled + self.batch)
            .map(|index| Request::Add(forwarding(index, self.plan.match_, orders)))
            .collect();
        requests.push(Request::Barrier);
        self.started = orders.now();
        self.barrier = orders.send_all(&requests, None);
        self.first = self.barrier.wrapping_sub(self.batch);
        orders.after(self.plan.common.patience, PATIENCE);
    }

    fn acknowledge(&mut self, at: u64, orders: &mut Orders<'_>) {
        let took = self.refused.map_or(self.batch, |(before, _)| before);
        let each = at.saturating_sub(self.started) as f64 / 1e3 / f64::from(self.batch.max(1));
        let part = (self.plan.limit / PARTS).max(self.plan.batch);
        let case = self.case().with("fill_up_to", (self.filled / part + 1) * part);
        if self.refused.is_none() {
            orders.record.sample(&case, RULE_US, each);
        }
        self.filled += took;
        match self.refused {
            Some(_) => self.ask(orders),
            None => self.add(orders),
        }
    }

    fn ask(&mut self, orders: &mut Orders<'_>) {
        self.asked = Some(orders.send(&Request::AggregateStatistics));
        orders.after(self.plan.common.patience, PATIENCE);
    }

    fn conclude(&mut self, there: u32, orders: &mut Orders<'_>) {
        let case = self.case();
        let record = &mut *orders.record;
        record.sample(&case, CAPACITY, f64::from(self.filled.min(there)));
        record.sample(&case, FULL_SEEN, if self.refused.is_some() { 1.0 } else { 0.0 });
        if there < self.filled {
            record.finding(
                "rules-vanish",
                format!("the switch acknowledged {} entries and has {there}", self.filled),
            );
        }
        if let Some((_, code)) = self.refused.filter(|(_, code)| !FULL.contains(code)) {
            let name = error_name(code, orders);
            let text = format!(
                "entry {} was refused for another reason than a full table: {name}",
                self.filled + 1
            );
            orders.record.finding("refused", text);
        }
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            return orders.end();
        }
        (self.filled, self.refused, self.asked) = (0, None, None);
        orders.send(&Request::DeleteOwn);
        self.add(orders);
    }
}

impl Module for Run {
    fn handle(&mut self, at: u64, event: &Event<'_>, orders: &mut Orders<'_>) {
        match event {
            Event::Start => self.add(orders),
            Event::Message { xid, message } => match message {
                Message::BarrierReply if *xid == self.barrier => self.acknowledge(at, orders),
                Message::AggregateStatistics { flows } if self.asked == Some(*xid) => {
                    self.conclude(*flows, orders);
                }
                Message::Error { code } if self.asked == Some(*xid) => {
                    let name = error_name(*code, orders);
                    orders.give_up(format!("the switch refused a question: {name}"));
                }
                Message::Error { code } if xid.wrapping_sub(self.first) < self.batch => {
                    let before = xid.wrapping_sub(self.first);
                    self.refused.get_or_insert((before, *code));
                }
                _ => {}
            },
            Event::Timer { timer: PATIENCE } => orders.give_up(format!(
                "the switch has not answered after {} entries",
                self.filled + self.batch
            )),
            _ => {}
        }
    }
}
