//! Translates actions of 1.3 to and from the form of the datapath.

use flowspace::{port_from_v10, port_to_v10};
use openflow::error::v13 as code;
use openflow::nicira::{NICIRA, Resubmit};
use openflow::v13::{Action as Wire, Oxm, OxmField, PortNo, VLAN_PRESENT};
use openflow::{ErrorCode, List, ListBuf};

use crate::action::{Action, port};
use crate::frame::{ETH_MPLS, ETH_MPLS_MULTICAST, is_vlan};

/// Checks and translates actions. `Shape` checks whether packets have the headers.
pub(super) fn read(list: List<'_, Wire<'_>>) -> Result<Vec<Action>, ErrorCode> {
    list.iter().map(read_one).collect()
}

fn read_one(wire: Wire<'_>) -> Result<Action, ErrorCode> {
    match wire {
        Wire::Output { port, max_len } => Ok(Action::Output { port: output_port(port)?, max_len }),
        Wire::CopyTtlOut => Ok(Action::CopyTtlOut),
        Wire::CopyTtlIn => Ok(Action::CopyTtlIn),
        Wire::SetMplsTtl(ttl) => Ok(Action::SetMplsTtl(ttl)),
        Wire::DecMplsTtl => Ok(Action::DecMplsTtl),
        Wire::PushVlan(tpid) if is_vlan(tpid) => Ok(Action::PushVlan(tpid)),
        Wire::PopVlan => Ok(Action::PopVlan),
        Wire::PushMpls(ether_type @ (ETH_MPLS | ETH_MPLS_MULTICAST)) => {
            Ok(Action::PushMpls(ether_type))
        }
        Wire::PushVlan(_) | Wire::PushMpls(_) => Err(code::BAD_ACTION_BAD_ARGUMENT),
        Wire::PopMpls(ether_type) => Ok(Action::PopMpls(ether_type)),
        Wire::SetQueue(queue) => Ok(Action::SetQueue(queue)),
        Wire::Group(id) => Ok(Action::Group(id)),
        Wire::SetNwTtl(ttl) => Ok(Action::SetNwTtl(ttl)),
        Wire::DecNwTtl => Ok(Action::DecNwTtl),
        Wire::SetField(oxm) => set_field(&oxm),
        Wire::Experimenter { .. } if let Some(resubmit) = Resubmit::of_v13(&wire) => {
            Ok(Action::Resubmit { in_port: port_from_v10(resubmit.in_port), table: resubmit.table })
        }
        Wire::Experimenter { .. } => Err(code::BAD_ACTION_BAD_EXPERIMENTER),
        Wire::PushPbb(_) | Wire::PopPbb | Wire::Unknown { .. } => Err(code::BAD_ACTION_BAD_TYPE),
    }
}

/// Checks a port. The port need not exist, but its number must be possible. Open vSwitch has 16-bit
/// ports in 1.3 too, and accepts 0, which never exists.
fn output_port(number: PortNo) -> Result<u32, ErrorCode> {
    match number.0 {
        ..0xff00 | port::IN_PORT..=port::LOCAL => Ok(number.0),
        _ => Err(code::BAD_ACTION_BAD_OUT_PORT),
    }
}

fn set_field(oxm: &Oxm<'_>) -> Result<Action, ErrorCode> {
    let Some(field) = oxm.basic() else { return Err(code::BAD_ACTION_BAD_SET_TYPE) };
    let (Some(bits), Some(value)) = (field.bits(), oxm.number()) else {
        return Err(code::BAD_ACTION_BAD_SET_TYPE);
    };
    match field {
        OxmField::IN_PORT
        | OxmField::IN_PHY_PORT
        | OxmField::ETH_TYPE
        | OxmField::IP_PROTO
        | OxmField::MPLS_BOS => return Err(code::BAD_ACTION_BAD_SET_ARGUMENT),
        OxmField::PBB_ISID | OxmField::IPV6_EXTHDR => return Err(code::BAD_ACTION_BAD_SET_TYPE),
        _ => {}
    }
    let fits = bits >= 128 || value >> bits == 0;
    let names_a_tag = field != OxmField::VLAN_VID || value & u128::from(VLAN_PRESENT) != 0;
    if oxm.has_mask() || !fits || !names_a_tag {
        return Err(code::BAD_ACTION_BAD_SET_ARGUMENT);
    }
    Ok(Action::SetField { field, value })
}

/// Encodes actions for 1.3.
pub(super) fn write(actions: &[Action]) -> ListBuf<Wire<'static>> {
    let mut list = ListBuf::new();
    for action in actions {
        write_one(action, &mut list);
    }
    list
}

fn write_one(action: &Action, list: &mut ListBuf<Wire<'static>>) {
    match *action {
        Action::Output { port, max_len } => {
            // Only an output to the controller has a length.
            let max_len = if port == port::CONTROLLER { max_len } else { 0 };
            list.push(Wire::Output { port: PortNo(port), max_len });
        }
        Action::Enqueue { port, queue } => {
            list.push(Wire::SetQueue(queue));
            list.push(Wire::Output { port: PortNo(port), max_len: 0 });
        }
        Action::Resubmit { in_port, table } => {
            let in_port = port_to_v10(in_port).unwrap_or_default();
            let body = &Resubmit { in_port, table }.body();
            list.push(Wire::Experimenter { experimenter: NICIRA, body });
        }
        Action::SetQueue(queue) => list.push(Wire::SetQueue(queue)),
        Action::Group(id) => list.push(Wire::Group(id)),
        Action::SetField { field, value } => push_set_field(field, value, list),
        // These are actions of a 1.0 controller, in the nearest form of 1.3.
        Action::SetVlanVid(vid) => {
            push_set_field(OxmField::VLAN_VID, u128::from(VLAN_PRESENT | vid), list);
        }
        Action::SetVlanPcp(pcp) => push_set_field(OxmField::VLAN_PCP, pcp.into(), list),
        Action::SetNwTos(tos) => push_set_field(OxmField::IP_DSCP, u128::from(tos >> 2), list),
        Action::SetTpSrc(port) => push_set_field(OxmField::TCP_SRC, port.into(), list),
        Action::SetTpDst(port) => push_set_field(OxmField::TCP_DST, port.into(), list),
        Action::PushVlan(tpid) => list.push(Wire::PushVlan(tpid)),
        Action::PopVlan => list.push(Wire::PopVlan),
        Action::PushMpls(ether_type) => list.push(Wire::PushMpls(ether_type)),
        Action::PopMpls(ether_type) => list.push(Wire::PopMpls(ether_type)),
        Action::SetNwTtl(ttl) => list.push(Wire::SetNwTtl(ttl)),
        Action::DecNwTtl => list.push(Wire::DecNwTtl),
        Action::SetMplsTtl(ttl) => list.push(Wire::SetMplsTtl(ttl)),
        Action::DecMplsTtl => list.push(Wire::DecMplsTtl),
        Action::CopyTtlOut => list.push(Wire::CopyTtlOut),
        Action::CopyTtlIn => list.push(Wire::CopyTtlIn),
    }
}

fn push_set_field(field: OxmField, value: u128, list: &mut ListBuf<Wire<'static>>) {
    let bytes = value.to_be_bytes();
    let start = bytes.len() - field.value_len().unwrap_or(bytes.len());
    list.push(Wire::SetField(Oxm::exact(field, bytes.get(start..).unwrap_or(&bytes))));
}
