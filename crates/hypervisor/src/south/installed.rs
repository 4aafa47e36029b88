//! What the switch holds of the tenants' rules: confirmed by the switch, and expected from the messages in flight.
//!
//! Each rule has a slot. The slot has the state that the switch has confirmed, and the effects of the messages that
//! wait or are on their way, in the order in which the switch will read them:
//!
//! ```text
//!   confirmed   pending                              projected: what the switch will hold
//!   absent      ADD a                                a
//!   a           MODIFY b, DELETE                     absent
//!   absent      ADD a (refused: struck), MODIFY b    absent on 1.3; b on 1.0, where MODIFY adds
//!   a           (a timed out:) MODIFY b              absent on 1.3; unknown on 1.0
//! ```
//! An ERROR strikes the effect of one message, a barrier confirms the effects of all messages before it, and a
//! FLOW_REMOVED says that a rule is removed. So the projection needs no guess, whatever the switch refuses. This module
//! knows neither tables nor requests, and sends nothing: [`diff`](super::diff) compares the projection with the wanted
//! content.

mod chains;
mod growing;
mod numbers;

use crate::ids::TenantIndex;
use crate::named::named_of;
use crate::semantics::Semantics;
use crate::south::reports::TimeoutsAndFlags;
use crate::store::Kind;
use crate::time::{Duration, Instant};
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use chains::{Chain, Chains};
use compile::{RuleKey, Wire};
use core::hash::BuildHasher;
use growing::{ChunkedVec, SplitTable};
use hashbrown::{DefaultHashBuilder, HashMap};
use numbers::InstalledIds;
pub(crate) use numbers::{change_of, content_of};

/// The entry that a rule belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub tenant: TenantIndex,
    pub number: u32,
}

/// What the switch holds under a rule's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub owner: Owner,
    /// Actions (1.0) or instructions (1.3).
    pub program: Arc<[u8]>,
    /// As the entry has them.
    pub terms: TimeoutsAndFlags,
}

/// The state of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Absent,
    Present(Content),
    /// The rule was removed, either before or after a message that installs the rule.
    Unknown(Owner),
}

impl State {
    /// The owner of the rule that the switch has, or may have.
    pub(crate) fn owner(&self) -> Option<Owner> {
        match self {
            State::Absent => None,
            State::Present(content) => Some(content.owner),
            State::Unknown(owner) => Some(*owner),
        }
    }
}

/// A message's effect on a rule.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// ADD.
    Set(Content),
    /// MODIFY_STRICT.
    Replace(Content),
    /// DELETE.
    Remove(Owner),
    /// The deletion of a group or meter with this id on the switch. The switch also deletes rules that use the group or
    /// meter.
    GoneWith(Owner, Kind, u32),
    /// Not a message: after the message before, nobody knows the state.
    Doubt(Owner),
    /// A deletion that is done, but that the switch has not reported.
    Unreported(Owner),
}

/// The effects of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    message: u32,
    slot: u32,
}

impl Written {
    /// The number of the message.
    pub(crate) fn message(self) -> u32 {
        self.message
    }
}

/// The rules of a message that the switch has refused.
#[derive(Debug, Default)]
pub(crate) struct RefusedRules {
    pub tenant: Option<TenantIndex>,
    pub keys: Vec<RuleKey>,
}

impl Effect {
    /// Whether the effect adds the rule for this entry.
    fn sets(&self, owner: Owner) -> bool {
        matches!(self, Effect::Set(content) if content.owner == owner)
    }

    /// Whether the effect modifies the rule for this entry.
    fn replaces(&self, owner: Owner) -> bool {
        matches!(self, Effect::Replace(content) if content.owner == owner)
    }

    fn owner(&self) -> Owner {
        match self {
            Effect::Set(content) | Effect::Replace(content) => content.owner,
            Effect::Remove(owner) | Effect::GoneWith(owner, ..) => *owner,
            Effect::Doubt(owner) | Effect::Unreported(owner) => *owner,
        }
    }

