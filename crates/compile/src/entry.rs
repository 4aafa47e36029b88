//! One entry of a tenant becomes rules: the central function of the compiler.
//!
//! ```text
//!   the tenant says     dl_dst=H  actions=output:10   (port 10 is a link that leaves at physical port 5 with label 2001;
//!                                                      port 1 is the whole physical port 3; port 11 receives at 6 with label 2107)
//!   1.3, one rule       table 1  metadata=red, dl_dst=H          push_vlan, set_vlan 2001, output 5, pop_vlan
//!   1.0, per ingress    in_port=3, no VLAN tag, dl_dst=H         set_vlan 2001, output 5
//!                       in_port=6, dl_vlan=2107, dl_dst=H        set_vlan 2001, output 5
//! ```
//! On 1.3 table 0 has written the tenant and the virtual ingress port of a packet to the metadata, and has removed the
//! label. So an entry is one rule, and a match on IN_PORT becomes a match on the metadata. If the result of a list
//! depends on the ingress port, the compilation of the list [stops](Stop), and the entry becomes one rule per ingress
//! port, or per physical ingress port.
//!
//! On 1.0 there is one table and no metadata. So an entry is one rule for each ingress: for each flowspace entry of the
//! tenant in a slice, for each virtual port in a network. In a network a packet has its label in the table, so the
//! label is a part of the match.

use crate::action_set::{Program, sent_by};
use crate::class::{PacketClass, Vlan};
use crate::context::{Context, Slice, Space};
use crate::delivery::Delivery;
use crate::group;
use crate::list::{ListWriter, check_set};
use crate::metadata;
use crate::network::{Incoming, Ingress, IngressPort, Network, Stop, Written, untagged};
use crate::packet_in_len;
use crate::refusal::{Reason, Refused};
use crate::rule::{Budget, Rule};
use crate::slice::{self, Packets};
use crate::wire::{Actions, in_port_of};
use alloc::sync::Arc;
use alloc::vec::Vec;
use flowspace::{Field, Match};
use hashbrown::HashSet;
use openflow::v10::Wildcards;
use openflow::v13::{self, Instruction, MatchBuf, PortNo};
use openflow::{Encode, List, error, v10};

/// An entry as its tenant wrote it.
#[derive(Clone, Copy, Debug)]
pub struct EntrySpec<'a> {
    /// The tenant's table; 0 on OpenFlow 1.0.
    pub table: u8,
    /// The tenant's priority.
    pub priority: u16,
    /// The tenant's match, normalized.
    pub match_: &'a Match,
    /// Actions (1.0) or instructions (1.3).
    pub actions: &'a [u8],
}

/// The rules of an entry. In a network there may be none: the packets enter on another switch, or the link has no path.
/// The compiler also refuses an entry that would be impossible with all ports of the network in use, because ports can
/// come into use again.
pub fn compile(cx: &Context<'_>, entry: &EntrySpec<'_>) -> Result<Vec<Rule>, Refused> {
    let has_metadata = cx.target.has_metadata();
    match cx.space {
        Space::Slice(slice) if has_metadata => slice_rule(cx, slice, entry, None),
        Space::Slice(slice) => slice_rules(cx, slice, entry),
        Space::Network(network) => {
            if let Some(open) = network.open() {
                compile(&cx.within(open), entry)?;
            }
            match has_metadata {
                true => network_rules(cx, network, entry),
                false => network_rules_by_port(cx, network, entry),
            }
        }
    }
}

/// The rules of an entry in a slice of 1.3 of which only the instructions change: the new rule has the match of the
/// installed rule.
pub fn compile_like(
    cx: &Context<'_>,
    entry: &EntrySpec<'_>,
    standing: &[Rule],
) -> Result<Vec<Rule>, Refused> {
    match (cx.space, standing) {
        (Space::Slice(slice), [rule]) if cx.target.has_metadata() => {
            slice_rule(cx, slice, entry, Some(&rule.match_wire))
        }
        _ => compile(cx, entry),
    }
}

