//! Requests that wait until it is known what became of others before them.
//!
//! A change is accepted before the switch has carried it out, and taken back if the switch refuses it. What comes behind it
//! meanwhile must come to what it would have on a switch of the tenant's own, which does one after the other. A request that
//! only says what is to be stands whatever becomes of those before it. One whose outcome hangs on what they leave waits, and
//! with it what its controller sends after it:
//!
//! ```text
//!   MODIFY of entries                  others are about to come, to go, or to begin anew: what it modifies keeps their times
//!   DELETE by out_port, cookie ...     they are about to become others than the filter means, or to be such
//!   ADD, DELETE of entries             a group or meter is on its way out with them: they stand again if that is refused,
//!                                      or there is no room if they do
//!   deletion of a group or meter       entries are about to use it, or to cease to; groups, to name it or to cease to
//!   whatever a group or meter becomes  it is about to come, or to go
//! ```

use super::tables::Operation;
use super::tracking::named_of;
use super::{Controller, Request, Switch};
use crate::flows::Flow;
use crate::ids::{ControllerIndex, TenantIndex};
use crate::store::Kind;
use crate::time::Instant;
use alloc::vec::Vec;
use openflow::{Header, Version};

/// A message of a controller, put off.
pub(crate) struct Postponed {
    tenant: TenantIndex,
    controller: ControllerIndex,
    frame: Vec<u8>,
    /// Since when it waits; `None` if it only stands behind another.
    since: Option<Instant>,
}

impl Switch {
    /// Puts a request off. What it waits for is asked about at once.
    pub(crate) fn postpone(&mut self, request: &Request<'_>) {
        let Request { tenant, controller, frame, now, .. } = *request;
        let since = Some(now);
        self.postponed.push(Postponed { tenant, controller, frame: frame.into(), since });
        let is_sent = self.tenants[request.tenant.0 as usize].queue.is_empty();
        if is_sent && self.delayed.is_empty() && self.unbarriered {
            self.send_own_barrier(now);
        }
    }

    /// Whether a change that is on its way decides what a request finds that reads this of entries.
    pub(crate) fn is_undecided<T: PartialEq>(
        &self,
        tenant: TenantIndex,
        read: impl Fn(&Flow) -> Option<T>,
    ) -> bool {
        let flows = &self.tenants[tenant.0 as usize].flows;
        let read_now = |number: &u32| flows.get(*number).and_then(&read);
        self.changes_of(tenant).any(|change| {
            let mut before = change.before.iter();
            // What is to be brought once more begins with that.
            let mut again = change.again.iter();
            before.any(|(number, it)| it.as_ref().and_then(&read) != read_now(number))
                || again.any(|(number, _)| read_now(number).is_some())
        })
    }

    /// By the refusal of such changes entries stand again that are in no table. What comes behind does not find them there, to
    /// delete or to replace them.
    pub(super) fn may_bring_back(
        &mut self,
        tenant: TenantIndex,
        is_meant: impl Fn(&Operation) -> bool,
    ) {
        self.returning.retain(|at| self.operations.contains_key(at));
        let changes = self.operations.iter().filter(|(_, change)| change.tenant == tenant);
        for (at, _) in changes.filter(|(_, change)| is_meant(change)) {
            if !self.returning.contains(at) {
                self.returning.push(*at);
            }
        }
    }

    /// Those entries.
    pub(crate) fn returning(&self, tenant: TenantIndex) -> impl Iterator<Item = &Flow> {
        let flows = &self.tenants[tenant.0 as usize].flows;
        let changes = self.returning.iter().filter_map(|at| self.operations.get(at));
        let before =
            changes.filter(move |change| change.tenant == tenant).flat_map(|it| &it.before);
        let before = before.filter(|(number, _)| flows.get(*number).is_none());
        before.filter_map(|(_, before)| before.as_ref())
    }

