//! FLOW_MOD: one for one, with the tenant's number in the match and the tables one further on.

use crate::buffers::Buffered;
use crate::flows::Flow;
use crate::ids::TenantIndex;
use crate::south::diff::Change;
use crate::switch::bulk::change::BulkAction;
use crate::switch::{Cause, Request, Switch};
use crate::time::Instant;
use crate::v13::flow_mod::{sends_to, through_table};
use crate::v13::unreadable;
use alloc::vec::Vec;
use compile::packet::Sent;
use compile::{Actions, Reason, Refused, Space, packet};
use flowspace::{Field, Match, MiniMatch, MiniWords};
use openflow::error::v13 as code;
use openflow::v13::{FlowMod, FlowModCommand, FlowModFlags, PortNo, TABLE_ALL};
use openflow::{Encode, List, NO_BUFFER, v13};

impl Switch {
    /// A tenant changes its tables.
    pub(crate) fn flow_mod_v13(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        let flow_mod = FlowMod::parse(request.body()).map_err(unreadable)?;
        let tenant = request.tenant;
        let match_ = self.match_of_v13(tenant, &flow_mod.match_)?;
        let deletes = deletes(&flow_mod);
        let all_tables = flow_mod.table_id == TABLE_ALL && deletes;
        if flow_mod.table_id >= self.tenant_tables(tenant) && !all_tables {
            return Err(code::FLOW_MOD_FAILED_BAD_TABLE_ID.into());
        }
        let buffered = match flow_mod.buffer_id {
            NO_BUFFER => None,
            _ if deletes || self.is_replay() => None,
            id => {
                let packets = &self.tenants[tenant.0 as usize].packets;
                Some(*packets.buffered(id).ok_or(code::BAD_REQUEST_BUFFER_UNKNOWN)?)
            }
        };
        let place = (flow_mod.table_id, &match_, flow_mod.priority);
        if flow_mod.command == FlowModCommand::ADD && self.waits_for_same(tenant, place) {
            self.postpone(request);
            return Ok(());
        }
        let cause = self.begin(request);
        if let Some(change) = cause.operation.and_then(|at| self.change_mut(at)) {
            change.resets_counts = flow_mod.flags.contains(FlowModFlags::RESET_COUNTS);
        }
        let mut kept = buffered;
        let done = match flow_mod.command {
            FlowModCommand::ADD => self.add_v13(&cause, &flow_mod, match_, &mut kept),
            FlowModCommand::MODIFY | FlowModCommand::MODIFY_STRICT => {
                self.modify_v13(&cause, &flow_mod, match_, &mut kept)
            }
            FlowModCommand::DELETE | FlowModCommand::DELETE_STRICT => {
                self.delete_v13(&cause, &flow_mod, match_)
            }
            _ => Err(code::FLOW_MOD_FAILED_BAD_COMMAND.into()),
        };
        if done.is_ok() && buffered.is_some() {
            let taken = self.tenants.take_buffered(tenant, flow_mod.buffer_id);
            self.note_buffered(&cause, taken);
            if let Some(left) = kept {
                self.release_through_table_v13(&cause, &left);
            }
        }
        done
    }

    /// Sends a buffered packet through the tables after a change that it did not go with, as the specification has it (section
    /// 6.4): the change may have become several messages, or none, and the packet is to go once.
    pub(crate) fn release_through_table_v13(&mut self, cause: &Cause, buffered: &Buffered) {
        let came = PortNo(buffered.key.get(Field::InPort) as u32);
        let through = through_table();
        let cx = self.context(cause.tenant);
        let entered = match cx.space {
            Space::Slice(_) => Ok((came, through.clone().into_bytes())),
            Space::Network(network) => {
                let sent = Sent { key: &buffered.key, in_port: Some(came.0), is_buffered: true };
                let (list, mut actions) = (Actions::V13(through.as_list()), Vec::new());
                packet::compile(&cx, network, &sent, list, &mut actions).map(|at| (at, actions))
            }
        };
        // A port that has gone meanwhile has no packets.
        let Ok((in_port, actions)) = entered else { return };
        let packet = v13::PacketOut {
            buffer_id: buffered.physical,
            in_port,
            actions: List::parse(&actions).unwrap_or_default(),
            data: &[],
        };
        let mut message = self.scratch.take_message();
        if packet.write_message(0, &mut message).is_ok() {
            self.submit_change(cause, &message);
        }
        self.scratch.put_message(message);
    }

