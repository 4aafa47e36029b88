//! A tenant's requests in flight, in the order in which they came.
//!
//! Weir applies a request to the tenant's tables when Weir accepts the request. The switch may refuse the request
//! later. So each change stays in the log, with the entries and groups that the change has replaced, until the switch
//! has carried out all changes up to this change. Then the change leaves the log: the change *retires*. Barriers are
//! items of the log, too. Weir answers a barrier when the barrier is the first item: by then all changes before the
//! barrier are done, and their errors are sent.
//!
//! ```text
//!                    ┌──────────────── log ────────────────┐
//!    requests ─────► │ change  change  barrier  change  …  │   the tables show all of them
//!                    └───┬─────────────────────────────────┘
//!                        └─► the first item retires: confirmed, or refused with an error
//! ```
//! A request that the tables do not allow is logged as well if the switch may still refuse an earlier change: without
//! that change the tables may allow the request.

use super::logged::{Barrier, Outcome};
use super::{Logged, LoggedChange, NumberBefore, Operation, Request, Switch, What};
use crate::ids::TenantIndex;
use crate::refusals::Verdict;
use crate::south::pending::{Awaits, Entry, Origin};
use crate::south::queue::{Class, Item};
use crate::store::Kind;
use crate::time::Instant;
use compile::Refused;
use openflow::{ErrorCode, Header};

impl Switch {
    /// A request was handled. A change is logged, unless it is done already.
    pub(super) fn log_request(&mut self, request: &Request<'_>, handled: Result<(), Refused>) {
        let tenant = request.tenant;
        let change = self.operations.current();
        self.operations.set_current(None);
        let is_first = self.changes_in_flight(tenant).next().is_none();
        match (handled, change) {
            (Ok(()), None) => {}
            (Ok(()), Some(at)) => {
                let operation = self.operations.get(&at);
                if is_first && operation.is_none_or(|it| it.remaining == 0) {
                    self.end(at);
                    self.sweep_numbers(tenant, request.now);
                } else {
                    self.tenants[tenant].log.push_back(Logged::Change(at));
                }
            }
            (Err(refused), change) => {
                let may_be_allowed = !is_first && self.depends_on_tables(request, refused.code());
                if self.has_barrier(request.controller) {
                    change.into_iter().for_each(|at| self.drop_change(tenant, at));
                    self.put_behind(request);
                } else if may_be_allowed {
                    self.operations.set_current(change);
                    let at = self.begin(request).operation;
                    self.operations.set_current(None);
                    let Some(at) = at else { return };
                    if let Some(change) = self.change_mut(at) {
                        change.outcome = Outcome::Refused(refused.into());
                    }
                    let state = &mut self.tenants[tenant];
                    state.log.push_back(Logged::Change(at));
                    self.inbox.wait_for_outcome(tenant);
                    self.ask_for_waiting(request.now);
                } else {
                    change.into_iter().for_each(|at| self.drop_change(tenant, at));
                    self.refuse(&request.origin(), refused);
                }
            }
        }
    }

    /// Drops a change that was refused before any of its messages was sent.
    fn drop_change(&mut self, tenant: TenantIndex, at: u32) {
        debug_assert!(self.change(at).is_none_or(|it| it.before.is_empty()));
        if self.end(at).is_some() {
            self.sweep_numbers(tenant, self.reports.clock());
        }
    }

    /// Whether the request might get another error, or none, if an earlier change is refused.
    fn depends_on_tables(&self, request: &Request<'_>, code: ErrorCode) -> bool {
        // 1.0 has no such code, and no other code with this number.
        let is_of_group = code == openflow::error::v13::BAD_ACTION_BAD_OUT_GROUP;
        let depends = is_of_group || self.codes().of_tables.contains(&code.type_);
        depends && self.changes_tables(request.header)
    }

    /// The operations of a tenant's changes in flight, in order.
    pub(super) fn changes_in_flight(
        &self,
        tenant: TenantIndex,
    ) -> impl DoubleEndedIterator<Item = u32> {
        self.tenants[tenant].log.iter().filter_map(|it| match it {
            Logged::Change(at) => Some(*at),
            Logged::Barrier(_) => None,
        })
    }

    /// The tenant's changes in flight, in order.
    pub(crate) fn changes_of(&self, tenant: TenantIndex) -> impl Iterator<Item = &LoggedChange> {
        self.changes_in_flight(tenant).filter_map(|at| self.change(at))
    }

    /// Takes finished and refused items out of the log, up to the first item that is neither.
    pub(super) fn retire(&mut self, tenant: TenantIndex, now: Instant) {
        if self.tenants[tenant].recovery.is_some() {
            return;
        }
        while let Some(first) = self.tenants[tenant].log.front() {
            match first {
                Logged::Change(change) => {
                    let change = *change;
                    if self.operations.get(&change).is_some_and(|it| it.remaining > 0) {
                        break;
                    }
                    self.tenants[tenant].log.pop_front();
                    if let Some(Operation { what: What::Request(done), .. }) = self.end(change) {
                        self.change_leaves(tenant, &done, now);
                    }
                }
                Logged::Barrier(Barrier { outcome: None, .. }) => break,
                Logged::Barrier(Barrier { outcome: Some(outcome), origin }) => {
                    let (outcome, origin) = (*outcome, *origin);
                    self.tenants[tenant].log.pop_front();
                    if let Some(origin) = origin {
                        self.barrier_leaves(&origin, outcome);
                    }
                }
            }
        }
        let is_held = |it: &LoggedChange| !it.is_applied();
        if self.inbox.waits_for_nothing(tenant) && !self.changes_of(tenant).any(is_held) {
            self.inbox.outcome_known(tenant);
        }
        self.sweep_numbers(tenant, now);
    }

