//! *Egress groups*: groups of Weir's own by which [buckets](crate::group) of tenants send (1.3).
//!
//! A bucket has one output and one PUSH_VLAN. If a bucket needs more, an egress group replaces the output:
//!
//! ```text
//!   the tenant's bucket        instead         the egress group, of type INDIRECT or, for FLOOD and ALL, ALL
//!   VLAN 7, output:10          GROUP 7         label of 10, OUTPUT 5
//!   flood                      GROUP 9         one bucket for each port
//! ```
//! An egress group is described as a tenant would describe a group, with a number that tenants cannot use. Egress
//! groups are compiled, stored and updated like the tenant's groups.

use crate::action_set::sent_by;
use crate::network::{Network, is_here};
use crate::wire::Action as _;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use fabric::embedding::VirtualPort;
use openflow::v13::{
    self, Bucket, GROUP_ALL, GROUP_ANY, GROUP_MAX, GroupMod, GroupModCommand, GroupType, OxmField,
    PortNo,
};
use openflow::{Header, List, ListBuf};

/// Whether an output means several ports.
pub fn is_for_several(port: PortNo) -> bool {
    matches!(port, PortNo::FLOOD | PortNo::ALL)
}

/// The ports by which an output may send. On 1.3 FLOOD and ALL mean the same ports, because 1.3 has no bit `NO_FLOOD`.
pub fn ports_of(network: &Network, port: PortNo) -> impl Iterator<Item = u32> {
    let numbers = match port {
        port if port == PortNo::IN_PORT || is_for_several(port) => 0..=u32::MAX,
        PortNo(number) => number..=number,
    };
    let is_meant = move |it: &VirtualPort| port != PortNo::IN_PORT || is_here(it);
    network.ports().range(numbers).filter(move |(_, it)| is_meant(it)).map(|(&number, _)| number)
}

/// The numbers of egress groups.
pub fn numbers() -> impl Iterator<Item = u32> {
    GROUP_MAX + 1..GROUP_ALL
}

/// Whether a group number is in the range of egress groups, which tenants cannot use.
pub fn is_egress_group(number: u32) -> bool {
    number > GROUP_MAX
}

/// The outputs of a group's buckets that egress groups replace. The buckets of an egress group have no such outputs.
pub fn outputs(network: &Network, group: &GroupMod<'_>) -> BTreeSet<PortNo> {
    let buckets = group.buckets.iter().filter(|_| !is_egress_group(group.group_id));
    buckets.filter_map(|bucket| output_of(network, bucket.actions)).collect()
}

/// The output of a bucket that an egress group replaces.
pub fn output_of(network: &Network, actions: List<'_, v13::Action<'_>>) -> Option<PortNo> {
    let Some(v13::Action::Output { port, .. }) = sent_by(actions) else { return None };
    let gets_label = || ports_of(network, port).any(|port| network.is_labelled(port));
    let needs_group =
        is_for_several(port) || gets_label() && actions.iter().any(|action| is_about_vlan(&action));
    needs_group.then_some(port)
}

fn is_about_vlan(action: &v13::Action<'_>) -> bool {
    let is_vlan = |field| matches!(field, OxmField::VLAN_VID | OxmField::VLAN_PCP);
    action.vlan_change().is_some()
        || matches!(action, v13::Action::SetField(oxm) if oxm.basic().is_some_and(is_vlan))
}

/// The output that an egress group with this description replaces.
pub fn output_described(body: &[u8]) -> Option<PortNo> {
    let group = GroupMod::parse(body).ok()?;
    match group.buckets.iter().next()?.actions.iter().next()? {
        v13::Action::Output { port, .. } => Some(port),
        _ => None,
    }
}

/// An egress group, as a tenant would describe it: the body of a GROUP_MOD.
pub fn description(port: PortNo) -> Box<[u8]> {
    let actions = ListBuf::from([v13::Action::Output { port, max_len: 0 }]);
    let mut buckets = ListBuf::<Bucket<'static>>::new();
    buckets.push(Bucket { actions: actions.as_list(), ..Bucket::default() });
    let type_ = if is_for_several(port) { GroupType::ALL } else { GroupType::INDIRECT };
    let command = GroupModCommand::ADD;
    let mut message = Vec::new();
    // One bucket with one action always fits.
    let _ = GroupMod { command, type_, group_id: GROUP_ANY, buckets: buckets.as_list() }
        .write_message(0, &mut message);
    message.get(Header::LEN..).unwrap_or_default().into()
}

/// The buckets of an egress group for FLOOD or ALL, as a tenant would write them; `None` if the buckets are as
/// described.
pub fn buckets(network: &Network, group: &GroupMod<'_>) -> Option<ListBuf<Bucket<'static>>> {
    let output = group.buckets.iter().next().and_then(|bucket| sent_by(bucket.actions));
    let Some(v13::Action::Output { port, .. }) = output.filter(|_| is_egress_group(group.group_id))
    else {
        return None;
    };
    if !is_for_several(port) {
        return None;
    }
    let mut buckets = ListBuf::<Bucket<'static>>::new();
    for number in ports_of(network, port) {
        let actions = ListBuf::from([v13::Action::Output { port: PortNo(number), max_len: 0 }]);
        buckets.push(Bucket { actions: actions.as_list(), ..Bucket::default() });
    }
    Some(buckets)
}
