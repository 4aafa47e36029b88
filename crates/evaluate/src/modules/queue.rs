//! `queue`: delay and rate of each queue of the receiving port.
//!
//! The queues are those that the switch itself names (QUEUE_GET_CONFIG); the rate is what comes
//! through while more is sent.

use crate::message::Message;
use crate::module::{Event, Module, Orders};
use crate::modules::path::{Path, Trial};
use crate::modules::update::error_name;
use crate::modules::{Common, Experiment, MILLISECOND};
use crate::probe::headers;
use crate::record::Case;
use crate::request::Request;
use crate::rule::Action;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Queue {
    /// What all modules share.
    pub common: Common,
    /// How long each repetition lasts, ns.
    pub duration: u64,
    /// Queues; those that the switch names if there is none.
    pub queues: Vec<u32>,
    /// Probes per second.
    pub rates: Vec<f64>,
}

impl Queue {
    /// All queues, at 1,000 and 12,500 probes a second.
    pub fn new(common: Common) -> Queue {
        let rates = vec![1_000.0, 12_500.0];
        Queue { common, duration: 1_000 * MILLISECOND, queues: Vec::new(), rates }
    }
}

impl Experiment for Queue {
    fn name(&self) -> &str {
        "queue"
    }

    fn module(&self) -> Box<dyn Module> {
        Box::new(Late { plan: self.clone(), asked: 0, path: None })
    }
}

/// Makes its trials when it knows the queues.
struct Late {
    plan: Queue,
    asked: u32,
    path: Option<Path>,
}

const PATIENCE: u32 = 8_000;

impl Late {
    fn begin(&mut self, at: u64, queues: &[u32], orders: &mut Orders<'_>) {
        let port = orders.port(1);
        let length = self.plan.common.length;
        let mut trials = Vec::new();
        for &queue in queues {
            for &rate in &self.plan.rates {
                let case = Case::new().with("queue", queue).with("rate", rate);
                let actions = vec![Action::Enqueue { port, queue }];
                trials.push(Trial { case, actions, headers: headers(0), length, rate });
            }
        }
        let common = &self.plan.common;
        let path = Path::new(trials, common.repetitions, self.plan.duration, common.patience);
        self.path.insert(path).handle(at, &Event::Start, orders);
    }
}

impl Module for Late {
    fn handle(&mut self, at: u64, event: &Event<'_>, orders: &mut Orders<'_>) {
        if let Some(path) = &mut self.path {
            return path.handle(at, event, orders);
        }
        match event {
            Event::Start if self.plan.queues.is_empty() => {
                let port = orders.port(1);
                self.asked = orders.send(&Request::Queues { port });
                orders.after(self.plan.common.patience, PATIENCE);
            }
            Event::Start => self.begin(at, &self.plan.queues.clone(), orders),
            Event::Message { xid, message, .. } if *xid == self.asked => match message {
                Message::Queues(queues) => match queues.ids() {
                    ids if ids.is_empty() => {
                        let text = "the port has no queues: configure some on the switch";
                        orders.record.finding("no-queues", text);
                        orders.end();
                    }
                    ids => self.begin(at, &ids, orders),
                },
                Message::Error { code } => {
                    let name = error_name(*code, orders);
                    orders.give_up(format!("the switch does not tell its queues: {name}"));
                }
                _ => {}
            },
            Event::Timer { timer: PATIENCE } => {
                orders.give_up("the switch has not answered a request for its queues in time");
            }
            _ => {}
        }
    }
}
