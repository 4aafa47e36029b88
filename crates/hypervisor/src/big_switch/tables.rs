//! Entries, groups, meters and configurations of ports: those of the big switch, and those that a member holds.

use super::request::{Object, Request, Spec, To};
use super::wire;
use crate::flows::Flow;
use crate::semantics::Semantics;
use crate::south::diff::Change;
use crate::tally::Count;
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use compile::Wire;

/// An entry of the big switch, or a member's copy of the entry.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) spec: Arc<Spec>,
    /// Of the big switch: when the entry was added. Of a copy: the last time at which Weir knows that the copy had
    /// counted a packet.
    pub(super) since: Instant,
    /// Of the big switch: the counters of removed copies. Of a copy: its counters when Weir last asked.
    pub(super) counted: Count,
    /// Of a copy: Weir has installed the copy again, or the copy has counted no packet for as long as the idle
    /// time-out.
    pub(super) is_idle: bool,
}

#[derive(Clone)]
pub(super) enum Value {
    Entry(Entry),
    /// The content of a group or meter (1.3).
    Number(Arc<[u8]>),
    Config(u32),
}

/// Objects before a change.
pub(super) type Before = Vec<(Object, Option<Value>)>;

/// See the module.
#[derive(Default)]
pub(super) struct Tables(BTreeMap<Object, Value>);

impl Entry {
    pub(super) fn new(spec: Arc<Spec>, since: Instant) -> Entry {
        Entry { spec, since, counted: Count::default(), is_idle: false }
    }

    pub(super) fn count(&mut self, counted: Count) {
        self.counted = self.counted.plus(counted);
    }

    /// The entry with its time and its counts.
    pub(super) fn flow(&self) -> Flow {
        Flow { installed: self.since, past: self.counted, ..self.spec.flow.clone() }
    }

    /// The request that installs the entry again, and its message, with the rest of the hard time-out: at least a
    /// second.
    pub(super) fn again(&self, wire: Wire, now: Instant) -> (Request, Vec<u8>) {
        let (flow, spec) = (self.flow(), Arc::clone(&self.spec));
        let to = To::Add { spec, resets_counts: false, is_again: true };
        let message = wire::flow_mod(wire, Change::Add, &flow, flow.left(now).unwrap_or(1));
        (Request { object: Object::Entry(flow.cookie), to }, message)
    }
}

impl Tables {
    pub(super) fn has(&self, object: Object) -> bool {
        self.0.contains_key(&object)
    }

    pub(super) fn entry(&self, cookie: u64) -> Option<&Entry> {
        match self.0.get(&Object::Entry(cookie)) {
            Some(Value::Entry(entry)) => Some(entry),
            _ => None,
        }
    }

    pub(super) fn entry_mut(&mut self, cookie: u64) -> Option<&mut Entry> {
        match self.0.get_mut(&Object::Entry(cookie)) {
            Some(Value::Entry(entry)) => Some(entry),
            _ => None,
        }
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (u64, &Entry)> {
        let all = self.0.range(Object::Entry(0)..=Object::Entry(u64::MAX));
        all.filter_map(|(object, value)| match (object, value) {
            (Object::Entry(cookie), Value::Entry(entry)) => Some((*cookie, entry)),
            _ => None,
        })
    }

    pub(super) fn objects(&self) -> impl Iterator<Item = Object> {
        self.0.keys().copied()
    }

    /// The content of a group or meter.
    pub(super) fn number(&self, object: Object) -> Option<&Arc<[u8]>> {
        match self.0.get(&object) {
            Some(Value::Number(content)) => Some(content),
            _ => None,
        }
    }

    pub(super) fn config(&self, port: u32) -> Option<u32> {
        match self.0.get(&Object::Port(port)) {
            Some(Value::Config(config)) => Some(*config),
            _ => None,
        }
    }

    /// Sets an object. Returns the object before.
    pub(super) fn set(&mut self, object: Object, value: Option<Value>) -> Option<Value> {
        match value {
            Some(value) => self.0.insert(object, value),
            None => self.0.remove(&object),
        }
    }

    /// Sets an object that is not there.
    pub(super) fn adopt(&mut self, object: Object, value: Value) {
        self.0.entry(object).or_insert(value);
    }

    /// Restores an object as it was before a change.
    pub(super) fn restore(&mut self, object: Object, mut before: Option<Value>) {
        // The counters of removed copies stay.
        if let (Some(Value::Entry(before)), Some(Value::Entry(now))) =
            (&mut before, self.0.get(&object))
            && before.since == now.since
        {
            before.counted = now.counted;
        }
        self.set(object, before);
    }

    /// Carries out a change. Returns the replaced objects.
    pub(super) fn apply(&mut self, wire: Wire, request: &Request, now: Instant) -> Before {
        let object = request.object;
        let after = match (&request.to, self.0.get(&object)) {
            (To::Add { spec, resets_counts, is_again }, before) => {
                let mut entry = Entry::new(Arc::clone(spec), now);
                entry.is_idle = *is_again && spec.flow.idle_timeout > 0;
                if let Some(Value::Entry(before)) = before
                    && !resets_counts
                {
                    entry.count(before.counted);
                }
                Some(Value::Entry(entry))
            }
            (To::Modify { by, resets_counts }, Some(Value::Entry(before))) => {
                let flow = before.spec.flow.with_actions(&by.flow.actions);
                let mut entry = Entry { spec: Spec::new(wire, flow), ..before.clone() };
                if *resets_counts {
                    entry.counted = Count::default();
                }
                Some(Value::Entry(entry))
            }
            (To::Modify { by, .. }, _) => {
                let added = Semantics::of(wire).modify_adds.then(|| Arc::clone(by));
                added.map(|spec| Value::Entry(Entry::new(spec, now)))
            }
            (To::Number(content), _) => Some(Value::Number(Arc::clone(content))),
            (To::Config { config, mask }, before) => {
                let before = match before {
                    Some(Value::Config(before)) => *before,
                    _ => 0,
                };
                Some(Value::Config(before & !mask | config & mask))
            }
            (To::Nothing, _) => None,
        };
        let mut before = Vec::from([(object, self.set(object, after))]);
        if request.deletes() && matches!(object, Object::Number(..)) {
            let using = self.entries().filter(|(_, entry)| entry.spec.uses.contains(&object));
            let using: Vec<Object> = using.map(|(cookie, _)| Object::Entry(cookie)).collect();
            before.extend(using.into_iter().map(|object| (object, self.0.remove(&object))));
        }
        before
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
