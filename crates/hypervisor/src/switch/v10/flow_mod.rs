//! FLOW_MOD: a tenant's entry becomes one entry for each of the tenant's own flowspace entries that it meets.

use crate::buffers::Buffered;
use crate::flows::Flow;
use crate::ids::TenantIndex;
use crate::south::diff::Change;
use crate::switch::bulk::change::BulkAction;
use crate::switch::{Cause, Request, Switch};
use crate::time::Instant;
use crate::v10::flow_mod::{buffer_for, outputs_to};
use crate::v10::unreadable;
use alloc::vec::Vec;
use compile::entry::priority_v10 as priority_of;
use compile::{Reason, Refused};
use flowspace::{Field, Match, MiniMatch};
use openflow::error::v10 as code;
use openflow::v10::{Action, FlowMod, FlowModCommand, FlowModFlags, PacketOut, PortNo};
use openflow::{ErrorCode, ListBuf, NO_BUFFER, v10};

impl Switch {
    /// A tenant changes its table.
    pub(crate) fn flow_mod_v10(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        let mut flow_mod = FlowMod::parse(request.body()).map_err(unreadable)?;
        flow_mod.priority = priority_of(&flow_mod.match_, flow_mod.priority);
        let tenant = request.tenant;
        if !self.may_write(tenant) {
            return Err(Reason::ReadOnly.with(code::FLOW_MOD_FAILED_EPERM));
        }
        if flow_mod.flags.contains(FlowModFlags::EMERG) {
            let ends = flow_mod.idle_timeout != 0 || flow_mod.hard_timeout != 0;
            return Err(match ends {
                true => code::FLOW_MOD_FAILED_BAD_EMERG_TIMEOUT.into(),
                false => code::FLOW_MOD_FAILED_UNSUPPORTED.into(),
            });
        }
        let match_ = Match::from_v10(&flow_mod.match_);
        let deletes =
            matches!(flow_mod.command, FlowModCommand::DELETE | FlowModCommand::DELETE_STRICT);
        // A deletion's buffer id means nothing (specification section 5.3.3).
        let buffer_id = if deletes || self.is_replay() { NO_BUFFER } else { flow_mod.buffer_id };
        let mut buffered = self.flow_mod_buffer(tenant, buffer_id)?;
        let is_add = flow_mod.command == FlowModCommand::ADD;
        if is_add && self.waits_for_same(tenant, (0, &match_, flow_mod.priority)) {
            self.postpone(request);
            return Ok(());
        }
        let cause = self.begin(request);
        let done = match flow_mod.command {
            FlowModCommand::ADD => self.add_v10(&cause, &flow_mod, match_, &mut buffered),
            FlowModCommand::MODIFY | FlowModCommand::MODIFY_STRICT => {
                self.modify_v10(&cause, &flow_mod, match_, &mut buffered)
            }
            FlowModCommand::DELETE | FlowModCommand::DELETE_STRICT => {
                self.delete_v10(&cause, &flow_mod, match_)
            }
            _ => Err(code::FLOW_MOD_FAILED_BAD_COMMAND.into()),
        };
        if done.is_ok() && buffer_id != NO_BUFFER {
            let taken = self.tenants.take_buffered(tenant, buffer_id);
            self.note_buffered(&cause, taken);
            if let Some(left) = buffered {
                self.release_through_table_v10(&cause, &left);
            }
        }
        done
    }

    /// Sends a buffered packet that none of the changed entries took through the table, as the specification of 1.3 says
    /// what 1.0 leaves open (section 6.4): it would stay in the switch for ever.
    pub(crate) fn release_through_table_v10(&mut self, cause: &Cause, buffered: &Buffered) {
        let in_port = buffered.key.get(Field::InPort) as u32;
        let Some(in_port) = flowspace::port_to_v10(in_port) else { return };
        let actions = ListBuf::from([Action::Output { port: PortNo::TABLE, max_len: 0 }]);
        let mut message = self.scratch.take_message();
        let packet = PacketOut {
            buffer_id: buffered.physical,
            in_port: PortNo(in_port),
            actions: actions.as_list(),
            data: &[],
        };
        if packet.write_message(0, &mut message).is_ok() {
            self.submit_change(cause, &message);
        }
        self.scratch.put_message(message);
    }

    /// The packet that the entry is to be applied to at once.
    fn flow_mod_buffer(
        &self,
        tenant: TenantIndex,
        buffer_id: u32,
    ) -> Result<Option<Buffered>, ErrorCode> {
        if buffer_id == NO_BUFFER {
            return Ok(None);
        }
        let packets = &self.tenants[tenant.0 as usize].packets;
        packets.buffered(buffer_id).copied().map(Some).ok_or(code::BAD_REQUEST_BUFFER_UNKNOWN)
    }

