//! Follows a packet through the rules of one switch.

use super::passage::{Doubt, Output, Packet, Step, To};
use crate::flows::Flow;
use crate::ids::TenantIndex;
use crate::messages;
use crate::store::Kind;
use crate::switch::map::OwnChange;
use crate::switch::{Switch, Tenant};
use alloc::vec::Vec;
use compile::action_set::in_order;
use compile::egress_group::is_egress_group;
use compile::network::Encapsulation;
use compile::ownership::exactly;
use compile::{Network, Rule, metadata};
use core::cmp::Reverse;
use flowspace::{Field, Key, Match, frame, port_from_v10};
use openflow::nicira::Resubmit;
use openflow::v13::{
    Action, Bucket, GROUP_ANY, GroupMod, GroupModCommand, GroupType, Instruction, OxmField, PortNo,
};
use openflow::{Header, List, v10};

/// The greatest depth of groups and tables that actions send to.
const DEPTH: u32 = 16;
/// The most steps and outputs of one packet on one switch.
const MOST: usize = 512;

/// The search for the path of one packet, and its results so far.
pub(super) struct Run<'a> {
    switch: &'a Switch,
    /// The tenant that owns the packet.
    tenant: Option<TenantIndex>,
    steps: Vec<Step>,
    outputs: Vec<Output>,
    is_cut: bool,
}

/// A packet at one point of its path.
#[derive(Clone)]
struct Moving {
    in_port: u32,
    frame: Vec<u8>,
    metadata: u64,
    /// Whether the last matched rule is Weir's own.
    is_by_own: bool,
    /// Whether the last matched rule is a table-miss entry.
    is_miss: bool,
    if_: Option<Doubt>,
    depth: u32,
}

/// The actions of a matched rule, and its kind.
struct Found<'a> {
    actions: &'a [u8],
    is_own: bool,
    is_miss: bool,
}

/// A rule of the tenant that matches a packet.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    number: u32,
    flow: &'a Flow,
    rule: &'a Rule,
}

impl Moving {
    fn new(packet: &Packet) -> Moving {
        Moving {
            in_port: packet.in_port,
            frame: packet.frame.clone(),
            metadata: 0,
            is_by_own: false,
            is_miss: false,
            if_: None,
            depth: 0,
        }
    }

    fn key(&self) -> Key {
        Key::extract(self.in_port, &self.frame).with(Field::Metadata, self.metadata.into())
    }
}

/// The highest priority of an entry and its rules.
fn highest(flow: &Flow) -> u16 {
    flow.rules.iter().map(|rule| rule.priority).fold(flow.priority, u16::max)
}

impl<'a> Run<'a> {
    pub(super) fn new(switch: &'a Switch, tenant: Option<TenantIndex>) -> Run<'a> {
        Run { switch, tenant, steps: Vec::new(), outputs: Vec::new(), is_cut: false }
    }

    /// Returns steps, outputs, and whether the limit was reached.
    pub(super) fn end(self) -> (Vec<Step>, Vec<Output>, bool) {
        (self.steps, self.outputs, self.is_cut)
    }

    fn state(&self) -> Option<&'a Tenant> {
        self.tenant.map(|at| &self.switch.tenants[at])
    }

