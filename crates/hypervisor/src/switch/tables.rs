//! Changes of tables as operations: one request of a tenant, the messages that it became, and how it is undone.
//!
//! A virtual flow table is changed when a request is accepted; what it was before is kept until a barrier has shown
//! that the switch took all of it. What happens if it does not is told in [`super::undo`].

use super::Switch;
use super::refused::Tried;
use super::slice_ports::Configures;
use crate::cookie::Cookie;
use crate::flows::{Flow, Rule};
use crate::ids::TenantIndex;
use crate::policy::TenantId;
use crate::south::diff::Change;
use crate::south::installed::{Effect, Owner, Written};
use crate::south::pending::{Awaits, Origin};
use crate::south::queue::{Class, Item};
use crate::south::session::Part;
use crate::store::{Kind, StoreKey, StoreOp};
use crate::tenant::Leaving;
use crate::time::Instant;
use crate::v13::groups::brought::Brought;
use crate::v13::numbers::Numbered;
use crate::work::MESSAGE;
use alloc::sync::Arc;
use alloc::vec::Vec;
use compile::{Network, RuleKey};
use hashbrown::HashSet;
use openflow::{NO_BUFFER, Version};

/// So many changed entries are looked through.
const FEW: usize = 16;

/// A change that is on its way.
pub(crate) struct Operation {
    pub(crate) tenant: TenantIndex,
    /// Messages that it became.
    pub(super) messages: usize,
    /// Those of them that have not been confirmed.
    pub(super) remaining: usize,
    /// The changed entries as they were before; `None` for those that were not there.
    pub(super) before: Vec<(u32, Option<Flow>)>,
    /// Which those are, if they are many: it is asked for each entry that times out.
    changed: HashSet<u32>,
    /// How many rules those are of that it puts others in the place of.
    pub(super) rules_replaced: usize,
    /// The changed groups and meters as they were before (1.3).
    pub(crate) numbers_before: Vec<NumberBefore>,
    /// Numbers of groups or meters that are deleted and belong to nobody any more (1.3).
    pub(super) frees: Vec<(Kind, u32)>,
    /// Whether the switch has refused that before.
    pub(super) frees_again: bool,
    /// Whether entries that use groups are looked at again when this is done: deleted groups may have taken some along.
    pub(crate) replans: bool,
    /// The form of a group that it brings to the switch; all that it does (1.3).
    pub(crate) brings: Option<Brought>,
    /// The entry of the hypervisor's own that it brings; all that it does.
    pub(super) tries: Option<Tried>,
    /// What it makes of a port of a slice; all that it does.
    pub(super) configures: Option<Configures>,
    /// Whether it only modifies entries that are there: the rest of each entry stays, whatever becomes of it.
    pub(crate) modifies: bool,
    /// Entries that the switch has lost before this installs them again: if it does not, their end is still to be told.
    pub(super) lost: Vec<(u32, Flow)>,
    /// A rule of an entry that had timed out by itself and is installed again; all that the operation does.
    pub(super) revived: Option<(u32, Rule)>,
    /// Whether a change before it failed in part, and what it did to the switch is this one's to undo.
    pub(crate) inherits: bool,
    /// The entry that it adds, whose time begins with it.
    pub(super) begins: Option<u32>,
    /// The egress groups that its groups name (1.3), and who is told if one of them cannot be.
    pub(super) needs: Option<(Vec<u32>, Origin)>,
    /// Whether the switch has refused one, and which groups are left of those to be deleted after this.
    pub(super) deletes_after: Option<Vec<u32>>,
    /// Whether the entries that it changes begin to count at nothing (OFPFF_RESET_COUNTS).
    pub(crate) resets_counts: bool,
    /// Whether the hypervisor makes it for itself: no controller gets an error, and if it fails the entry is given up.
    pub(super) own: bool,
    /// What it has cost, in examined entries, and how many bytes it holds, as far as that counts for its tenant.
    pub(super) work: u64,
    pub(super) held: usize,
}

