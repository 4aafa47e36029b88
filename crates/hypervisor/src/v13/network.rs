//! Networks on OpenFlow 1.3: virtual ports in matches and actions.
//!
//! The metadata says by which virtual port a packet came (bits 32 to 47, behind the tenant's number), since table 0 has
//! read it off the port and the tag and has taken the tag away. So a match on IN_PORT becomes one on the metadata, and
//! all headers are the tenant's own. Action sets that may be merged send by [exits], others are said as lists
//! ([whole_set]); [buckets] are sets as well. Bit 31 says whether a set holds a group ([group_in_set]); the bits below are the
//! tenant's own, until what is left of an entry's outputs is [deferred] to the last table.

mod buckets;
mod deferred;
pub(crate) mod exits;
mod group_in_set;
pub(super) mod packet;
pub(super) mod statistics;
pub(crate) mod unused;
mod whole_set;

use super::numbers::Numbered;
use super::{
    METADATA_GROUP, METADATA_NETWORK, METADATA_PORT, METADATA_TENANT, metadata_at, metadata_of,
    unreadable,
};
use crate::flows::{Flow, Piece};
use crate::ids::TenantIndex;
use crate::network::{Entered, Network, Unsaid, WayOut, Wire};
use crate::store::Kind;
use crate::switch::Switch;
use alloc::vec::Vec;
use deferred::Deferred;
use fabric::MacAddress;
use flowspace::{Field, Match};
use group_in_set::Written;
use openflow::error::v13 as code;
use openflow::v13::{Action, Instruction, MatchBuf, Oxm, OxmField, PortNo};
use openflow::{Encode, ErrorCode, List};

/// TPID of the tag (IEEE 802.1Q).
const VLAN: u16 = 0x8100;
/// OFPVID_PRESENT.
const PRESENT: u128 = 0x1000;

