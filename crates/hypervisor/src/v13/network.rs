//! Networks on OpenFlow 1.3: virtual ports in matches and actions.
//!
//! The metadata says by which virtual port a packet came (bits 32 to 47, behind the tenant's number), since table 0 has
//! read it off the port and the tag and has taken the tag away. So a match on IN_PORT becomes one on the metadata, and
//! all headers are the tenant's own. An entry that sends packets back where they come in on the switch matches on that port as
//! well, since a link may have several. By which tags they leave is in [wires]. Action sets that are known in full are said as
//! lists ([whole_set]), and others send by no port; [buckets] are sets as well. The lower 32 bits are the tenant's own, until what
//! is left of an entry's outputs is [deferred] to the last table.

pub(crate) mod buckets;
mod deferred;
pub(crate) mod exits;
pub(super) mod packet;
pub(super) mod statistics;
pub(crate) mod unused;
mod whole_set;
pub(super) mod wires;

use super::looks::{Bears, Look};
use super::numbers::Numbered;
use super::{
    METADATA_PORT, METADATA_TENANT, NO_PORT, metadata_at, metadata_of, own_part, unreadable,
};
use crate::flows::{Flow, Piece, Taken, check_length};
use crate::ids::TenantIndex;
use crate::network::{Entered, Entrance, Network, Unsaid, WayOut, untagged};
use crate::store::Kind;
use crate::switch::Switch;
use crate::told;
use alloc::vec::Vec;
use deferred::Deferred;
use fabric::MacAddress;
use flowspace::{Field, Match};
use openflow::error::v13 as code;
use openflow::v13::{Action, Instruction, MatchBuf, Oxm, OxmField, PortNo};
use openflow::{Encode, ErrorCode, List};
use whole_set::Written;
use wires::{Marking, Tags, Vlan};

/// What is known of the packets that a list is applied to.
#[derive(Clone)]
pub(super) struct Packets {
    pub entered: Entered,
    pub tags: Tags,
    /// Their destination address, if it is known.
    pub destination: Option<u128>,
    /// Whether outputs to shared edge ports are [deferred] that do not say for which host packets are.
    pub defers: bool,
}

impl Packets {
    /// Notes what an action makes of them.
    fn follow(&mut self, action: &Action<'_>) {
        self.tags.follow(action);
        follow(&mut self.destination, action);
    }
}

impl Switch {
    /// The entries on the switch that stand for one of a network's.
    pub(crate) fn plan_network_v13(
        &self,
        tenant: TenantIndex,
        network: &Network,
        flow: &Flow,
    ) -> Result<Vec<Piece>, ErrorCode> {
        if flow.table >= self.tenant_tables(tenant) {
            // It was there when the tenant had a slice.
            return Err(code::FLOW_MOD_FAILED_BAD_TABLE_ID);
        }
        let taken = Taken::default();
        let pieces = |entered| {
            let piece = |match_: &Match| {
                let piece = self.network_piece_v13(tenant, network, flow, (match_, entered))?;
                taken.add(&piece, self.version)?;
                Ok(piece)
            };
            by_tags(&flow.match_, &piece)
        };
        if let Some(port) = flow.match_.exact_value(Field::InPort) {
            let port = port as u32;
            if !network.ports.contains_key(&port) {
                return Err(code::BAD_MATCH_BAD_VALUE);
            }
            if !network.entries().any(|entry| entry == port) {
                // By that port packets come in on another member.
                return Ok(Vec::new());
            }
            return by_entrances(network, port, &pieces).map_err(said);
        }
        match pieces(Entered::Anywhere) {
            Err(Unsaid::NeedsEntry) => {
                let mut all = Vec::new();
                for port in network.entries() {
                    all.extend(by_entrances(network, port, &pieces).map_err(said)?);
                }
                // And for what a controller sends into the tables, of which there is no port to send it back by.
                match pieces(Entered::Nowhere) {
                    Err(Unsaid::Code(code::BAD_ACTION_BAD_OUT_PORT)) => {}
                    sent => all.extend(sent.map_err(said)?),
                }
                Ok(all)
            }
            pieces => pieces.map_err(said),
        }
    }