    /// Whether the effect removes a rule of this entry that the switch holds.
    fn removes(&self, held: &Content) -> bool {
        match self {
            Effect::Remove(owner) => held.owner == *owner,
            Effect::GoneWith(owner, kind, id) => {
                held.owner == *owner && named_of(*kind, &held.program).contains(id)
            }
            _ => false,
        }
    }
}

/// The state of a rule that somebody else has deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deleted {
    /// The rule is not there.
    Gone,
    /// A message in flight installs the rule: nobody knows whether before or after the deletion.
    Unsure,
    /// As `Unsure`, and the rule was unsure before.
    UnsureAgain,
}

/// All rules of tenants on one switch.
pub(crate) struct Installed {
    semantics: &'static Semantics,
    slots: ChunkedVec<Slot>,
    free: Vec<u32>,
    index: SplitTable,
    hasher: DefaultHashBuilder,
    /// The number of the last message that was written.
    messages: u32,
    /// The slots of messages that change many rules, by the messages' numbers.
    wide: HashMap<u32, Vec<u32>>,
    pending: Chains<Pending>,
    /// Deletions that are done, but that the switch had not reported then: since when, the slots, and the messages.
    unreported: VecDeque<(Instant, u32, u32)>,
    numbers: InstalledIds,
}

struct Slot {
    key: RuleKey,
    confirmed: State,
    pending: Chain,
}

#[derive(Debug)]
struct Pending {
    message: u32,
    /// Whether the message bypasses the queue of the tenant.
    direct: bool,
    effect: Effect,
}

/// In place of a slot: the message changes many rules.
const WIDE: u32 = u32::MAX;

impl Installed {
    pub(crate) fn new(wire: Wire) -> Installed {
        Installed {
            semantics: Semantics::of(wire),
            slots: ChunkedVec::new(),
            free: Vec::new(),
            index: SplitTable::new(),
            hasher: DefaultHashBuilder::default(),
            messages: 0,
            wide: HashMap::new(),
            pending: Chains::new(),
            unreported: VecDeque::new(),
            numbers: InstalledIds::default(),
        }
    }

    // ---- Messages

    /// The number of the last message that was written.
    pub(crate) fn last_message(&self) -> u32 {
        self.messages
    }

    /// Notes a message that has this effect on a rule. If the message bypasses the tenant's queue, `left` is the last
    /// message that has left the queue.
    pub(crate) fn write(&mut self, key: RuleKey, effect: Effect, left: Option<u32>) -> Written {
        self.messages = self.messages.wrapping_add(1);
        let slot = self.push(key, effect, left);
        Written { message: self.messages, slot }
    }

    /// Begins a message with effects on many rules. The caller adds the effects with `join` and `join_number`.
    pub(crate) fn begin_wide(&mut self) -> Written {
        self.messages = self.messages.wrapping_add(1);
        self.wide.insert(self.messages, Vec::new());
        Written { message: self.messages, slot: WIDE }
    }

    /// Adds an effect on a rule to a message with many effects.
    pub(crate) fn join(&mut self, wide: Written, key: RuleKey, effect: Effect) {
        let at = self.slot_for(key);
        let pending = Pending { message: wide.message, direct: false, effect };
        self.pending.push(&mut self.slots[at].pending, pending);
        self.wide.entry(wide.message).or_default().push(at);
    }

    /// Adds to such a message that it adds, changes or deletes a group or meter of a tenant.
    pub(crate) fn join_number(&mut self, wide: Written, tenant: TenantIndex, message: &[u8]) {
        self.numbers.write(wide.message, tenant, message);
    }

    /// The groups and meters on the switch.
    pub(crate) fn numbers(&self) -> &InstalledIds {
        &self.numbers
    }

    /// The groups and meters on the switch, to note reports of the switch.
    pub(crate) fn numbers_mut(&mut self) -> &mut InstalledIds {
        &mut self.numbers
    }

