//! Requests that wait before Weir looks at them, and their reasons to wait:
//!
//! ```text
//!   behind a barrier of the same connection    requests that Weir answers itself: the answer comes after the reply
//!   behind statistics                          a barrier: the answers show the tables when Weir sends the answers
//!   while the tenant recovers                  what changes tables
//!   while a port is configured in a slice      a description of ports
//!   while a long answer is put together        what changes tables
//!   for the tenant's turn                      what may be much work
//!   while a change is applied in batches, or   everything of the tenant
//!   entries are to be restored after a part
//!   while changes are replayed                 everything of the tenant
//!   while entries follow a new policy          everything but PACKET_OUT
//! ```
//! All requests except ECHO wait behind an earlier waiting request of the same connection. Requests that change tables
//! or roles also wait behind requests of the tenant's other connections. All requests of a tenant wait behind requests
//! of a connection that is gone.
//!
//! Messages to a switch, such as barriers, stay in order without waiting. For a big switch, all requests wait for the
//! reply to a barrier.

pub(super) mod inbox;

use super::{Request, Switch};
use crate::ids::{ControllerIndex, TenantIndex};
use crate::messages;
use crate::semantics::UNANSWERED;
use crate::time::Instant;
use alloc::vec::Vec;
use compile::{Reason, Wire};
use flowspace::Match;
use inbox::{Line, Postponed};
use openflow::Header;
use openflow::v13::MessageType;

impl Switch {
    /// Puts a request off until the outcome of earlier changes is known.
    pub(crate) fn postpone(&mut self, request: &Request<'_>) {
        self.put_behind(request);
        self.inbox.wait_for_outcome(request.tenant);
        self.ask_for_waiting(request.now);
    }

    /// Puts a request off until its tenant's turn.
    pub(super) fn postpone_for_turn(&mut self, request: &Request<'_>) {
        self.postpone_behind(request);
        self.inbox.turns_mut().wait(request.tenant.0);
        self.tenants[request.tenant].backlog.note_decided();
    }

    fn put_off(&mut self, tenant: TenantIndex, it: Postponed) {
        self.tenants[tenant].backlog.held_mut().add(it.size());
        self.inbox.put_off(tenant, it);
    }

    /// Whether a request has to wait behind other requests: of its own connection, of a connection of the tenant that
    /// is gone, or, for changes of tables, of any connection of the tenant.
    pub(super) fn is_ordered_behind(&self, request: &Request<'_>) -> bool {
        let Request { tenant, controller, header, .. } = *request;
        !is_unordered(header) && self.has_to_wait(tenant, controller, header)
            || self.waits_for_members(request)
    }

    /// Whether a change has to wait because the members of a big switch do not carry out changes in one order. Only
    /// added entries need no order.
    fn waits_for_members(&self, request: &Request<'_>) -> bool {
        let Request { tenant, header, frame, .. } = *request;
        let is_add = |frame: &[u8]| adds_entry(self.wire, frame);
        self.datapath.is_joined()
            && self.changes_tables(header)
            && self.changes_of(tenant).any(|it| !is_add(&it.frame) || !is_add(frame))
    }

    fn has_to_wait(
        &self,
        tenant: TenantIndex,
        controller: ControllerIndex,
        header: Header,
    ) -> bool {
        let is_ordered = || self.changes_tables(header) || self.asks_for_role(header);
        let is_gone = |of: &ControllerIndex| self.controllers.get(*of).is_none();
        let is_behind = |line: &Line| {
            line.controllers.contains(&controller)
                || line.controllers.iter().any(is_gone)
                || is_ordered()
        };
        let asks = || self.controllers.get(controller).is_some_and(|it| it.statistics > 0);
        self.is_between(tenant)
            || self.map.is_changing() && header.type_ != MessageType::PACKET_OUT.0
            || self.inbox.lines.get(&tenant).is_some_and(is_behind)
            || self.has_barrier(controller) && !self.goes_in_order(header)
            || self.tenants[tenant].recovery.is_some() && self.changes_tables(header)
            || self.is_barrier(header) && asks()
            || self.statistics.is_answering(tenant) && self.changes_tables(header)
    }

    /// Whether a tenant's tables are between two states. No request of the tenant may see them then.
    pub(super) fn is_between(&self, tenant: TenantIndex) -> bool {
        self.operations.has_bulk(tenant) || self.is_interrupted(tenant) || self.is_replaying(tenant)
    }

    pub(super) fn has_barrier(&self, controller: ControllerIndex) -> bool {
        self.controllers.get(controller).is_some_and(|it| it.barriers > 0)
    }

    /// Whether an added entry has to wait because the members of a big switch still add or change the same entry.
    pub(crate) fn waits_for_same(
        &self,
        tenant: TenantIndex,
        table: u8,
        match_: &Match,
        priority: u16,
    ) -> bool {
        let flows = &self.tenants[tenant].flows;
        self.datapath.is_joined()
            && !self.is_replay()
            && flows.find(table, match_, priority).is_some_and(|it| self.is_changing(tenant, it))
    }

