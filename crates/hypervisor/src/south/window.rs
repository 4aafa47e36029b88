//! The window: the most work that Weir has sent to the switch and the switch has not confirmed.
//!
//! When tenants ask for more than the switch can do, requests wait, either in the switch's socket or in Weir. The
//! socket serves requests in the order of their arrival, so one tenant can delay all others. Weir serves its queues
//! fairly, so Weir keeps the requests and sends only as much as the window allows.
//!
//! Weir searches for the *knee*: the least work in flight at which the switch does as much as it can. Late answers do
//! not show that the window is too large: on a shared host every answer is late, and with less work in flight the
//! switch would be slower and the answers no quicker. So Weir compares the rates of different windows (`search`).
//!
//! The window also binds a single tenant. While at least two tenants want the switch, the window has the size that the
//! search has found. While only one tenant wants the switch, the window is at least 256 units, or the size that the
//! search has found if that is larger: the tenant's messages wait only for messages of the same tenant.
//!
//! A message costs one unit, and the deletion of a group or meter one more unit for every eight entries that it takes
//! along. While the switch carries out such a deletion, some switches forward no packets. So after a message of 64
//! units or more Weir sends nothing until the switch has finished, and no other such message for as long again, at most
//! 200 ms: these messages take at most half of the switch's time.

mod search;

use crate::time::{Duration, Instant};
use search::Search;

/// Work that may be in flight in any case while nobody else wants the switch. So a newcomer's first message waits
/// behind this much; and the hypervisor's own barriers, one for each half of a window, are less than a hundredth of all
/// messages.
const ALONE: u32 = 256;
/// A message of so much work is large: the time from here to the switch and back is little beside it.
const LARGE: u32 = 64;
/// How long the next large message waits at most.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// While messages wait, a barrier is sent at the latest after the work of this time. The window of a switch far away is
/// large, and messages that half a window's barrier releases at once would wait for each other at the switch.
const BARRIER_AFTER: Duration = Duration::from_millis(4);
/// A tenant that sent nothing for this long does not want the switch.
const WANTS_FOR: Duration = Duration::from_secs(10);

/// A bounded amount of unacknowledged work.
#[derive(Debug)]
pub(crate) struct Window {
    in_flight: u32,
    /// Work in flight up to the last large message, with that message.
    up_to_large: u32,
    /// When that was sent, and when the next may be.
    large: (Instant, Instant),
    search: Search,
    demand: Demand,
    burst: Burst,
    /// The switch has left a barrier unanswered: nothing can be known of its queue, and a bound would only stop
    /// everybody.
    is_silent: bool,
}

/// What has to be remembered with a message in flight to learn from its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    at: Instant,
    cost: u32,
}

/// Which tenants want the switch.
#[derive(Debug, Default)]
struct Demand {
    last: Option<u32>,
    /// When one tenant sent something after another had.
    alternated: Option<Instant>,
}

/// Answers that came at the same instant, that is in one turn of the driver.
#[derive(Debug, Default)]
struct Burst {
    at: Instant,
    /// Answers that were due when the first of them came.
    due: u32,
    answers: u32,
}

impl Window {
    /// An empty window of a switch about which nothing is known.
    pub(crate) fn new(now: Instant) -> Self {
        Window {
            in_flight: 0,
            up_to_large: 0,
            large: (now, now),
            search: Search::new(now),
            demand: Demand::default(),
            burst: Burst::default(),
            is_silent: false,
        }
    }

    /// Notes that a tenant wants to send something.
    pub(crate) fn note_demand(&mut self, tenant: u32, now: Instant) {
        let demand = &mut self.demand;
        if demand.last != Some(tenant) && demand.last.replace(tenant).is_some() {
            demand.alternated = Some(now);
        }
        let is_shared = demand.alternated.is_some_and(|at| now - at < WANTS_FOR);
        self.search.set_floor(if is_shared { search::LEAST } else { ALONE }, now);
    }

    /// Whether another message may be sent now.
    pub(crate) fn is_open(&self) -> bool {
        let is_within = self.up_to_large == 0 && self.in_flight < self.limit();
        self.in_flight == 0 || self.is_silent || is_within
    }

