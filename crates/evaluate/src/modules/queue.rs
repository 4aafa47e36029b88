//! `queue`: measures delay and rate of each queue of the receiving port.
//!
//! The switch itself lists its queues (QUEUE_GET_CONFIG). The rate of a queue is the rate of arriving probes while more
//! probes are sent. The switch's own counters show whether the probes left through the queue.

use crate::message::Message;
use crate::module::{Event, Module, Orders};
use crate::modules::experiment::{Common, Experiment, MILLISECOND, error_name};
use crate::modules::path::{LOSS, Path, Trial};
use crate::probe::headers;
use crate::record::Case;
use crate::request::Request;

/// The parameters of the experiment.
#[derive(Clone, Debug)]
pub struct Queue {
    /// The parameters of all modules.
    pub common: Common,
    /// The duration of each repetition, ns.
    pub duration: u64,
    /// The queues; an empty list means the queues that the switch lists.
    pub queues: Vec<u32>,
    /// The probes per second.
    pub rates: Vec<f64>,
}

impl Queue {
    /// All queues, at 1,000 and 12,500 probes per second.
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
        Box::new(Run { plan: self.clone(), todo: Vec::new(), asked: 0, before: None, path: None })
    }
}

/// Measures one queue after another: reads the counter of the queue, sends probes through the queue, and reads the
/// counter again.
struct Run {
    plan: Queue,
    /// The queues to come; the last queue is the present one.
    todo: Vec<u32>,
    /// The transaction id of the open request.
    asked: u32,
    /// The number of packets that the queue had sent before; `None` if the switch has no counter for the queue.
    before: Option<u64>,
    path: Option<Path>,
}

const PATIENCE: u32 = 8_000;

impl Run {
    fn ask(&mut self, request: &Request, orders: &mut Orders<'_>) {
        self.asked = orders.send(request);
        orders.after(self.plan.common.patience, PATIENCE);
    }

    /// Starts the measurement with the known queues.
    fn begin(&mut self, mut queues: Vec<u32>, orders: &mut Orders<'_>) {
        queues.reverse();
        self.todo = queues;
        self.next(orders);
    }

    /// Requests the counter of the present queue, before and after the probes.
    fn next(&mut self, orders: &mut Orders<'_>) {
        let Some(&queue) = self.todo.last() else { return orders.end() };
        let port = orders.port(1);
        self.ask(&Request::QueueStatistics { port, queue }, orders);
    }

    /// Handles the counter of the queue before or after the probes.
    fn counted(&mut self, at: u64, packets: Option<u64>, orders: &mut Orders<'_>) {
        self.asked = 0;
        let Some(&queue) = self.todo.last() else { return };
        if self.path.take().is_none() {
            self.before = packets;
            return self.measure(at, queue, orders);
        }
        let has_come = self.cases(queue).any(|case| {
            orders.record.samples(&case, LOSS.name).iter().any(|percent| *percent < 100.0)
        });
        if let (Some(before), Some(after)) = (self.before, packets)
            && before == after
            && has_come
        {
            let text = format!(
                "the switch counts no packet in queue {queue} for the probes that its entries send to this queue: they \
                 left, but not by that queue"
            );
            orders.record.finding("queue-unused", text);
        }
        self.todo.pop();
        self.next(orders);
    }

    fn measure(&mut self, at: u64, queue: u32, orders: &mut Orders<'_>) {
        let trials = self.cases(queue).zip(&self.plan.rates).map(|(case, &rate)| Trial {
            case,
            actions: Vec::new(),
            queue: Some(queue),
            headers: headers(0),
            length: self.plan.common.length,
            rate,
        });
        let path = Path::new(trials.collect(), &self.plan.common, self.plan.duration);
        self.path.insert(path).handle(at, &Event::Start, orders);
    }

    fn cases(&self, queue: u32) -> impl Iterator<Item = Case> {
        let case = move |rate: &f64| Case::new().with("queue", queue).with("rate", *rate);
        self.plan.rates.iter().map(case)
    }
}

impl Module for Run {
    fn handle(&mut self, at: u64, event: &Event<'_>, orders: &mut Orders<'_>) {
        if self.asked == 0
            && let Some(path) = &mut self.path
        {
            path.handle(at, event, orders);
            if orders.take_end() {
                self.next(orders);
            }
            return;
        }
        match event {
            Event::Start if self.plan.queues.is_empty() => {
                let port = orders.port(1);
                self.ask(&Request::Queues { port }, orders);
            }
            Event::Start => self.begin(self.plan.queues.clone(), orders),
            Event::Message { xid, message } if *xid == self.asked => match message {
                Message::Queues(queues) if queues.is_empty() => {
                    let text = "the port has no queues: configure some on the switch";
                    orders.record.finding("no-queues", text);
                    orders.end();
                }
                Message::Queues(queues) => self.begin(queues.clone(), orders),
                Message::QueueStatistics { packets } => self.counted(at, Some(*packets), orders),
                // A switch may lack counters of queues.
                Message::Error { .. } if !self.todo.is_empty() => self.counted(at, None, orders),
                Message::Error { code } => {
                    let name = error_name(*code, orders);
                    orders.give_up(format!("the switch does not report its queues: {name}"));
                }
                _ => {}
            },
            Event::Timer { timer: PATIENCE } if self.asked != 0 => {
                let what = if self.todo.is_empty() { "its queues" } else { "a queue's counters" };
                let text = format!("the switch has not answered a request for {what} in time");
                orders.give_up(text);
            }
            _ => {}
        }
    }
}
