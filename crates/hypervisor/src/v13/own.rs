//! Table 0, the hypervisor's own: it says whose a packet is, and sends it to that tenant's tables.

use super::{METADATA_TENANT, metadata_of};
use crate::cookie::Cookie;
use crate::lldp;
use crate::pending::Awaits;
use crate::queue::Class;
use crate::switch::{Held, Switch};
use crate::time::Instant;
use alloc::vec::Vec;
use flowspace::{Field, Match};
use openflow::v13::{
    Action, CONTROLLER_NO_BUFFER, FlowMod, FlowModCommand, Instruction, MatchBuf, PortNo,
};
use openflow::{List, ListBuf};

/// Above all entries for tenants: link probes come to the hypervisor first.
const PROBES: u16 = u16::MAX;
/// The highest priority of entries for tenants.
const HIGHEST: u16 = u16::MAX - 16;

/// An entry of table 0.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Own {
    match_: Match,
    priority: u16,
    instructions: Vec<u8>,
}

impl Switch {
    /// What table 0 has to hold: the ranks of flowspace entries as priorities, as few as needed.
    fn wanted_own(&self) -> Vec<Own> {
        let probe = Match::exact(Field::DlType, u128::from(lldp::ETHERTYPE));
        let mut to_us = ListBuf::<Action<'static>>::new();
        to_us.push(Action::Output { port: PortNo::CONTROLLER, max_len: CONTROLLER_NO_BUFFER });
        let mut instructions = Vec::new();
        Instruction::ApplyActions(to_us.as_list()).write(&mut instructions);
        let mut wanted = Vec::from([Own { match_: probe, priority: PROBES, instructions }]);
        let mut priority = HIGHEST;
        let mut level: Vec<usize> = Vec::new();
        let ranked = self.view.ranked();
        for (rank, (match_, tenant)) in ranked.iter().enumerate() {
            // A new level begins where an entry overlaps one of another tenant in the level before it.
            let collides = level
                .iter()
                .any(|&other| ranked[other].1 != *tenant && ranked[other].0.overlaps(match_));
            if collides {
                priority = priority.saturating_sub(1);
                level.clear();
            }
            level.push(rank);
            let id = self.tenants[tenant.0 as usize].id;
            let mut instructions = Vec::new();
            Instruction::WriteMetadata { metadata: metadata_of(id), mask: METADATA_TENANT }
                .write(&mut instructions);
            Instruction::GotoTable(1).write(&mut instructions);
            wanted.push(Own { match_: *match_, priority, instructions });
        }
        wanted
    }

    /// After a new connection: what is held is kept, what is missing is installed, what is no longer wanted goes.
    /// Gives the numbers of each.
    pub(crate) fn reconcile_own(&mut self, held: &[&Held], now: Instant) -> (usize, usize, usize) {
        self.own = held
            .iter()
            .filter(|held| held.table == 0)
            .map(|held| Own {
                match_: held.match_,
                priority: held.priority,
                instructions: held.actions.clone(),
            })
            .collect();
        self.bring_own(now)
    }

    /// After a new policy.
    pub(crate) fn resync_own(&mut self, now: Instant) {
        self.resync_numbers(now);
        self.bring_own(now);
    }

    fn bring_own(&mut self, now: Instant) -> (usize, usize, usize) {
        let wanted = self.wanted_own();
        let held = core::mem::take(&mut self.own);
        let same = |a: &Own, b: &Own| a.match_ == b.match_ && a.priority == b.priority;
        let (mut kept, mut installed, mut removed) = (0, 0, 0);
        for own in &held {
            if !wanted.iter().any(|w| same(w, own)) {
                self.send_own_entry(own, FlowModCommand::DELETE_STRICT, now);
                removed += 1;
            }
        }
        for own in &wanted {
            let there = held.iter().find(|h| same(h, own));
            if there.is_some_and(|h| super::actions::same(&h.instructions, &own.instructions)) {
                kept += 1;
            } else {
                self.send_own_entry(own, FlowModCommand::ADD, now);
                installed += 1;
            }
        }
        self.own = wanted;
        (kept, installed, removed)
    }

    fn send_own_entry(&mut self, own: &Own, command: FlowModCommand, now: Instant) {
        let mut fields = MatchBuf::new();
        let mut message = Vec::new();
        let instructions = match command {
            FlowModCommand::ADD => List::parse(&own.instructions).unwrap_or_default(),
            _ => List::EMPTY,
        };
        let written = own.match_.to_v13(&mut fields).is_ok()
            && FlowMod {
                cookie: Cookie { tenant: Cookie::OWN, number: 0 }.to_wire(),
                table_id: 0,
                command,
                priority: own.priority,
                match_: fields.as_match(),
                instructions,
                ..FlowMod::default()
            }
            .write_message(0, &mut message)
            .is_ok();
        if written {
            self.send_own(Awaits::Nothing, Class::Modification, &message, now);
        } else {
            // An entry that 1.3 cannot say selects nothing here; `weir check` tells.
            self.counters.unexpected += 1;
        }
    }
}
