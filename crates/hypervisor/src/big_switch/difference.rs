//! The difference between what the big switch is to have and what a member holds, as messages.

use super::BigSwitch;
use super::member::Member;
use super::request::{Object, Request, To};
use super::wire;
use crate::named::{before_named, buckets_of, named_by, named_first};
use crate::south::diff::Change;
use crate::store::Kind;
use crate::time::Instant;
use crate::v13::numbers::{deletion, number_mod};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use openflow::v13::{GroupModCommand, GroupType};

type Messages = Vec<(Request, Vec<u8>)>;

impl BigSwitch {
    /// The messages that make a member hold these objects, or all objects if the member has just connected. Groups and
    /// meters are added before the entries that use them, and deleted behind these entries.
    pub(super) fn difference(
        &self,
        member: &Member,
        dirty: &BTreeSet<Object>,
        now: Instant,
    ) -> Messages {
        let mut objects: BTreeSet<Object> = dirty | &member.unknown;
        if member.is_filling() {
            objects = self.desired.objects().chain(member.held.objects()).collect();
            objects.extend(member.ports.keys().map(|port| Object::Port(*port)));
        }
        let mut messages = Messages::new();
        self.add_numbers(member, &objects, &mut messages);
        for &object in &objects {
            match object {
                Object::Entry(cookie) => messages.extend(self.mend_entry(member, cookie, now)),
                Object::Port(port) => messages.extend(self.configure(member, port)),
                Object::Number(..) => {}
            }
        }
        self.delete_numbers(member, &objects, &mut messages);
        messages
    }

    fn mend_entry(&self, member: &Member, cookie: u64, now: Instant) -> Option<(Request, Vec<u8>)> {
        let object = Object::Entry(cookie);
        let is_unknown = member.unknown.contains(&object);
        let held = member.held.entry(cookie);
        let Some(wanted) = self.desired.entry(cookie).filter(|_| !member.lacks.contains(&object))
        else {
            let message = wire::flow_mod(self.wire, Change::Delete, &held?.spec.flow, 0);
            return Some((Request { object, to: To::Nothing }, message));
        };
        if let Some(held) = held.filter(|_| !is_unknown) {
            let (held, by) = (&held.spec.flow, &wanted.spec);
            if *held == by.flow {
                return None;
            }
            if held.with_actions(&by.flow.actions) == by.flow {
                let hard = by.flow.hard_timeout;
                let message = wire::flow_mod(self.wire, Change::Modify, &by.flow, hard);
                let to = To::Modify { by: Arc::clone(by), resets_counts: false };
                return Some((Request { object, to }, message));
            }
        }
        Some(wanted.again(self.wire, now))
    }

    /// A group comes after the groups that it names. If groups watch each other, one of them is added without buckets
    /// first, and gets its buckets when the others exist.
    fn add_numbers(&self, member: &Member, objects: &BTreeSet<Object>, messages: &mut Messages) {
        let mut groups = BTreeMap::new();
        for &object in objects {
            let Some(content) = self.desired.number(object) else { continue };
            if member.held.number(object) == Some(content) || member.lacks.contains(&object) {
                continue;
            }
            match object {
                Object::Number(Kind::Meter, meter) => {
                    messages.push(number(Kind::Meter, meter, content, member.held.has(object)));
                }
                Object::Number(_, group) => drop(groups.insert(group, content)),
                Object::Entry(_) | Object::Port(_) => {}
            }
        }
        let numbers: Vec<u32> = groups.keys().copied().collect();
        let named = |number| groups.get(&number).map(|it| named_in(it)).unwrap_or_default();
        let mut there = BTreeSet::new();
        for of in named_first(&numbers, named) {
            let mut is_there = |number| {
                member.held.has(Object::Number(Kind::Group, number)) || !there.insert(number)
            };
            for named in named(of) {
                if groups.contains_key(&named) && !is_there(named) {
                    let empty = Arc::from([GroupType::ALL.0, 0]);
                    messages.push(number(Kind::Group, named, &empty, false));
                }
            }
            if let Some(content) = groups.get(&of) {
                messages.push(number(Kind::Group, of, content, is_there(of)));
            }
        }
    }

    /// A group is deleted before the groups that it names.
    fn delete_numbers(&self, member: &Member, objects: &BTreeSet<Object>, messages: &mut Messages) {
        let gone = objects.iter().filter(|object| !self.desired.has(**object));
        let gone = gone.filter_map(|object| match *object {
            Object::Number(kind, number) => {
                Some(((kind, number), named_in(member.held.number(*object)?)))
            }
            Object::Entry(_) | Object::Port(_) => None,
        });
        let gone: BTreeMap<(Kind, u32), Vec<u32>> = gone.collect();
        messages.extend(before_named(&gone).into_iter().map(|(kind, number)| {
            let object = Object::Number(kind, number);
            (Request { object, to: To::Nothing }, deletion(kind, number))
        }));
    }

    fn configure(&self, member: &Member, port: u32) -> Option<(Request, Vec<u8>)> {
        let (object, described) = (Object::Port(port), member.ports.get(&port)?);
        let wanted = self.desired.config(port).unwrap_or(0);
        let held = member.held.config(port).unwrap_or(described.config.0);
        if held == wanted || member.lacks.contains(&object) {
            return None;
        }
        let to = To::Config { config: wanted, mask: u32::MAX };
        Some((Request { object, to }, wire::port_mod(self.wire, described, wanted)))
    }
}

fn number(kind: Kind, id: u32, content: &Arc<[u8]>, is_there: bool) -> (Request, Vec<u8>) {
    let command = if is_there { GroupModCommand::MODIFY } else { GroupModCommand::ADD };
    let (object, to) = (Object::Number(kind, id), To::Number(Arc::clone(content)));
    (Request { object, to }, number_mod(kind, id, command, content))
}

/// The groups that a group with this content sends to or watches.
fn named_in(content: &[u8]) -> Vec<u32> {
    let buckets = buckets_of(content);
    let watched = buckets.into_iter().map(|bucket| bucket.watch_group);
    named_by(buckets).chain(watched).collect()
}