    /// Whether so many requests of a controller wait that Weir reads no more.
    pub(super) fn is_full(&self, tenant: TenantIndex, controller: ControllerIndex) -> bool {
        self.inbox.is_full(tenant, controller, self.settings.tenant_backlog)
    }

    /// Puts a request behind the waiting requests. If too many wait, the request is refused; a driver that calls
    /// `wants_read` never comes here.
    pub(super) fn postpone_behind(&mut self, request: &Request<'_>) {
        if self.is_full(request.tenant, request.controller) {
            self.refuse(&request.origin(), Reason::Backlog.with(UNANSWERED));
        } else {
            self.put_behind(request);
        }
    }

    pub(super) fn put_behind(&mut self, request: &Request<'_>) {
        let Request { tenant, controller, frame, .. } = *request;
        self.put_off(tenant, Postponed { controller, frame: frame.into() });
    }

    /// Looks again at waiting requests of tenants whose changes were confirmed or refused.
    pub(super) fn take_up_postponed(&mut self, now: Instant) {
        let is_due = |tenant: &TenantIndex| {
            self.tenants[*tenant].backlog.is_decided() && !self.is_between(*tenant)
        };
        let due: Vec<TenantIndex> = self.inbox.served().filter(is_due).collect();
        for tenant in due {
            self.take_up_line(tenant, now);
            self.resume(tenant);
        }
    }

    /// Looks again at the waiting requests of a tenant, as far as the tenant has credit.
    pub(super) fn take_up_line(&mut self, tenant: TenantIndex, now: Instant) {
        self.tenants[tenant].backlog.begin_look();
        for it in self.inbox.take_line(tenant) {
            let state = &mut self.tenants[tenant];
            state.backlog.held_mut().remove(it.size());
            if self.inbox.turns().may(tenant.0) {
                self.take_up(tenant, it, now);
                self.charge_work(tenant);
            } else {
                state.backlog.note_decided();
                self.put_off(tenant, it);
            }
        }
    }

    fn take_up(&mut self, tenant: TenantIndex, it: Postponed, now: Instant) {
        let Ok(header) = Header::parse(&it.frame) else { return };
        // If the controller is gone, its changes are still carried out, but there is nobody to answer.
        let is_gone = match self.controllers.get(it.controller) {
            Some(known) if known.is_closing() => {
                // Later requests of the line have to be looked at.
                self.tenants[tenant].backlog.note_decided();
                return;
            }
            Some(_) => false,
            None => true,
        };
        if is_gone && !self.changes_something(header) {
            return;
        }
        let Postponed { controller, ref frame } = it;
        let request = Request { tenant, controller, header, frame, now };
        if self.has_to_wait(tenant, controller, header) || self.waits_for_members(&request) {
            self.put_off(tenant, it);
            return;
        }
        if self.waits_for_turn(&request) {
            self.inbox.turns_mut().wait(tenant.0);
            self.tenants[tenant].backlog.note_decided();
            self.put_off(tenant, it);
            return;
        }
        self.handle_request(request);
    }

    /// Whether a message has an effect, other than an answer.
    fn changes_something(&self, header: Header) -> bool {
        let port_mod = self.semantics().types.port_mod;
        self.changes_tables(header) || [MessageType::PACKET_OUT.0, port_mod].contains(&header.type_)
    }

    pub(super) fn changes_tables(&self, header: Header) -> bool {
        self.semantics().types.changes_tables.contains(&header.type_)
    }

    /// Whether the message goes to the switch, in order with earlier messages. Members of a big switch do not wait for
    /// each other.
    fn goes_in_order(&self, header: Header) -> bool {
        let is_passed_on = self.changes_tables(header)
            || header.type_ == MessageType::PACKET_OUT.0
            || self.is_barrier(header);
        is_passed_on && !self.datapath.is_joined()
    }

    fn is_barrier(&self, header: Header) -> bool {
        header.type_ == self.semantics().types.barrier_request
    }

    /// Whether the message asks for a role. Other controllers may lose their role by it.
    fn asks_for_role(&self, header: Header) -> bool {
        header.type_ == self.semantics().types.role_request
    }
}

/// Whether a message is a FLOW_MOD with the command ADD.
fn adds_entry(wire: Wire, frame: &[u8]) -> bool {
    const ADD: u16 = 0;
    let body = frame.get(Header::LEN..).unwrap_or_default();
    openflow::frame::type_(frame) == Some(MessageType::FLOW_MOD.0)
        && messages::command(wire, body) == Some(ADD)
}

/// Whether the message has no effect, or is an ECHO_REQUEST, which must not wait for the switch. The types have the
/// same numbers in both versions.
fn is_unordered(header: Header) -> bool {
    [MessageType::HELLO, MessageType::ERROR, MessageType::ECHO_REQUEST, MessageType::ECHO_REPLY]
        .contains(&MessageType(header.type_))
}
