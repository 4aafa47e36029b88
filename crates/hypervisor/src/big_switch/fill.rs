//! A member that connects: Weir asks for its entries, groups and meters.

use super::member::{Member, Progress};
use super::request::Object;
use super::tables::{Entry, Value};
use super::wire::Sent;
use super::{BigSwitch, wire};
use crate::cookie::Cookie;
use crate::time::Instant;
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

    /// A member has reported its tables: Weir sends the difference. Until the front has been connected for the first time, the reported tables
    /// become those of the big switch, and all other members get them.
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
        let (version, learned) = (self.version, core::mem::take(&mut member.learned));
        for (object, add) in wire::numbers_held(&learned.groups, &learned.meters) {
            member.held.adopt(object, Value::Number(add.into()));
        }
        for held in wire::held(version, &learned.flows) {
            let since = Instant(now.0.saturating_sub(u64::from(held.seconds) * 1_000_000_000));
            let is_ours =
                Cookie::of_any(held.cookie).is_some_and(|it| it.tenant == self.plan.tenant);
            let known = self.desired.entry_mut(held.cookie).filter(|_| is_ours);
            let spec = match known {
                Some(entry) => {
                    entry.since = entry.since.min(since);
                    wire::spec(
                        version,
                        wire::modified(version, &entry.spec.add, &held.add(version)),
                    )
                }
                None => wire::spec(version, held.add(version)),
            };
            let mut copy = Entry::new(spec, now);
            copy.packets = held.packets;
            let object = Object::Entry(held.cookie);
            if is_ours && !self.front.is_settled() && !self.desired.has(object) {
                let entry = Entry::new(copy.spec.clone(), since);
                self.desired.adopt(object, Value::Entry(entry));
                self.log.dirty.insert(object);
            }
            member.held.adopt(object, Value::Entry(copy));
        }
    }

    fn adopt(&mut self, member: &Member) {
        let configs = member.ports.iter().filter_map(|(&port, wire)| {
            let config = wire::port_config(self.version, wire);
            (config != 0).then_some((Object::Port(port), Value::Config(config)))
        });
        let numbers = member.held.objects().filter_map(|object| {
            member.held.number(object).map(|add| (object, Value::Number(add.clone())))
        });
        for (object, value) in configs.chain(numbers).collect::<Vec<_>>() {
            self.desired.adopt(object, value);
            self.log.dirty.insert(object);
        }
    }

    /// The member holds all objects: its ports come up.
    pub(super) fn filled(&mut self, now: Instant) {
        self.report_ports();
        self.maybe_start(now);
    }
}