    fn add_v13(
        &mut self,
        cause: &Cause,
        flow_mod: &FlowMod<'_>,
        match_: Match,
        kept: &mut Option<Buffered>,
    ) -> Result<(), Refused> {
        let mut flow = new_flow(flow_mod, match_, cause.now);
        flow.rules = self.plan(cause.tenant, &flow)?;
        self.tenants[cause.tenant.0 as usize].flows.share(&mut flow);
        let (table, priority) = (flow_mod.table_id, flow_mod.priority);
        let entries_left = self.rules_left(cause.tenant, [table]);
        let state = &mut self.tenants[cause.tenant.0 as usize];
        let checked = flow_mod.flags.contains(FlowModFlags::CHECK_OVERLAP);
        if checked && state.flows.overlaps(table, &match_, priority) {
            return Err(code::FLOW_MOD_FAILED_OVERLAP.into());
        }
        let old = state.flows.find(table, &match_, priority);
        if old.is_none() && state.flows.len() >= state.terms.limits().flows as usize {
            return Err(Reason::EntryLimit.with(code::FLOW_MOD_FAILED_TABLE_FULL));
        }
        let number = old.unwrap_or_else(|| self.entry_number(cause));
        let state = &self.tenants[cause.tenant.0 as usize];
        // One that is written for each ingress port may be the same there as one that names the port.
        if state.flows.collides(number, &flow) {
            return Err(Reason::SameRule.with(code::FLOW_MOD_FAILED_OVERLAP));
        }
        let mut room = state.flows.room_for(core::iter::once(number), entries_left);
        if !room.take(&flow, &flow.rules) {
            return Err(self.no_room(cause.tenant, table, &room));
        }
        let before = state.flows.get(number).cloned();
        // The switch keeps the counts of what it still has (specification section 6.4).
        let resets_counts = flow_mod.flags.contains(FlowModFlags::RESET_COUNTS);
        if let Some(before) = before.as_ref().filter(|_| !resets_counts) {
            (flow.past_packets, flow.past_bytes) = (before.past_packets, before.past_bytes);
        }
        self.put_flow(cause, number, flow.clone());
        self.begin_again(cause, number);
        // The switch knows the packet's number once, and lets it in as it keeps it: in a network that is without the
        // tag with which it came by a link.
        let goes_along =
            flow.rules.len() == 1 && self.tenants[cause.tenant.0 as usize].network.is_none();
        let goes = if goes_along { kept.take() } else { None };
        let buffer_id = goes.map_or(NO_BUFFER, |buffered| buffered.physical);
        self.submit_rules(cause, number, before.as_ref(), &flow, Change::Add, |_| buffer_id);
        if resets_counts {
            self.reset_counters(cause, number);
        }
        Ok(())
    }

    fn modify_v13(
        &mut self,
        cause: &Cause,
        flow_mod: &FlowMod<'_>,
        match_: Match,
        kept: &mut Option<Buffered>,
    ) -> Result<(), Refused> {
        // Checked even if nothing is meant: the tenant learns of its mistake now.
        let pattern = new_flow(flow_mod, match_, cause.now);
        self.plan(cause.tenant, &pattern)?;
        let found = self.meant_by_v13(cause.tenant, flow_mod, &match_);
        let action = BulkAction::Modify { actions: pattern.actions, cookie: None };
        self.change_entries(cause, action, found, kept)
    }

    fn delete_v13(
        &mut self,
        cause: &Cause,
        flow_mod: &FlowMod<'_>,
        match_: Match,
    ) -> Result<(), Refused> {
        let found = self.meant_by_v13(cause.tenant, flow_mod, &match_);
        self.change_entries(cause, BulkAction::Delete, found, &mut None)
    }

    fn meant_by_v13(
        &self,
        tenant: TenantIndex,
        flow_mod: &FlowMod<'_>,
        match_: &Match,
    ) -> Vec<u32> {
        let flows = &self.tenants[tenant.0 as usize].flows;
        let table = (flow_mod.table_id != TABLE_ALL).then_some(flow_mod.table_id);
        let mut found = match (flow_mod.command, table) {
            (FlowModCommand::MODIFY_STRICT | FlowModCommand::DELETE_STRICT, Some(table)) => {
                flows.find(table, match_, flow_mod.priority).into_iter().collect()
            }
            (FlowModCommand::DELETE_STRICT, None) => (0..self.tenant_tables(tenant))
                .filter_map(|table| flows.find(table, match_, flow_mod.priority))
                .collect(),
            _ if flow_mod.cookie_mask == u64::MAX => flows.with_cookie(flow_mod.cookie).collect(),
            _ => flows.matching(table, match_),
        };
        let words = MiniWords::of(match_);
        let is_meant = |flow: &Flow| is_covered(flow, flow_mod, &words) && passes(flow, flow_mod);
        found.retain(|number| flows.get(*number).is_some_and(is_meant));
        found
    }
}

/// Whether a request that changes entries, or deletes them, has such a match.
fn is_covered(flow: &Flow, flow_mod: &FlowMod<'_>, match_: &MiniWords) -> bool {
    let is_strict =
        matches!(flow_mod.command, FlowModCommand::MODIFY_STRICT | FlowModCommand::DELETE_STRICT);
    flow.is_covered(match_, is_strict.then_some(flow_mod.priority))
        && [TABLE_ALL, flow.table].contains(&flow_mod.table_id)
}

/// Whether one of those is meant.
fn passes(flow: &Flow, flow_mod: &FlowMod<'_>) -> bool {
    (flow.cookie ^ flow_mod.cookie) & flow_mod.cookie_mask == 0
        && (!deletes(flow_mod) || sends_to(&flow.actions, flow_mod.out_port, flow_mod.out_group))
}

/// Whether it deletes entries.
fn deletes(flow_mod: &FlowMod<'_>) -> bool {
    matches!(flow_mod.command, FlowModCommand::DELETE | FlowModCommand::DELETE_STRICT)
}

fn new_flow(flow_mod: &FlowMod<'_>, match_: Match, now: Instant) -> Flow {
    let mut match_wire = Vec::new();
    Encode::write(&flow_mod.match_, &mut match_wire);
    Flow {
        table: flow_mod.table_id,
        match_: MiniMatch::new(&match_),
        priority: flow_mod.priority,
        cookie: flow_mod.cookie,
        // All of them, also those that asked for something once (specification section 6.4).
        flags: flow_mod.flags.0,
        idle_timeout: flow_mod.idle_timeout,
        hard_timeout: flow_mod.hard_timeout,
        installed: now,
        match_wire: match_wire.into(),
        actions: flow_mod.instructions.as_bytes().into(),
        rules: Vec::new(),
        shadowed: Default::default(),
        past_packets: 0,
        past_bytes: 0,
        counts_since: 0,
    }
}
