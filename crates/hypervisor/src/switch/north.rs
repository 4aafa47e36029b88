//! Northbound: what controllers are told.

use super::{Event, Request, Switch, Tenant};
use crate::account::Account;
use crate::counters::count;
use crate::ids::{ControllerIndex, TenantIndex};
use crate::north::{Asynchronous, Controller, Given, types};
use crate::policy::TenantId;
use crate::refusals::Verdict;
use crate::south::pending::{Awaits, Entry, Origin};
use crate::time::Instant;
use alloc::sync::Arc;
use alloc::vec::Vec;
use compile::Reason;
use openflow::error::Error;
use openflow::{ErrorCode, TooLong, frame};

impl Switch {
    /// Answers a request at once; `write` appends whole messages. If they have no room for the answer, the request is refused.
    pub(crate) fn reply(
        &mut self,
        request: &Request<'_>,
        write: impl FnOnce(&Switch, &mut Vec<u8>) -> Result<(), TooLong>,
    ) {
        let mut message = self.scratch.take_message();
        let written = write(self, &mut message);
        if written.is_ok() {
            self.answer(request.controller, &message);
        }
        self.scratch.put_message(message);
        if written.is_err() {
            self.refuse(&request.origin(), Reason::AnswerTooLarge.with(self.codes().too_much));
        }
    }

    /// Gives a controller messages that it asked for.
    pub(crate) fn answer(&mut self, controller: ControllerIndex, messages: &[u8]) {
        match self.controllers.give(controller, messages) {
            Given::Gone => {}
            Given::TooMuch => self.reports.push(Event::CloseController(controller)),
            Given::Waiting => {
                let Some(tenant) = self.controllers.get(controller).map(Controller::tenant) else {
                    return;
                };
                let counters = &mut self.tenants[tenant].counters;
                types(messages).for_each(|type_| count(&mut counters.to_controller, type_));
            }
        }
    }

    /// Gives a tenant's controllers, as far as they want it, one asynchronous message. Returns whether any was
    /// connected at all.
    pub(crate) fn notify(
        &mut self,
        tenant: TenantIndex,
        kind: Asynchronous,
        write: impl FnMut(&mut Vec<u8>) -> Result<(), TooLong>,
    ) -> bool {
        self.notify_others(tenant, None, kind, write)
    }

    /// The same, but for the one whose doing it is.
    pub(crate) fn notify_others(
        &mut self,
        tenant: TenantIndex,
        doer: Option<ControllerIndex>,
        kind: Asynchronous,
        write: impl FnMut(&mut Vec<u8>) -> Result<(), TooLong>,
    ) -> bool {
        let Tenant { controllers, counters, .. } = &mut self.tenants[tenant];
        count(&mut counters.from_switch, kind.type_());
        self.controllers.notify(controllers, doer, kind, counters, write);
        !controllers.is_empty()
    }

    /// Answers a message with an error: the controller's own xid, the controller's own bytes. What joins the members of a big switch
    /// gets the verdict in place of the bytes: the switch in front keeps the refusal for the tenant, and counts it.
    pub(crate) fn refuse(&mut self, origin: &Origin, verdict: impl Into<Verdict>) {
        let (verdict, clock) = (verdict.into(), self.reports.clock());
        let code = verdict.refused.code();
        let is_joint = self.controllers.get(origin.controller).is_some_and(Controller::is_joint);
        let carried = is_joint.then(|| verdict.on_member(self.dpid()).to_data());
        if !is_joint {
            let tenant = &mut self.tenants[origin.tenant];
            tenant.refuse(origin, verdict, clock);
        }
        let mut message = self.scratch.take_message();
        let data = match &carried {
            Some(data) => data.as_slice(),
            None => origin.excerpt.as_bytes(),
        };
        let error = Error { code, data };
        if error.write_message(self.version(), origin.xid, &mut message).is_ok() {
            self.answer(origin.controller, &message);
        }
        self.scratch.put_message(message);
    }

