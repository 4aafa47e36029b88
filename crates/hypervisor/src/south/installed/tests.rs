use super::*;
use crate::south::diff;
use crate::south::diff::Change;
use alloc::collections::{BTreeMap, VecDeque};
use proptest::collection::vec;
use proptest::prelude::*;

const TENANT: TenantIndex = TenantIndex(0);
const NOW: Instant = Instant(0);

fn key(n: u8) -> RuleKey {
    RuleKey { table: 0, priority: 1, match_wire: [n].into() }
}

fn owner(number: u32) -> Owner {
    Owner { tenant: TENANT, number }
}

fn content(number: u32, program: u8, idle: u16) -> Content {
    let terms = TimeoutsAndFlags { idle_timeout: idle, ..Default::default() };
    Content { owner: owner(number), program: [program].into(), terms }
}

/// A switch that holds rules, and messages that the switch has not read.
struct Model {
    wire: Wire,
    rules: BTreeMap<RuleKey, Content>,
    unread: VecDeque<(RuleKey, Effect, Written)>,
}

impl Model {
    fn carry_out(&mut self, key: &RuleKey, effect: &Effect) {
        let before = self.rules.get(key).cloned();
        match (effect, before) {
            (Effect::Set(content), _) => drop(self.rules.insert(key.clone(), content.clone())),
            (Effect::Replace(content), Some(before)) => {
                let program = Arc::clone(&content.program);
                self.rules.insert(key.clone(), Content { program, ..before });
            }
            (Effect::Replace(content), None) => {
                if self.wire == Wire::V10 {
                    self.rules.insert(key.clone(), content.clone());
                }
            }
            (Effect::Remove(owner), Some(before)) => {
                if self.wire == Wire::V10 || before.owner == *owner {
                    self.rules.remove(key);
                }
            }
            (
                Effect::Remove(_) | Effect::GoneWith(..) | Effect::Doubt(_) | Effect::Unreported(_),
                _,
            ) => {}
        }
    }

    /// The rules that the switch will hold if it refuses nothing.
    fn at_rest(&self) -> BTreeMap<RuleKey, Content> {
        let (rules, unread) = (self.rules.clone(), VecDeque::new());
        let mut later = Model { wire: self.wire, rules, unread };
        for (key, effect, _) in &self.unread {
            later.carry_out(key, effect);
        }
        later.rules
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(u8, u8, u32, u8, u16),
    Read,
    Refuse,
    Confirm,
    Expire(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3u8, 0..3u8, 0..2u32, 0..2u8, 0..2u16)
            .prop_map(|(what, key, owner, program, idle)| Step::Write(what, key, owner, program, idle)),
        2 => Just(Step::Read),
        1 => Just(Step::Refuse),
        1 => Just(Step::Confirm),
        1 => (0..3u8).prop_map(Step::Expire),
    ]
}