    /// The entry for those of its packets that `match_` means.
    fn network_piece_v13(
        &self,
        tenant: TenantIndex,
        network: &Network,
        flow: &Flow,
        (match_, entered): (&Match, Entered),
    ) -> Result<Piece, Unsaid> {
        let instructions = List::<Instruction<'_>>::parse(&flow.actions).map_err(unreadable)?;
        let mut translated = Vec::new();
        // Nothing is in the action set of packets when an entry of the first table gets them.
        let is_empty = flow.table == 0;
        let whole = whole_set::as_list(is_empty, instructions);
        let lists = whole_set::lists(whole.as_deref(), instructions);
        let destination = match_.exact_value(Field::DlDst);
        let has_set = whole.is_none() && Written::by(instructions).is_set;
        let deferred = Deferred::of(
            network,
            (entered, destination),
            instructions,
            &lists,
            (is_empty, has_set),
            self.delivery_table(),
        );
        let tags = Tags::of_match(match_);
        let packets = &Packets { entered, tags, destination, defers: deferred.is_some() };
        let (at_once, named) = match deferred {
            Some(deferred) => (deferred.at_once, deferred.named),
            None => (lists.iter().map(|list| list.as_bytes().to_vec()).collect(), None),
        };
        let mut at_once = at_once.iter();
        if whole.is_some() {
            let list = at_once.next().map(Vec::as_slice).unwrap_or_default();
            self.network_list_v13(tenant, network, packets, list, &mut translated)?;
        }
        for instruction in instructions {
            match instruction {
                Instruction::ApplyActions(_) if whole.is_some() => continue,
                Instruction::WriteActions(written) if whole.is_some() => {
                    self.check_network_set_v13(tenant, network, written)?;
                }
                Instruction::ApplyActions(_) => {
                    let list = at_once.next().map(Vec::as_slice).unwrap_or_default();
                    self.network_list_v13(tenant, network, packets, list, &mut translated)?;
                }
                Instruction::WriteActions(list) => {
                    self.network_merged_v13(tenant, network, entered, list, &mut translated)?;
                }
                other => {
                    self.plain_instruction_v13(tenant, flow.table, other, &mut translated)?;
                }
            }
        }
        let translated = List::parse(&translated).map_err(unreadable)?;
        let translated = match named {
            Some(name) => name.written_with(translated),
            None => translated.as_bytes().to_vec(),
        };
        let match_ = self.network_match_v13(tenant, match_, packets)?;
        let mut match_wire = Vec::new();
        Encode::write(&match_.as_match(), &mut match_wire);
        Ok(Piece {
            match_wire: match_wire.into_boxed_slice(),
            priority: flow.priority,
            actions: translated.into_boxed_slice(),
        })
    }

    fn network_match_v13(
        &self,
        tenant: TenantIndex,
        match_: &Match,
        packets: &Packets,
    ) -> Result<MatchBuf, ErrorCode> {
        let id = self.tenants[tenant.0 as usize].id;
        // More was allowed when the tenant had a slice.
        let match_ = own_part(match_, METADATA_PORT)?;
        let (value, mask) = match_.get(Field::Metadata);
        let (own, own_mask) = match packets.entered.port() {
            Some(port) => (metadata_at(id, port), METADATA_PORT),
            None if packets.entered == Entered::Nowhere => {
                (metadata_at(id, NO_PORT), METADATA_PORT)
            }
            None => (metadata_of(id), METADATA_TENANT),
        };
        let match_ = match packets.entered {
            Entered::Way(Entrance { at, .. }) => match_.with(Field::InPort, at.into()),
            _ => match_.without(Field::InPort),
        };
        let mut out = MatchBuf::new();
        match_
            .with_masked(Field::Metadata, value | u128::from(own), mask | u128::from(own_mask))
            .to_v13(&mut out)
            .map_err(|_| code::BAD_MATCH_BAD_WILDCARDS)?;
        Ok(out)
    }

    /// APPLY_ACTIONS.
    fn network_list_v13(
        &self,
        tenant: TenantIndex,
        network: &Network,
        packets: &Packets,
        list: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Unsaid> {
        let (mut packets, mut actions) = (packets.clone(), Vec::new());
        for action in List::<Action<'_>>::parse(list).map_err(unreadable)? {
            self.network_action_v13(tenant, network, &mut packets, action, &mut actions)?;
            check_length(&actions)?;
        }
        Instruction::ApplyActions(List::parse(&actions).map_err(unreadable)?).write(out);
        Ok(())
    }