    /// The switch has refused a message.
    pub(crate) fn switch_error(&mut self, xid: u32, error: &Error<'_>, now: Instant) {
        let Some(entry) = self.acknowledge(xid, now) else {
            self.reports.counters_mut().unexpected += 1;
            return;
        };
        self.session.take(xid);
        let verdict = match self.datapath.is_joined() {
            true => Verdict::of_error(error),
            false => Verdict::by_switch(error.code),
        };
        let refused = entry.written.map(|it| self.session.installed_mut().refuse(it));
        let refused = refused.unwrap_or_default();
        if let Some(operation) = entry.operation {
            self.operation_failed(operation, verdict, refused, now);
            return;
        }
        let is_own =
            matches!(entry.awaits, Awaits::Nothing | Awaits::Barrier(_) | Awaits::OwnBarrier);
        if is_own && entry.origin.is_none() {
            self.reports.counters_mut().own_refused += 1;
        }
        self.not_answered(xid, &entry, verdict, now);
    }

    /// The switch has not done what was asked, or not in time: the controller that waits for it gets an error.
    pub(crate) fn not_answered(&mut self, xid: u32, entry: &Entry, verdict: Verdict, now: Instant) {
        match entry.awaits {
            Awaits::Collection(collection) => self.collection_failed(collection, verdict),
            Awaits::Own(purpose) => self.own_request_failed(purpose, now),
            Awaits::Counts(tenant) => self.counts_failed(tenant, now),
            Awaits::Idle(tenant, number, at) => self.idle_failed(tenant, number, at),
            Awaits::Barrier(_) | Awaits::OwnBarrier => {
                self.barrier_failed(xid, entry, verdict, now)
            }
            Awaits::Nothing | Awaits::Reply => {
                let Some(origin) = entry.origin else { return };
                self.refuse(&origin, verdict);
                if entry.awaits == Awaits::Reply {
                    self.answered(origin.tenant);
                }
            }
        }
    }

    /// A reply of the switch, made the controller's own by its xid.
    pub(crate) fn relay_reply(&mut self, origin: &Origin, reply: &[u8]) {
        let counters = &mut self.tenants[origin.tenant].counters;
        for type_ in types(reply) {
            count(&mut counters.from_switch, type_);
        }
        let mut message = self.scratch.take_message();
        message.extend_from_slice(reply);
        frame::set_xid(&mut message, origin.xid);
        self.answer(origin.controller, &message);
        self.scratch.put_message(message);
        self.answered(origin.tenant);
    }

    /// The answer to an experimenter's message goes to the controller that sent the message.
    pub(crate) fn relay_experimenter(
        &mut self,
        xid: u32,
        frame: &[u8],
        now: Instant,
    ) -> Result<(), ErrorCode> {
        let unasked = openflow::error::v13::BAD_REQUEST_BAD_EXPERIMENTER;
        let origin = self.acknowledge(xid, now).and_then(|entry| entry.origin).ok_or(unasked)?;
        let mut message = frame.to_vec();
        frame::set_xid(&mut message, origin.xid);
        self.answer(origin.controller, &message);
        Ok(())
    }

    /// What waits for a tenant's controllers is counted together with what waits on other switches, for all controllers that
    /// connect from now on.
    pub fn share_account(&mut self, tenant: TenantId, account: Arc<Account>) {
        if let Some(at) = self.tenants.find(tenant) {
            let state = &mut self.tenants[at];
            state.backlog.held_mut().share(account);
        }
    }

    /// A controller of a tenant has connected and said HELLO. `None` when the tenant has no part of the switch.
    pub fn controller_connected(&mut self, tenant: TenantId) -> Option<ControllerIndex> {
        self.connected(tenant, false)
    }

    /// The same of the [`BigSwitch`](crate::big_switch::BigSwitch) of which the tenant's switch is a member.
    pub fn joint_connected(&mut self, tenant: TenantId) -> Option<ControllerIndex> {
        self.connected(tenant, true)
    }

    fn connected(&mut self, tenant: TenantId, is_joint: bool) -> Option<ControllerIndex> {
        let at = self.tenants.find(tenant)?;
        if !self.is_ready() || !self.tenants[at].terms.is_present() {
            return None;
        }
        let account = Arc::clone(self.tenants[at].backlog.held().account());
        let index = self.controllers.connect(at, account, is_joint)?;
        self.tenants[at].controllers.add(index);
        self.greet_with_labels(index, at);
        Some(index)
    }

    /// A controller's connection is gone. What it asked for and has not been done yet is still done.
    pub fn controller_disconnected(&mut self, controller: ControllerIndex) {
        let Some(tenant) = self.controllers.remove(controller) else { return };
        self.tenants[tenant].controllers.remove(controller);
        self.datapath.asked().suspect();
    }
}