proptest! {
    /// The switch refuses some messages, and some rules time out. After each step the projected state is the state on
    /// the switch after all messages in flight, or is unknown. At the end, the messages that `diff::change` asks for
    /// lead to the wanted rules.
    #[test]
    fn the_projection_equals_the_rules_that_the_switch_will_hold(steps in vec(step(), 1..40), is_v10 in any::<bool>()) {
        let wire = if is_v10 { Wire::V10 } else { Wire::V13 };
        let mut installed = Installed::new(wire);
        let (rules, unread) = (BTreeMap::new(), VecDeque::new());
        let mut model = Model { wire, rules, unread };
        let (mut read, mut just_added) = (Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::Write(what, n, number, program, idle) => {
                    let content = content(number, program, idle);
                    let effect = match what {
                        0 => Effect::Set(content),
                        1 => Effect::Replace(content),
                        _ => Effect::Remove(owner(number)),
                    };
                    let written = installed.write(key(n), effect.clone(), None);
                    model.unread.push_back((key(n), effect, written));
                }
                Step::Read => {
                    if let Some((key, effect, written)) = model.unread.pop_front() {
                        let is_new = matches!(effect, Effect::Set(_)) || !model.rules.contains_key(&key);
                        model.carry_out(&key, &effect);
                        read.push(written);
                        just_added.extend(is_new.then_some(key));
                    }
                }
                Step::Refuse => {
                    if let Some((key, _, written)) = model.unread.pop_front() {
                        prop_assert_eq!(installed.refuse(written).keys, [key]);
                    }
                }
                Step::Confirm => {
                    read.drain(..).for_each(|it| installed.confirm(it, NOW));
                    just_added.clear();
                }
                // A timeout is at least one second, so a rule that was just added does not expire.
                Step::Expire(n) if !just_added.contains(&key(n)) => {
                    if let Some(gone) = model.rules.remove(&key(n)) {
                        installed.expired(&key(n), gone.owner);
                    }
                }
                Step::Expire(_) => {}
            }
            let at_rest = model.at_rest();
            for n in 0..3 {
                match installed.projected(&key(n)) {
                    State::Unknown(_) => {}
                    State::Absent => prop_assert_eq!(at_rest.get(&key(n)), None),
                    State::Present(it) => prop_assert_eq!(at_rest.get(&key(n)), Some(&it)),
                }
            }
        }
        for n in 0..3 {
            let wanted = (n > 0).then(|| content(7, n, 1));
            let projected = installed.projected(&key(n));
            let effect = match diff::change(wanted.as_ref(), &projected) {
                None => continue,
                Some(Change::Delete) => match projected {
                    State::Present(held) => Effect::Remove(held.owner),
                    State::Unknown(owner) => Effect::Remove(owner),
                    State::Absent => continue,
                },
                Some(Change::Add) => Effect::Set(content(7, n, 1)),
                Some(Change::Modify) => Effect::Replace(content(7, n, 1)),
            };
            let written = installed.write(key(n), effect.clone(), None);
            model.unread.push_back((key(n), effect, written));
        }
        let at_rest = model.at_rest();
        let wanted = (1..3).map(|n| (key(n), content(7, n, 1))).collect();
        prop_assert_eq!(at_rest, wanted);
        // After the switch has handled all messages, no slot has a pending change, and the index has only the rules on
        // the switch.
        read.drain(..).for_each(|it| installed.confirm(it, NOW));
        while let Some((key, effect, written)) = model.unread.pop_front() {
            model.carry_out(&key, &effect);
            installed.confirm(written, NOW);
        }
        installed.settle(Duration::ZERO, NOW);
        prop_assert!(installed.slots.iter().all(|slot| slot.pending.is_empty()));
        prop_assert_eq!(installed.index.len(), model.rules.len());
    }
}

#[test]
fn a_message_that_bypasses_the_queue_takes_effect_before_queued_messages() {
    let mut installed = Installed::new(Wire::V13);
    let left = installed.write(key(0), Effect::Set(content(1, 1, 0)), None);
    installed.write(key(0), Effect::Replace(content(1, 2, 0)), None);
    installed.write(key(0), Effect::Remove(owner(1)), Some(left.message()));
    assert_eq!(installed.projected(&key(0)), State::Absent);
    installed.write(key(0), Effect::Set(content(1, 3, 0)), Some(left.message()));
    assert_eq!(installed.projected(&key(0)), State::Present(content(1, 2, 0)));
}

#[test]
fn an_external_deletion_is_unsure_while_an_add_of_the_rule_is_in_flight() {
    let mut installed = Installed::new(Wire::V13);
    installed.write(key(0), Effect::Set(content(1, 1, 0)), None);
    assert_eq!(installed.deleted_by_others(&key(0), owner(1)), Deleted::Unsure);
    assert_eq!(installed.projected(&key(0)), State::Unknown(owner(1)));
    let again = installed.write(key(0), Effect::Set(content(1, 1, 0)), None);
    assert_eq!(installed.deleted_by_others(&key(0), owner(1)), Deleted::UnsureAgain);
    installed.confirm(again, NOW);
    assert_eq!(installed.deleted_by_others(&key(0), owner(1)), Deleted::Gone);
    assert_eq!(installed.projected(&key(0)), State::Absent);
}

#[test]
fn a_deletion_report_belongs_to_one_accepted_message() {
    let mut installed = Installed::new(Wire::V13);
    installed.learn(key(0), content(1, 1, 0));
    let deleted = installed.write(key(0), Effect::Remove(owner(1)), None);
    let refused = installed.write(key(0), Effect::Remove(owner(1)), None);
    installed.refuse(refused);
    assert_eq!(installed.deletion_reported(&key(0), owner(1)), Some(deleted.message()));
    assert_eq!(installed.deletion_reported(&key(0), owner(1)), None);
}
