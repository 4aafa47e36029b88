//! FLOW_MOD: a tenant changes its tables. The compiler makes one or several rules of an entry.

use super::bulk::change::{BulkAction, Meant};
use super::{Cause, Request, Switch};
use crate::buffers::Buffered;
use crate::flows::room::AT_ONCE;
use crate::flows::{Flow, FlowMod, Wanted};
use crate::ids::TenantIndex;
use crate::messages;
use crate::south::diff::Change;
use alloc::vec::Vec;
use compile::{Reason, Refused};
use openflow::error::{v10 as code_v10, v13 as code_v13};
use openflow::v13::{FlowModCommand, FlowModFlags};
use openflow::{ErrorCode, NO_BUFFER};

impl Switch {
    /// A tenant changes its tables.
    pub(crate) fn flow_mod(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        let tenant = request.tenant;
        let kept = self.metadata_kept(tenant);
        let flow_mod = messages::read_flow_mod(self.wire, request.body(), kept)?;
        let codes = self.codes();
        if !self.may_write(tenant) {
            return Err(Reason::ReadOnly.with(codes.flow_mod_not_permitted));
        }
        if flow_mod.has(self.semantics().flow_mod.emergency_flag) {
            let ends = flow_mod.idle_timeout != 0 || flow_mod.hard_timeout != 0;
            return Err(match ends {
                true => code_v10::FLOW_MOD_FAILED_BAD_EMERG_TIMEOUT.into(),
                false => code_v10::FLOW_MOD_FAILED_UNSUPPORTED.into(),
            });
        }
        let table = match flow_mod.wanted.table {
            Some(table) if table < self.tenant_tables(tenant) => table,
            None if flow_mod.deletes() => 0,
            _ => return Err(code_v13::FLOW_MOD_FAILED_BAD_TABLE_ID.into()),
        };
        let buffered = self.flow_mod_buffer(tenant, &flow_mod)?;
        let (match_, priority) = (&flow_mod.wanted.match_, flow_mod.priority);
        if flow_mod.command == FlowModCommand::ADD
            && self.waits_for_same(tenant, table, match_, priority)
        {
            self.postpone(request);
            return Ok(());
        }
        let cause = self.begin(request);
        let resets_counts = flow_mod.has(self.semantics().flow_mod.reset_counts_flag);
        if let Some(change) = self.change_by(&cause) {
            change.resets_counts = resets_counts;
        }
        let (mut kept, buffer_id) = (buffered, flow_mod.buffer_id);
        match flow_mod.command {
            FlowModCommand::ADD => self.add(&cause, flow_mod, table, &mut kept),
            FlowModCommand::MODIFY | FlowModCommand::MODIFY_STRICT => {
                self.modify(&cause, flow_mod, table, &mut kept)
            }
            FlowModCommand::DELETE | FlowModCommand::DELETE_STRICT => {
                let candidates = self.candidates(tenant, &flow_mod);
                let strictly = flow_mod.strictly();
                let meant = Meant { strictly, wanted: flow_mod.wanted, adds: None };
                self.change_entries(&cause, BulkAction::Delete, meant, candidates, &mut None)
            }
            _ => Err(codes.bad_command.into()),
        }?;
        if buffered.is_some() {
            let taken = self.tenants.take_buffered(tenant, buffer_id);
            if let Some(change) = self.change_by(&cause) {
                change.buffered = taken;
            }
            if let Some(left) = kept {
                self.release_through_table(&cause, &left);
            }
        }
        Ok(())
    }

    /// The buffered packet that the message releases. The buffer id of a deletion means nothing (1.0, section 5.3.3;
    /// 1.3, section 7.3.4.1).
    fn flow_mod_buffer(
        &self,
        tenant: TenantIndex,
        flow_mod: &FlowMod<'_>,
    ) -> Result<Option<Buffered>, ErrorCode> {
        if flow_mod.buffer_id == NO_BUFFER || flow_mod.deletes() || self.is_replay() {
            return Ok(None);
        }
        let buffered = self.tenants[tenant].packets.buffers().peek(flow_mod.buffer_id);
        // The error code has the same number in both versions.
        buffered.copied().map(Some).ok_or(code_v13::BAD_REQUEST_BUFFER_UNKNOWN)
    }

    fn add(
        &mut self,
        cause: &Cause,
        flow_mod: FlowMod<'_>,
        table: u8,
        kept: &mut Option<Buffered>,
    ) -> Result<(), Refused> {
        let flow = flow_mod.to_flow(table, cause.now);
        // The flag has the same number in both versions.
        if !flow_mod.has(FlowModFlags::CHECK_OVERLAP.0) {
            return self.add_entry(cause, flow, kept);
        }
        // Weir compiles the entry before it looks for overlaps, so a compiler's error comes first.
        self.plan(cause.tenant, &flow)?;
        let flows = &self.tenants[cause.tenant].flows;
        let candidates = flows.may_overlap(table, &flow_mod.wanted.match_);
        let strictly = Some(flow_mod.priority);
        let meant = Meant { strictly, wanted: flow_mod.wanted, adds: Some(flow) };
        self.change_entries(cause, BulkAction::Refuse, meant, candidates, kept)
    }