/// What is known of the packets that a list is applied to.
#[derive(Clone, Copy)]
pub(super) struct Packets {
    pub entered: Entered,
    /// The destination address, where it is the same for all.
    pub dl_dst: Option<u128>,
    /// Whether their action sets hold a group of the tenant's, where that is told apart.
    pub has_group: Option<bool>,
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
        let instructions = List::<Instruction<'_>>::parse(&flow.actions).map_err(unreadable)?;
        let mut pieces = Vec::new();
        for &has_group in Written::by(instructions).told_apart(flow.table) {
            pieces.extend(self.plan_network_packets_v13(tenant, network, flow, has_group)?);
        }
        Ok(pieces)
    }

    /// Those for packets whose sets hold a group, or none, or for all.
    fn plan_network_packets_v13(
        &self,
        tenant: TenantIndex,
        network: &Network,
        flow: &Flow,
        has_group: Option<bool>,
    ) -> Result<Vec<Piece>, ErrorCode> {
        let dl_dst = flow.match_.exact_value(Field::DlDst);
        let piece = |entered| {
            let packets = Packets { entered, dl_dst, has_group };
            self.network_piece_v13(tenant, network, flow, packets)
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
            let piece = piece(Entered::Port(port)).map_err(said);
            return piece.map(|piece| Vec::from([piece]));
        }
        match piece(Entered::Anywhere) {
            Ok(piece) => Ok(Vec::from([piece])),
            Err(Unsaid::Code(code)) => Err(code),
            Err(Unsaid::NeedsEntry) => {
                let each = network.entries().map(|port| piece(Entered::Port(port)));
                each.map(|piece| piece.map_err(said)).collect()
            }
        }
    }

    fn network_piece_v13(
        &self,
        tenant: TenantIndex,
        network: &Network,
        flow: &Flow,
        packets: Packets,
    ) -> Result<Piece, Unsaid> {
        let instructions = List::<Instruction<'_>>::parse(&flow.actions).map_err(unreadable)?;
        let mut translated = Vec::new();
        let whole = whole_set::as_list(flow.table, instructions);
        let delivery = self.delivery_table();
        let mut deferred = Deferred::by(flow.table, instructions, whole.is_some(), delivery);
        if let Some(whole) = &whole {
            let list = List::parse(whole).map_err(unreadable)?;
            let at_once = deferred.taken_from(network, packets, list)?;
            self.network_list_v13(tenant, network, packets, &at_once, &mut translated)?;
        }
        for instruction in instructions {
            match instruction {
                Instruction::ApplyActions(_) if whole.is_some() => continue,
                Instruction::WriteActions(written) if whole.is_some() => {
                    self.check_network_set_v13(tenant, network, written)?;
                }
                Instruction::ApplyActions(list) => {
                    let at_once = deferred.taken_from(network, packets, list)?;
                    self.network_list_v13(tenant, network, packets, &at_once, &mut translated)?;
                }
                Instruction::WriteActions(list) => {
                    let out = &mut translated;
                    self.network_merged_v13(tenant, network, packets, list, out)?;
                }
                other => {
                    self.plain_instruction_v13(tenant, flow.table, other, &mut translated)?;
                }
            }
        }
        let translated = List::parse(&translated).map_err(unreadable)?;
        let translated = match deferred.name(network, packets.entered)? {
            Some(name) => name.written_with(translated),
            None => Written::by(instructions).with_bit(translated),
        };
        let match_ = self.network_match_v13(tenant, &flow.match_, packets)?;
        let mut match_wire = Vec::new();
        Encode::write(&match_.as_match(), &mut match_wire);
        Ok(Piece {
            match_wire: match_wire.into_boxed_slice(),
            actions: translated.into_boxed_slice(),
        })
    }

    fn network_match_v13(
        &self,
        tenant: TenantIndex,
        match_: &Match,
        packets: Packets,
    ) -> Result<MatchBuf, ErrorCode> {
        let id = self.tenants[tenant.0 as usize].id;
        let (value, mask) = match_.get(Field::Metadata);
        if mask & u128::from(METADATA_NETWORK) != 0 {
            // It was allowed when the tenant had a slice.
            return Err(code::BAD_MATCH_BAD_MASK);
        }
        let (mut own, mut own_mask) = match packets.entered {
            Entered::Port(port) => (metadata_at(id, port), METADATA_PORT),
            _ => (metadata_of(id), METADATA_TENANT),
        };
        if let Some(has_group) = packets.has_group {
            own |= if has_group { METADATA_GROUP } else { 0 };
            own_mask |= METADATA_GROUP;
        }
        let mut out = MatchBuf::new();
        match_
            .without(Field::InPort)
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
        mut packets: Packets,
        list: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Unsaid> {
        let mut actions = Vec::new();
        for action in List::<Action<'_>>::parse(list).map_err(unreadable)? {
            self.network_action_v13(tenant, network, &mut packets, action, &mut actions)?;
        }
        Instruction::ApplyActions(List::parse(&actions).map_err(unreadable)?).write(out);
        Ok(())
    }

    /// WRITE_ACTIONS of a set that may be merged with others'.
    fn network_merged_v13(
        &self,
        tenant: TenantIndex,
        network: &Network,
        packets: Packets,
        list: List<'_, Action<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsaid> {
        let mut actions = Vec::new();
        self.network_set_v13(tenant, network, packets, list, &mut actions)?;
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
                self.network_output_v13(network, *packets, port, max_len, out)?;
            }
            Action::Group(number) => {
                self.network_group_v13(tenant, number, packets.entered, out)?;
            }
            other => {
                self.check_action(tenant, &other)?;
                if let Action::SetField(oxm) = other
                    && oxm.basic() == Some(OxmField::ETH_DST)
                {
                    packets.dl_dst = oxm.number();
                }
                other.write(out);
            }
        }
        Ok(())
    }

    fn network_group_v13(
        &self,
        tenant: TenantIndex,
        number: u32,
        entered: Entered,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsaid> {
        let known = self.numbers(tenant, Kind::Group).get(number);
        send_to(known.ok_or(code::BAD_ACTION_BAD_OUT_GROUP)?, entered, out)
    }

    fn network_output_v13(
        &self,
        network: &Network,
        packets: Packets,
        port: PortNo,
        max_len: u16,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsaid> {
        let bad = Unsaid::Code(code::BAD_ACTION_BAD_OUT_PORT);
        match port {
            PortNo::CONTROLLER => {
                Action::Output { port, max_len }.write(out);
                Ok(())
            }
            PortNo::IN_PORT => match packets.entered {
                Entered::Anywhere => Err(Unsaid::NeedsEntry),
                Entered::Nowhere => Err(bad),
                Entered::Port(number) => match network.way_back(number) {
                    Some(way) => leave(network, packets, way, out),
                    None => Ok(()),
                },
            },
            port if exits::is_for_several(port) => {
                for number in exits::several(network, port) {
                    if let Some(Some(way)) = network.way_out(number, packets.entered) {
                        leave(network, packets, way, out)?;
                    }
                }
                Ok(())
            }
            PortNo(number) => match network.way_out(number, packets.entered).ok_or(bad)? {
                Some(way) => leave(network, packets, way, out),
                None => Ok(()),
            },
        }
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

    /// An action set that may be merged with others', and is carried out at the end of the pipeline: in place of an output it
    /// has its [exit](exits), or nothing behind a group. Sets that are [known in full](whole_set) are said as lists.
    fn network_set_v13(
        &self,
        tenant: TenantIndex,
        network: &Network,
        packets: Packets,
        actions: List<'_, Action<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsaid> {
        self.check_network_set_v13(tenant, network, actions)?;
        let entered = packets.entered;
        actions.iter().filter(|action| !exits::sends(action)).for_each(|action| action.write(out));
        match exits::sent_by(actions) {
            Some(Action::Group(number)) => self.network_group_v13(tenant, number, entered, out),
            Some(Action::Output { port, max_len }) if packets.has_group != Some(true) => {
                self.network_exit_v13(tenant, exits::output(port, max_len), entered, out)
            }
            _ => Ok(()),
        }
    }

    fn network_exit_v13(
        &self,
        tenant: TenantIndex,
        output: exits::Output,
        entered: Entered,
        out: &mut Vec<u8>,
    ) -> Result<(), Unsaid> {
        let groups = self.numbers(tenant, Kind::Group);
        let known = groups.exit(output).and_then(|number| groups.any(number));
        send_to(known.ok_or(code::BAD_ACTION_BAD_OUT_PORT)?, entered, out)
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
        let table = Action::Output { port: PortNo::TABLE, max_len: 0 };
        match &port.kind {
            PortKind::Edge { hosts, .. } => {
                if !hosts.is_empty() && !source.is_some_and(|source| hosts.contains(&source)) {
                    return Err(code::BAD_ACTION_EPERM);
                }
                table.write(out);
            }
            PortKind::Link { .. } => {
                let hop = network.arrival_hop(number).ok_or(code::BAD_ACTION_BAD_OUT_PORT)?;
                push(hop.tag.get(), out);
                table.write(out);
                Action::PopVlan.write(out);
            }
            PortKind::Remote { .. } => return Err(code::BAD_ACTION_BAD_OUT_PORT),
        }
        Ok(())
    }
}

/// Appends what sends to a group.
fn send_to(known: &Numbered, entered: Entered, out: &mut Vec<u8>) -> Result<(), Unsaid> {
    if entered == Entered::Anywhere && !known.copies.is_empty() {
        return Err(Unsaid::NeedsEntry);
    }
    Action::Group(known.at(entered)).write(out);
    Ok(())
}

/// Appends what sends a packet by a way out, and leaves it as it was for what comes after.
fn leave(
    network: &Network,
    packets: Packets,
    way: WayOut<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Unsaid> {
    let back = network.is_back(way.port, packets.entered)?;
    let port = if back { PortNo::IN_PORT } else { PortNo(way.port) };
    if way.hosts.is_empty() {
        send_by(way.wire, port, out);
        return Ok(());
    }
    // What is for everybody goes to each of the tenant's own.
    let dl_dst = packets.dl_dst.ok_or(code::BAD_ACTION_BAD_OUT_PORT)?;
    let known = |host: &MacAddress| crate::network::number_of(*host);
    if dl_dst >> 40 & 1 == 0 {
        if way.hosts.iter().any(|host| known(host) == dl_dst) {
            send_by(way.wire, port, out);
        }
        return Ok(());
    }
    for host in way.hosts {
        set(OxmField::ETH_DST, known(host), out);
        send_by(way.wire, port, out);
    }
    set(OxmField::ETH_DST, dl_dst, out);
    Ok(())
}

/// Appends the output to a port of the switch, with the mark of that wire, which is taken away again.
pub(super) fn send_by(wire: Wire<'_>, port: PortNo, out: &mut Vec<u8>) {
    let send = Action::Output { port, max_len: 0 };
    match wire {
        Wire::Plain => send.write(out),
        // The tenant's own tags travel behind it.
        Wire::Tagged { tag, .. } => {
            push(tag.get(), out);
            send.write(out);
            Action::PopVlan.write(out);
        }
    }
}

/// Appends the marking of a packet.
pub(super) fn push(tag: u16, out: &mut Vec<u8>) {
    Action::PushVlan(VLAN).write(out);
    set(OxmField::VLAN_VID, u128::from(tag) | PRESENT, out);
}

/// Appends a SET_FIELD.
pub(super) fn set(field: OxmField, value: u128, out: &mut Vec<u8>) {
    let bytes = value.to_be_bytes();
    let length = field.value_len().unwrap_or(0);
    let value = bytes.get(bytes.len() - length..).unwrap_or_default();
    Action::SetField(Oxm::exact(field, value)).write(out);
}

/// Where the port of entry is known, nothing is left open.
fn said(unsaid: Unsaid) -> ErrorCode {
    match unsaid {
        Unsaid::Code(code) => code,
        Unsaid::NeedsEntry => code::BAD_ACTION_BAD_OUT_PORT,
    }
}
