//! Northbound: what controllers are told.

use super::{Event, Request, Switch};
use crate::account::{Account, MUCH, Part};
use crate::counters::count;
use crate::ids::{ControllerIndex, TenantIndex};
use crate::south::pending::{Awaits, Entry, Origin};
use crate::tenant::{AsyncConfig, Controller, Role};
use crate::time::Instant;
use alloc::sync::Arc;
use alloc::vec::Vec;
use openflow::error::Error;
use openflow::{ErrorCode, TooLong, frame};

/// Asynchronous messages, which a controller can decline (OpenFlow 1.3 section 6.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asynchronous {
    PacketIn(u8),
    PortStatus(u8),
    FlowRemoved(u8),
    /// A link's label, in a message of our own.
    Label,
}

impl Asynchronous {
    /// The message type, which is the same in both versions.
    fn type_(self) -> u8 {
        match self {
            Asynchronous::PacketIn(_) => 10,
            Asynchronous::FlowRemoved(_) => 11,
            Asynchronous::PortStatus(_) => 12,
            Asynchronous::Label => 4,
        }
    }

    fn is_wanted(self, controller: &Controller) -> bool {
        let AsyncConfig { packet_in, port_status, flow_removed } = controller.async_config;
        let (masks, reason) = match self {
            Asynchronous::PacketIn(reason) => (packet_in, reason),
            Asynchronous::PortStatus(reason) => (port_status, reason),
            Asynchronous::FlowRemoved(reason) => (flow_removed, reason),
            // Who wants to hear that a port was modified.
            Asynchronous::Label => (port_status, 2),
        };
        AsyncConfig::wants(masks, controller.role, reason)
    }
}

impl Switch {
    /// Answers a request at once; `write` appends whole messages. If they have no room for the answer, the request is refused.
    pub(crate) fn reply(
        &mut self,
        request: &Request<'_>,
        write: impl FnOnce(&Switch, &mut Vec<u8>) -> Result<(), TooLong>,
    ) {
        let mut message = core::mem::take(&mut self.scratch);
        message.clear();
        let written = write(self, &mut message);
        if written.is_ok() {
            self.answer(request.controller, &message);
        }
        self.scratch = message;
        if written.is_err() {
            self.refuse(&request.origin(), self.codes().too_much);
        }
    }

