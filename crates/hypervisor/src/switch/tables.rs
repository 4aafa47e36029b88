//! Changes of a tenant's tables, and the messages that they become.
//!
//! A request changes the tables when Weir accepts the request. The messages of one request are one [`Operation`]. The
//! [log](super::log) keeps the state before the change until the switch has carried out all messages. What happens if
//! the switch refuses a message is in [`super::replay`].

use super::{Cause, LoggedChange, NumberBefore, Object, Operation, Request, Switch, What, in_turn};
use crate::cookie::Cookie;
use crate::flows::{Flow, Rule};
use crate::ids::TenantIndex;
use crate::messages;
use crate::policy::TenantId;
use crate::south::diff::{Change, Writing};
use crate::south::installed::{Effect, Owner, Written};
use crate::south::pending::Awaits;
use crate::south::queue::{Class, Item};
use crate::south::session::Part;
use crate::store::{Kind, StoreKey, StoreOp};
use crate::time::Instant;
use crate::work::MESSAGE;
use alloc::boxed::Box;
use alloc::vec::Vec;
use compile::RuleKey;
use openflow::NO_BUFFER;

impl Switch {
    /// The change that a request makes. The first call begins the change; in a replay the change exists already.
    pub(crate) fn begin(&mut self, request: &Request<'_>) -> Cause {
        let operation = match self.operations.current() {
            Some(known) => known,
            None => {
                let change = What::Request(Box::new(LoggedChange::new(request)));
                self.operations.begin(request.tenant, change)
            }
        };
        self.operations.set_current(Some(operation));
        Cause {
            tenant: request.tenant,
            origin: Some(request.origin()),
            operation: Some(operation),
            direct: false,
            now: request.now,
        }
    }

    /// Starts an operation of Weir's own.
    pub(crate) fn begin_own(&mut self, cause: &Cause, what: What) -> Cause {
        let operation = self.operations.begin(cause.tenant, what);
        Cause { origin: None, operation: Some(operation), ..*cause }
    }

    /// Begins an operation that makes the switch hold an object of the tables. If the switch refuses the object, no
    /// request is refused.
    pub(crate) fn begin_repair(&mut self, cause: &Cause, object: Object) -> Cause {
        self.begin_own(cause, What::Repair { object, cause: None })
    }

    /// Ends an operation that is done, or has failed.
    pub(super) fn end(&mut self, operation: u32) -> Option<Operation> {
        let ended = self.operations.remove(&operation)?;
        let state = &mut self.tenants[ended.tenant];
        state.backlog.end_change(ended.work, ended.held);
        self.resume(ended.tenant);
        Some(ended)
    }

    /// The change of a request in flight.
    pub(super) fn change(&self, operation: u32) -> Option<&LoggedChange> {
        self.operations.change(operation)
    }

    /// See [`change`](Self::change).
    pub(crate) fn change_mut(&mut self, operation: u32) -> Option<&mut LoggedChange> {
        self.operations.change_mut(operation)
    }

    /// The change that a message belongs to.
    pub(crate) fn change_by(&mut self, cause: &Cause) -> Option<&mut LoggedChange> {
        self.change_mut(cause.operation?)
    }

    /// Ends an operation of Weir's own that has no messages: it is done.
    pub(crate) fn commit(&mut self, cause: &Cause) {
        let operation = cause
            .operation
            .filter(|at| self.operations.get(at).is_some_and(|operation| operation.remaining == 0));
        operation.map(|at| self.end(at));
    }

    /// Notes the egress groups that the new groups of a change need.
    pub(crate) fn remember_egress_groups(&mut self, cause: &Cause, egress_groups: Vec<u32>) {
        if let Some(change) = self.change_by(cause) {
            change.needs = egress_groups;
        }
    }

    /// A number for the entry that a request adds.
    pub(crate) fn entry_number(&mut self, cause: &Cause) -> u32 {
        if let Some(number) = self.change_by(cause).and_then(|it| it.number) {
            return number;
        }
        let number = self.tenants[cause.tenant].flows.number();
        if let Some(change) = self.change_by(cause) {
            change.number = Some(number);
        }
        number
    }

    /// Puts an entry into the tenant's table as a part of an operation.
    pub(crate) fn put_flow(&mut self, cause: &Cause, number: u32, flow: Flow) {
        let bytes = flow.to_bytes(self.semantics().stored_as);
        let state = &mut self.tenants[cause.tenant];
        let key = StoreKey::new(state.id, Kind::Flow, number);
        let before = state.flows.replace(number, flow);
        state.flows.count_change();
        if state.network.is_some() {
            self.ids.note_unneeded();
        }
        self.tenants.keep_time(cause.tenant, number, cause.now);
        self.note_dirty(cause.tenant, number, before.as_ref());
        self.remember(cause.operation, number, before);
        self.journal.push(StoreOp::Put(key, bytes));
        self.tenants.note_freed(cause.tenant);
    }