/// The priority of an entry of 1.0 on the switch: an entry without wildcards has the highest priority, whatever
/// priority field the entry has (specification section 3.4). A controller's match for one untagged packet has no
/// wildcard bit either. But untagged packets have no VLAN priority, so Weir writes the match to the switch with the
/// VLAN priority as a wildcard.
pub fn priority_v10(match_: &v10::Match, said: u16) -> u16 {
    if match_.wildcards.intersects(Wildcards::ALL) { said } else { u16::MAX }
}

// ---- Slices

/// 1.3: one rule.
fn slice_rule(
    cx: &Context<'_>,
    slice: Slice<'_>,
    entry: &EntrySpec<'_>,
    match_wire: Option<&Arc<[u8]>>,
) -> Result<Vec<Rule>, Refused> {
    if !slice.ownership.may_write(cx.tenant) {
        return Err(Reason::ReadOnly.with(error::v13::FLOW_MOD_FAILED_EPERM));
    }
    let mut out = Vec::with_capacity(ROOM.max(entry.actions.len()));
    slice_instructions(cx, slice, entry, &mut out)?;
    let actions = out.as_slice().into();
    let match_wire: Arc<[u8]> = match match_wire {
        Some(wire) => Arc::clone(wire),
        None => written(&slice_match(cx, entry.match_)?, out),
    };
    let rule = Rule { match_wire, priority: entry.priority, actions };
    Budget::default().add(&rule, cx.target.wire)?;
    Ok(Vec::from([rule]))
}

/// Appends the instructions of an entry in a slice of 1.3.
fn slice_instructions(
    cx: &Context<'_>,
    slice: Slice<'_>,
    entry: &EntrySpec<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    let instructions = instructions(cx, entry)?;
    for instruction in instructions {
        match instruction {
            Instruction::ApplyActions(list) => {
                let start = begin_actions(Instruction::ApplyActions(List::EMPTY), out);
                let packets = Packets::Matching(entry.match_);
                slice::list(cx, slice, packets, Actions::V13(list), out)?;
                end_actions(start, out);
            }
            Instruction::WriteActions(list) => {
                let start = begin_actions(Instruction::WriteActions(List::EMPTY), out);
                slice::set(cx, slice, list, out)?;
                end_actions(start, out);
            }
            other => plain_instruction(cx, entry.table, other, out)?,
        }
    }
    Ok(())
}

/// Appends an instruction without actions; the caller appends the actions. Returns the place of the instruction.
fn begin_actions(instruction: Instruction<'_>, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    instruction.write(out);
    start
}

/// Sets the length of the instruction at this place, whose actions all follow. An instruction that is too long for the
/// length field makes a rule that is too long, which the budget refuses.
fn end_actions(start: usize, out: &mut [u8]) {
    let length = u16::try_from(out.len() - start).unwrap_or(u16::MAX);
    if let Some(field) = out.get_mut(start + 2..start + 4) {
        field.copy_from_slice(&length.to_be_bytes());
    }
}

/// A match of a slice, with the tenant's number in the metadata. On a big switch only one tenant has entries, and the
/// members write the tenant's number.
fn slice_match(cx: &Context<'_>, match_: &Match) -> Result<MatchBuf, Refused> {
    let (value, mask) = match_.get(Field::Metadata);
    let match_ = match cx.target.is_joined {
        true => *match_,
        false => {
            let own = u128::from(metadata::of_tenant(cx.id));
            let mask = mask | u128::from(metadata::TENANT);
            match_.with_masked(Field::Metadata, value | own, mask)
        }
    };
    let mut out = MatchBuf::new();
    match_.to_v13(&mut out).map_err(|_| error::v13::BAD_MATCH_BAD_WILDCARDS)?;
    Ok(out)
}

