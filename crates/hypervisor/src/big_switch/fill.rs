//! A member that connects: Weir asks for its entries, groups and meters.

use super::BigSwitch;
use super::member::{Member, Progress};
use super::request::{Object, Spec};
use super::tables::{Entry, Value};
use super::wire::Sent;
use crate::cookie::Cookie;
use crate::flows::Flow;
use crate::messages;
use crate::store::Kind;
use crate::time::Instant;
use crate::v13::numbers::{groups_held, meters_held};
use alloc::sync::Arc;
use alloc::vec::Vec;

impl BigSwitch {
    /// One of the questions about what a member holds is answered in full.
    pub(super) fn learned(&mut self, dpid: u64, now: Instant) {
        let Some(member) = self.members.get_mut(&dpid) else { return };
        if let Progress::Learning(open) = member.progress {
            member.progress = Progress::Learning(open.saturating_sub(1));
            if open <= 1 {
                self.compare(dpid, now);
            }
        }
    }

    /// A member has reported its tables: Weir sends the difference. Until the front has been connected for the first
    /// time, the reported tables become those of the big switch, and all other members get them.
    fn compare(&mut self, dpid: u64, now: Instant) {
        let Some(mut member) = self.members.remove(&dpid) else { return };
        member.progress = Progress::Filling(u64::MAX);
        for config in self.front.configs() {
            member.send(Sent::Plain(None), &config);
        }
        self.take_report(&mut member, now);
        if !self.front.is_settled() {
            self.adopt(&member);
        }
        self.members.insert(dpid, member);
        self.log.is_settling = true;
    }

    fn take_report(&mut self, member: &mut Member, now: Instant) {
        let (wire, learned) = (self.wire, core::mem::take(&mut member.learned));
        let groups = groups_held(&learned.groups).map(|it| (Kind::Group, it));
        let meters = meters_held(&learned.meters).map(|it| (Kind::Meter, it));
        for (kind, (number, content)) in groups.chain(meters) {
            member.held.adopt(Object::Number(kind, number), Value::Number(content.into()));
        }
        for held in messages::reported_rules(wire, &learned.flows) {
            let (cookie, since, packets) = (held.cookie, held.installed(now), held.packets);
            let is_ours = Cookie::of_any(cookie).is_some_and(|it| it.tenant == self.plan.tenant);
            let flow = match self.desired.entry_mut(cookie).filter(|_| is_ours) {
                Some(entry) => {
                    entry.since = entry.since.min(since);
                    entry.spec.flow.with_actions(&held.actions.into())
                }
                None => Flow::of_held(held),
            };
            let mut copy = Entry::new(Spec::new(wire, flow), now);
            copy.counted.packets = packets;
            let object = Object::Entry(cookie);
            if is_ours && !self.front.is_settled() && !self.desired.has(object) {
                let entry = Entry::new(Arc::clone(&copy.spec), since);
                self.desired.adopt(object, Value::Entry(entry));
                self.log.dirty.insert(object);
            }
            member.held.adopt(object, Value::Entry(copy));
        }
    }

    fn adopt(&mut self, member: &Member) {
        let configs = member.ports.iter().filter(|(_, port)| !port.config.is_empty());
        let configs =
            configs.map(|(&number, port)| (Object::Port(number), Value::Config(port.config.0)));
        let numbers = member.held.objects().filter_map(|object| {
            member.held.number(object).map(|content| (object, Value::Number(Arc::clone(content))))
        });
        for (object, value) in configs.chain(numbers).collect::<Vec<_>>() {
            self.desired.adopt(object, value);
            self.log.dirty.insert(object);
        }
    }
}
