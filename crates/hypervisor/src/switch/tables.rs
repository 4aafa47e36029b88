//! Changes of tables as operations: one request of a tenant, the messages that it became, and the way back.
//!
//! A virtual flow table is changed when a request is accepted; what it was before is kept until a barrier has shown
//! that the switch took all of it. If the switch refuses any part, the table goes back, what was installed is taken
//! out or put back, and the tenant gets one error.

use super::Switch;
use crate::cookie::Cookie;
use crate::flows::{Flow, Piece};
use crate::ids::TenantIndex;
use crate::pending::{Awaits, Origin};
use crate::policy::TenantId;
use crate::queue::{Class, Item};
use crate::store::{Kind, StoreKey, StoreOp};
use crate::tenant::Leaving;
use crate::time::Instant;
use crate::v13::numbers::Numbered;
use alloc::vec::Vec;
use openflow::{ErrorCode, Version};

/// A change that is on its way.
pub(crate) struct Operation {
    tenant: TenantIndex,
    /// Messages that it became.
    messages: usize,
    /// Those of them that have not been confirmed.
    remaining: usize,
    /// The changed entries as they were before; `None` for those that were not there.
    before: Vec<(u32, Option<Flow>)>,
    /// The changed group or meter as it was before (1.3).
    number_before: Option<NumberBefore>,
    /// Entries to be brought to the switch once more when this is done, and what they were before.
    again: Vec<(u32, Option<Flow>)>,
    /// Whether the hypervisor makes it for itself: there is nobody to tell, and no way back but to give the entry up.
    own: bool,
}

/// A group or meter as it was before a change.
struct NumberBefore {
    kind: Kind,
    number: u32,
    before: Option<Numbered>,
    /// Whether the switch has refused to delete it before this change.
    stays: bool,
}

/// What a message to the switch does to one of its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Add,
    /// Strictly.
    Modify,
    /// Strictly.
    Delete,
}

/// The context in which messages for the switch are made.
#[derive(Clone, Copy)]
pub(crate) struct Cause {
    pub tenant: TenantIndex,
    pub origin: Option<Origin>,
    pub operation: Option<u32>,
    /// Past the tenant's queue: for changes that the hypervisor makes itself.
    pub direct: bool,
    pub now: Instant,
}

impl Switch {
    /// Starts an operation of a tenant.
    pub(crate) fn begin(&mut self, tenant: TenantIndex) -> u32 {
        self.next_operation = self.next_operation.wrapping_add(1);
        let operation = Operation {
            tenant,
            messages: 0,
            remaining: 0,
            before: Vec::new(),
            number_before: None,
            again: Vec::new(),
            own: false,
        };
        self.operations.insert(self.next_operation, operation);
        self.next_operation
    }

    /// Starts an operation that brings an entry, as it stands in the table, to the switch. If the switch refuses, the
    /// entry is lost, and its tenant is told so.
    pub(super) fn begin_own(&mut self, cause: &Cause, number: u32) -> Cause {
        let operation = self.begin(cause.tenant);
        if let Some(state) = self.operations.get_mut(&operation) {
            state.own = true;
            state.before.push((number, None));
        }
        Cause { operation: Some(operation), ..*cause }
    }

    /// Ends the making of an operation; one without messages needs no way back.
    pub(crate) fn commit(&mut self, operation: u32) {
        if self.operations.get(&operation).is_some_and(|op| op.remaining == 0) {
            self.operations.remove(&operation);
        }
    }

    /// Puts an entry into the tenant's table as a part of an operation.
    pub(crate) fn put_flow(&mut self, cause: &Cause, number: u32, flow: Flow) {
        let state = &mut self.tenants[cause.tenant.0 as usize];
        let key = StoreKey::new(state.id, Kind::Flow, number);
        let bytes = flow.to_bytes();
        let before = state.flows.remove(number);
        state.forget_dormant(number, flow.priority);
        state.flows.put(number, flow);
        state.changes += 1;
        self.remember(cause.operation, number, before);
        self.journal.push(StoreOp::Put(key, bytes));
    }

    /// Takes an entry out of the tenant's table as a part of an operation.
    pub(crate) fn take_flow(&mut self, cause: &Cause, number: u32) -> Option<Flow> {
        let state = &mut self.tenants[cause.tenant.0 as usize];
        let flow = state.flows.remove(number)?;
        state.forget_dormant(number, flow.priority);
        state.changes += 1;
        let key = StoreKey::new(state.id, Kind::Flow, number);
        self.remember(cause.operation, number, Some(flow.clone()));
        self.journal.push(StoreOp::Delete(key));
        Some(flow)
    }

    fn remember(&mut self, operation: Option<u32>, number: u32, before: Option<Flow>) {
        if let Some(operation) = operation.and_then(|at| self.operations.get_mut(&at))
            // A request touches an entry once, or twice in a row.
            && operation.before.last().is_none_or(|(known, _)| *known != number)
        {
            operation.before.push((number, before));
        }
    }