    /// Takes an entry out of the tenant's table as a part of an operation.
    pub(crate) fn take_flow(&mut self, cause: &Cause, number: u32) -> Option<Flow> {
        let flow = self.drop_flow(cause.tenant, number)?;
        self.note_dirty(cause.tenant, number, Some(&flow));
        self.remember(cause.operation, number, Some(flow.clone()));
        Some(flow)
    }

    /// Entries take over rules that other entries of the tenant have given up. If the switch refuses such a rule, its
    /// entry is removed, and the next entry takes the rule over.
    pub(crate) fn take_over(&mut self, now: Instant) {
        let Switch { tenants, operations, map, datapath, .. } = self;
        if map.is_stale() || datapath.is_reconciling() {
            return;
        }
        // A change that is applied in part may still remove such an entry.
        let mut freed = tenants.take_freed(|tenant| operations.has_bulk(tenant));
        while let Some(tenant) = freed.pop() {
            let cause = in_turn(tenant, now);
            for (number, flow, rule) in self.tenants[tenant].flows.heirs(usize::MAX) {
                self.tenants[tenant].flows.count_change();
                self.tenants.keep_time(tenant, number, now);
                let cause = self.begin_repair(&cause, Object::Entry(number));
                self.submit_rule(&cause, number, &flow, &rule, Change::Add, NO_BUFFER);
            }
            if self.tenants[tenant].flows.has_freed() {
                freed.push(tenant);
            }
        }
    }

    pub(super) fn remember(&mut self, operation: Option<u32>, number: u32, before: Option<Flow>) {
        if let Some(change) = operation.and_then(|at| self.change_mut(at)) {
            change.remember(number, before);
        }
    }

    /// Remembers groups or meters as they were before a change.
    pub(crate) fn remember_numbers(&mut self, cause: &Cause, before: Vec<NumberBefore>) {
        let tenant = cause.tenant;
        for one in &before {
            let now = self.numbers(tenant, one.kind).any(one.number);
            let stays = |id: &u32| now.is_some_and(|it| it.instances.ids().any(|it| it == *id));
            let was = one.before.iter().flat_map(|it| it.instances.ids());
            let going: Vec<u32> = was.filter(|id| !stays(id)).collect();
            // An id that the change gives up has to be deleted on the switch, even if the connection ends before.
            going.into_iter().for_each(|id| self.mark_for_deletion(tenant, one.kind, id));
        }
        if let Some(change) = self.change_by(cause) {
            change.numbers_before.extend(before);
        }
    }

    /// Queues a message that belongs to an operation.
    pub(crate) fn submit_change(&mut self, cause: &Cause, message: &[u8]) {
        self.submit_written(cause, None, 1, message);
    }

    /// Queues a message that adds, changes or deletes a group or meter.
    pub(crate) fn submit_number(&mut self, cause: &Cause, message: &[u8]) {
        if !self.is_replay() {
            let installed = self.session.installed_mut();
            let written = installed.begin_wide();
            installed.join_number(written, cause.tenant, message);
            self.submit_written(cause, Some(written), 1, message);
        }
    }

    /// Queues a message with this effect on a rule.
    pub(super) fn submit_effect(
        &mut self,
        cause: &Cause,
        key: RuleKey,
        effect: Effect,
        message: &[u8],
    ) {
        if self.is_replay() {
            return;
        }
        let written = self.session.write(cause.tenant, cause.direct, key, effect);
        self.submit_written(cause, Some(written), 1, message);
    }

    /// Queues a message that changes many rules on the switch.
    pub(crate) fn submit_wide(&mut self, cause: &Cause, written: Written, message: &[u8]) {
        let rules = self.session.installed().rules_of(written);
        self.submit_written(cause, Some(written), rules, message);
    }

    fn submit_written(
        &mut self,
        cause: &Cause,
        written: Option<Written>,
        entries: usize,
        message: &[u8],
    ) {
        /// A switch changes this many rules in about the time of one message; the number differs between switches.
        const IN_A_MESSAGE: usize = 8;
        if self.is_replay() {
            return;
        }
        self.tenants[cause.tenant].flows.meter().add(MESSAGE);
        if let Some(operation) = cause.operation.and_then(|at| self.operations.get_mut(&at)) {
            operation.messages += 1;
            operation.remaining += 1;
        }
        if cause.direct {
            let part = Part { operation: cause.operation, written };
            self.send_own_part(Awaits::Nothing, part, message, cause.now);
            return;
        }
        let is_repair = self.tenants[cause.tenant].recovery.is_some();
        let item = Item {
            origin: cause.origin,
            awaits: Awaits::Nothing,
            operation: cause.operation,
            written,
            class: Class::Modification,
            cost: 1,
            share: 1 + u32::try_from(entries / IN_A_MESSAGE).unwrap_or(u32::MAX / 2),
            gate: self.journal.gate(),
            arrived: cause.now,
        };
        if is_repair && cause.origin.is_none() {
            // The tenant's rate limits the tenant's own requests only.
            let item = Item { class: Class::Other, ..item };
            self.session.submit_repair(cause.tenant, &item, message);
        } else {
            self.submit(cause.tenant, item, message);
        }
    }