/// 1.0: one rule for each flowspace entry that the entry overlaps. If a flowspace entry of another tenant ranks higher,
/// the packets in it belong to the other tenant. OpenFlow 1.0 cannot exclude packets from a match, so an entry that
/// would match these packets is refused.
fn slice_rules(
    cx: &Context<'_>,
    slice: Slice<'_>,
    entry: &EntrySpec<'_>,
) -> Result<Vec<Rule>, Refused> {
    use error::v10::FLOW_MOD_FAILED_EPERM as NOT_PERMITTED;
    let actions = cx.target.wire.actions(entry.actions)?;
    let space = slice.ownership.space(cx.tenant).ok_or(NOT_PERMITTED)?;
    let mut rules = Rules::default();
    for own in &space.write {
        let Some(region) = own.match_.intersect(entry.match_) else { continue };
        if own.contested && !slice.ownership.wins_everywhere(cx.tenant, &region) {
            return Err(Reason::Contested.with(NOT_PERMITTED));
        }
        rules.add(cx, entry, &region, false, || {
            let mut out = Vec::new();
            slice::list(cx, slice, Packets::Regions(&[region]), actions, &mut out)?;
            Ok(out)
        })?;
    }
    match rules.rules.is_empty() {
        true => Err(NOT_PERMITTED.into()),
        false => Ok(rules.rules),
    }
}

// ---- Networks

/// 1.3: one rule, or one per ingress port.
fn network_rules(
    cx: &Context<'_>,
    network: &Network,
    entry: &EntrySpec<'_>,
) -> Result<Vec<Rule>, Refused> {
    if entry.table >= cx.tables() {
        // The tenant added this entry when the tenant had a slice.
        return Err(error::v13::FLOW_MOD_FAILED_BAD_TABLE_ID.into());
    }
    let budget = Budget::default();
    let rules = |ingress| {
        let rule = |match_: &Match| {
            let rule = network_rule(cx, network, entry, match_, ingress)?;
            budget.add(&rule, cx.target.wire)?;
            Ok(rule)
        };
        by_vlan(entry.match_, &rule)
    };
    if let Some(port) = in_port_of(entry.match_) {
        if !network.has_port(port) {
            return Err(Reason::InPort.of(port, error::v13::BAD_MATCH_BAD_VALUE));
        }
        // Packets enter by ports of other members on those members.
        return match network.is_ingress(port) {
            true => by_ingress(network, port, &rules).map_err(Stop::refusal),
            false => Ok(Vec::new()),
        };
    }
    match rules(Ingress::Any) {
        Err(Stop::ByIngress) => {
            let mut all = Vec::new();
            for port in network.ingress_ports() {
                all.extend(by_ingress(network, port, &rules).map_err(Stop::refusal)?);
            }
            // Packets that a controller sends into the tables need a rule, too; these packets have no ingress port.
            match rules(Ingress::Controller) {
                Err(Stop::Refused(refused))
                    if refused.code() == error::v13::BAD_ACTION_BAD_OUT_PORT => {}
                sent => all.extend(sent.map_err(Stop::refusal)?),
            }
            Ok(all)
        }
        rules => rules.map_err(Stop::refusal),
    }
}

/// The rules for the packets of one ingress port: one rule for all, or one for each physical ingress port.
fn by_ingress(
    network: &Network,
    port: u32,
    rules: &impl Fn(Ingress) -> Written<Vec<Rule>>,
) -> Written<Vec<Rule>> {
    match rules(Ingress::Port(port)) {
        Err(Stop::ByIngress) => {
            let mut all = Vec::new();
            for ingress in network.received_at(port) {
                all.extend(rules(Ingress::At(ingress))?);
            }
            Ok(all)
        }
        rules => rules,
    }
}

/// The rule for the packets of a match: for all packets, or for untagged packets only. Then tagged packets do not match
/// the rule.
fn by_vlan(match_: &Match, rule: &impl Fn(&Match) -> Written<Rule>) -> Written<Vec<Rule>> {
    match rule(match_) {
        Err(Stop::ByVlan) => untagged(match_).map(|part| rule(&part)).into_iter().collect(),
        whole => whole.map(|rule| Vec::from([rule])),
    }
}

