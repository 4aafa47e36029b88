//! The tables, groups, meters and ports of the switch, and the commands that change them in both
//! versions.
//!
//! Errors have the codes of 1.3 here; [`refusal`](crate::refusal) translates them to codes of 1.0.
//! The module `pipeline.rs` processes packets.

use std::collections::BTreeMap;
use std::sync::Arc;

use flowspace::Match;
use hashbrown::HashMap;
use openflow::ErrorCode;
use openflow::error::v13 as code;

use crate::action::{ANY_GROUP, Action, Instructions, port};
use crate::buffers::{BufferError, Buffers};
use crate::effects::{Effects, Event, PortReason};
use crate::groups::{Group, Groups};
use crate::meters::{Meter, Meters};
use crate::ports::Port;
use crate::table::{Flow, FlowTable, Removed, flags};

/// The table id that means all tables.
pub(crate) const ALL_TABLES: u8 = 0xff;

/// The state that packets and commands read and change.
pub(crate) struct Datapath {
    pub(crate) ports: BTreeMap<u32, Port>,
    pub(crate) tables: Vec<FlowTable>,
    pub(crate) groups: Groups,
    pub(crate) meters: Meters,
    pub(crate) buffers: Buffers,
    /// The port at which NORMAL saw each station, by VLAN and Ethernet address.
    pub(crate) stations: HashMap<(u16, u64), u32>,
    /// The handling of fragments (`OFPC_FRAG_*`), one value for all controllers.
    pub(crate) fragments: u16,
    /// The planted faults that change the processing of packets.
    pub(crate) drops_changed_packets: bool,
    pub(crate) runs_set_on_miss: bool,
    pub(crate) ignores_queues: bool,
}

/// A FLOW_MOD of version 1.0 or 1.3.
#[derive(Clone, Debug)]
pub(crate) struct FlowRequest {
    pub(crate) command: Command,
    pub(crate) table: u8,
    pub(crate) match_: Match,
    pub(crate) priority: u16,
    pub(crate) cookie: u64,
    pub(crate) cookie_mask: u64,
    pub(crate) idle_timeout: u16,
    pub(crate) hard_timeout: u16,
    pub(crate) flags: u16,
    pub(crate) out_port: u32,
    pub(crate) out_group: u32,
    pub(crate) buffer: Option<u32>,
    pub(crate) instructions: Instructions,
    /// 1.0: MODIFY adds an entry if no entry matches, and sets the cookie of entries that match.
    pub(crate) modify_adds: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Add,
    Modify,
    ModifyStrict,
    Delete,
    DeleteStrict,
}

impl Command {
    pub(crate) fn is_modify(self) -> bool {
        matches!(self, Command::Modify | Command::ModifyStrict)
    }
}

/// Selects the entries of a command or a statistics request.
pub(crate) struct Filter {
    pub(crate) match_: Match,
    /// The priority of a strict command. An entry must have this priority and exactly the same
    /// match.
    pub(crate) strict: Option<u16>,
    pub(crate) cookie: u64,
    pub(crate) cookie_mask: u64,
    pub(crate) out_port: u32,
    pub(crate) out_group: u32,
}

impl Filter {
    pub(crate) fn accepts(&self, flow: &Flow) -> bool {
        let in_match = match self.strict {
            Some(priority) => flow.priority == priority && flow.match_ == self.match_,
            None => self.match_.contains(&flow.match_),
        };
        in_match
            && flow.cookie & self.cookie_mask == self.cookie & self.cookie_mask
            && (self.out_port == port::ANY || flow.instructions.outputs_to(self.out_port))
            && (self.out_group == ANY_GROUP || flow.instructions.uses_group(self.out_group))
    }
}

impl FlowRequest {
    /// The filter of a MODIFY or DELETE. MODIFY ignores `out_port` and `out_group`.
    fn filter(&self) -> Filter {
        let strict = matches!(self.command, Command::ModifyStrict | Command::DeleteStrict);
        let deletes = matches!(self.command, Command::Delete | Command::DeleteStrict);
        Filter {
            match_: self.match_,
            strict: strict.then_some(self.priority),
            cookie: self.cookie,
            cookie_mask: self.cookie_mask,
            out_port: if deletes { self.out_port } else { port::ANY },
            out_group: if deletes { self.out_group } else { ANY_GROUP },
        }
    }
}

