//! Prepares most experiments: adds entries, sends a barrier, and waits until the data plane has
//! applied the entries.

use crate::message::Message;
use crate::module::{Event, Orders};
use crate::modules::experiment::{GUARD, MILLISECOND, error_name};
use crate::probe::{MatchKind, flow_match, own_match};
use crate::request::Request;
use crate::rule::{Action, Rule};

/// The wait after the BARRIER_REPLY before a measurement, ns: a data plane may be behind its
/// barrier.
const SETTLE: u64 = 200 * MILLISECOND;
/// The timers of the preparation.
const PATIENCE: u32 = 9_000;
const SETTLED: u32 = 9_001;

/// A preparation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Setup {
    barrier: Option<u32>,
    is_settling: bool,
}

impl Setup {
    /// Replaces the experiment's own entries by `rules`.
    pub(crate) fn begin(&mut self, rules: Vec<Rule>, patience: u64, orders: &mut Orders<'_>) {
        let mut requests = vec![Request::DeleteOwn];
        requests.extend(rules.into_iter().map(Request::Add));
        requests.push(Request::Barrier);
        self.barrier = Some(orders.send_all(&requests, None));
        self.is_settling = false;
        orders.after(patience, PATIENCE);
    }

    /// Whether this event completes the preparation; the function returns true once.
    pub(crate) fn is_done(&mut self, event: &Event<'_>, orders: &mut Orders<'_>) -> bool {
        match event {
            Event::Message { xid, message: Message::BarrierReply }
                if self.barrier == Some(*xid) =>
            {
                self.barrier = None;
                self.is_settling = true;
                orders.after(SETTLE, SETTLED);
            }
            Event::Message { message: Message::Error { code }, .. } if self.barrier.is_some() => {
                let name = error_name(*code, orders);
                orders.give_up(format!("the switch refused an entry of the experiment: {name}"));
            }
            Event::Timer { timer: PATIENCE } if self.barrier.is_some() => {
                orders.give_up("the switch has not answered a BARRIER_REQUEST in time");
            }
            Event::Timer { timer: SETTLED } => return std::mem::take(&mut self.is_settling),
            _ => {}
        }
        false
    }
}

/// An entry that forwards flow `index` from the first channel to the second channel.
pub(crate) fn forwarding(index: u32, kind: MatchKind, orders: &Orders<'_>) -> Rule {
    Rule {
        match_: flow_match(index, kind, orders.port(0)),
        priority: 0x8000,
        actions: vec![Action::Output(orders.port(1))],
    }
}

/// An entry with these actions for all probes.
pub(crate) fn for_all_probes(actions: Vec<Action>) -> Rule {
    Rule { match_: own_match(), priority: GUARD, actions }
}