/// The rule for the packets of an entry that match `match_` and have this ingress.
fn network_rule(
    cx: &Context<'_>,
    network: &Network,
    entry: &EntrySpec<'_>,
    match_: &Match,
    ingress: Ingress,
) -> Written<Rule> {
    let instructions = instructions(cx, entry)?;
    let class = PacketClass::of_match(ingress, match_);
    // In the first table the action set of a packet is empty.
    let is_empty = entry.table == 0;
    let program = Program::new(instructions);
    let whole = program.as_list(is_empty);
    let lists: Vec<List<'_, v13::Action<'_>>> = match &whole {
        Some(whole) => Vec::from([cx.target.wire.list(whole)?]),
        None => applied(instructions).collect(),
    };
    let leaves_set = whole.is_none() && program.written.is_some();
    let last_table = cx.target.delivery_table();
    let delivery =
        Delivery::of(network, &class, &program, &lists, is_empty, leaves_set, last_table);
    let is_delivered_later = delivery.is_some();
    let (at_once, later) = match delivery {
        Some(delivery) => (delivery.at_once, delivery.later),
        None => (lists.iter().map(|list| list.as_bytes().to_vec()).collect(), None),
    };
    let mut at_once = at_once.iter();
    let mut apply = |out: &mut Vec<u8>| -> Written {
        let list = at_once.next().map(Vec::as_slice).unwrap_or_default();
        let mut actions = Vec::new();
        ListWriter::new(cx, network, class.clone(), &mut actions)
            .delivering_later(is_delivered_later)
            .actions(Actions::V13(cx.target.wire.list(list)?))?;
        Instruction::ApplyActions(cx.target.wire.list(&actions)?).write(out);
        Ok(())
    };
    let mut out = Vec::with_capacity(ROOM);
    if whole.is_some() {
        apply(&mut out)?;
    }
    for instruction in instructions {
        match instruction {
            Instruction::ApplyActions(_) if whole.is_some() => {}
            Instruction::WriteActions(set) if whole.is_some() => check_set(cx, network, set)?,
            Instruction::ApplyActions(_) => apply(&mut out)?,
            Instruction::WriteActions(set) => merged_set(cx, network, ingress, set, &mut out)?,
            other => plain_instruction(cx, entry.table, other, &mut out)?,
        }
    }
    let actions = match later {
        Some(later) => later.appended_to(cx.target.wire.list(&out)?),
        None => out,
    };
    let match_wire = written(&network_match(cx, match_, ingress)?, Vec::with_capacity(ROOM));
    Ok(Rule { match_wire, priority: entry.priority, actions: actions.into() })
}

/// A match of a network, with the tenant's number and the virtual port in the metadata.
fn network_match(cx: &Context<'_>, match_: &Match, ingress: Ingress) -> Result<MatchBuf, Refused> {
    // In a slice the tenant may match more bits, and the tenant may have had a slice before.
    let match_ = metadata::own_part(match_, metadata::PORT)?;
    let (value, mask) = match_.get(Field::Metadata);
    let (own, own_mask) = match ingress {
        Ingress::Port(port) | Ingress::At(IngressPort { port, .. }) => {
            (metadata::of_port(cx.id, port), metadata::PORT)
        }
        Ingress::Controller => (metadata::of_port(cx.id, metadata::NO_PORT), metadata::PORT),
        Ingress::Any => (metadata::of_tenant(cx.id), metadata::TENANT),
    };
    let match_ = match ingress {
        Ingress::At(IngressPort { at, .. }) => match_.with(Field::InPort, at.into()),
        _ => match_.without(Field::InPort),
    };
    let mut out = MatchBuf::new();
    match_
        .with_masked(Field::Metadata, value | u128::from(own), mask | u128::from(own_mask))
        .to_v13(&mut out)
        .map_err(|_| error::v13::BAD_MATCH_BAD_WILDCARDS)?;
    Ok(out)
}