    /// WRITE_ACTIONS of a set that may be merged with others', and is carried out behind the last table. In it a tag cannot be put
    /// on for one port alone, and for whom packets are then nobody knows: so it sends to the controller, or to a group that is one
    /// for all tags. Sets that are [known in full](whole_set) are said as lists.
    fn network_merged_v13(
        &self,
        tenant: TenantIndex,
        network: &Network,
        entered: Entered,
        list: List<'_, Action<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsaid> {
        self.check_network_set_v13(tenant, network, list)?;
        let mut actions = Vec::new();
        list.iter().filter(|it| !exits::sends(it)).for_each(|it| it.write(&mut actions));
        match exits::sent_by(list) {
            Some(Action::Group(number)) => {
                let known = self.numbers(tenant, Kind::Group).get(number);
                let known = known.ok_or(code::BAD_ACTION_BAD_OUT_GROUP)?;
                if known.is_apart_by_tag() {
                    return Err(code::BAD_INSTRUCTION_UNSUP_INST.into());
                }
                let tags = Tags::new(Vlan::Unknown);
                let packets = Packets { entered, tags, destination: None, defers: false };
                send_to(known, &packets, &mut actions)?;
            }
            Some(Action::Output { port: port @ PortNo::CONTROLLER, max_len }) => {
                Action::Output { port, max_len: max_len.max(told::HEADERS) }.write(&mut actions);
            }
            Some(_) => return Err(code::BAD_INSTRUCTION_UNSUP_INST.into()),
            None => {}
        }
        if !actions.is_empty() {
            Instruction::WriteActions(List::parse(&actions).map_err(unreadable)?).write(out);
        }
        Ok(())
    }