    /// Adds an entry, whatever it overlaps.
    pub(super) fn add_entry(
        &mut self,
        cause: &Cause,
        mut flow: Flow,
        kept: &mut Option<Buffered>,
    ) -> Result<(), Refused> {
        let (codes, semantics, tenant) = (self.codes(), &self.semantics().flow_mod, cause.tenant);
        let table = flow.table;
        let state = &self.tenants[tenant];
        let old = state.flows.find_same(&flow);
        // Checked before the entry is compiled, because compiling costs more than all other steps of a refusal.
        if old.is_none() && state.flows.len() >= state.terms.limits.flows as usize {
            return Err(Reason::EntryLimit.with(codes.table_full));
        }
        flow.rules = self.plan(tenant, &flow)?;
        self.tenants[tenant].flows.share(&mut flow);
        let entries_left = self.rules_left(tenant, [table]);
        // An identical entry is replaced, without a FLOW_REMOVED (1.0, section 4.6; 1.3, section 6.4), and keeps its
        // number.
        let number = old.unwrap_or_else(|| self.entry_number(cause));
        let flows = &self.tenants[tenant].flows;
        // An entry with rules for each ingress port may have the same rule as an entry that names the port.
        if flows.collides(number, &flow) {
            return Err(Reason::SameRule.with(codes.overlap));
        }
        let mut room = flows.room_for(core::iter::once(number), entries_left, AT_ONCE);
        if !room.take(&flow, &flow.rules) {
            return Err(self.no_room(tenant, table, &room));
        }
        let before = flows.get(number).cloned();
        // A switch of 1.3 keeps the counters of an entry that an ADD replaces (section 6.4).
        let resets_counts =
            semantics.add_resets_counts || flow.flags & semantics.reset_counts_flag != 0;
        if let Some(before) = before.as_ref().filter(|_| !resets_counts) {
            flow.past = before.past;
        }
        self.put_flow(cause, number, flow);
        self.begin_again(cause, number);
        // The entry as the table has it, without shadowed rules.
        let Some(flow) = self.tenants[tenant].flows.get(number).cloned() else { return Ok(()) };
        let wire = self.wire;
        let goes = self.goes_with_entry(cause.tenant, flow.rules.len()).then(|| kept.take());
        self.submit_rules(cause, number, before.as_ref(), &flow, Change::Add, |rule| match goes {
            Some(goes) => goes.map_or(NO_BUFFER, |buffered| buffered.physical),
            None => messages::buffer_for(wire, rule, kept),
        });
        if resets_counts {
            self.reset_counters(cause, number);
        }
        Ok(())
    }

    /// Whether the message of a new entry releases the buffered packet, whatever the entry's match is (1.3). The switch
    /// accepts a buffer id once, and sends the packet on as it is buffered: in a network this is without the label of
    /// the link.
    fn goes_with_entry(&self, tenant: TenantIndex, rules: usize) -> bool {
        let is_slice = self.tenants[tenant].network.is_none();
        self.target().has_metadata() && is_slice && rules == 1
    }

    fn modify(
        &mut self,
        cause: &Cause,
        flow_mod: FlowMod<'_>,
        table: u8,
        kept: &mut Option<Buffered>,
    ) -> Result<(), Refused> {
        let adds = self.semantics().modify_adds;
        if !adds {
            // Checked even if no entry is meant: so the tenant gets the error now.
            self.plan(cause.tenant, &flow_mod.to_flow(table, cause.now))?;
        }
        let strictly = flow_mod.strictly();
        let candidates = self.candidates(cause.tenant, &flow_mod);
        let adds = adds.then(|| flow_mod.to_flow(table, cause.now));
        let cookie = self.semantics().flow_mod.modify_sets_cookie.then_some(flow_mod.cookie);
        let action =
            BulkAction::Modify { actions: flow_mod.actions.into(), cookie, at_once: AT_ONCE };
        let meant = Meant { wanted: flow_mod.wanted, strictly, adds };
        self.change_entries(cause, action, meant, candidates, kept)
    }

    /// The entries that a MODIFY or a DELETE may mean.
    fn candidates(&self, tenant: TenantIndex, flow_mod: &FlowMod<'_>) -> Vec<u32> {
        let flows = &self.tenants[tenant].flows;
        let Wanted { match_, table, .. } = &flow_mod.wanted;
        match (flow_mod.strictly(), *table) {
            (Some(priority), Some(table)) => {
                flows.find(table, match_, priority).into_iter().collect()
            }
            (Some(priority), None) => (0..self.tenant_tables(tenant))
                .filter_map(|table| flows.find(table, match_, priority))
                .collect(),
            (None, _) => flows.candidates(&flow_mod.wanted),
        }
    }
}