    /// Gives a controller messages that it asked for.
    pub(crate) fn answer(&mut self, controller: ControllerIndex, messages: &[u8]) {
        let Some(state) = self.controllers.get_mut(controller) else { return };
        if state.closing {
            return;
        }
        let waits = state.outbox.len() + messages.len();
        if waits >= MUCH {
            state.part.set(waits);
        }
        if waits > self.settings.controller_bytes_limit
            || waits >= MUCH && state.part.all() > self.settings.tenant_unread
        {
            state.closing = true;
            state.outbox.clear();
            state.part.set(0);
            self.events.push_back(Event::CloseController(controller));
            return;
        }
        let counters = &mut self.tenants[state.tenant.0 as usize].counters;
        for type_ in types(messages) {
            count(&mut counters.to_controller, type_);
        }
        state.outbox.end().extend_from_slice(messages);
        if !state.dirty {
            state.dirty = true;
            self.dirty.push_back(controller);
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
        mut write: impl FnMut(&mut Vec<u8>) -> Result<(), TooLong>,
    ) -> bool {
        let Switch { tenants, controllers, dirty, settings, .. } = self;
        let state = &mut tenants[tenant.0 as usize];
        count(&mut state.counters.from_switch, kind.type_());
        for &index in &state.controllers {
            let Some(controller) = controllers.get_mut(index) else { continue };
            if controller.closing || doer == Some(index) || !kind.is_wanted(controller) {
                continue;
            }
            let waits = controller.outbox.len();
            if waits >= settings.controller_bytes
                || waits >= MUCH && controller.part.all() > settings.tenant_unread / 2
            {
                state.counters.overflowed += 1;
                continue;
            }
            let out = controller.outbox.end();
            let start = out.len();
            if write(out).is_err() {
                out.truncate(start);
                continue;
            }
            if let Some(type_) = out.get(start + 1) {
                count(&mut state.counters.to_controller, *type_);
            }
            if !controller.dirty {
                controller.dirty = true;
                dirty.push_back(index);
            }
        }
        !state.controllers.is_empty()
    }

    /// Answers a message with an error: the controller's own xid, the controller's own bytes.
    pub(crate) fn refuse(&mut self, origin: &Origin, code: ErrorCode) {
        self.tenants[origin.tenant.0 as usize].counters.refuse(code);
        let mut message = core::mem::take(&mut self.scratch);
        message.clear();
        let error = Error { code, data: origin.excerpt.as_bytes() };
        if error.write_message(self.version, origin.xid, &mut message).is_ok() {
            self.answer(origin.controller, &message);
        }
        self.scratch = message;
    }

    /// The switch has refused a message.
    pub(crate) fn switch_error(&mut self, xid: u32, code: ErrorCode, now: Instant) {
        let Some(entry) = self.acknowledge(xid, now) else {
            self.counters.unexpected += 1;
            return;
        };
        self.session.take(xid);
        if let Some(operation) = entry.operation {
            self.operation_failed(operation, entry.origin.as_ref(), code, now);
            return;
        }
        let is_own =
            matches!(entry.awaits, Awaits::Nothing | Awaits::Barrier(_) | Awaits::OwnBarrier);
        if is_own && entry.origin.is_none() {
            self.counters.own_refused += 1;
        }
        self.not_answered(&entry, code, now);
    }

    /// The switch has not done what was asked, or not in time: whoever waits for it is told.
    pub(crate) fn not_answered(&mut self, entry: &Entry, code: ErrorCode, now: Instant) {
        match entry.awaits {
            Awaits::Collection(collection) => self.collection_failed(collection, code),
            Awaits::Own(purpose) => self.own_request_failed(purpose, now),
            Awaits::Counts(tenant) => self.counts_failed(tenant, now),
            Awaits::Idle(tenant, number, at) => self.idle_failed(tenant, number, at),
            Awaits::Barrier(_) | Awaits::OwnBarrier => self.barrier_failed(entry, code),
            Awaits::Nothing | Awaits::Reply => {
                let Some(origin) = entry.origin else { return };
                self.refuse(&origin, code);
                if entry.awaits == Awaits::Reply {
                    self.answered(origin.tenant);
                }
            }
        }
    }

    /// A reply of the switch, made the controller's own by its xid.
    pub(crate) fn relay_reply(&mut self, origin: &Origin, reply: &[u8]) {
        let counters = &mut self.tenants[origin.tenant.0 as usize].counters;
        for type_ in types(reply) {
            count(&mut counters.from_switch, type_);
        }
        let mut message = core::mem::take(&mut self.scratch);
        message.clear();
        message.extend_from_slice(reply);
        frame::set_xid(&mut message, origin.xid);
        self.answer(origin.controller, &message);
        self.scratch = message;
        self.answered(origin.tenant);
    }

    /// What waits for a tenant's controllers is counted together with what waits on other switches, for all controllers that
    /// connect from now on.
    pub fn share_account(&mut self, tenant: crate::policy::TenantId, account: Arc<Account>) {
        if let Some(at) = self.by_id.get(&tenant) {
            self.tenants[at.0 as usize].account = account;
        }
    }

    /// A controller of a tenant has connected and said HELLO. `None` when the tenant has no part of the switch.
    pub fn controller_connected(
        &mut self,
        tenant: crate::policy::TenantId,
    ) -> Option<ControllerIndex> {
        let at = *self.by_id.get(&tenant)?;
        if !self.is_ready() || !self.tenants[at.0 as usize].present {
            return None;
        }
        let account = self.tenants[at.0 as usize].account.clone();
        let controller = Controller {
            tenant: at,
            outbox: Default::default(),
            part: Part::new(account),
            dirty: false,
            closing: false,
            barriers: 0,
            statistics: 0,
            role: Role::Equal,
            async_config: AsyncConfig::default(),
        };
        let index = self.controllers.insert(controller)?;
        self.tenants[at.0 as usize].controllers.push(index);
        self.greet_with_labels(index, at);
        Some(index)
    }

    /// A controller's connection is gone. What it asked for and has not been done yet is still done.
    pub fn controller_disconnected(&mut self, controller: ControllerIndex) {
        let Some(state) = self.controllers.remove(controller) else { return };
        self.tenants[state.tenant.0 as usize].controllers.retain(|other| *other != controller);
        self.dirty.retain(|other| *other != controller);
        self.resumed.retain(|other| *other != controller);
        self.asynchronous.maybe_others = true;
    }
}

/// The types of the messages in a run.
fn types(mut messages: &[u8]) -> impl Iterator<Item = u8> {
    core::iter::from_fn(move || {
        let length = frame::next(messages).ok()??;
        let type_ = frame::type_(messages)?;
        messages = messages.get(length..)?;
        Some(type_)
    })
}