impl Datapath {
    /// The indexes of the tables that a table id names: one table, or all tables.
    pub(crate) fn tables_named(&self, id: u8) -> std::ops::Range<usize> {
        match usize::from(id) {
            _ if id == ALL_TABLES => 0..self.tables.len(),
            index if index < self.tables.len() => index..index + 1,
            _ => 0..0,
        }
    }

    /// Executes a FLOW_MOD, and sends the packet of its buffer through the tables.
    pub(crate) fn flow_mod(
        &mut self,
        now: u64,
        request: &FlowRequest,
        effects: &mut Effects,
    ) -> Result<(), ErrorCode> {
        let deletes = matches!(request.command, Command::Delete | Command::DeleteStrict);
        if !deletes {
            self.check_references(&request.instructions)?;
        }
        match request.command {
            Command::Add => self.add(now, request)?,
            Command::Modify | Command::ModifyStrict => self.modify(now, request)?,
            Command::Delete | Command::DeleteStrict => self.delete(now, request, effects),
        }
        match request.buffer {
            Some(id) if !deletes => self.release_buffer(now, id, effects),
            _ => Ok(()),
        }
    }

    /// Checks that the groups and meters that an entry uses exist.
    pub(crate) fn check_references(&self, instructions: &Instructions) -> Result<(), ErrorCode> {
        if instructions.meter.is_some_and(|id| !self.meters.contains_key(&id)) {
            return Err(code::METER_MOD_FAILED_INVALID_METER);
        }
        self.check_groups(instructions.actions())
    }