    /// Keeps a removed entry until the switch has told its last counts, if the tenant wants to hear of it.
    pub(crate) fn await_removal(&mut self, cause: &Cause, number: u32, flow: Flow) {
        /// OFPFF_SEND_FLOW_REM, in both versions.
        const SEND_FLOW_REM: u16 = 1;
        if flow.flags & SEND_FLOW_REM != 0 {
            let pieces = flow.pieces.len();
            let leaving = Leaving { flow, pieces, since: cause.now };
            self.tenants[cause.tenant.0 as usize].leaving.insert(number, leaving);
        }
    }

    /// Remembers a group or meter as it was before an operation.
    pub(crate) fn remember_number(
        &mut self,
        operation: u32,
        kind: Kind,
        number: u32,
        before: Option<Numbered>,
    ) {
        if let Some(operation) = self.operations.get_mut(&operation) {
            operation.messages += 1;
            operation.remaining += 1;
            operation.number_before = Some(NumberBefore { kind, number, before, stays: false });
        }
    }

    /// Queues a message that belongs to an operation.
    pub(crate) fn submit_change(&mut self, cause: &Cause, message: &[u8]) {
        if let Some(operation) = cause.operation.and_then(|at| self.operations.get_mut(&at)) {
            operation.messages += 1;
            operation.remaining += 1;
        }
        if cause.direct {
            let (awaits, class) = (Awaits::Nothing, Class::Modification);
            self.send_own_part(awaits, cause.operation, class, message, cause.now);
            return;
        }
        let item = Item {
            origin: cause.origin,
            awaits: Awaits::Nothing,
            operation: cause.operation,
            class: Class::Modification,
            cost: 1,
            gate: self.journal.gate(),
            arrived: cause.now,
        };
        self.submit(cause.tenant, item, message);
    }

    /// Queues the message that brings one piece of an entry to the switch or takes it away.
    pub(crate) fn submit_piece(
        &mut self,
        cause: &Cause,
        number: u32,
        flow: &Flow,
        piece: &Piece,
        change: Change,
        buffer_id: u32,
    ) {
        let cookie = Cookie { tenant: self.tenants[cause.tenant.0 as usize].id, number }.to_wire();
        let mut message = core::mem::take(&mut self.scratch);
        message.clear();
        let written = match self.version {
            Version::V1_0 => crate::v10::flow_mod::write_piece(
                cookie,
                flow,
                piece,
                change,
                buffer_id,
                &mut message,
            ),
            _ => crate::v13::flow_mod::write_piece(
                cookie,
                flow,
                piece,
                change,
                buffer_id,
                &mut message,
            ),
        };
        if written.is_ok() {
            self.submit_change(cause, &message);
        }
        self.scratch = message;
    }

    /// A barrier has shown that everything up to this xid is done.
    pub(crate) fn confirm(&mut self, xid: u32, now: Instant) {
        while let Some(&(sent, operation)) = self.unconfirmed.front() {
            if xid.wrapping_sub(sent) > u32::MAX / 2 {
                break;
            }
            self.unconfirmed.pop_front();
            if let Some(state) = self.operations.get_mut(&operation) {
                state.remaining = state.remaining.saturating_sub(1);
                if state.remaining == 0
                    && let Some(done) = self.operations.remove(&operation)
                {
                    if let Some(NumberBefore { kind, before: Some(before), stays, .. }) =
                        done.number_before
                    {
                        if stays {
                            self.delete_number_again(kind, before.physical, now);
                        }
                        self.free_number(kind, before.physical);
                    }
                    self.submit_again(done.tenant, done.again, now);
                }
            }
        }
    }

    /// The switch has refused a part of an operation: everything goes back, and the tenant is told once.
    pub(crate) fn operation_failed(
        &mut self,
        operation: u32,
        origin: Option<&Origin>,
        code: ErrorCode,
        now: Instant,
    ) {
        // Already undone: one error is enough.
        let Some(Operation { tenant, messages, before, number_before, own, .. }) =
            self.operations.remove(&operation)
        else {
            return;
        };
        self.counters.own_refused += u64::from(own);
        // What was refused has changed nothing; only what was accepted beside it has to be undone on the switch.
        let only_table = messages == 1 && !own;
        let cause = Cause { tenant, origin: None, operation: None, direct: false, now };
        if let Some(number_before) = number_before {
            self.undo_number(tenant, operation, number_before);
        }
        for (number, before) in before.into_iter().rev() {
            if self.hand_on(tenant, operation, number, &before) {
                continue;
            }
            let current = self.take_flow(&cause, number);
            if only_table {
                if let Some(before) = before {
                    self.tenants[tenant.0 as usize].leaving.remove(&number);
                    self.put_flow(&cause, number, before);
                }
                continue;
            }
            if let Some(current) = &current {
                for piece in &current.pieces {
                    let stays = before.as_ref().is_some_and(|b| {
                        b.pieces.iter().any(|other| other.match_wire == piece.match_wire)
                    });
                    if !stays {
                        self.submit_piece(
                            &cause,
                            number,
                            current,
                            piece,
                            Change::Delete,
                            openflow::NO_BUFFER,
                        );
                    }
                }
            }
            if let Some(before) = before {
                self.tenants[tenant.0 as usize].leaving.remove(&number);
                self.put_flow(&cause, number, before.clone());
                // A modification is undone by modifying back, which keeps the counters; but not the timeouts of an entry
                // that had been replaced.
                let times = |flow: &Flow| (flow.idle_timeout, flow.hard_timeout, flow.flags);
                let modified = current.is_some_and(|current| times(&current) == times(&before));
                let change = if modified { Change::Modify } else { Change::Add };
                let cause = self.begin_own(&cause, number);
                for piece in &before.pieces {
                    self.submit_piece(&cause, number, &before, piece, change, openflow::NO_BUFFER);
                }
            } else if let Some(lost) = current.filter(|_| own) {
                self.tell_lost(tenant, &lost);
            }
        }
        if let Some(origin) = origin {
            self.refuse(origin, code);
        }
    }