/// A group or meter as it was before a change, and what the change does to numbers on the switch.
pub(crate) struct NumberBefore {
    pub(crate) kind: Kind,
    pub(crate) number: u32,
    pub(crate) before: Option<Numbered>,
    /// Those that come to the switch.
    pub(crate) made: Vec<u32>,
    /// Those that are not needed any more, to be deleted when the change is done: until then the change can be undone.
    pub(crate) dropped: Vec<u32>,
    /// Those that the change deletes.
    pub(crate) deleted: Vec<u32>,
    /// Whether only its copies have changed, with those of a group that it names.
    pub(crate) follows: bool,
    /// The network in which that was so.
    pub(crate) network: Option<Arc<Network>>,
}

impl Operation {
    /// Whether it changes an entry.
    pub(super) fn changes(&self, number: u32) -> bool {
        match self.before.len() <= FEW {
            true => self.before.iter().any(|(other, _)| *other == number),
            false => self.changed.contains(&number),
        }
    }

    /// An entry that it changes was this before.
    fn push_before(&mut self, number: u32, before: Option<Flow>) {
        self.before.push((number, before));
        if self.before.len() == FEW + 1 {
            self.changed.extend(self.before.iter().map(|(number, _)| *number));
        } else if self.before.len() > FEW {
            self.changed.insert(number);
        }
    }

    /// The entries that it changes.
    pub(super) fn changed(&self) -> impl Iterator<Item = u32> + '_ {
        self.before.iter().map(|(number, _)| *number)
    }

    /// Whether it deletes groups or meters.
    pub(super) fn deletes_numbers(&self) -> bool {
        self.numbers_before.iter().any(|one| !one.deleted.is_empty())
    }

    /// Whether it makes an egress group, or what it changes needs it.
    pub(crate) fn concerns_egress_group(&self, exit: u32) -> bool {
        self.needs.as_ref().is_some_and(|(egress_groups, _)| egress_groups.contains(&exit))
            || self.numbers_before.iter().any(|one| one.kind == Kind::Group && one.number == exit)
    }

    /// The changed entries that were there before.
    pub(crate) fn flows_before(&self) -> impl Iterator<Item = &Flow> {
        self.before.iter().filter_map(|(_, flow)| flow.as_ref())
    }
}

impl NumberBefore {
    pub(crate) fn new(kind: Kind, number: u32, before: Option<Numbered>) -> NumberBefore {
        NumberBefore {
            kind,
            number,
            before,
            made: Vec::new(),
            dropped: Vec::new(),
            deleted: Vec::new(),
            follows: false,
            network: None,
        }
    }
}