    /// How many rules a message changes.
    pub(crate) fn rules_of(&self, written: Written) -> usize {
        self.wide.get(&written.message).map_or(1, Vec::len)
    }

    /// The switch has carried out a message, and all messages before.
    pub(crate) fn confirm(&mut self, written: Written, now: Instant) {
        self.each(written, |installed, at| installed.carry_out(at, written.message, Some(now)));
        self.numbers.confirm(written.message);
    }

    /// The switch has refused a message. Returns the rules that the message was to change, and the tenant.
    pub(crate) fn refuse(&mut self, written: Written) -> RefusedRules {
        let mut struck = RefusedRules::default();
        self.numbers.refuse(written.message);
        self.each(written, |installed, at| {
            let Installed { slots, pending, .. } = installed;
            let Some(slot) = slots.get_mut(at) else { return };
            let is_struck = |it: &Pending| {
                it.message == written.message && !matches!(it.effect, Effect::Doubt(_))
            };
            let Some(refused) = pending.remove(&mut slot.pending, is_struck) else { return };
            struck.tenant = Some(refused.effect.owner().tenant);
            struck.keys.push(slot.key.clone());
            installed.collect(at);
        });
        struck
    }

    // ---- Reports of the switch

    /// The switch holds this rule, by its report at the beginning of the session.
    pub(crate) fn learn(&mut self, key: RuleKey, content: Content) {
        let at = self.slot_for(key);
        self.slots[at].confirmed = State::Present(content);
    }

    /// The switch reports that a rule was deleted. If Weir has deleted the rule, returns the number of Weir's message.
    pub(crate) fn deletion_reported(&mut self, key: &RuleKey, owner: Owner) -> Option<u32> {
        let at = self.find(key)?;
        let Installed { slots, pending, .. } = self;
        let chain = &mut slots[at].pending;
        let is_it = |it: &Pending| matches!(it.effect, Effect::Unreported(of) if of == owner);
        if let Some(done) = pending.remove(chain, is_it) {
            self.collect(at);
            return Some(done.message);
        }
        let deletes = |it: &&Pending| match it.effect {
            Effect::Remove(of) | Effect::GoneWith(of, ..) => of == owner,
            _ => false,
        };
        let message = pending.iter(*chain).find(deletes)?.message;
        // Another deletion may have been first; the rule is removed in either case.
        self.carry_out(at, message, None);
        Some(message)
    }

    /// A rule has timed out. Nobody knows whether before or after a MODIFY that adds the rule (1.0).
    pub(crate) fn expired(&mut self, key: &RuleKey, owner: Owner) {
        let Some(at) = self.find(key) else { return };
        let slot = &mut self.slots[at];
        slot.lose(owner);
        let is_open = |it: &&Pending| !matches!(it.effect, Effect::Unreported(_));
        let modifies = |it: &&Pending| matches!(it.effect, Effect::Replace(_));
        // Later messages that add or delete the rule are not affected: a new rule is installed for a second at least.
        let open = self.pending.iter(slot.pending).filter(is_open);
        let last = open.take_while(modifies).last().filter(|_| self.semantics.modify_adds);
        if let Some(&Pending { message, direct, .. }) = last {
            let doubt = Pending { message, direct, effect: Effect::Doubt(owner) };
            let is_behind = |it: &Pending| is_open(&it) && !modifies(&it);
            self.pending.push_before(&mut slot.pending, is_behind, doubt);
        }
        self.collect(at);
    }

    /// Somebody else has deleted a rule.
    pub(crate) fn deleted_by_others(&mut self, key: &RuleKey, owner: Owner) -> Deleted {
        let adds_missing = self.semantics.modify_adds;
        let Some(at) = self.find(key) else { return Deleted::Gone };
        let is_brought = self
            .is_pending(at, |effect| effect.sets(owner) || adds_missing && effect.replaces(owner));
        let slot = &mut self.slots[at];
        if !is_brought {
            slot.lose(owner);
            self.collect(at);
            return Deleted::Gone;
        }
        if matches!(slot.confirmed, State::Unknown(_))
            || self.is_pending(at, |effect| matches!(effect, Effect::Doubt(_)))
        {
            return Deleted::UnsureAgain;
        }
        self.doubt(at, owner);
        Deleted::Unsure
    }

