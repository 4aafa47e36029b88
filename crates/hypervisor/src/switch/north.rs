//! Northbound: messages to controllers.

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
    /// Answers a request at once; `write` appends whole messages. If a message has no room for the answer, the request
    /// is refused.
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

    /// Gives a controller the answers to its requests.
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

    /// Gives one asynchronous message to the tenant's controllers that want the message. Returns whether any controller
    /// was connected.
    pub(crate) fn notify(
        &mut self,
        tenant: TenantIndex,
        kind: Asynchronous,
        write: impl FnMut(&mut Vec<u8>) -> Result<(), TooLong>,
    ) -> bool {
        self.notify_others(tenant, None, kind, write)
    }

    /// Gives one asynchronous message to the tenant's controllers that want the message, except for `doer`, which has
    /// caused it.
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

    /// Answers a message with an ERROR, with the controller's xid and the first bytes of its message. A big switch gets
    /// the verdict of its member instead of these bytes: the front keeps the refusal for the tenant, and counts it.
    pub(crate) fn refuse(&mut self, origin: &Origin, verdict: impl Into<Verdict>) {
        let (verdict, clock) = (verdict.into(), self.reports.clock());
        let code = verdict.refused.code();
        let is_joint = self.controllers.get(origin.controller).is_some_and(Controller::is_joint);
        let carried = is_joint.then(|| verdict.on_member(self.dpid()).to_data());
        if !is_joint {
            let tenant = &mut self.tenants[origin.tenant];
            tenant.refuse(origin, verdict, clock);
            if verdict.is_by_weir() {
                self.charge_refusal(origin.tenant, clock);
            }
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
        let Some(entry) = self.session.acknowledge(xid, now) else {
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

    /// The switch has refused a message, or has not answered in time: the waiting controller gets an error.
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

    /// Gives a controller a reply of the switch, with the controller's xid.
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

    /// The answer to an experimenter's message goes to the controller that has sent the message.
    pub(crate) fn relay_experimenter(
        &mut self,
        xid: u32,
        frame: &[u8],
        now: Instant,
    ) -> Result<(), ErrorCode> {
        let unasked = openflow::error::v13::BAD_REQUEST_BAD_EXPERIMENTER;
        let origin =
            self.session.acknowledge(xid, now).and_then(|entry| entry.origin).ok_or(unasked)?;
        let mut message = frame.to_vec();
        frame::set_xid(&mut message, origin.xid);
        self.answer(origin.controller, &message);
        Ok(())
    }

    /// From now on the bytes that wait for the tenant's controllers count in this account, together with those on other
    /// switches. Call this before the controllers connect.
    pub fn share_account(&mut self, tenant: TenantId, account: Arc<Account>) {
        if let Some(at) = self.tenants.find(tenant) {
            let state = &mut self.tenants[at];
            state.backlog.held_mut().share(account);
        }
    }

    /// Step 2: a controller of a tenant has connected and sent HELLO. `None` if the tenant has no part of the switch.
    pub fn controller_connected(&mut self, tenant: TenantId) -> Option<ControllerIndex> {
        self.connected(tenant, false)
    }

    /// As [`controller_connected`](Self::controller_connected), for the [`BigSwitch`](crate::big_switch::BigSwitch) of
    /// which the tenant's switch is a member.
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

    /// Step 2: a controller's connection is gone. Its requests that are not done yet are still carried out.
    pub fn controller_disconnected(&mut self, controller: ControllerIndex) {
        let Some(tenant) = self.controllers.remove(controller) else { return };
        self.tenants[tenant].controllers.remove(controller);
        self.datapath.asked().suspect();
    }
}
