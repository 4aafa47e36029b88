//! The time-out state of each entry of a tenant: see [`timeouts`](super).

use super::apart::Apart;
use crate::flows::{Flow, Rule};
use crate::south::reports::{Age, Removed, Timeout};
use crate::south::session::QUIET;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use hashbrown::HashMap;

/// See the module.
#[derive(Default)]
pub(crate) struct Timeouts {
    /// Entries without a state here are together, or have neither rules nor time-outs.
    states: HashMap<u32, State>,
    /// When Weir looks at the entries whose time only Weir keeps.
    ends: BTreeSet<(Instant, u32)>,
}

pub(super) enum State {
    Apart(Apart),
    Uninstalled(Uninstalled),
    Leaving(Box<Leaving>),
}

pub(super) struct Uninstalled {
    /// Since when the entry has no rule.
    pub since: Instant,
    /// When Weir looks at the entry.
    pub at: Instant,
    /// The time-out that is over then.
    pub timeout: Timeout,
}

/// A removed entry whose FLOW_REMOVED the tenant is waiting for.
pub(crate) struct Leaving {
    pub flow: Flow,
    /// Rules that the switch has not reported.
    pub rules: usize,
    /// How long Weir waits for the reports.
    pub until: Instant,
    /// The age of the entry at its hard time-out, if that is why it ends.
    pub over: Option<Age>,
}

/// The end of an entry.
pub(crate) struct Ended {
    pub number: u32,
    pub flow: Flow,
    /// OFPFlowRemovedReason.
    pub reason: u8,
    pub stood: Age,
}

impl Leaving {
    /// The switch has removed a rule of the entry. Returns the end of the entry if this was its last rule.
    pub(crate) fn rule_left(&mut self, number: u32, removed: &Removed) -> Option<Ended> {
        self.flow.count_past(removed.counted);
        self.rules = self.rules.saturating_sub(1);
        if self.rules > 0 {
            return None;
        }
        let (reason, stood) = match self.over {
            Some(stood) => (Timeout::Hard as u8, stood),
            None => (removed.reason, removed.stood),
        };
        Some(Ended { number, flow: self.flow.clone(), reason, stood })
    }
}

impl State {
    fn end(&self) -> Option<Instant> {
        match self {
            State::Apart(_) => None,
            State::Uninstalled(it) => Some(it.at),
            State::Leaving(it) => Some(it.until),
        }
    }
}

impl Timeouts {
    /// Changes the state of an entry. Returns the state before.
    fn set(&mut self, number: u32, to: Option<State>) -> Option<State> {
        let end = to.as_ref().and_then(State::end);
        let from = match to {
            Some(to) => self.states.insert(number, to),
            None => self.states.remove(&number),
        };
        if let Some(at) = from.as_ref().and_then(State::end) {
            self.ends.remove(&(at, number));
        }
        self.ends.extend(end.map(|at| (at, number)));
        from
    }

    // ---- Entries in the table

    /// An entry has changed. If now only Weir keeps its time, returns when Weir looks at the entry.
    pub(crate) fn keep(&mut self, number: u32, flow: &Flow, now: Instant) -> Option<Instant> {
        let since = match self.states.get(&number) {
            // A replay brings the entry back. Weir keeps its time when the last counters have come.
            Some(State::Leaving(_)) => return None,
            Some(State::Uninstalled(it)) => Some(it.since),
            Some(State::Apart(_)) | None => None,
        };
        if !flow.rules.is_empty() {
            // These rules come later than the entry.
            since.map(|_| self.set(number, Some(State::Apart(Apart::default()))));
            return None;
        }
        // The time of an entry that was added again begins again.
        let since = since.filter(|since| *since >= flow.installed).unwrap_or(now);
        let state = uninstalled(flow, since);
        let at = state.as_ref().map(|it| it.at);
        self.set(number, state.map(State::Uninstalled));
        at
    }

    /// An entry is gone.
    pub(crate) fn forget(&mut self, number: u32) {
        if !self.is_leaving(number) {
            self.set(number, None);
        }
    }