/// Appends WRITE_ACTIONS of a set that may be merged with other sets. The switch carries out such a set at the end of
/// the pipeline, where no action can put on a label for one port alone, and where the destination of packets is
/// unknown. So such a set may send only to the controller, or to a group without instances by VLAN tag.
fn merged_set(
    cx: &Context<'_>,
    network: &Network,
    ingress: Ingress,
    set: List<'_, v13::Action<'_>>,
    out: &mut Vec<u8>,
) -> Written {
    use error::v13::BAD_INSTRUCTION_UNSUP_INST as UNSUPPORTED;
    check_set(cx, network, set)?;
    let mut actions = Vec::new();
    let stays = |action: &v13::Action<'_>| !crate::action_set::sends(action);
    set.iter().filter(stays).for_each(|action| action.write(&mut actions));
    match sent_by(set) {
        Some(v13::Action::Group(number)) => {
            let instances =
                cx.groups.instances(number).ok_or(error::v13::BAD_ACTION_BAD_OUT_GROUP)?;
            if instances.depend_on_tag() {
                return Err(Reason::SetToGroupByTag.of(number, UNSUPPORTED).into());
            }
            let class = PacketClass::new(ingress, Vlan::Unknown);
            ListWriter::new(cx, network, class, &mut actions).group(instances)?;
        }
        Some(v13::Action::Output { port: port @ PortNo::CONTROLLER, max_len }) => {
            let max_len = max_len.max(packet_in_len::HEADERS);
            cx.target.wire.output(port, max_len, &mut actions)?;
        }
        Some(_) => return Err(UNSUPPORTED.into()),
        None => {}
    }
    if !actions.is_empty() {
        Instruction::WriteActions(cx.target.wire.list(&actions)?).write(out);
    }
    Ok(())
}

/// 1.0: one rule for each ingress.
fn network_rules_by_port(
    cx: &Context<'_>,
    network: &Network,
    entry: &EntrySpec<'_>,
) -> Result<Vec<Rule>, Refused> {
    use error::v10::FLOW_MOD_FAILED_EPERM as NOT_PERMITTED;
    let actions = cx.target.wire.actions(entry.actions)?;
    let only = in_port_of(entry.match_);
    if let Some(port) = only.filter(|port| !network.has_port(*port)) {
        return Err(Reason::InPort.of(port, NOT_PERMITTED));
    }
    let mut rules = Rules::default();
    for port in network.ingress_ports().filter(|port| only.is_none_or(|only| only == *port)) {
        for incoming in network.incoming(port) {
            let Some(region) = incoming_region(&incoming, entry.match_) else { continue };
            let class = incoming_class(network, port, &incoming, &region);
            let write = |class: &PacketClass, out: &mut Vec<u8>| {
                ListWriter::new(cx, network, class.clone(), out).actions(actions)
            };
            let mut add = |region: &Match, actions: &[u8]| {
                rules.add(cx, entry, region, !network.admits(port), || Ok(actions))
            };
            let mut out = Vec::new();
            match write(&class, &mut out) {
                Ok(()) => add(&region, &out)?,
                Err(Stop::ByVlan) => {
                    // Tagged frames do not pass, so they do not match the rule. A refusal for untagged frames is still
                    // a refusal.
                    out.clear();
                    write(&class.untagged(), &mut out).map_err(Stop::refusal)?;
                    if let Some(part) = untagged(&region) {
                        add(&part, &out)?;
                    }
                }
                Err(stop) => return Err(stop.refusal()),
            }
        }
    }
    Ok(rules.rules)
}

/// The incoming packets that a tenant's match contains; `None` if there are none. A label takes the place of the VLAN
/// tag, so packets with a label have no VLAN tag of the tenant.
fn incoming_region(incoming: &Incoming, match_: &Match) -> Option<Match> {
    let match_ = match_.without(Field::InPort);
    if incoming.label.is_none() {
        return incoming.match_.intersect(&match_);
    }
    let inner = untagged(&match_)?.without(Field::VlanPcp).without(Field::VlanVid);
    incoming.match_.intersect(&inner)
}