    /// Whether entries are about to use such a group or meter, or to cease to: with them stands or falls what goes with it.
    pub(crate) fn has_open_users(
        &self,
        tenant: TenantIndex,
        kind: Kind,
        is_meant: impl Fn(u32) -> bool,
    ) -> bool {
        let flows = &self.tenants[tenant.0 as usize].flows;
        let uses = |flow: &Flow| named_of(kind, &flow.actions).into_iter().any(&is_meant);
        let mut changed = self.changes_of(tenant).flat_map(|change| &change.before);
        changed.any(|(number, before)| before.iter().chain(flows.get(*number)).any(uses))
    }

    /// Whether such a group or meter is about to come or to go.
    pub(crate) fn is_open(
        &self,
        tenant: TenantIndex,
        kind: Kind,
        is_meant: impl Fn(u32) -> bool,
    ) -> bool {
        let known = self.numbers(tenant, kind);
        let mut changed = self.changes_of(tenant).flat_map(|change| &change.numbers_before);
        changed.any(|one| {
            one.kind == kind
                && is_meant(one.number)
                && one.before.is_some() != known.get(one.number).is_some()
        })
    }

    fn changes_of(&self, tenant: TenantIndex) -> impl Iterator<Item = &Operation> {
        self.operations.values().filter(move |change| change.tenant == tenant)
    }

    /// Whether messages wait behind which others of a controller have to stand: its own, and those of one of the tenant's that
    /// has gone, since it said them before.
    pub(super) fn is_postponed(&self, tenant: TenantIndex, controller: ControllerIndex) -> bool {
        let is_gone = |other| self.controllers.get(other).is_none();
        let mut of_tenant = self.postponed.iter().filter(|it| it.tenant == tenant);
        of_tenant.any(|it| it.controller == controller || is_gone(it.controller))
    }

    /// Puts a message behind those that wait. A driver that asks whether to read brings none.
    pub(super) fn postpone_behind(&mut self, request: &Request<'_>) {
        let Request { tenant, controller, frame, .. } = *request;
        let waiting = self.postponed.iter().filter(|it| it.controller == controller).count();
        if waiting < self.settings.tenant_backlog {
            let frame = frame.into();
            self.postponed.push(Postponed { tenant, controller, frame, since: None });
        } else {
            self.refuse(&request.origin(), self.codes().unanswered);
        }
    }

    /// When the first that waits is given up.
    pub(super) fn next_postponed(&self) -> Option<Instant> {
        let since = self.postponed.iter().filter_map(|it| it.since).min();
        since.map(|since| since + self.settings.reply_timeout)
    }

    /// Looks anew at what waits: something has become known of what was on its way.
    pub(super) fn take_up_postponed(&mut self, now: Instant) {
        for Postponed { tenant, controller, frame, since } in core::mem::take(&mut self.postponed) {
            let Ok(header) = Header::parse(&frame) else { continue };
            // What one has asked for that is gone is still done; there is nobody to be answered.
            let is_gone = match self.controllers.get(controller) {
                Some(&Controller { closing: true, .. }) => continue,
                Some(_) => false,
                None => true,
            };
            if is_gone && !self.changes_something(header) {
                continue;
            }
            let request = Request { tenant, controller, header, frame: &frame, now };
            // What is sent before it, and at which rate, is the tenant's own affair.
            let is_sent = self.tenants[tenant.0 as usize].queue.is_empty();
            let since = since.map(|since| if is_sent { since } else { now });
            let at = self.postponed.len();
            if self.is_postponed(tenant, controller) {
                self.postpone_behind(&request);
            } else if since.is_some_and(|since| now - since >= self.settings.reply_timeout) {
                // The switch does not say what became of the others.
                self.refuse(&request.origin(), self.codes().unanswered);
            } else {
                self.handle_request(request);
            }
            if let Some(again) = self.postponed.get_mut(at) {
                again.since = since.or(again.since);
            }
            self.resume(tenant);
        }
    }

    /// Whether a message is one of those that do something.
    fn changes_something(&self, header: Header) -> bool {
        use openflow::v13::MessageType as It;
        let both = [It::PACKET_OUT, It::FLOW_MOD, It::PORT_MOD];
        let newer = [It::GROUP_MOD, It::METER_MOD];
        both.map(|it| it.0).contains(&header.type_)
            || self.version != Version::V1_0 && newer.map(|it| it.0).contains(&header.type_)
    }
}