    /// Queues the ADD or MODIFY of one rule of an entry.
    pub(crate) fn submit_rule(
        &mut self,
        cause: &Cause,
        number: u32,
        flow: &Flow,
        rule: &Rule,
        change: Change,
        buffer_id: u32,
    ) {
        if self.is_replay() {
            return;
        }
        let asked = cause.operation.and_then(|at| self.change(at));
        let resets_counts = asked.is_some_and(|it| it.resets_counts);
        let state = &mut self.tenants[cause.tenant];
        let adds = change == Change::Add;
        if adds {
            state.timeouts.rule_installed(number, flow, rule, cause.now);
        }
        let writing = Writing {
            cookie: self.cookie_of(cause.tenant, number),
            change,
            buffer_id,
            // 0 would mean no time-out.
            hard_timeout: flow.left(cause.now).unwrap_or(1),
            resets_counts,
        };
        let mut message = self.scratch.take_message();
        let first_table = self.target().first_table();
        let written =
            messages::write_rule(self.wire, flow, rule, &writing, first_table, &mut message);
        // The compiler accepts only rules that fit into a message (`flows::Taken`).
        debug_assert!(written.is_ok());
        if written.is_ok() {
            let owner = Owner { tenant: cause.tenant, number };
            let content = flow.content(owner, rule);
            let effect = if adds { Effect::Set(content) } else { Effect::Replace(content) };
            self.submit_effect(cause, rule.key(flow.table), effect, &message);
        }
        self.scratch.put_message(message);
    }

    /// Queues the rules of an entry that was `before`: first deletes the rules that the entry no longer has.
    pub(crate) fn submit_rules(
        &mut self,
        cause: &Cause,
        number: u32,
        before: Option<&Flow>,
        flow: &Flow,
        change: Change,
        mut buffer_for: impl FnMut(&Rule) -> u32,
    ) {
        if self.is_replay() {
            return;
        }
        // Most modifications change only the actions of rules.
        let is_same = before.is_some_and(|before| before.has_same_rule_keys(flow));
        let before = before.filter(|_| !is_same);
        let stood = before.map(Flow::by_match).unwrap_or_default();
        if let Some(before) = before {
            let owner = Owner { tenant: cause.tenant, number };
            let stands = flow.by_match();
            let is_stale = |rule: &&Rule| !stands.contains_key(&*rule.match_wire);
            for stale in before.rules.iter().filter(is_stale) {
                self.submit_deletion(cause, stale.key(before.table), owner);
            }
        }
        for rule in &flow.rules {
            let stands = is_same || stood.contains_key(&*rule.match_wire);
            // A MODIFY does not add a missing rule (1.3).
            let change = if stands { change } else { Change::Add };
            self.submit_rule(cause, number, flow, rule, change, buffer_for(rule));
        }
    }

    /// Removes an entry from the tenant's table, without a change in the log.
    pub(crate) fn drop_flow(&mut self, tenant: TenantIndex, number: u32) -> Option<Flow> {
        let state = &mut self.tenants[tenant];
        let flow = state.flows.remove(number)?;
        if state.network.is_some() {
            self.ids.note_unneeded();
        }
        state.timeouts.forget(number);
        state.flows.count_change();
        let key = StoreKey::new(state.id, Kind::Flow, number);
        self.journal.push(StoreOp::Delete(key));
        self.tenants.note_freed(tenant);
        Some(flow)
    }

    /// A barrier has shown that all messages up to this xid are done.
    pub(crate) fn confirm(&mut self, xid: u32, now: Instant) {
        while let Some(at) = self.session.next_confirmed(xid, now) {
            let Some(operation) = self.operations.get_mut(&at) else { continue };
            operation.remaining = operation.remaining.saturating_sub(1);
            if operation.remaining == 0 {
                self.operation_done(at, now);
            }
        }
    }

    /// No message of an operation is in flight any more.
    pub(super) fn operation_done(&mut self, at: u32, now: Instant) {
        let Some(Operation { tenant, what, .. }) = self.operations.get(&at) else { return };
        let (tenant, frees) = (*tenant, matches!(what, What::Free));
        if matches!(what, What::Request(_)) {
            self.retire(tenant, now);
            return;
        }
        self.end(at);
        if frees {
            self.sweep_numbers(tenant, now);
        }
    }

    /// The cookie of an entry on the switch.
    pub(crate) fn cookie_of(&self, tenant: TenantIndex, number: u32) -> u64 {
        let tenant = self.tenants[tenant].id;
        Cookie { tenant, number }.to_wire(self.settings.installation)
    }

    /// The tenant of a cookie on the switch.
    pub(crate) fn tenant_of(&self, id: TenantId) -> Option<TenantIndex> {
        self.tenants.find(id)
    }
}