    /// Forgets deletions that the switch has not reported within this time: the rules were not there.
    pub(crate) fn settle(&mut self, patience: Duration, now: Instant) {
        while let Some(&(since, at, message)) = self.unreported.front()
            && now - since >= patience
        {
            self.unreported.pop_front();
            let Some(slot) = self.slots.get_mut(at) else { continue };
            let is_it =
                |it: &Pending| it.message == message && matches!(it.effect, Effect::Unreported(_));
            if self.pending.remove(&mut slot.pending, is_it).is_some() {
                self.collect(at);
            }
        }
    }

    // ---- Queries

    /// What the switch will hold when it has read all messages.
    pub(crate) fn projected(&self, key: &RuleKey) -> State {
        let Some(at) = self.find(key) else { return State::Absent };
        let slot = &self.slots[at];
        let effects = self.pending.iter(slot.pending).map(|it| &it.effect);
        effects.fold(slot.confirmed.clone(), |state, effect| applied(self.semantics, state, effect))
    }

    /// How many of these rules the switch will hold for an entry.
    pub(crate) fn held_of(&self, keys: impl Iterator<Item = RuleKey>, owner: Owner) -> usize {
        let is_held = |key: &RuleKey| matches!(self.projected(key), State::Present(held) if held.owner == owner);
        keys.filter(is_held).count()
    }

    /// Whether a message in flight adds a rule for this entry.
    pub(crate) fn is_coming(&self, key: &RuleKey, owner: Owner) -> bool {
        self.find(key).is_some_and(|at| self.is_pending(at, |effect| effect.sets(owner)))
    }

    // ---- Slots

    fn push(&mut self, key: RuleKey, effect: Effect, left: Option<u32>) -> u32 {
        let at = self.slot_for(key);
        let (message, direct) = (self.messages, left.is_some());
        let tenant = effect.owner().tenant;
        let item = Pending { message, direct, effect };
        let chain = &mut self.slots[at].pending;
        match left {
            None => self.pending.push(chain, item),
            Some(left) => {
                let waits = |it: &Pending| {
                    !it.direct && it.effect.owner().tenant == tenant && is_later(it.message, left)
                };
                self.pending.push_before(chain, waits, item);
            }
        }
        at
    }

    /// The switch has carried out a message, and all messages before. `unreported` is `None` if the switch has reported
    /// the deletion.
    fn carry_out(&mut self, at: u32, message: u32, unreported: Option<Instant>) {
        let Installed { semantics, slots, pending, .. } = self;
        let Some(slot) = slots.get_mut(at) else { return };
        let is_open = |it: &Pending| !matches!(it.effect, Effect::Unreported(_));
        let open = pending.iter(slot.pending).filter(|it| is_open(it));
        let places = open.enumerate().filter(|(_, it)| it.message == message);
        let Some(last) = places.map(|(place, _)| place).last() else { return };
        for _ in 0..=last {
            let Some(done) = pending.remove(&mut slot.pending, is_open) else { break };
            let before = core::mem::replace(&mut slot.confirmed, State::Absent);
            if let State::Present(held) = &before
                && done.effect.removes(held)
                && let Some(since) = unreported
            {
                let owner = held.owner;
                self.unreported.push_back((since, at, done.message));
                let done = Pending { effect: Effect::Unreported(owner), ..done };
                pending.push_before(&mut slot.pending, is_open, done);
            }
            slot.confirmed = applied(semantics, before, &done.effect);
        }
        self.collect(at);
    }