    fn network(&self) -> Option<&'a Network> {
        self.state()?.network.as_deref()
    }

    // ---- 1.0

    pub(super) fn table_v10(&mut self, packet: &Packet) {
        let mut packet = Moving::new(packet);
        let Some(found) = self.look_up(0, &packet) else {
            packet.is_miss = true;
            self.steps.push(Step::Missed { table: 0, tenants: self.tenant.map(|_| 0) });
            match self.tenant {
                Some(_) => self.send_to_controllers(&packet),
                None => self.leave(To::Dropped, &packet),
            }
            return;
        };
        (packet.is_by_own, packet.is_miss) = (found.is_own, false);
        for action in List::<v10::Action<'_>>::parse(found.actions).unwrap_or_default() {
            match action {
                v10::Action::Output { port, .. } | v10::Action::Enqueue { port, .. } => {
                    self.output(port_from_v10(port.0), &packet);
                }
                v10::Action::Vendor { .. } | v10::Action::Unknown { .. } => {
                    self.steps.push(Step::Unknown);
                }
                other => frame::apply_v10(&mut packet.frame, &other),
            }
        }
        if self.outputs.is_empty() {
            self.leave(To::Dropped, &packet);
        }
    }

    // ---- 1.3

    pub(super) fn tables_v13(&mut self, packet: &Packet) {
        let mut packet = Moving::new(packet);
        let mut set: Vec<Action<'a>> = Vec::new();
        let mut table = 0;
        loop {
            let Some(found) = self.look_up(table, &packet) else {
                let target = self.switch.target();
                let of_tenants = target.tenant_tables(self.network().is_some());
                // The table behind the tenants' tables delivers packets of networks.
                let tenants = table.checked_sub(target.first_table());
                let tenants = tenants.filter(|table| *table < of_tenants);
                self.steps.push(Step::Missed { table, tenants });
                if !set.is_empty() {
                    self.leave(
                        To::Dropped,
                        &Moving { if_: Some(Doubt::SetOnMiss), ..packet.clone() },
                    );
                    packet.if_ = Some(Doubt::SetOnMiss);
                    self.execute(in_order(set), &mut packet);
                }
                break;
            };
            (packet.is_by_own, packet.is_miss) = (found.is_own, found.is_miss);
            match self.follow(found.actions, &mut packet, &mut set) {
                Next::Table(next) if next > table => table = next,
                Next::Table(_) | Next::End => {
                    self.execute(in_order(set), &mut packet);
                    break;
                }
                Next::Over => return,
            }
        }
        if self.outputs.is_empty() {
            self.leave(To::Dropped, &packet);
        }
    }

    /// Carries out instructions, in the order of the specification (1.3.5, section 5.9).
    fn follow(
        &mut self,
        instructions: &'a [u8],
        packet: &mut Moving,
        set: &mut Vec<Action<'a>>,
    ) -> Next {
        let all = List::<Instruction<'a>>::parse(instructions).unwrap_or_default();
        let meters = all.iter().filter_map(|it| match it {
            Instruction::Meter(meter) => Some(meter),
            _ => None,
        });
        for meter in meters {
            let own = self.state().and_then(|state| state.numbers.meters().of_physical(meter));
            self.steps.push(Step::Meter(own.unwrap_or(meter)));
        }
        for instruction in all {
            if let Instruction::ApplyActions(actions) = instruction
                && !self.execute(actions, packet)
            {
                return Next::Over;
            }
        }
        if all.iter().any(|it| matches!(it, Instruction::ClearActions)) {
            set.clear();
        }
        let mut next = Next::End;
        for instruction in all {
            match instruction {
                Instruction::WriteActions(actions) => set.extend(actions),
                Instruction::WriteMetadata { metadata, mask } => {
                    packet.metadata = packet.metadata & !mask | metadata & mask;
                }
                Instruction::GotoTable(table) => next = Next::Table(table),
                _ => {}
            }
        }
        next
    }

    /// Carries out a list of actions. `false` if the path of the packet ends.
    fn execute<'b>(
        &mut self,
        actions: impl IntoIterator<Item = Action<'b>>,
        packet: &mut Moving,
    ) -> bool {
        for action in actions {
            if self.is_over() {
                return false;
            }
            match action {
                Action::Output { port, .. } => self.output(port.0, packet),
                Action::Group(group) => self.group(group, packet),
                Action::SetField(oxm) if oxm.basic() == Some(OxmField::METADATA) => {
                    packet.metadata = oxm.number().map_or(packet.metadata, |it| it as u64);
                }
                Action::Experimenter { .. } => match Resubmit::of_v13(&action) {
                    Some(resubmit) => self.resubmit(resubmit, packet),
                    None => self.steps.push(Step::Unknown),
                },
                Action::Unknown { .. } | Action::PushPbb(_) | Action::PopPbb => {
                    self.steps.push(Step::Unknown);
                }
                other => {
                    if !frame::apply_v13(&mut packet.frame, &other) {
                        self.leave(To::Expired, packet);
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Carries out the apply-actions of another table, with another ingress port. Then the caller's list continues.
    fn resubmit(&mut self, resubmit: Resubmit, packet: &mut Moving) {
        if packet.depth >= DEPTH {
            return;
        }
        let in_port = core::mem::replace(&mut packet.in_port, port_from_v10(resubmit.in_port));
        let found = self.look_up(resubmit.table, packet);
        packet.in_port = in_port;
        packet.depth += 1;
        let instructions = found.map(|found| List::<Instruction<'_>>::parse(found.actions));
        for instruction in instructions.into_iter().flat_map(Result::unwrap_or_default) {
            if let Instruction::ApplyActions(actions) = instruction {
                self.execute(actions, packet);
            }
        }
        packet.depth -= 1;
    }

    /// Sends copies of the packet to the buckets of the group with this id on the switch.
    fn group(&mut self, physical: u32, packet: &Moving) {
        let Some(at) = self.tenant.filter(|_| packet.depth < DEPTH) else { return };
        let groups = self.switch.numbers(at, Kind::Group);
        let Some(number) = groups.of_physical(physical) else { return };
        let Some(message) = self.switch.group_on_switch(at, number, physical) else { return };
        let Ok(group) = GroupMod::parse(message.get(Header::LEN..).unwrap_or_default()) else {
            return;
        };
        let kind = group.type_;
        let buckets: Vec<Bucket<'_>> = group.buckets.iter().collect();
        if !is_egress_group(number) {
            self.steps.push(Step::Group { group: number, kind, buckets: buckets.len() });
        }
        let (taken, is_certain) = match kind {
            GroupType::FF => self.live(&buckets),
            GroupType::SELECT => {
                // A bucket without a weight is never chosen.
                let weighty: Vec<_> = buckets.iter().filter(|it| it.weight > 0).collect();
                let is_certain = weighty.len() <= 1;
                (weighty, is_certain)
            }
            _ => (buckets.iter().collect(), true),
        };
        for bucket in taken {
            let mut copy = packet.clone();
            copy.depth += 1;
            if !is_certain {
                copy.if_ = Some(Doubt::Group(number));
            }
            let before = self.outputs.len();
            self.execute(in_order(bucket.actions), &mut copy);
            if self.outputs.len() == before && !is_certain {
                self.leave(To::Dropped, &copy);
            }
        }
    }

    /// The live buckets of a fast-failover group, and whether the choice is certain: only the switch knows whether a
    /// watched group is live.
    fn live<'b>(&self, buckets: &'b [Bucket<'b>]) -> (Vec<&'b Bucket<'b>>, bool) {
        let mut taken = Vec::new();
        for bucket in buckets {
            if bucket.watch_group != GROUP_ANY {
                taken.push(bucket);
            } else if bucket.watch_port != PortNo::ANY && self.is_up(bucket.watch_port.0) {
                taken.push(bucket);
                break;
            }
        }
        let is_certain = taken.len() <= 1 && taken.iter().all(|it| it.watch_group == GROUP_ANY);
        (taken, is_certain)
    }

    // ---- Both

    /// The rule for a packet in a table of the switch. Weir searches the tenant's table for entries that match the
    /// packet in the tenant's view. Then only rules of these entries that match the packet in the switch's view count.
    fn look_up(&mut self, table: u8, packet: &Moving) -> Option<Found<'a>> {
        let key = packet.key();
        let own = self.switch.map.infra().iter().filter(|own| own.table == table);
        let own = own.filter(|own| own.match_.matches(&key)).max_by_key(|own| own.priority);
        let candidates = self.candidates(table, packet, &key);
        let best = candidates.iter().max_by_key(|it| it.rule.priority).copied();
        if let Some(own) = own
            && best.is_none_or(|best| best.rule.priority <= own.priority)
        {
            let rule = self.switch.write_own(own, OwnChange::Add).unwrap_or_default();
            self.push(Step::Rule { rule, entry: None, is_ambiguous: false });
            return Some(Found { actions: &own.actions, is_own: true, is_miss: false });
        }
        let best = best?;
        let equals = candidates.iter().filter(|it| it.rule.priority == best.rule.priority);
        let is_ambiguous = { equals }.any(|it| it.rule.actions != best.rule.actions);
        let Candidate { number, flow, rule } = best;
        let state = self.state()?;
        let rule_shown = self.switch.as_installed(state, number, flow, rule).unwrap_or_default();
        let entry = messages::as_written(self.switch.wire, flow);
        self.push(Step::Rule { rule: rule_shown, entry, is_ambiguous });
        let is_miss = flow.priority == 0 && flow.match_.is(&Match::ANY);
        Some(Found { actions: &rule.actions, is_own: false, is_miss })
    }

    fn candidates(&mut self, table: u8, packet: &Moving, key: &Key) -> Vec<Candidate<'a>> {
        let first_table = self.switch.target().first_table();
        let Some(table) = table.checked_sub(first_table) else { return Vec::new() };
        let (Some(state), Some(seen)) = (self.state(), self.seen(packet, key)) else {
            return Vec::new();
        };
        let region = exactly(&seen);
        let (mut found, mut lacking): (Vec<Candidate<'a>>, _) = (Vec::new(), None);
        let mut meeting = state.flows.meeting(table, &region);
        // To parse a rule's match takes longest. No rule counts below the highest priority that matches the packet.
        meeting.sort_by_cached_key(|(_, flow)| Reverse(highest(flow)));
        for (number, flow) in meeting {
            if found.iter().any(|it| it.rule.priority > highest(flow)) {
                break;
            }
            let takes = |rule: &&Rule| self.read(rule).is_some_and(|it| it.matches(key));
            match flow.rules.iter().find(takes) {
                Some(rule) => found.push(Candidate { number, flow, rule }),
                None => lacking = lacking.max(Some((flow.priority, number))),
            }
        }
        let most = found.iter().map(|it| it.flow.priority).max();
        if let Some((priority, number)) = lacking
            && most.is_none_or(|most| priority > most)
        {
            let lacking = state
                .flows
                .get(number)
                .and_then(|flow| messages::as_written(self.switch.wire, flow));
            lacking.into_iter().for_each(|entry| self.push(Step::Uninstalled(entry)));
        }
        found
    }

    /// The packet's headers as the tenant sees them.
    fn seen(&self, packet: &Moving, key: &Key) -> Option<Key> {
        let Some(network) = self.network() else {
            let kept = self.switch.target().metadata_kept(false);
            return Some(key.with(Field::Metadata, u128::from(packet.metadata & !kept)));
        };
        // With metadata, table 0 has written the port to the metadata, and has removed the label.
        let has_metadata = self.switch.target().has_metadata();
        let port = match has_metadata {
            true => metadata::port(packet.metadata),
            false => network.ingress_of(key)?,
        };
        let mut seen = *key;
        if !has_metadata && network.is_labelled(port) {
            let mut bare = packet.frame.clone();
            frame::pop_vlan(&mut bare);
            seen = Key::extract(port, &bare);
        }
        seen.set(Field::InPort, port.into());
        seen.set(Field::Metadata, u128::from(packet.metadata & metadata::OWN));
        Some(seen)
    }

    fn read(&self, rule: &Rule) -> Option<Match> {
        messages::read_match(self.switch.wire, &rule.match_wire)
    }

    fn output(&mut self, port: u32, packet: &Moving) {
        match PortNo(port) {
            PortNo::CONTROLLER if packet.is_by_own => self.leave(To::Weir, packet),
            PortNo::CONTROLLER => self.send_to_controllers(packet),
            PortNo::IN_PORT => self.send(packet.in_port, packet),
            PortNo::ALL | PortNo::FLOOD => {
                let is_flood = port == PortNo::FLOOD.0;
                let ports = self.switch.datapath.ports().iter();
                let meant = ports.filter(|(number, it)| {
                    **number != packet.in_port && !(is_flood && it.no_flood)
                });
                let meant: Vec<u32> = meant.map(|(number, _)| *number).collect();
                meant.into_iter().for_each(|number| self.send(number, packet));
            }
            PortNo::NORMAL => self.leave(To::Normal, packet),
            PortNo::TABLE | PortNo::ANY => {}
            // A packet goes back to its ingress port only by IN_PORT (1.0, section 5.3.3; 1.3, section 5.12).
            PortNo(number) if number == packet.in_port => {}
            PortNo(number) => self.send(number, packet),
        }
    }

    fn send(&mut self, number: u32, packet: &Moving) {
        let (is_up, seen_as) = (self.is_up(number), self.seen_as(number, packet));
        self.leave(To::Port { number, is_up, seen_as }, packet);
    }

    /// Sends the packet to the tenant's controllers, as a PACKET_IN.
    fn send_to_controllers(&mut self, packet: &Moving) {
        let connected = self.state().map_or(0, |state| state.controllers.len());
        let is_miss = packet.is_miss;
        let port = self.network().and_then(|network| {
            let seen = self.seen(packet, &packet.key())?;
            Some((network, seen.get(Field::InPort) as u32))
        });
        let is_unwanted =
            port.is_some_and(|(network, port)| network.sends_no_packet_in(port, is_miss));
        self.leave(To::Controllers { connected, is_miss, is_unwanted }, packet);
    }

    fn is_up(&self, number: u32) -> bool {
        self.switch.port_state(number).is_some_and(|state| state.is_up)
    }

    /// The port of the tenant's network by which a packet leaves.
    fn seen_as(&self, number: u32, packet: &Moving) -> Option<u32> {
        let network = self.network()?;
        let vid = packet.key().get(Field::VlanVid) & 0xfff;
        let leaves = |port: &&u32| {
            network.egress_back(**port).is_some_and(|egress| {
                egress.port == number
                    && match egress.encapsulation {
                        Encapsulation::None => true,
                        Encapsulation::Label { label, .. } => u128::from(label.get()) == vid,
                    }
            })
        };
        network.ports().keys().find(leaves).copied()
    }

    fn leave(&mut self, to: To, packet: &Moving) {
        if self.is_over() {
            return;
        }
        self.outputs.push(Output { to, frame: packet.frame.clone(), if_: packet.if_ });
    }

    fn push(&mut self, step: Step) {
        if !self.is_over() {
            self.steps.push(step);
        }
    }

    fn is_over(&mut self) -> bool {
        self.is_cut |= self.steps.len() + self.outputs.len() >= MOST;
        self.is_cut
    }
}

/// What follows after a table.
enum Next {
    Table(u8),
    End,
    /// Nothing: the path of the packet ends.
    Over,
}

impl Switch {
    /// The GROUP_MOD that would add the group with this id on the switch: a tenant's group, or one of its instances.
    fn group_on_switch(&self, tenant: TenantIndex, number: u32, physical: u32) -> Option<Vec<u8>> {
        let known = self.numbers(tenant, Kind::Group).any(number)?;
        let group = known.group()?;
        let (variant, id) = known.instances.iter().find(|(_, id)| *id == physical)?;
        let network = self.tenants[tenant].network.as_deref();
        let command = GroupModCommand::ADD;
        self.write_instance(tenant, network, &group, variant, id, command).ok()
    }
}