/// How a rule of an entry is written to the switch.
pub(crate) struct Writing {
    pub cookie: u64,
    pub change: Change,
    pub buffer_id: u32,
    /// Seconds: what is left of the entry's.
    pub hard_timeout: u16,
    /// Whether it begins to count at nothing (1.3).
    pub resets_counts: bool,
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
            changed: HashSet::new(),
            rules_replaced: 0,
            numbers_before: Vec::new(),
            frees: Vec::new(),
            frees_again: false,
            replans: false,
            brings: None,
            tries: None,
            configures: None,
            modifies: false,
            lost: Vec::new(),
            revived: None,
            inherits: false,
            begins: None,
            needs: None,
            deletes_after: None,
            resets_counts: false,
            own: false,
            work: 0,
            held: 0,
        };
        self.operations.insert(self.next_operation, operation);
        self.tenants[tenant.0 as usize].operations.insert(self.next_operation);
        self.next_operation
    }

    /// Ends an operation: it is done, or it has failed.
    pub(super) fn end(&mut self, operation: u32) -> Option<Operation> {
        let ended = self.operations.remove(&operation)?;
        let state = &mut self.tenants[ended.tenant.0 as usize];
        state.operations.remove(&operation);
        state.is_decided = true;
        state.ahead = state.ahead.saturating_sub(ended.work);
        state.held.remove(ended.held);
        let replaced = if ended.own { 0 } else { ended.rules_replaced };
        state.rules_replaced = state.rules_replaced.saturating_sub(replaced);
        self.resume(ended.tenant);
        Some(ended)
    }

    /// Starts an operation that brings an entry, as it stands in the table, to the switch. If the switch refuses, the
    /// entry is lost, and its tenant is told so.
    pub(super) fn begin_own(&mut self, cause: &Cause, number: u32) -> Cause {
        let operation = self.begin(cause.tenant);
        if let Some(state) = self.operations.get_mut(&operation) {
            state.own = true;
            state.begins = Some(number);
            state.push_before(number, None);
        }
        Cause { operation: Some(operation), ..*cause }
    }

    /// Installs a rule of an entry again that had timed out by itself, while the entry lives on.
    pub(crate) fn revive(&mut self, cause: &Cause, number: u32, flow: &Flow, rule: &Rule) {
        let operation = self.begin(cause.tenant);
        if let Some(state) = self.operations.get_mut(&operation) {
            state.revived = Some((number, rule.clone()));
        }
        let cause = Cause { operation: Some(operation), ..*cause };
        self.submit_rule(&cause, number, flow, rule, Change::Add, NO_BUFFER);
        self.commit(operation);
    }

    /// Ends the making of an operation; one without messages is never undone.
    pub(crate) fn commit(&mut self, operation: u32) {
        if self.operations.get(&operation).is_some_and(|op| op.remaining == 0) {
            self.end(operation);
        }
    }

    /// Puts an entry into the tenant's table as a part of an operation.
    pub(crate) fn put_flow(&mut self, cause: &Cause, number: u32, flow: Flow) {
        let state = &mut self.tenants[cause.tenant.0 as usize];
        let key = StoreKey::new(state.id, Kind::Flow, number);
        let bytes = flow.to_bytes(self.version);
        let before = state.flows.replace(number, flow);
        state.changes += 1;
        self.unused.maybe |= state.network.is_some();
        self.keep_time(cause.tenant, number, cause.now);
        if let Some(operation) = cause.operation.and_then(|at| self.operations.get_mut(&at)) {
            let replaced = before.as_ref().map_or(0, Flow::planned);
            operation.rules_replaced += replaced;
            let state = &mut self.tenants[cause.tenant.0 as usize];
            state.rules_replaced += if operation.own { 0 } else { replaced };
        }
        self.remember(cause.operation, number, before);
        self.journal.push(StoreOp::Put(key, bytes));
        self.note_freed(cause.tenant);
    }

    /// Takes an entry out of the tenant's table as a part of an operation.
    pub(crate) fn take_flow(&mut self, cause: &Cause, number: u32) -> Option<Flow> {
        let state = &mut self.tenants[cause.tenant.0 as usize];
        let flow = state.flows.remove(number)?;
        self.unused.maybe |= state.network.is_some();
        state.changes += 1;
        state.idle.remove(&number);
        self.uninstalled.remove(cause.tenant, number);
        let key = StoreKey::new(state.id, Kind::Flow, number);
        self.remember(cause.operation, number, Some(flow.clone()));
        self.journal.push(StoreOp::Delete(key));
        self.note_freed(cause.tenant);
        Some(flow)
    }

    /// Entries on the switch may have lost their owner in the tenant's table.
    pub(crate) fn note_freed(&mut self, tenant: TenantIndex) {
        if self.tenants[tenant.0 as usize].flows.has_freed() {
            self.freed.insert(tenant);
        }
    }

    /// Entries take over what others have given up that was the same on the switch. If the switch refuses that, the entry is
    /// lost, as one of which it loses a part, and the next takes over.
    pub(crate) fn take_over(&mut self, now: Instant) {
        while let Some(tenant) = self.freed.pop_first() {
            let cause = Cause { tenant, origin: None, operation: None, direct: false, now };
            for (number, flow, rule) in self.tenants[tenant.0 as usize].flows.heirs() {
                self.tenants[tenant.0 as usize].changes += 1;
                self.keep_time(tenant, number, now);
                let cause = self.begin_own(&cause, number);
                self.submit_rule(&cause, number, &flow, &rule, Change::Add, NO_BUFFER);
            }
            self.note_freed(tenant);
        }
    }

    /// The map or the ports have changed, for this tenant or for all: of the groups that changes on their way began with, the
    /// switch holds something else.
    pub(super) fn move_operations(&mut self, tenant: Option<TenantIndex>) {
        let is_meant = |operation: &&mut Operation| tenant.is_none_or(|it| operation.tenant == it);
        for operation in self.operations.values_mut().filter(is_meant) {
            operation.inherits = true;
        }
    }

    pub(super) fn remember(&mut self, operation: Option<u32>, number: u32, before: Option<Flow>) {
        if let Some(operation) = operation.and_then(|at| self.operations.get_mut(&at))
            // A request touches an entry once, or twice in a row.
            && operation.before.last().is_none_or(|(known, _)| *known != number)
        {
            operation.push_before(number, before);
        }
    }

    /// Keeps a removed entry until the switch has told its last counts, if the tenant wants to hear of it.
    pub(crate) fn await_removal(&mut self, cause: &Cause, number: u32, flow: Flow) {
        /// OFPFF_SEND_FLOW_REM, in both versions.
        const SEND_FLOW_REM: u16 = 1;
        if flow.flags & SEND_FLOW_REM != 0 {
            let rules = flow.rules.len();
            if rules == 0 {
                // Nothing stands for it on the switch, which therefore will not tell of its end.
                self.report_lost(cause.tenant, &flow);
                return;
            }
            let leaving = Leaving { flow, rules, since: cause.now, over: None };
            self.tenants[cause.tenant.0 as usize].leaving.insert(number, leaving);
        }
    }

    /// Remembers groups or meters as they were before an operation.
    pub(crate) fn remember_numbers(&mut self, operation: u32, before: Vec<NumberBefore>) {
        let Some(state) = self.operations.get_mut(&operation) else { return };
        let network = &self.tenants[state.tenant.0 as usize].network;
        state.numbers_before = before;
        state.numbers_before.iter_mut().for_each(|one| one.network.clone_from(network));
        // What is not there any more once this is through has to go, whatever becomes of the connection meanwhile.
        let going = state.numbers_before.iter().flat_map(|one| {
            one.dropped.iter().chain(&one.deleted).map(|number| (one.kind, *number))
        });
        let (tenant, going) = (state.tenant, going.collect::<Vec<(Kind, u32)>>());
        if state.deletes_numbers() {
            self.may_bring_back(tenant, Operation::deletes_numbers);
        }
        going.into_iter().for_each(|(kind, number)| self.mark_for_deletion(tenant, kind, number));
    }

    /// Starts an operation of the hypervisor's own that deletes groups or meters without an owner.
    pub(crate) fn begin_freeing(
        &mut self,
        cause: &Cause,
        frees: &[(Kind, u32)],
        again: bool,
    ) -> Cause {
        let cause = self.begin_unasked(cause);
        if let Some(state) = cause.operation.and_then(|at| self.operations.get_mut(&at)) {
            (state.frees, state.frees_again) = (frees.to_vec(), again);
        }
        cause
    }

    /// Starts an operation of the hypervisor's own.
    pub(crate) fn begin_unasked(&mut self, cause: &Cause) -> Cause {
        let operation = self.begin(cause.tenant);
        if let Some(state) = self.operations.get_mut(&operation) {
            state.own = true;
        }
        Cause { origin: None, operation: Some(operation), ..*cause }
    }

    /// Starts an operation of the hypervisor's own, after which entries that use groups are looked at again.
    pub(crate) fn begin_replanning(&mut self, cause: &Cause) -> Cause {
        let cause = self.begin_unasked(cause);
        if let Some(state) = cause.operation.and_then(|at| self.operations.get_mut(&at)) {
            state.replans = true;
        }
        cause
    }

    /// The groups that an operation brings name these egress groups.
    pub(crate) fn remember_egress_groups(&mut self, cause: &Cause, egress_groups: Vec<u32>) {
        let operation = cause.operation.and_then(|at| self.operations.get_mut(&at));
        if let Some(operation) = operation.filter(|_| !egress_groups.is_empty()) {
            operation.needs = cause.origin.map(|origin| (egress_groups, origin));
        }
    }

    /// Queues a message that belongs to an operation.
    pub(crate) fn submit_change(&mut self, cause: &Cause, message: &[u8]) {
        self.submit_written(cause, None, 1, message);
    }

    /// The same of one that does this to a rule.
    pub(super) fn submit_effect(
        &mut self,
        cause: &Cause,
        key: RuleKey,
        effect: Effect,
        message: &[u8],
    ) {
        let written = self.session.write(cause.tenant, cause.direct, key, effect);
        self.submit_written(cause, Some(written), 1, message);
    }

    /// The same of one that changes many rules on the switch.
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
        /// A switch changes an entry that it finds in less time than it takes to read a message; by how much differs.
        const IN_A_MESSAGE: usize = 8;
        self.tenants[cause.tenant.0 as usize].flows.meter().add(MESSAGE);
        if let Some(operation) = cause.operation.and_then(|at| self.operations.get_mut(&at)) {
            operation.messages += 1;
            operation.remaining += 1;
        }
        if cause.direct {
            let part = Part { operation: cause.operation, written };
            self.send_own_part(Awaits::Nothing, part, message, cause.now);
            return;
        }
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
        self.submit(cause.tenant, item, message);
    }

    /// Queues the message that brings one rule of an entry to the switch or takes it away.
    pub(crate) fn submit_rule(
        &mut self,
        cause: &Cause,
        number: u32,
        flow: &Flow,
        rule: &Rule,
        change: Change,
        buffer_id: u32,
    ) {
        let mut resets_counts = false;
        if let Some(operation) = cause.operation.and_then(|at| self.operations.get_mut(&at)) {
            resets_counts = operation.resets_counts && change != Change::Delete;
        }
        let state = &mut self.tenants[cause.tenant.0 as usize];
        if change == Change::Add {
            if flow.hard_timeout > 0 && flow.installed < cause.now {
                state.idle.entry(number).or_default();
            }
            if let Some(idle) = state.idle.get_mut(&number) {
                idle.begin_again(&rule.match_wire);
            }
        }
        let writing = Writing {
            cookie: self.cookie_of(cause.tenant, number),
            change,
            buffer_id,
            // 0 would be for ever.
            hard_timeout: flow.left(cause.now).unwrap_or(1),
            resets_counts,
        };
        let mut message = core::mem::take(&mut self.scratch);
        message.clear();
        let written = match self.version {
            Version::V1_0 => crate::v10::flow_mod::write_rule(flow, rule, &writing, &mut message),
            _ => {
                let first = self.target().first_table();
                crate::v13::flow_mod::write_rule(flow, rule, &writing, first, &mut message)
            }
        };
        // What has a plan fits into a message (`flows::Taken`).
        debug_assert!(written.is_ok());
        if written.is_ok() {
            let owner = Owner { tenant: cause.tenant, number };
            let effect = match change {
                Change::Add => Effect::Set(flow.content(owner, rule)),
                Change::Modify => Effect::Replace(flow.content(owner, rule)),
                Change::Delete => Effect::Remove(owner),
            };
            self.submit_effect(cause, rule.key(flow.table), effect, &message);
        }
        self.scratch = message;
    }

    /// Queues what brings an entry to the switch that was another before; what stood for that and no longer stands for
    /// it is taken away first.
    pub(crate) fn submit_rules(
        &mut self,
        cause: &Cause,
        number: u32,
        before: Option<&Flow>,
        flow: &Flow,
        change: Change,
        mut buffer_for: impl FnMut(&Rule) -> u32,
    ) {
        // Most modifications change what rules do and nothing else.
        if before.is_some_and(|before| before.has_rules_where(flow)) {
            for rule in &flow.rules {
                self.submit_rule(cause, number, flow, rule, change, buffer_for(rule));
            }
            return;
        }
        let stood = before.map(Flow::by_match).unwrap_or_default();
        if let Some(before) = before {
            let stands = flow.by_match();
            let is_stale = |rule: &&Rule| !stands.contains_key(&*rule.match_wire);
            for stale in before.rules.iter().filter(is_stale) {
                self.submit_rule(cause, number, before, stale, Change::Delete, NO_BUFFER);
            }
        }
        for rule in &flow.rules {
            let stands = stood.contains_key(&*rule.match_wire);
            // A modification does not bring what is not there (1.3).
            let change = if stands { change } else { Change::Add };
            self.submit_rule(cause, number, flow, rule, change, buffer_for(rule));
        }
    }

    /// Takes an entry that is no longer on the switch out of the tenant's table.
    pub(crate) fn drop_flow(&mut self, tenant: TenantIndex, number: u32) -> Option<Flow> {
        let state = &mut self.tenants[tenant.0 as usize];
        let flow = state.flows.remove(number)?;
        self.unused.maybe |= state.network.is_some();
        state.idle.remove(&number);
        state.changes += 1;
        self.uninstalled.remove(tenant, number);
        self.journal.push(StoreOp::Delete(StoreKey::new(state.id, Kind::Flow, number)));
        self.note_freed(tenant);
        Some(flow)
    }

    /// A barrier has shown that everything up to this xid is done.
    pub(crate) fn confirm(&mut self, xid: u32, now: Instant) {
        while let Some(operation) = self.session.next_confirmed(xid, now) {
            if let Some(state) = self.operations.get_mut(&operation) {
                state.remaining = state.remaining.saturating_sub(1);
                if state.remaining == 0
                    && !self.undoes_dependent(operation, now)
                    && let Some(done) = self.end(operation)
                {
                    if done.replans {
                        self.doubt_barriers(done.tenant);
                    }
                    self.numbers_done(&done, now);
                    if let Some(configures) = &done.configures {
                        self.port_configured(done.tenant, configures, now);
                    }
                }
            }
        }
    }

    /// What groups and meters were before a change that is done is free, or has to go.
    fn numbers_done(&mut self, done: &Operation, now: Instant) {
        let cause = Cause::own(done.tenant, now);
        // What names others goes before them.
        for one in done.numbers_before.iter().rev() {
            one.deleted.iter().for_each(|number| self.free_number(one.kind, *number));
            // Also numbers that only a change which has failed meanwhile would have kept, or had taken.
            let was =
                one.before.iter().flat_map(|it| it.instances.ids()).chain(one.made.iter().copied());
            let was = was.filter(|number| !one.deleted.contains(number));
            self.delete_unreferenced(
                &cause,
                one.kind,
                was.chain(one.dropped.iter().copied()).collect(),
            );
        }
        for (kind, number) in &done.frees {
            self.free_number(*kind, *number);
        }
        if !done.numbers_before.is_empty() || !done.frees.is_empty() {
            self.delete_refused(&cause);
        }
        if done.replans {
            self.replan_users(&cause, Flow::names_numbers);
        }
    }

    /// The cookie of an entry on the switch.
    pub(crate) fn cookie_of(&self, tenant: TenantIndex, number: u32) -> u64 {
        let tenant = self.tenants[tenant.0 as usize].id;
        Cookie { tenant, number }.to_wire(self.settings.installation)
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