    fn network_action_v13(
        &self,
        tenant: TenantIndex,
        network: &Network,
        packets: &mut Packets,
        action: Action<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsaid> {
        match action {
            Action::Output { port, max_len } => {
                output(network, packets, (port, max_len), out)?;
            }
            Action::Group(number) => {
                self.network_group_v13(tenant, packets, number, out)?;
            }
            other => {
                self.check_action(tenant, &other)?;
                packets.follow(&other);
                other.write(out);
            }
        }
        Ok(())
    }

    fn network_group_v13(
        &self,
        tenant: TenantIndex,
        packets: &Packets,
        number: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsaid> {
        let known = self.numbers(tenant, Kind::Group).get(number);
        send_to(known.ok_or(code::BAD_ACTION_BAD_OUT_GROUP)?, packets, out)
    }

    /// Whether each action of a set is one that the tenant may use, also those that others take the place of.
    fn check_network_set_v13(
        &self,
        tenant: TenantIndex,
        network: &Network,
        actions: List<'_, Action<'_>>,
    ) -> Result<(), ErrorCode> {
        for action in actions {
            match action {
                Action::Output { port, .. } => {
                    let reserved = [PortNo::CONTROLLER, PortNo::IN_PORT].contains(&port)
                        || exits::is_for_several(port);
                    if !reserved && !network.ports.contains_key(&port.0) {
                        return Err(code::BAD_ACTION_BAD_OUT_PORT);
                    }
                }
                Action::Group(number) => {
                    let known = self.numbers(tenant, Kind::Group).get(number);
                    known.ok_or(code::BAD_ACTION_BAD_OUT_GROUP)?;
                }
                other => self.check_action(tenant, &other)?,
            }
        }
        Ok(())
    }

    fn network_exit_v13(
        &self,
        tenant: TenantIndex,
        packets: &Packets,
        output: exits::Output,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsaid> {
        let groups = self.numbers(tenant, Kind::Group);
        let known = groups.exit(output).and_then(|number| groups.any(number));
        send_to(known.ok_or(code::BAD_ACTION_BAD_OUT_PORT)?, packets, out)
    }

    /// Appends what makes a packet that is sent out look as if it came by a virtual port, and sends it to the tables.
    pub(super) fn network_enter_v13(
        &self,
        network: &Network,
        number: u32,
        source: Option<MacAddress>,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        use fabric::embedding::PortKind;
        let port = network.ports.get(&number).ok_or(code::BAD_REQUEST_BAD_PORT)?;
        let table = PortNo::TABLE;
        match &port.kind {
            PortKind::Edge { hosts, .. } => {
                if !hosts.is_empty() && !source.is_some_and(|source| hosts.contains(&source)) {
                    return Err(code::BAD_ACTION_EPERM);
                }
                Action::Output { port: table, max_len: 0 }.write(out);
            }
            PortKind::Link { .. } => {
                let hop = network.arrival_hop(number).ok_or(code::BAD_ACTION_BAD_OUT_PORT)?;
                Marking::Put(hop.tag.get()).send_to(table, out);
            }
            PortKind::Remote { .. } => return Err(code::BAD_ACTION_BAD_OUT_PORT),
        }
        Ok(())
    }
}

/// OUTPUT.
fn output(
    network: &Network,
    packets: &Packets,
    (port, max_len): (PortNo, u16),
    out: &mut Vec<u8>,
) -> Result<(), Unsaid> {
    let bad = Unsaid::Code(code::BAD_ACTION_BAD_OUT_PORT);
    let mut leave = |way: WayOut<'_>, may_stay| {
        let back = network.is_back(way.port, packets.entered)?;
        let port = if back { PortNo::IN_PORT } else { PortNo(way.port) };
        wires::leave(packets, way, port, may_stay, out)
    };
    match port {
        PortNo::CONTROLLER => {
            let max_len = max_len.max(told::HEADERS);
            Action::Output { port, max_len }.write(out);
            Ok(())
        }
        PortNo::IN_PORT => match packets.entered.port() {
            None if packets.entered == Entered::Anywhere => Err(Unsaid::NeedsEntry),
            None => Err(bad),
            Some(number) => match network.way_back(number) {
                Some(way) => leave(way, false),
                None => Ok(()),
            },
        },
        port if exits::is_for_several(port) => {
            let is_deferred = |number| {
                let is_told = packets.destination.is_some();
                packets.defers && !is_told && network.is_shared_edge(number)
            };
            for number in exits::ports_of(network, port).filter(|it| !is_deferred(*it)) {
                if let Some(Some(way)) = network.way_out(number, packets.entered) {
                    // It would go round.
                    let is_anywhere = packets.entered == Entered::Anywhere;
                    if is_anywhere && network.entrances_astray(number).next().is_some() {
                        return Err(Unsaid::NeedsEntry);
                    }
                    leave(way, true)?;
                }
            }
            Ok(())
        }
        PortNo(number) => match network.way_out(number, packets.entered).ok_or(bad)? {
            Some(way) => leave(way, false),
            None => Ok(()),
        },
    }
}

/// What is made of packets that come by a port: of all, or by where on the switch they come in.
fn by_entrances(
    network: &Network,
    port: u32,
    pieces: &impl Fn(Entered) -> Result<Vec<Piece>, Unsaid>,
) -> Result<Vec<Piece>, Unsaid> {
    match pieces(Entered::Port(port)) {
        Err(Unsaid::NeedsEntry) => {
            let mut all = Vec::new();
            for entrance in network.entrances(port) {
                all.extend(pieces(Entered::Way(entrance))?);
            }
            Ok(all)
        }
        pieces => pieces,
    }
}

/// What is made of the packets of a match: of all, or of those without a tag. Packets with one do not meet it then.
fn by_tags(
    match_: &Match,
    piece: &impl Fn(&Match) -> Result<Piece, Unsaid>,
) -> Result<Vec<Piece>, Unsaid> {
    match piece(match_) {
        Err(Unsaid::NeedsVlan) => untagged(match_).map(|part| piece(&part)).into_iter().collect(),
        whole => whole.map(|piece| Vec::from([piece])),
    }
}

/// Notes what an action makes of a destination address, if it is known.
fn follow(destination: &mut Option<u128>, action: &Action<'_>) {
    if let Action::SetField(oxm) = action
        && oxm.basic() == Some(OxmField::ETH_DST)
    {
        *destination = oxm.number();
    }
}

/// Appends what sends to a group.
fn send_to(known: &Numbered, packets: &Packets, out: &mut Vec<u8>) -> Result<(), Unsaid> {
    if known.is_apart_for(packets.entered) {
        return Err(Unsaid::NeedsEntry);
    }
    let bears = match known.is_apart_by_tag() {
        true => packets.tags.bears()?,
        false => Bears::NoTag,
    };
    Action::Group(known.at(Look::new(packets.entered, bears))).write(out);
    Ok(())
}

/// Appends a SET_FIELD.
pub(super) fn set(field: OxmField, value: u128, out: &mut Vec<u8>) {
    let bytes = value.to_be_bytes();
    let length = field.value_len().unwrap_or(0);
    let value = bytes.get(bytes.len() - length..).unwrap_or_default();
    Action::SetField(Oxm::exact(field, value)).write(out);
}

/// Where the port of entry and the VLAN tag are known, nothing is left open.
fn said(unsaid: Unsaid) -> ErrorCode {
    match unsaid {
        Unsaid::Code(code) => code,
        Unsaid::NeedsEntry => code::BAD_ACTION_BAD_OUT_PORT,
        Unsaid::NeedsVlan => code::BAD_ACTION_BAD_ARGUMENT,
    }
}
