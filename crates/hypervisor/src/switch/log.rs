//! A tenant's requests in flight, in the order in which they came.
//!
//! Weir applies a request to the tenant's tables when Weir accepts the request. The switch may refuse the request later. So each
//! change stays in the log, with the entries and groups that the change has replaced, until the switch has carried out all changes
//! up to this change. Then the change leaves the log: the change *retires*. Barriers are items of the log, too. Weir answers a barrier
//! when the barrier is the first item: by then all changes before the barrier are done, and their errors are sent.
//!
//! ```text
//!                    ┌──────────────── log ────────────────┐
//!    requests ─────► │ change  change  barrier  change  …  │   the tables show all of them
//!                    └───┬─────────────────────────────────┘
//!                        └─► the first item retires: confirmed, or refused with an error
//! ```
//! A request that the tables do not allow is logged as well if the switch may still refuse an earlier change: without that change
//! the tables may allow the request.

use super::operations::{Operation, What};
use super::tables::NumberBefore;
use super::{Request, Switch, slice_ports::Configures};
use crate::buffers::Buffered;
use crate::flows::Flow;
use crate::ids::TenantIndex;
use crate::refusals::Verdict;
use crate::south::pending::{Awaits, Entry, Origin};
use crate::south::queue::{Class, Item};
use crate::south::session::barrier_request;
use crate::store::Kind;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;
use compile::Refused;
use hashbrown::HashSet;
use openflow::{ErrorCode, Header, Version};

/// So many changed entries are looked through.
const FEW: usize = 16;

/// An item of the log.
pub(crate) enum Logged {
    /// A change, by its operation.
    Change(u32),
    Barrier(Barrier),
}

/// A barrier of a controller, or of Weir's own in its tenant's place.
pub(crate) struct Barrier {
    origin: Option<Origin>,
    /// The answer of the switch, once there is one.
    outcome: Option<Result<(), Verdict>>,
}

/// The outcome of a change so far.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    /// The tables show the change.
    Applied,
    /// The tables do not allow the change. A replay may allow the change.
    Refused(Verdict),
    /// The switch has refused the change.
    Dropped(Verdict),
}

/// A request that changes tables or ports.
pub(crate) struct LoggedChange {
    pub(super) origin: Origin,
    /// The message as the controller sent it.
    pub(super) frame: Box<[u8]>,
    /// When it came; if it waited for its turn, when it was sent.
    pub(super) at: Instant,
    pub(super) outcome: Outcome,
    /// The changed entries as they were before; `None` for those that were not there.
    pub(super) before: Vec<(u32, Option<Flow>)>,
    /// Which those are, if they are many: it is asked for each entry that times out.
    changed: HashSet<u32>,
    /// The changed groups and meters as they were before (1.3).
    pub(crate) numbers_before: Vec<NumberBefore>,
    /// The numbers of the entries that it adds, and how many of them are in use.
    numbers: (Vec<u32>, usize),
    /// The egress groups that its groups need (1.3).
    pub(crate) needs: Vec<u32>,
    /// The entry that it adds, whose time begins with it.
    pub(super) begins: Option<u32>,
    /// From which message to the switch on the entry counts that it adds.
    pub(super) counts_since: Option<u32>,
    /// Whether the entries that it changes begin to count at nothing (OFPFF_RESET_COUNTS).
    pub(crate) resets_counts: bool,
    /// The new configuration of a slice's port, if the request is a PORT_MOD.
    pub(super) configures: Option<Configures>,
    /// The packet in the switch's buffers that goes with it.
    pub(crate) buffered: Option<Buffered>,
    /// Whether messages of it were taken out of the queue.
    pub(super) is_cut: bool,
}

impl LoggedChange {
    pub(super) fn new(request: &Request<'_>) -> LoggedChange {
        LoggedChange {
            origin: request.origin(),
            frame: request.frame.into(),
            at: request.now,
            outcome: Outcome::Applied,
            before: Vec::new(),
            changed: HashSet::new(),
            numbers_before: Vec::new(),
            numbers: (Vec::new(), 0),
            needs: Vec::new(),
            begins: None,
            counts_since: None,
            resets_counts: false,
            configures: None,
            buffered: None,
            is_cut: false,
        }
    }