    /// If a later operation has changed the entry too, that one's result stands; should it fail as well, the entry goes
    /// back to what was before both. Says whether there is one.
    fn hand_on(
        &mut self,
        tenant: TenantIndex,
        failed: u32,
        number: u32,
        before: &Option<Flow>,
    ) -> bool {
        let later = self
            .operations
            .iter_mut()
            .filter(|(at, operation)| {
                operation.tenant == tenant
                    && at.wrapping_sub(failed) < u32::MAX / 2
                    && operation.before.iter().any(|(other, _)| *other == number)
            })
            .min_by_key(|(at, _)| at.wrapping_sub(failed));
        let Some((_, later)) = later else { return false };
        for (_, known) in later.before.iter_mut().filter(|(other, _)| *other == number) {
            known.clone_from(before);
        }
        // On 1.3 a modification adds nothing: it may have found the entry that was refused missing.
        if self.version != Version::V1_0 {
            later.again.push((number, before.clone()));
        }
        true
    }

    /// A group or meter goes back to what it was; or a later change of it does, should that fail as well.
    fn undo_number(&mut self, tenant: TenantIndex, failed: u32, undone: NumberBefore) {
        let NumberBefore { kind, number, before, .. } = undone;
        let later = self
            .operations
            .iter_mut()
            .filter(|(at, _)| at.wrapping_sub(failed) < u32::MAX / 2)
            .filter(|(_, operation)| operation.tenant == tenant)
            .filter_map(|(at, operation)| Some((at, operation.number_before.as_mut()?)))
            .filter(|(_, later)| (later.kind, later.number) == (kind, number))
            .min_by_key(|(at, _)| at.wrapping_sub(failed));
        let refused = match later {
            Some((_, later)) => {
                later.stays = later.before.is_none() && before.is_some();
                core::mem::replace(&mut later.before, before)
            }
            None => self.replace_number(tenant, kind, number, before),
        };
        if let Some(refused) = refused {
            self.free_number(kind, refused.physical);
        }
    }

    /// Whether a change that is on its way would, should it fail, give this number on the switch back to somebody.
    pub(crate) fn may_return(&self, kind: Kind, physical: u32) -> bool {
        self.operations.values().filter_map(|operation| operation.number_before.as_ref()).any(
            |one| one.kind == kind && one.before.as_ref().is_some_and(|b| b.physical == physical),
        )
    }

    /// Brings entries to the switch once more, as an operation of their own.
    fn submit_again(
        &mut self,
        tenant: TenantIndex,
        entries: Vec<(u32, Option<Flow>)>,
        now: Instant,
    ) {
        for (number, before) in entries {
            let Some(flow) = self.tenants[tenant.0 as usize].flows.get(number).cloned() else {
                continue;
            };
            let operation = self.begin(tenant);
            self.remember(Some(operation), number, before);
            let operation = Some(operation);
            let cause = Cause { tenant, origin: None, operation, direct: false, now };
            for piece in &flow.pieces {
                self.submit_piece(&cause, number, &flow, piece, Change::Add, openflow::NO_BUFFER);
            }
        }
    }

    /// Tells a tenant that an entry is gone, with the counts that are known.
    pub(super) fn tell_lost(&mut self, tenant: TenantIndex, flow: &Flow) {
        match self.version {
            Version::V1_0 => self.tell_lost_v10(tenant, flow),
            _ => self.tell_lost_v13(tenant, flow),
        }
    }

    /// The tenant of a cookie on the switch.
    pub(crate) fn tenant_of(&self, id: TenantId) -> Option<TenantIndex> {
        self.by_id.get(&id).copied()
    }
}

impl Cause {
    /// The cause of a change that the hypervisor makes itself.
    pub(crate) fn own(tenant: TenantIndex, now: Instant) -> Cause {
        Cause { tenant, origin: None, operation: None, direct: true, now }
    }
}