    pub(crate) fn check_groups<'a>(
        &self,
        mut actions: impl Iterator<Item = &'a Action>,
    ) -> Result<(), ErrorCode> {
        let is_missing = |action: &Action| match action {
            Action::Group(id) => self.groups.get(*id).is_none(),
            _ => false,
        };
        if actions.any(is_missing) { Err(code::BAD_ACTION_BAD_OUT_GROUP) } else { Ok(()) }
    }

    fn add(&mut self, now: u64, request: &FlowRequest) -> Result<(), ErrorCode> {
        let Some(table) = self.tables.get_mut(usize::from(request.table)) else {
            return Err(code::FLOW_MOD_FAILED_BAD_TABLE_ID);
        };
        let counted = match table.find_strict(&request.match_, request.priority) {
            Some(old) if request.flags & flags::RESET_COUNTS == 0 => Some((old.packets, old.bytes)),
            Some(_) => Some((0, 0)),
            None => None,
        };
        if counted.is_none() {
            if request.flags & flags::CHECK_OVERLAP != 0
                && table.overlaps(&request.match_, request.priority)
            {
                return Err(code::FLOW_MOD_FAILED_OVERLAP);
            }
            if table.is_full() {
                return Err(code::FLOW_MOD_FAILED_TABLE_FULL);
            }
        }
        let (packets, bytes) = counted.unwrap_or_default();
        table.insert(Flow {
            match_: request.match_,
            priority: request.priority,
            cookie: request.cookie,
            idle_timeout: request.idle_timeout,
            hard_timeout: request.hard_timeout,
            // These flags ask for one action of the switch. They are not stored in the entry.
            flags: request.flags & !(flags::CHECK_OVERLAP | flags::RESET_COUNTS),
            instructions: Arc::new(request.instructions.clone()),
            created: now,
            used: now,
            modified: now,
            packets,
            bytes,
        });
        Ok(())
    }

    fn modify(&mut self, now: u64, request: &FlowRequest) -> Result<(), ErrorCode> {
        let filter = request.filter();
        let instructions = Arc::new(request.instructions.clone());
        let mut modified = 0;
        for index in self.tables_named(request.table) {
            let Some(table) = self.tables.get_mut(index) else { continue };
            modified += table.modify(
                |flow| filter.accepts(flow),
                |flow| {
                    flow.instructions = Arc::clone(&instructions);
                    flow.modified = now;
                    if request.modify_adds {
                        flow.cookie = request.cookie;
                    }
                    if request.flags & flags::RESET_COUNTS != 0 {
                        (flow.packets, flow.bytes) = (0, 0);
                    }
                },
            );
        }
        if modified == 0 && request.modify_adds { self.add(now, request) } else { Ok(()) }
    }

    fn delete(&mut self, now: u64, request: &FlowRequest, effects: &mut Effects) {
        let filter = request.filter();
        let named = self.tables_named(request.table);
        self.remove_flows(now, named, |flow| filter.accepts(flow), Removed::Delete, effects);
    }

    fn remove_flows(
        &mut self,
        now: u64,
        tables: std::ops::Range<usize>,
        wanted: impl Fn(&Flow) -> bool,
        reason: Removed,
        effects: &mut Effects,
    ) {
        for index in tables {
            let Some(table) = self.tables.get_mut(index) else { continue };
            table.remove(&wanted, |flow| announce(effects, now, index, flow, reason));
        }
    }

    /// Removes the entries that reached a timeout.
    pub(crate) fn expire(&mut self, now: u64, effects: &mut Effects) {
        for (index, table) in self.tables.iter_mut().enumerate() {
            table.expire(now, |flow, reason| announce(effects, now, index, flow, reason));
        }
    }

    fn release_buffer(
        &mut self,
        now: u64,
        id: u32,
        effects: &mut Effects,
    ) -> Result<(), ErrorCode> {
        let (in_port, frame) = self.take_buffer(id)?;
        self.resubmit(now, in_port, frame, effects);
        Ok(())
    }

    pub(crate) fn take_buffer(&mut self, id: u32) -> Result<(u32, Vec<u8>), ErrorCode> {
        self.buffers.take(id).map_err(|error| match error {
            BufferError::Unknown => code::BAD_REQUEST_BUFFER_UNKNOWN,
            BufferError::Empty => code::BAD_REQUEST_BUFFER_EMPTY,
        })
    }

    /// Sets the configuration bits of a port that `mask` selects.
    pub(crate) fn configure_port(
        &mut self,
        number: u32,
        hw_addr: [u8; 6],
        config: u32,
        mask: u32,
        effects: &mut Effects,
    ) -> Result<(), ErrorCode> {
        let port = self.ports.get_mut(&number).ok_or(code::PORT_MOD_FAILED_BAD_PORT)?;
        if port.made.hw_addr != hw_addr {
            return Err(code::PORT_MOD_FAILED_BAD_HW_ADDR);
        }
        let configured = port.config & !mask | config & mask;
        if configured != port.config {
            port.config = configured;
            let port = port.clone();
            effects.events.push(Event::PortStatus { reason: PortReason::Modify, port });
        }
        Ok(())
    }

    /// Adds a group.
    pub(crate) fn group_add(&mut self, id: u32, group: Group) -> Result<(), ErrorCode> {
        if self.groups.get(id).is_some() {
            return Err(code::GROUP_MOD_FAILED_GROUP_EXISTS);
        }
        self.group_check(id, &group)?;
        if self.groups.len() >= MAX_GROUPS {
            return Err(code::GROUP_MOD_FAILED_OUT_OF_GROUPS);
        }
        self.groups.insert(id, group);
        Ok(())
    }

    /// Replaces a group's type and buckets.
    pub(crate) fn group_modify(&mut self, id: u32, group: Group) -> Result<(), ErrorCode> {
        let Some(old) = self.groups.get(id) else {
            return Err(code::GROUP_MOD_FAILED_UNKNOWN_GROUP);
        };
        let created = old.created;
        self.group_check(id, &group)?;
        self.groups.insert(id, Group { created, ..group });
        Ok(())
    }

    fn group_check(&self, id: u32, group: &Group) -> Result<(), ErrorCode> {
        if group.buckets.len() > MAX_BUCKETS {
            return Err(code::GROUP_MOD_FAILED_OUT_OF_BUCKETS);
        }
        if self.groups.would_loop(id, &group.buckets) {
            return Err(code::GROUP_MOD_FAILED_LOOP);
        }
        self.check_groups(group.buckets.iter().flat_map(|bucket| &bucket.actions))
    }

    /// Deletes a group and the entries that use the group. A missing group is no error.
    pub(crate) fn group_delete(
        &mut self,
        now: u64,
        id: u32,
        effects: &mut Effects,
    ) -> Result<(), ErrorCode> {
        if self.groups.references_to(id) > 0 {
            return Err(code::GROUP_MOD_FAILED_CHAINED_GROUP);
        }
        if self.groups.remove(id) {
            let uses = |flow: &Flow| flow.instructions.uses_group(id);
            self.remove_flows(now, 0..self.tables.len(), uses, Removed::GroupDelete, effects);
        }
        Ok(())
    }

    /// Deletes all groups and the entries that use a group.
    pub(crate) fn groups_clear(&mut self, now: u64, effects: &mut Effects) {
        self.groups = Groups::default();
        let uses = |flow: &Flow| {
            flow.instructions.actions().any(|action| matches!(action, Action::Group(_)))
        };
        self.remove_flows(now, 0..self.tables.len(), uses, Removed::GroupDelete, effects);
    }

    /// Adds a meter.
    pub(crate) fn meter_add(&mut self, id: u32, meter: Meter) -> Result<(), ErrorCode> {
        if self.meters.contains_key(&id) {
            return Err(code::METER_MOD_FAILED_METER_EXISTS);
        }
        if self.meters.len() >= MAX_METERS {
            return Err(code::METER_MOD_FAILED_OUT_OF_METERS);
        }
        self.meters.insert(id, meter);
        Ok(())
    }

    /// Replaces a meter's flags and bands.
    pub(crate) fn meter_modify(&mut self, id: u32, meter: Meter) -> Result<(), ErrorCode> {
        match self.meters.get_mut(&id) {
            None => Err(code::METER_MOD_FAILED_UNKNOWN_METER),
            Some(old) => {
                (old.flags, old.bands) = (meter.flags, meter.bands);
                Ok(())
            }
        }
    }

    /// Deletes one meter or all meters, and the entries that use them. A missing meter is no error.
    pub(crate) fn meter_delete(&mut self, now: u64, id: Option<u32>, effects: &mut Effects) {
        let gone: Vec<u32> = match id {
            Some(id) => self.meters.remove(&id).map(|_| id).into_iter().collect(),
            None => std::mem::take(&mut self.meters).into_keys().collect(),
        };
        let uses = |flow: &Flow| flow.instructions.meter.is_some_and(|id| gone.contains(&id));
        self.remove_flows(now, 0..self.tables.len(), uses, Removed::Delete, effects);
    }

    /// The number of entries that use a meter.
    pub(crate) fn meter_users(&self, id: u32) -> usize {
        let flows = self.tables.iter().flat_map(FlowTable::iter);
        flows.filter(|flow| flow.instructions.meter == Some(id)).count()
    }

    /// The number of entries and groups that use a group.
    pub(crate) fn group_users(&self, id: u32) -> usize {
        let flows = self.tables.iter().flat_map(FlowTable::iter);
        flows.filter(|flow| flow.instructions.uses_group(id)).count()
            + self.groups.references_to(id)
    }
}

/// The limits that the switch reports in GROUP_FEATURES and METER_FEATURES.
pub(crate) const MAX_GROUPS: usize = 4096;
pub(crate) const MAX_BUCKETS: usize = 256;
pub(crate) const MAX_METERS: usize = 4096;
pub(crate) const MAX_BANDS: usize = 8;

fn announce(effects: &mut Effects, at: u64, table: usize, flow: Flow, reason: Removed) {
    if flow.flags & flags::SEND_FLOW_REM != 0 {
        effects.events.push(Event::FlowRemoved { table: table as u8, flow, reason, at });
    }
}