fn incoming_class(
    network: &Network,
    port: u32,
    incoming: &Incoming,
    region: &Match,
) -> PacketClass {
    let at = incoming.label.map(|hop| hop.port.get()).or_else(|| network.physical(port));
    let ingress = at.map_or(Ingress::Port(port), |at| Ingress::At(IngressPort { port, at }));
    let class = PacketClass::of_match(ingress, region);
    match incoming.label {
        Some(hop) => class.labelled(hop.tag.get()),
        None => class,
    }
}

/// So many rules are compared one by one.
const FEW: usize = 16;

/// Rules of 1.0, each with another match.
#[derive(Default)]
struct Rules {
    rules: Vec<Rule>,
    /// The matches of the rules, if there are more than [`FEW`].
    matches: HashSet<Arc<[u8]>>,
    budget: Budget,
}

impl Rules {
    /// Adds the rule for a region, unless a rule with the same match exists. `is_closed`: the packets enter by a port
    /// that lets no packets in. There a dropping rule has the highest priority, above the tenant's rules, so the region
    /// gets no rule of this priority.
    fn add<A: Into<Arc<[u8]>>>(
        &mut self,
        cx: &Context<'_>,
        entry: &EntrySpec<'_>,
        region: &Match,
        is_closed: bool,
        actions: impl FnOnce() -> Result<A, Refused>,
    ) -> Result<(), Refused> {
        let match_ = region.to_v10().map_err(|_| error::v10::FLOW_MOD_FAILED_EPERM)?;
        let mut match_wire = Vec::with_capacity(v10::Match::LEN);
        match_.write(&mut match_wire);
        let priority = priority_v10(&match_, entry.priority);
        if is_closed && priority == u16::MAX || self.has(&match_wire) {
            return Ok(());
        }
        let actions = actions()?.into();
        let rule = Rule { match_wire: match_wire.into(), priority, actions };
        self.budget.add(&rule, cx.target.wire)?;
        if self.rules.is_empty() {
            // Most entries have one rule.
            self.rules.reserve_exact(1);
        }
        self.rules.push(rule);
        match self.rules.as_slice() {
            [.., last] if self.rules.len() > FEW + 1 => {
                self.matches.insert(Arc::clone(&last.match_wire));
            }
            rules if rules.len() > FEW => {
                self.matches.extend(rules.iter().map(|rule| Arc::clone(&rule.match_wire)));
            }
            _ => {}
        }
        Ok(())
    }

    fn has(&self, match_wire: &[u8]) -> bool {
        match self.rules.len() <= FEW {
            true => self.rules.iter().any(|rule| *rule.match_wire == *match_wire),
            false => self.matches.contains(match_wire),
        }
    }
}

// ---- Both