    fn is_pending(&self, at: u32, is_meant: impl Fn(&Effect) -> bool) -> bool {
        self.pending.iter(self.slots[at].pending).any(|it| is_meant(&it.effect))
    }

    fn doubt(&mut self, at: u32, owner: Owner) {
        let chain = &mut self.slots[at].pending;
        if let Some(last) = self.pending.last(*chain) {
            let Pending { message, direct, .. } = *last;
            self.pending.push(chain, Pending { message, direct, effect: Effect::Doubt(owner) });
        }
    }

    fn each(&mut self, written: Written, mut act: impl FnMut(&mut Installed, u32)) {
        if written.slot != WIDE {
            act(self, written.slot);
            return;
        }
        for at in self.wide.remove(&written.message).unwrap_or_default() {
            act(self, at);
        }
    }

    fn find(&self, key: &RuleKey) -> Option<u32> {
        let is_it = |at: &u32| self.slots[*at].key == *key;
        let hash = self.hasher.hash_one(key);
        self.index.of(hash).find(hash, is_it).copied()
    }

    fn slot_for(&mut self, key: RuleKey) -> u32 {
        let Installed { slots, free, index, hasher, .. } = self;
        let hash = hasher.hash_one(&key);
        if let Some(at) = index.of(hash).find(hash, |at| slots[*at].key == key) {
            return *at;
        }
        let slot = Slot { key, confirmed: State::Absent, pending: Chain::EMPTY };
        let at = match free.pop() {
            Some(at) => {
                slots[at] = slot;
                at
            }
            None => slots.push(slot),
        };
        let hash_of = |at: &u32| hasher.hash_one(&slots[*at].key);
        index.of_mut(hash).insert_unique(hash, at, hash_of);
        at
    }

    /// Frees a slot that has no state and no pending message.
    fn collect(&mut self, at: u32) {
        let Installed { slots, free, index, hasher, .. } = self;
        let Some(slot) = slots.get_mut(at) else { return };
        if slot.confirmed != State::Absent || !slot.pending.is_empty() {
            return;
        }
        let hash = hasher.hash_one(&slot.key);
        if let Ok(entry) = index.of_mut(hash).find_entry(hash, |it| *it == at) {
            entry.remove();
            slot.key.match_wire = Arc::default();
            free.push(at);
        }
    }
}

impl Slot {
    /// The rule that the switch has confirmed is no longer there.
    fn lose(&mut self, of: Owner) {
        match &self.confirmed {
            State::Present(Content { owner, .. }) | State::Unknown(owner) if *owner == of => {
                self.confirmed = State::Absent;
            }
            _ => {}
        }
    }
}

/// Whether a message was written later than another message.
pub(crate) fn is_later(message: u32, than: u32) -> bool {
    message.wrapping_sub(than).wrapping_sub(1) < u32::MAX / 2
}

/// The state of a rule after a message.
fn applied(semantics: &Semantics, before: State, effect: &Effect) -> State {
    match (effect, before) {
        (Effect::Set(content), _) => State::Present(content.clone()),
        (Effect::Replace(content), State::Present(before)) => {
            State::Present(Content { program: Arc::clone(&content.program), ..before })
        }
        (Effect::Replace(content), State::Absent) if semantics.modify_adds => {
            State::Present(content.clone())
        }
        (Effect::Replace(_), before) => before,
        // A deletion that names the entry's cookie does not delete another entry's rule.
        (Effect::Remove(owner), State::Present(before))
            if semantics.deletes_by_cookie && before.owner != *owner =>
        {
            State::Present(before)
        }
        (Effect::Remove(_), _) => State::Absent,
        (Effect::GoneWith(..), State::Present(before)) if !effect.removes(&before) => {
            State::Present(before)
        }
        (Effect::GoneWith(..), _) => State::Absent,
        (Effect::Unreported(_), before) => before,
        (Effect::Doubt(owner), _) => State::Unknown(*owner),
    }
}

#[cfg(test)]
mod tests;
