//! `port-status`: measures the time from a link's change until its PORT_STATUS message.
//!
//! The experiment sets the link down and up at its own end; the time begins with the request to the
//! kernel.

use crate::message::Message;
use crate::module::{Event, Module, Orders};
use crate::modules::experiment::{Common, Experiment, MILLISECOND};
use crate::record::{Case, Measure};

/// The parameters of the experiment.
#[derive(Clone, Debug)]
pub struct PortStatus {
    /// The parameters of all modules.
    pub common: Common,
}

impl Experiment for PortStatus {
    fn name(&self) -> &str {
        "port-status"
    }

    fn module(&self) -> Box<dyn Module> {
        Box::new(Run {
            patience: self.common.patience,
            left: self.common.repetitions,
            asked: None,
            missed: 0,
        })
    }
}

struct Run {
    patience: u64,
    left: u32,
    /// The time and the state of the last change of the link.
    asked: Option<(u64, bool)>,
    missed: u32,
}

const CHANNEL: usize = 1;
const MISSED: u32 = 1;
const NEXT: u32 = 2;
/// The pause between two changes, ns: some switches check their links only at this interval.
const PAUSE: u64 = 200 * MILLISECOND;

impl Run {
    fn change(&mut self, up: bool, orders: &mut Orders<'_>) {
        self.asked = Some((orders.now(), up));
        orders.set_link(CHANNEL, up);
        orders.after(self.patience, MISSED);
    }

    fn next(&mut self, was_up: bool, orders: &mut Orders<'_>) {
        if !was_up {
            return self.change(true, orders);
        }
        self.left = self.left.saturating_sub(1);
        if self.left > 0 {
            return self.change(false, orders);
        }
        if self.missed > 0 {
            let text = format!(
                "{} changes of a link were not reported within {} s",
                self.missed,
                self.patience / 1_000_000_000
            );
            orders.record.finding("port-status-missing", text);
        }
        orders.end();
    }
}

impl Module for Run {
    fn handle(&mut self, at: u64, event: &Event<'_>, orders: &mut Orders<'_>) {
        match event {
            Event::Start => self.change(false, orders),
            Event::Message { message: Message::PortStatus { port, up }, .. } => {
                let Some((asked, wanted)) = self.asked else { return };
                if *port != orders.port(CHANNEL) || *up != wanted {
                    return;
                }
                let name = if wanted { "up" } else { "down" };
                let case = Case::new().with("link", name);
                let delay = at.saturating_sub(asked);
                orders.record.sample(&case, Measure::us("port_status_us"), delay as f64 / 1e3);
                orders.after(PAUSE, NEXT);
                orders.after(u64::MAX, MISSED);
            }
            Event::Timer { timer: NEXT } => {
                if let Some((_, up)) = self.asked.take() {
                    self.next(up, orders);
                }
            }
            Event::Timer { timer: MISSED } => {
                self.missed += 1;
                orders.after(0, NEXT);
            }
            _ => {}
        }
    }
}