    /// All rules of an entry are installed again: they time out together.
    pub(super) fn set_together(&mut self, number: u32) {
        if self.is_apart(number) {
            self.set(number, None);
        }
    }

    /// Rules of an entry may time out at different times.
    pub(super) fn set_apart(&mut self, number: u32) {
        self.states.entry(number).or_insert_with(|| State::Apart(Apart::default()));
    }

    /// Whether rules of an entry may time out at different times.
    pub(crate) fn is_apart(&self, number: u32) -> bool {
        matches!(self.states.get(&number), Some(State::Apart(_)))
    }

    /// The state of an entry whose rules may time out at different times.
    pub(super) fn apart(&mut self, number: u32) -> Option<&mut Apart> {
        match self.states.get_mut(&number)? {
            State::Apart(apart) => Some(apart),
            State::Uninstalled(_) | State::Leaving(_) => None,
        }
    }

    /// Weir installs a rule of an entry: the rule's idle time-out begins.
    pub(crate) fn rule_installed(&mut self, number: u32, flow: &Flow, rule: &Rule, now: Instant) {
        if flow.hard_timeout > 0 && flow.installed < now {
            self.set_apart(number);
        }
        if let Some(apart) = self.apart(number) {
            apart.rule_installed(rule);
        }
    }

    // ---- Entries whose last counts are awaited

    /// An entry ends; the switch has not reported its last counts.
    pub(crate) fn await_counts(&mut self, number: u32, leaving: Leaving) {
        self.set(number, Some(State::Leaving(Box::new(leaving))));
    }

    /// Whether the switch has not reported the last counts of an entry.
    pub(crate) fn is_leaving(&self, number: u32) -> bool {
        matches!(self.states.get(&number), Some(State::Leaving(_)))
    }

    /// The last counts of an entry are awaited no longer.
    pub(crate) fn take_leaving(&mut self, number: u32) -> Option<Leaving> {
        if !self.is_leaving(number) {
            return None;
        }
        match self.set(number, None)? {
            State::Leaving(leaving) => Some(*leaving),
            State::Apart(_) | State::Uninstalled(_) => None,
        }
    }

    /// The switch has removed a rule of an entry that ends. Returns the end of the entry if this was its last rule.
    pub(crate) fn rule_left(&mut self, number: u32, removed: &Removed) -> Option<Ended> {
        let State::Leaving(leaving) = self.states.get_mut(&number)? else { return None };
        let ended = leaving.rule_left(number, removed)?;
        self.set(number, None);
        Some(ended)
    }

    // ---- Entries whose time Weir keeps

    /// When Weir has to look at an entry next.
    pub(crate) fn next_end(&self) -> Option<Instant> {
        self.ends.first().map(|(at, _)| *at)
    }

    /// Takes the state of the first entry whose time is over. If a change of the entry is in flight, Weir looks at it
    /// again some time later: if the change is undone, the entry comes back.
    pub(super) fn take_over(
        &mut self,
        is_changing: impl Fn(u32) -> bool,
        now: Instant,
    ) -> Option<(u32, State)> {
        loop {
            let (at, number) = *self.ends.first().filter(|(at, _)| *at <= now)?;
            self.ends.remove(&(at, number));
            match self.states.remove(&number)? {
                State::Uninstalled(it) if is_changing(number) => {
                    let later = Uninstalled { at: now + QUIET, ..it };
                    self.set(number, Some(State::Uninstalled(later)));
                }
                over => return Some((number, over)),
            }
        }
    }
}

/// The state of an entry that has had no packet since then. The entry ends by the first time-out; by the hard time-out
/// if both end at once.
fn uninstalled(flow: &Flow, since: Instant) -> Option<Uninstalled> {
    let after = |begin: Instant, seconds: u16, timeout| {
        let at = begin + Duration::from_secs(seconds.into());
        (seconds > 0).then_some(Uninstalled { since, at, timeout })
    };
    let hard = after(flow.installed, flow.hard_timeout, Timeout::Hard);
    let idle = after(since, flow.idle_timeout, Timeout::Idle);
    hard.into_iter().chain(idle).min_by_key(|it| it.at)
}