/// Appends an instruction without actions.
fn plain_instruction(
    cx: &Context<'_>,
    table: u8,
    instruction: Instruction<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Refused> {
    use error::v13 as code;
    let kept = cx.target.metadata_kept(cx.network().is_some());
    match instruction {
        Instruction::GotoTable(next) => {
            let refuses = |reason: Reason| {
                Err(reason.of(u32::from(next), code::BAD_INSTRUCTION_BAD_TABLE_ID))
            };
            if next <= table {
                return refuses(Reason::GotoBack);
            }
            if next >= cx.tables() {
                return refuses(Reason::GotoNowhere);
            }
            Instruction::GotoTable(next + cx.target.first_table()).write(out);
        }
        Instruction::WriteMetadata { mask, .. } if mask & kept != 0 => {
            return Err(code::BAD_INSTRUCTION_UNSUP_METADATA_MASK.into());
        }
        Instruction::WriteMetadata { .. } | Instruction::ClearActions => instruction.write(out),
        Instruction::Meter(number) => {
            let meter = cx.groups.meter(number).ok_or(code::METER_MOD_FAILED_UNKNOWN_METER)?;
            Instruction::Meter(meter).write(out);
        }
        Instruction::Experimenter { experimenter, .. } => {
            if !cx.experimenters.contains(&experimenter) {
                return Err(code::BAD_INSTRUCTION_BAD_EXPERIMENTER.into());
            }
            instruction.write(out);
        }
        Instruction::ApplyActions(_)
        | Instruction::WriteActions(_)
        | Instruction::Unknown { .. } => return Err(code::BAD_INSTRUCTION_UNKNOWN_INST.into()),
    }
    Ok(())
}

fn instructions<'a>(
    cx: &Context<'_>,
    entry: &EntrySpec<'a>,
) -> Result<List<'a, Instruction<'a>>, Refused> {
    let instructions = cx.target.wire.list(entry.actions)?;
    check_groups(instructions)?;
    check_recirculation(cx, entry.table, instructions)?;
    Ok(instructions)
}

/// An error if an entry behind the tenant's first table applies an action for which a switch recirculates the packet.
/// Open vSwitch 3.1 ends on an assertion if a recirculated packet has a long action set. In the first table the action
/// set is empty; when the set is carried out at the end of the pipeline, the set is empty as well.
fn check_recirculation(
    cx: &Context<'_>,
    table: u8,
    instructions: List<'_, Instruction<'_>>,
) -> Result<(), Refused> {
    if table == 0 {
        return Ok(());
    }
    // In a network a set that is not merged becomes a list.
    let is_list =
        cx.network().is_some() && instructions.iter().any(|it| it == Instruction::ClearActions);
    let lists = instructions.into_iter().filter_map(|instruction| match instruction {
        Instruction::ApplyActions(list) => Some(list),
        Instruction::WriteActions(list) if is_list => Some(list),
        _ => None,
    });
    let recirculates = lists.flatten().any(|action| group::recirculates_by(cx, &action));
    if recirculates {
        Err(Reason::Recirculates.with(error::v13::BAD_INSTRUCTION_UNSUP_INST))
    } else {
        Ok(())
    }
}

/// An error if an entry names a group twice, in its lists and sets together. Open vSwitch 3.1 ends on an assertion when
/// a group is deleted that one rule names twice, and then all tenants lose the switch. If an entry names each of the
/// tenant's groups once, each rule of the entry names each group of the switch once.
fn check_groups(instructions: List<'_, Instruction<'_>>) -> Result<(), Refused> {
    let lists = instructions.into_iter().filter_map(|instruction| match instruction {
        Instruction::ApplyActions(list) | Instruction::WriteActions(list) => Some(list),
        _ => None,
    });
    let mut groups: Vec<u32> = lists
        .flatten()
        .filter_map(|action| match action {
            v13::Action::Group(group) => Some(group),
            _ => None,
        })
        .collect();
    groups.sort_unstable();
    let twice = groups.windows(2).find(|pair| matches!(pair, [a, b] if a == b));
    match twice {
        Some(pair) => Err(Reason::GroupTwice.of(pair[0], error::v13::BAD_ACTION_TOO_MANY)),
        None => Ok(()),
    }
}

fn applied<'a>(
    instructions: List<'a, Instruction<'a>>,
) -> impl Iterator<Item = List<'a, v13::Action<'a>>> {
    instructions.into_iter().filter_map(|instruction| match instruction {
        Instruction::ApplyActions(list) => Some(list),
        _ => None,
    })
}

/// Room for most matches, and for the instructions of most entries.
const ROOM: usize = 96;

/// A match of 1.3 on the wire. Overwrites `memory`.
fn written(match_: &MatchBuf, mut memory: Vec<u8>) -> Arc<[u8]> {
    memory.clear();
    Encode::write(&match_.as_match(), &mut memory);
    memory.as_slice().into()
}