    fn add_v10(
        &mut self,
        cause: &Cause,
        flow_mod: &FlowMod<'_>,
        match_: Match,
        buffered: &mut Option<Buffered>,
    ) -> Result<(), Refused> {
        let mut flow = new_flow(flow_mod, match_, cause.now);
        flow.rules = self.plan(cause.tenant, &flow)?;
        self.tenants[cause.tenant.0 as usize].flows.share(&mut flow);
        let entries_left = self.rules_left(cause.tenant, [0]);
        let state = &mut self.tenants[cause.tenant.0 as usize];
        let checked = flow_mod.flags.contains(FlowModFlags::CHECK_OVERLAP);
        if checked && state.flows.overlaps(0, &match_, flow_mod.priority) {
            return Err(code::FLOW_MOD_FAILED_OVERLAP.into());
        }
        let old = state.flows.find(0, &match_, flow_mod.priority);
        if old.is_none() && state.flows.len() >= state.terms.limits().flows as usize {
            return Err(Reason::EntryLimit.with(code::FLOW_MOD_FAILED_ALL_TABLES_FULL));
        }
        // An identical entry is replaced, without a FLOW_REMOVED (specification section 4.6). It keeps its number.
        let number = old.unwrap_or_else(|| self.entry_number(cause));
        let state = &self.tenants[cause.tenant.0 as usize];
        if state.flows.collides(number, &flow) {
            return Err(Reason::SameRule.with(code::FLOW_MOD_FAILED_OVERLAP));
        }
        let mut room = state.flows.room_for(core::iter::once(number), entries_left);
        if !room.take(&flow, &flow.rules) {
            return Err(self.no_room(cause.tenant, 0, &room));
        }
        let before = state.flows.get(number).cloned();
        let flow = state.flows.placed(number, flow);
        self.put_flow(cause, number, flow.clone());
        self.begin_again(cause, number);
        self.submit_rules(cause, number, before.as_ref(), &flow, Change::Add, |rule| {
            buffer_for(rule, buffered)
        });
        self.reset_counters(cause, number);
        Ok(())
    }

    fn modify_v10(
        &mut self,
        cause: &Cause,
        flow_mod: &FlowMod<'_>,
        match_: Match,
        buffered: &mut Option<Buffered>,
    ) -> Result<(), Refused> {
        let found = self.meant_by(cause.tenant, flow_mod, &match_);
        if found.is_empty() {
            return self.add_v10(cause, flow_mod, match_, buffered);
        }
        let action = BulkAction::Modify {
            actions: flow_mod.actions.as_bytes().into(),
            cookie: Some(flow_mod.cookie),
        };
        self.change_entries(cause, action, found, buffered)
    }

    fn delete_v10(
        &mut self,
        cause: &Cause,
        flow_mod: &FlowMod<'_>,
        match_: Match,
    ) -> Result<(), Refused> {
        let mut found = self.meant_by(cause.tenant, flow_mod, &match_);
        let flows = &self.tenants[cause.tenant.0 as usize].flows;
        found.retain(|number| {
            flows.get(*number).is_some_and(|flow| outputs_to(&flow.actions, flow_mod.out_port))
        });
        self.change_entries(cause, BulkAction::Delete, found, &mut None)
    }

    fn meant_by(&self, tenant: TenantIndex, flow_mod: &FlowMod<'_>, match_: &Match) -> Vec<u32> {
        let flows = &self.tenants[tenant.0 as usize].flows;
        match flow_mod.command {
            FlowModCommand::MODIFY_STRICT | FlowModCommand::DELETE_STRICT => {
                flows.find(0, match_, flow_mod.priority).into_iter().collect()
            }
            _ => flows.matching(None, match_),
        }
    }
}

fn new_flow(flow_mod: &FlowMod<'_>, match_: Match, now: Instant) -> Flow {
    let mut match_wire = Vec::with_capacity(v10::Match::LEN);
    flow_mod.match_.write(&mut match_wire);
    Flow {
        table: 0,
        match_: MiniMatch::new(&match_),
        priority: flow_mod.priority,
        cookie: flow_mod.cookie,
        flags: flow_mod.flags.0,
        idle_timeout: flow_mod.idle_timeout,
        hard_timeout: flow_mod.hard_timeout,
        installed: now,
        match_wire: match_wire.into(),
        actions: flow_mod.actions.as_bytes().into(),
        rules: Vec::new(),
        shadowed: Default::default(),
        past_packets: 0,
        past_bytes: 0,
        counts_since: 0,
    }
}
