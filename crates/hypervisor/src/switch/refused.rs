//! Entries of the hypervisor's own that the switch refuses.
//!
//! One is tried once more, since what stood in its way may have gone. If it is refused again, and packets of a network were to
//! come in by it (1.3), then the tenant's port is down: that is what it sees of a port by which nothing comes. So it stays
//! until the switch gets another map, or connects again. Of others, by which packets of links pass through or slices are told
//! apart, it is only counted that they were refused. [`Event::RefusedPorts`] and [`Event::OwnRefused`] tell it to whoever runs
//! the hypervisor.

use super::{Cause, Event, Own, OwnChange, Switch};
use crate::tenant::Tenant;
use crate::time::Instant;
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use fabric::embedding::Member;
use flowspace::Match;
use openflow::Version;

/// How many refused entries of one map are told of: a switch without room refuses them all.
const TOLD: usize = 16;

/// An entry of the hypervisor's own that is on its way to the switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tried {
    match_: Match,
    priority: u16,
    change: OwnChange,
    /// Whether the switch has refused it before.
    again: bool,
}

impl Tried {
    pub(super) fn new(own: &Own, change: OwnChange) -> Tried {
        Tried { match_: own.match_, priority: own.priority, change, again: false }
    }
}

impl Switch {
    /// Sends the message that brings an entry of the hypervisor's own, as an operation.
    pub(super) fn submit_own(&mut self, cause: &Cause, tried: Tried, message: &[u8]) {
        let cause = self.begin_unasked(cause);
        if let Some(operation) = cause.operation.and_then(|at| self.operations.get_mut(&at)) {
            operation.tries = Some(tried);
        }
        self.submit_change(&cause, message);
    }

    /// The switch has refused one.
    pub(super) fn own_entry_refused(&mut self, cause: &Cause, tried: Tried) {
        let is_it = |own: &&Own| own.match_ == tried.match_ && own.priority == tried.priority;
        // If it is not wanted any more, that is as well.
        let Some(own) = self.own.iter().find(is_it).cloned() else { return };
        if !tried.again {
            let mut message = Vec::new();
            if self.write_own_entry(&own, tried.change, &mut message) {
                let cause = Cause::own(cause.tenant, cause.now);
                self.submit_own(&cause, Tried { again: true, ..tried }, &message);
            }
            return;
        }
        if self.told_refused < TOLD {
            self.told_refused += 1;
            let Own { match_, priority, .. } = own;
            self.events.push_back(Event::OwnRefused { match_: Box::new(match_), priority });
        }
        if self.version != Version::V1_0
            && let Some((id, port)) = crate::v13::own::port_of(&own)
            && let Some(tenant) = self.tenant_of(id)
        {
            self.has_refused_ports |= self.tenants[tenant.0 as usize].refused_ports.insert(port);
        }
    }

    /// Brings ports down that the switch has refused, all of them together: as if there were a map in which they are.
    pub(super) fn close_refused_ports(&mut self, now: Instant) {
        if !self.has_refused_ports || self.operations.values().any(|it| it.tries.is_some()) {
            return;
        }
        self.has_refused_ports = false;
        self.tell_refused_ports();
        let policy = self.policy.clone();
        self.upcoming.follow_again(policy);
        self.follow(now);
    }

    /// There is another map: all is tried anew.
    pub(super) fn forget_refused(&mut self) {
        self.told_refused = 0;
        if self.tenants.iter().all(|tenant| tenant.refused_ports.is_empty()) {
            return;
        }
        self.tenants.iter_mut().for_each(|tenant| tenant.refused_ports.clear());
        self.tell_refused_ports();
    }

    fn tell_refused_ports(&mut self) {
        let of = |tenant: &Tenant| {
            let id = tenant.id;
            tenant.refused_ports.iter().map(move |&port| (id, port)).collect::<Vec<_>>()
        };
        // Those of a map that was not fetched yet are news no longer.
        self.events.retain(|event| !matches!(event, Event::RefusedPorts(_)));
        self.events.push_back(Event::RefusedPorts(self.tenants.iter().flat_map(of).collect()));
    }
}

/// A tenant's part of the switch, with these ports down.
pub(super) fn without<'a>(member: &'a Member, refused: &BTreeSet<u32>) -> Cow<'a, Member> {
    let mut member = Cow::Borrowed(member);
    for number in refused {
        if let Some(port) = member.to_mut().ports.get_mut(number) {
            port.up = false;
        }
    }
    member
}