    /// Whether it changes an entry.
    pub(super) fn changes(&self, number: u32) -> bool {
        match self.before.len() <= FEW {
            true => self.before.iter().any(|(other, _)| *other == number),
            false => self.changed.contains(&number),
        }
    }

    /// Whether the tables show it.
    pub(super) fn is_applied(&self) -> bool {
        matches!(self.outcome, Outcome::Applied)
    }

    /// It is about to change so many entries.
    pub(super) fn expect_entries(&mut self, entries: usize) {
        self.before.reserve_exact(entries);
    }

    /// An entry that it changes was this before.
    pub(super) fn remember(&mut self, number: u32, before: Option<Flow>) {
        // A request touches an entry once, or twice in a row.
        if self.before.last().is_some_and(|(known, _)| *known == number) {
            return;
        }
        self.before.push((number, before));
        if self.before.len() == FEW + 1 {
            self.changed.extend(self.before.iter().map(|(number, _)| *number));
        } else if self.before.len() > FEW {
            self.changed.insert(number);
        }
    }

    pub(super) fn remember_numbers(&mut self, before: Vec<NumberBefore>) {
        self.numbers_before.extend(before);
    }

    /// Gives the entries and groups as they were before the change, to restore them before a replay of the change.
    pub(super) fn take_back(&mut self) -> (Vec<(u32, Option<Flow>)>, Vec<NumberBefore>) {
        self.changed.clear();
        self.numbers.1 = 0;
        self.needs.clear();
        (core::mem::take(&mut self.before), core::mem::take(&mut self.numbers_before))
    }

    /// The next number of the entries that it added when it was applied before.
    pub(super) fn next_number(&mut self) -> Option<u32> {
        let number = self.numbers.0.get(self.numbers.1).copied()?;
        self.numbers.1 += 1;
        Some(number)
    }

    pub(super) fn add_number(&mut self, number: u32) {
        self.numbers.0.push(number);
        self.numbers.1 = self.numbers.0.len();
    }

    /// Bytes that it holds, but for its messages.
    pub(super) fn size(&self) -> usize {
        let flows = self.before.iter().filter_map(|(_, flow)| flow.as_ref());
        let entries = size_of::<u64>() * self.before.len();
        let numbers = self.numbers_before.iter().map(|one| {
            let body = one.before.as_ref().map_or(0, |before| before.body.len());
            size_of_val(one) + body + 4 * one.made.len()
        });
        let flows: usize = flows.map(Flow::size).sum();
        size_of::<LoggedChange>() + self.frame.len() + flows + entries + numbers.sum::<usize>()
    }
}

impl Switch {
    /// A request was handled: if it is a change, it is logged, unless it is done already.
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
                    self.tenants[tenant.0 as usize].log.push_back(Logged::Change(at));
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
                    let state = &mut self.tenants[tenant.0 as usize];
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

    /// A change that was refused before anything of it was sent is not made.
    fn drop_change(&mut self, tenant: TenantIndex, at: u32) {
        debug_assert!(self.change(at).is_none_or(|it| it.before.is_empty()));
        if self.end(at).is_some() {
            self.sweep_numbers(tenant, self.reports.clock());
        }
    }

    /// Whether an error may be another one, or none, if a change before the request is refused.
    fn depends_on_tables(&self, request: &Request<'_>, code: ErrorCode) -> bool {
        use openflow::error::{v10, v13};
        let depends = match self.version {
            Version::V1_0 => code.type_ == v10::FLOW_MOD_FAILED_ALL_TABLES_FULL.type_,
            _ => {
                let by_tables = [
                    v13::FLOW_MOD_FAILED_TABLE_FULL,
                    v13::GROUP_MOD_FAILED_OUT_OF_GROUPS,
                    v13::METER_MOD_FAILED_OUT_OF_METERS,
                ];
                code == v13::BAD_ACTION_BAD_OUT_GROUP
                    || by_tables.iter().any(|of_type| code.type_ == of_type.type_)
            }
        };
        depends && self.changes_tables(request.header)
    }

    /// The operations of a tenant's changes in flight, in order.
    pub(super) fn changes_in_flight(
        &self,
        tenant: TenantIndex,
    ) -> impl DoubleEndedIterator<Item = u32> {
        self.tenants[tenant.0 as usize].log.iter().filter_map(|it| match it {
            Logged::Change(at) => Some(*at),
            Logged::Barrier(_) => None,
        })
    }

