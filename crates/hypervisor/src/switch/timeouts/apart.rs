//! An entry whose rules may time out at different times, and the questions whether the entry is idle.

use crate::flows::{Flow, Rule};
use crate::south::queue::Question;
use crate::time::Instant;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The most questions about one entry in flight.
const AT_ONCE: usize = 16;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Apart {
    /// Rules that have been idle, and that have counted no packet since then; by their matches.
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

impl Apart {
    /// Weir installs a rule: the rule's idle time-out begins.
    pub(super) fn rule_installed(&mut self, rule: &Rule) {
        self.unused.remove(&rule.match_wire);
    }

    /// A rule has been idle. Says whether a round is to begin: all rules may be idle, and no round is open.
    pub(super) fn rule_unused(&mut self, flow: &Flow, rule: &Rule) -> bool {
        self.unused.insert(rule.match_wire.clone());
        if self.unused.len() > flow.rules.len() {
            // Some rules were removed, with a port or by a change of the entry.
            let stands = flow.by_match();
            self.unused.retain(|match_| stands.contains_key(&**match_));
        }
        self.round.is_none() && self.may_be_idle(flow)
    }

    /// Whether each rule has been idle and has counted no packet since then.
    pub(super) fn may_be_idle(&self, flow: &Flow) -> bool {
        let is_unused = |rule: &Rule| self.unused.contains(&rule.match_wire);
        // An entry can have hundreds of rules, and the check comes whenever one of them is idle.
        !flow.rules.is_empty()
            && self.unused.len() >= flow.rules.len()
            && flow.rules.iter().all(is_unused)
    }

    /// A round begins with these questions.
    pub(super) fn begin_round(&mut self, unasked: Vec<Question>, now: Instant) {
        self.round = Some(Round { begun: now, unasked, awaited: 0 });
    }

    /// The next question that may be sent now, and when its round began.
    pub(super) fn next_question(&mut self) -> Option<(Question, Instant)> {
        let round = self.round.as_mut().filter(|round| round.awaited < AT_ONCE)?;
        let question = round.unasked.pop()?;
        round.awaited += 1;
        Some((question, round.begun))
    }

    /// Whether the round that began then is open.
    pub(super) fn awaits(&self, begun: Instant) -> bool {
        self.round.as_ref().is_some_and(|round| round.begun == begun)
    }

    /// The round ends without a result.
    pub(super) fn end_round(&mut self) {
        self.round = None;
    }

    /// Rules have counted packets; `is_used` says whether a rule with this match has. Returns whether one of them
    /// seemed idle: then the round ends.
    pub(super) fn rules_used(&mut self, is_used: impl Fn(&[u8]) -> bool) -> bool {
        let known = self.unused.len();
        self.unused.retain(|wire| !is_used(wire));
        let is_any = self.unused.len() < known;
        if is_any {
            self.round = None;
        }
        is_any
    }

    /// The switch has answered one question. Returns whether the round ends, because this was the last question.
    pub(super) fn answered(&mut self) -> bool {
        let Some(round) = self.round.as_mut() else { return false };
        round.awaited = round.awaited.saturating_sub(1);
        let is_last = round.awaited == 0 && round.unasked.is_empty();
        if is_last {
            self.round = None;
        }
        is_last
    }
}