    fn change_leaves(&mut self, tenant: TenantIndex, done: &LoggedChange, now: Instant) {
        match done.outcome {
            Outcome::Applied => {
                if let Some(configures) = &done.configures {
                    self.port_configured(tenant, configures, now);
                }
            }
            Outcome::Refused(verdict) | Outcome::Dropped(verdict) => {
                self.refuse(&done.origin, verdict);
            }
        }
    }

    // ---- Barriers

    /// Sends a controller's BARRIER_REQUEST to the switch.
    pub(crate) fn forward_barrier(&mut self, request: &Request<'_>) {
        if let Some(controller) = self.controllers.get_mut(request.controller) {
            controller.barriers += 1;
        }
        self.submit_barrier(request.tenant, Some(request.origin()), 0, request.now);
    }

    /// Sends a barrier behind all messages of the tenant, when the store has all changes before it.
    pub(super) fn submit_barrier(
        &mut self,
        tenant: TenantIndex,
        origin: Option<Origin>,
        gate: u64,
        now: Instant,
    ) {
        let item = Item::new(Awaits::Barrier(tenant), 1, now);
        let item = Item { origin, class: Class::Barrier, gate, ..item };
        let barrier = Barrier { origin, outcome: None };
        self.tenants[tenant].log.push_back(Logged::Barrier(barrier));
        let message = self.barrier_message(self.semantics().types.barrier_request);
        self.submit(tenant, item, &message);
    }

    fn barrier_message(&self, type_: u8) -> [u8; Header::LEN] {
        [self.version().0, type_, 0, Header::LEN as u8, 0, 0, 0, 0]
    }

    /// A barrier is done, and so are all earlier messages.
    pub(crate) fn barrier_reply(&mut self, xid: u32, now: Instant) -> Result<(), ErrorCode> {
        let unasked = openflow::error::v13::BAD_REQUEST_BAD_TYPE;
        let entry = self.session.acknowledge(xid, now).ok_or(unasked)?;
        self.session.take(xid);
        self.barrier_shows(xid, &entry, Ok(()), now);
        Ok(())
    }

    /// The switch has refused a barrier, or has not answered. The earlier messages count as done: nothing else will
    /// confirm them.
    pub(super) fn barrier_failed(
        &mut self,
        xid: u32,
        entry: &Entry,
        verdict: Verdict,
        now: Instant,
    ) {
        self.session.barrier_failed();
        self.barrier_shows(xid, entry, Err(verdict), now);
    }

    fn barrier_shows(
        &mut self,
        xid: u32,
        entry: &Entry,
        outcome: Result<(), Verdict>,
        now: Instant,
    ) {
        match entry.awaits {
            Awaits::OwnBarrier => {
                self.inbox.barrier_returned();
                self.datapath.asked().barrier_returned();
            }
            Awaits::Barrier(tenant) => {
                let log = self.tenants[tenant].log.iter_mut();
                let mut open = log.filter_map(|it| match it {
                    Logged::Barrier(it) if it.outcome.is_none() => Some(it),
                    _ => None,
                });
                if let Some(first) = open.next() {
                    first.outcome = Some(outcome);
                }
            }
            _ => {}
        }
        self.confirm(xid, now);
        self.drained(xid);
        if let Awaits::Barrier(tenant) = entry.awaits {
            self.retire(tenant, now);
        }
    }

    fn barrier_leaves(&mut self, origin: &Origin, outcome: Result<(), Verdict>) {
        match outcome {
            Ok(()) => {
                let reply = self.barrier_message(self.semantics().types.barrier_request + 1);
                self.relay_reply(origin, &reply);
            }
            Err(verdict) => {
                self.refuse(origin, verdict);
                self.answered(origin.tenant);
            }
        }
        if let Some(controller) = self.controllers.get_mut(origin.controller) {
            controller.barriers = controller.barriers.saturating_sub(1);
        }
        self.tenants[origin.tenant].backlog.note_decided();
    }

    /// Whether a replay may give this id on the switch to a group or meter again.
    pub(crate) fn may_return(&self, tenant: TenantIndex, kind: Kind, id: u32) -> bool {
        let has = |one: &NumberBefore| {
            one.kind == kind
                && one.before.as_ref().is_some_and(|it| it.instances.ids().any(|it| it == id))
        };
        self.changes_of(tenant).any(|change| change.numbers_before.iter().any(has))
    }

    /// Sends a barrier for the outcome of changes that requests wait for, when all messages of these changes are sent.
    pub(super) fn ask_for_waiting(&mut self, now: Instant) {
        let shows_all = self.session.is_unbarriered() && !self.session.has_direct();
        if shows_all && self.inbox.wants_barrier() {
            self.inbox.barrier_sent();
            self.session.send_barrier(now);
        }
    }
}