    /// The same, as what they are.
    pub(crate) fn changes_of(&self, tenant: TenantIndex) -> impl Iterator<Item = &LoggedChange> {
        self.changes_in_flight(tenant).filter_map(|at| self.change(at))
    }

    /// Takes what is done, and what was refused, out of the log, as far as everything before is.
    pub(super) fn retire(&mut self, tenant: TenantIndex, now: Instant) {
        let at = tenant.0 as usize;
        if self.tenants[at].recovery.is_some() {
            return;
        }
        while let Some(first) = self.tenants[at].log.front() {
            match first {
                Logged::Change(change) => {
                    let change = *change;
                    if self.operations.get(&change).is_some_and(|it| it.remaining > 0) {
                        break;
                    }
                    self.tenants[at].log.pop_front();
                    if let Some(Operation { what: What::Request(done), .. }) = self.end(change) {
                        self.change_leaves(tenant, &done, now);
                    }
                }
                Logged::Barrier(Barrier { outcome: None, .. }) => break,
                Logged::Barrier(Barrier { outcome: Some(outcome), origin }) => {
                    let (outcome, origin) = (*outcome, *origin);
                    self.tenants[at].log.pop_front();
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

    /// Sends one behind all that the tenant has sent, and not before the store has what it shows.
    pub(super) fn submit_barrier(
        &mut self,
        tenant: TenantIndex,
        origin: Option<Origin>,
        gate: u64,
        now: Instant,
    ) {
        let item = Item {
            origin,
            awaits: Awaits::Barrier(tenant),
            operation: None,
            written: None,
            class: Class::Barrier,
            cost: 1,
            share: 1,
            gate,
            arrived: now,
        };
        let barrier = Barrier { origin, outcome: None };
        self.tenants[tenant.0 as usize].log.push_back(Logged::Barrier(barrier));
        let message = self.barrier_message(barrier_request(self.version));
        self.submit(tenant, item, &message);
    }

    fn barrier_message(&self, type_: u8) -> [u8; Header::LEN] {
        [self.version.0, type_, 0, Header::LEN as u8, 0, 0, 0, 0]
    }

    /// A barrier is done, and with it everything before.
    pub(crate) fn barrier_reply(&mut self, xid: u32, now: Instant) -> Result<(), ErrorCode> {
        let Some(entry) = self.acknowledge(xid, now) else {
            return Err(openflow::error::v13::BAD_REQUEST_BAD_TYPE);
        };
        self.session.take(xid);
        self.barrier_shows(xid, &entry, Ok(()), now);
        Ok(())
    }

    /// The switch has refused a barrier, or not answered. What it was to show is taken for done: nothing else will show it.
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
                self.asked_before();
            }
            Awaits::Barrier(tenant) => {
                let log = self.tenants[tenant.0 as usize].log.iter_mut();
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
        self.drained(xid, now);
        if let Awaits::Barrier(tenant) = entry.awaits {
            self.retire(tenant, now);
        }
    }

    fn barrier_leaves(&mut self, origin: &Origin, outcome: Result<(), Verdict>) {
        match outcome {
            Ok(()) => {
                let reply = self.barrier_message(barrier_request(self.version) + 1);
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
        self.tenants[origin.tenant.0 as usize].backlog.note_decided();
    }

    /// Whether a replay may give this id on the switch back to a group or meter.
    pub(crate) fn may_return(&self, tenant: TenantIndex, kind: Kind, id: u32) -> bool {
        let has = |one: &NumberBefore| {
            one.kind == kind
                && one.before.as_ref().is_some_and(|it| it.instances.ids().any(|it| it == id))
        };
        self.changes_of(tenant).any(|change| change.numbers_before.iter().any(has))
    }

    /// Once what waits for an answer has been sent, asks the switch what became of it.
    pub(super) fn ask_for_waiting(&mut self, now: Instant) {
        let shows_all = self.session.is_unbarriered() && !self.session.has_direct();
        if shows_all && self.inbox.wants_barrier() {
            self.inbox.barrier_sent();
            self.session.send_barrier(now);
        }
    }
}
