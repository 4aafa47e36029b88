//! Entries of a tenant that are about to end: those of which rules have been idle, and those whose last counts are awaited.

use crate::flows::{Flow, Rule};
use crate::south::queue::Question;
use crate::time::{Duration, Instant};
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use hashbrown::HashMap;

/// Questions about one entry that are on their way at a time.
const AT_ONCE: usize = 16;

/// See the module.
#[derive(Default)]
pub(crate) struct Timeouts {
    /// Entries with several rules, of which some have been idle.
    idle: HashMap<u32, Idle>,
    /// Entries that are being removed, until the switch has told their last counts.
    leaving: HashMap<u32, Leaving>,
}

/// What is known of an entry whose rules may time out at different times.
#[derive(Debug, Default)]
struct Idle {
    /// Rules that have been idle, and of which no packet is known since then; by their matches.
    unused: BTreeSet<Arc<[u8]>>,
    round: Option<Round>,
}

/// Questions to the switch whether an entry has counted packets.
#[derive(Debug)]
struct Round {
    /// When the round began. An answer to an earlier round has another time.
    begun: Instant,
    /// Questions that have not been sent.
    unasked: Vec<Question>,
    awaited: usize,
}

/// What the switch's answer says of an entry that may be idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Nothing is to be done: more parts are to come, or a rule has been used.
    Nothing,
    /// The next question may be sent.
    GoOn,
    /// The switch has answered all questions.
    Complete,
}

/// A removed entry whose FLOW_REMOVED the tenant is waiting for.
pub(crate) struct Leaving {
    pub flow: Flow,
    pub rules: usize,
    pub since: Instant,
    /// How long it had stood when its hard timeout was over, if that is why it ends: seconds and nanoseconds.
    pub over: Option<(u32, u32)>,
}

impl Timeouts {
    // ---- Entries with several rules

    /// Rules of an entry may time out at different times.
    pub(crate) fn watch(&mut self, number: u32) {
        self.idle.entry(number).or_default();
    }

    /// An entry is gone, or its time begins again.
    pub(crate) fn forget(&mut self, number: u32) {
        self.idle.remove(&number);
    }

    /// Whether rules of an entry may time out at different times.
    pub(crate) fn is_watched(&self, number: u32) -> bool {
        self.idle.contains_key(&number)
    }

    /// Weir installs a rule of an entry: the rule's idle time-out begins.
    pub(crate) fn rule_installed(&mut self, number: u32, rule: &Rule) {
        if let Some(idle) = self.idle.get_mut(&number) {
            idle.unused.remove(&rule.match_wire);
        }
    }

    /// A rule of an entry has been idle.
    pub(crate) fn rule_unused(&mut self, number: u32, flow: &Flow, rule: &Rule) {
        let Some(idle) = self.idle.get_mut(&number) else { return };
        idle.unused.insert(rule.match_wire.clone());
        if idle.unused.len() > flow.rules.len() {
            // Some have gone, with a port or with what the entry did.
            let stands = flow.by_match();
            idle.unused.retain(|match_| stands.contains_key(&**match_));
        }
    }

    /// Whether each rule of an entry has been idle, and no packet is known since then.
    pub(crate) fn may_be_idle(&self, number: u32, flow: &Flow) -> bool {
        let Some(idle) = self.idle.get(&number) else { return false };
        let is_unused = |rule: &Rule| idle.unused.contains(&rule.match_wire);
        // There can be hundreds, and each asks when it is idle.
        !flow.rules.is_empty()
            && idle.unused.len() >= flow.rules.len()
            && flow.rules.iter().all(is_unused)
    }

    /// Whether a round may begin: no other round of the entry is open.
    pub(crate) fn may_ask(&self, number: u32) -> bool {
        self.idle.get(&number).is_some_and(|idle| idle.round.is_none())
    }

    /// A round begins with these questions.
    pub(crate) fn begin_round(&mut self, number: u32, unasked: Vec<Question>, now: Instant) {
        if let Some(idle) = self.idle.get_mut(&number) {
            idle.round = Some(Round { begun: now, unasked, awaited: 0 });
        }
    }

    /// The next question that may be sent now, and when its round began.
    pub(crate) fn next_question(&mut self, number: u32) -> Option<(Question, Instant)> {
        let round = self.idle.get_mut(&number)?.round.as_mut()?;
        if round.awaited >= AT_ONCE {
            return None;
        }
        let question = round.unasked.pop()?;
        round.awaited += 1;
        Some((question, round.begun))
    }

    /// Whether the round that began then is open.
    pub(crate) fn awaits(&self, number: u32, begun: Instant) -> bool {
        let round = self.idle.get(&number).and_then(|idle| idle.round.as_ref());
        round.is_some_and(|round| round.begun == begun)
    }

    /// The switch has sent a part of an answer. `is_used` says of a rule's match whether the rule has been used.
    pub(crate) fn answered(
        &mut self,
        number: u32,
        is_used: Option<impl Fn(&[u8]) -> bool>,
        more: bool,
    ) -> Answer {
        let Some(idle) = self.idle.get_mut(&number) else { return Answer::Nothing };
        if let Some(is_used) = is_used {
            let known = idle.unused.len();
            idle.unused.retain(|wire| !is_used(wire));
            if idle.unused.len() < known {
                idle.round = None;
                return Answer::Nothing;
            }
        }
        let Some(round) = idle.round.as_mut().filter(|_| !more) else { return Answer::Nothing };
        round.awaited = round.awaited.saturating_sub(1);
        if round.awaited > 0 || !round.unasked.is_empty() {
            return Answer::GoOn;
        }
        idle.round = None;
        Answer::Complete
    }

    /// The switch does not answer: the round that began then ends.
    pub(crate) fn abandon_round(&mut self, number: u32, begun: Instant) {
        if let Some(idle) = self.idle.get_mut(&number) {
            idle.round.take_if(|round| round.begun == begun);
        }
    }

    // ---- Entries whose last counts are awaited

    /// An entry ends; the switch has not told its last counts.
    pub(crate) fn await_counts(&mut self, number: u32, leaving: Leaving) {
        self.leaving.insert(number, leaving);
    }

    /// Whether the switch has not told the last counts of an entry.
    pub(crate) fn is_leaving(&self, number: u32) -> bool {
        self.leaving.contains_key(&number)
    }

    /// The last counts of an entry are awaited no longer.
    pub(crate) fn take_leaving(&mut self, number: u32) -> Option<Leaving> {
        self.leaving.remove(&number)
    }

    /// The entry ends since its hard time-out is over. `stood` says how long the entry was in the table.
    pub(crate) fn set_over(&mut self, number: u32, stood: (u32, u32)) {
        if let Some(leaving) = self.leaving.get_mut(&number) {
            leaving.over = Some(stood);
        }
    }

    /// The switch has removed a rule of an entry that ends. Gives the entry if this was its last rule.
    pub(crate) fn rule_left(&mut self, number: u32, counted: (u64, u64)) -> Option<Leaving> {
        let leaving = self.leaving.get_mut(&number)?;
        leaving.flow.count_past(counted);
        leaving.rules = leaving.rules.saturating_sub(1);
        if leaving.rules == 0 { self.leaving.remove(&number) } else { None }
    }

    /// Takes the entries whose last counts have been awaited for longer than `patience`.
    pub(crate) fn take_late(&mut self, patience: Duration, now: Instant) -> Vec<Flow> {
        let late = self.leaving.extract_if(|_, leaving| now - leaving.since >= patience);
        late.map(|(_, leaving)| leaving.flow).collect()
    }
}