    /// When a message of so much work may be sent, if not now.
    pub(crate) fn admit(&self, cost: u32, now: Instant) -> Result<(), Instant> {
        let (_, next) = self.large;
        if Window::is_large(cost) && now < next { Err(next) } else { Ok(()) }
    }

    /// Whether nothing is sent behind a message of so much work before the switch has done it.
    pub(crate) fn is_large(cost: u32) -> bool {
        cost >= LARGE
    }

    /// Notes that a message waits because the window is closed.
    pub(crate) fn note_full(&mut self) {
        self.search.note_waiting();
    }

    /// Notes that no message waits.
    pub(crate) fn note_drained(&mut self) {
        self.search.note_drained();
    }

    /// Accounts for a message that is sent. A barrier of the hypervisor's own costs nothing: if barriers were counted,
    /// they would fill a window of a few units.
    pub(crate) fn on_send(&mut self, cost: u32, now: Instant) -> Sent {
        self.in_flight = self.in_flight.saturating_add(cost);
        if Window::is_large(cost) {
            self.up_to_large = self.in_flight;
            self.large.0 = now;
        }
        Sent { at: now, cost }
    }

    /// Releases work that is known to be done, without learning from the answer.
    pub(crate) fn release(&mut self, cost: u32, now: Instant) {
        self.in_flight = self.in_flight.saturating_sub(cost);
        if self.up_to_large == 0 {
            return;
        }
        // What was sent first is done first.
        self.up_to_large = self.up_to_large.saturating_sub(cost);
        if self.up_to_large == 0 {
            let (sent, next) = &mut self.large;
            *next = now + (now - *sent).min(LONGEST_PAUSE);
        }
    }

    /// Notes that a barrier was not answered in time. The window does not bind until an answer comes.
    pub(crate) fn note_silence(&mut self) {
        self.is_silent = true;
    }

    /// Whether the switch leaves barriers unanswered.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// Learns from an answer. `cost` is all the work that the answer shows to be done, in units; `due` counts the
    /// answers that were due before this one, itself included.
    pub(crate) fn on_ack(&mut self, sent: Sent, cost: u32, due: u32, now: Instant) {
        self.release(cost, now);
        self.is_silent = false;
        let ran_dry = self.burst.add(sent, due, now);
        // A barrier of the hypervisor's own takes the switch's time, too.
        let served = cost + u32::from(sent.cost == 0);
        self.search.on_answer(sent.at, served, ran_dry, now);
    }

    /// The most work without a reply between two barriers of the hypervisor's own, in units: half a window, never more
    /// than for one tenant alone, and while messages wait the work of 4 ms. Changes in flight take memory. The
    /// hypervisor stops reading from a tenant whose changes take too much memory, until the switch confirms some of the
    /// changes.
    pub(crate) fn barrier_interval(&self) -> u32 {
        let half = (self.limit() / 2).clamp(2, ALONE / 2);
        self.search.done_in(BARRIER_AFTER).map_or(half, |work| work.clamp(2, half))
    }

    /// Work that may stand at the switch, in units.
    pub(crate) fn limit(&self) -> u32 {
        self.search.limit()
    }

    /// Work that stands at the switch, in units.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }
}

impl Burst {
    /// Counts an answer. Says whether several answers came at once and no other was due: then the switch had done all
    /// that it had, and stood idle.
    fn add(&mut self, sent: Sent, due: u32, now: Instant) -> bool {
        if self.at != now {
            *self = Burst { at: now, due, answers: 0 };
        }
        // What was sent in this turn is not yet at the switch.
        self.answers += u32::from(sent.at < now);
        self.answers > 1 && self.answers == self.due
    }
}

impl Sent {
    /// When the message was handed to the connection.
    pub(crate) fn at(&self) -> Instant {
        self.at
    }

    /// Its cost in units of work.
    pub(crate) fn cost(&self) -> u32 {
        self.cost
    }
}

#[cfg(test)]
mod tests;
