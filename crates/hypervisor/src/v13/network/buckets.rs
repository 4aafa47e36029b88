//! Buckets of a network's groups: each is an action set, carried out on a copy of a packet.
//!
//! A set has one output and one PUSH_VLAN. Where that is not enough, an [exit](super::exits) stands in the output's place, so
//! that the bucket ends in another group:
//!
//! ```text
//!   bucket of the tenant's       on the switch
//!   output:10                    tag of 10, OUTPUT 5
//!   VLAN 7, output:10            VLAN 7, GROUP of the exit for 10
//!   VLAN 7, output:1             VLAN 7, OUTPUT 1
//!   output:11, to a 1.0 switch   tag of 11, OUTPUT 5; in the group's copy for packets with a tag: nothing
//!   flood                        GROUP of the exit for FLOOD, which has one bucket for each port; so ALL
//!   eth_dst of a host, output:7  eth_dst of the host, OUTPUT 4 if it is behind that port, a shared edge
//! ```
//! By a shared edge port sends only a bucket that writes one host's address: for whom packets are it cannot ask.

use super::exits::{self, Output, is_exit};
use super::wires::Tags;
use super::{Packets, output, said};
use crate::ids::TenantIndex;
use crate::network::{Entered, Network, Unsaid, is_for_many};
use crate::switch::Switch;
use crate::v13::looks::Look;
use crate::v13::unreadable;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use openflow::error::v13 as code;
use openflow::v13::{Action, GroupMod, OxmField, PortNo};
use openflow::{ErrorCode, List};

impl Switch {
    /// A bucket, of this group and for packets that came so.
    pub(crate) fn network_bucket_v13(
        &self,
        tenant: TenantIndex,
        network: &Network,
        (group, look): (u32, Look),
        actions: List<'_, Action<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        if actions.iter().any(|action| action == Action::Group(group)) {
            return Err(code::GROUP_MOD_FAILED_LOOP);
        }
        self.check_network_set_v13(tenant, network, actions)?;
        actions.iter().filter(|action| !exits::sends(action)).for_each(|action| action.write(out));
        let tags = Tags::of_look(look).in_bucket(actions);
        let destination = destination_written(actions);
        if let Some(Action::Output { port, .. }) = exits::sent_by(actions)
            && exits::needs_destination(network, port)
            && (exits::is_for_several(port) || destination.is_none_or(is_for_many))
        {
            return Err(code::BAD_ACTION_BAD_OUT_PORT);
        }
        let entered = look.entered();
        let packets = &Packets { entered, tags, destination, defers: false };
        let by_exit = output_by_exit(network, actions).filter(|_| !is_exit(group));
        let done = match (exits::sent_by(actions), by_exit) {
            (_, Some(output)) => self.network_exit_v13(tenant, packets, output, out),
            (Some(Action::Group(number)), _) => {
                self.network_group_v13(tenant, packets, number, out)
            }
            (Some(Action::Output { port, max_len }), _) => {
                return send_by_bucket(network, packets, (port, max_len), out);
            }
            _ => Ok(()),
        };
        done.map_err(said)
    }
}

fn send_by_bucket(
    network: &Network,
    packets: &Packets,
    (port, max_len): (PortNo, u16),
    out: &mut Vec<u8>,
) -> Result<(), ErrorCode> {
    if port == PortNo::IN_PORT && packets.entered == Entered::Nowhere {
        // What comes from nowhere has nowhere to go back to.
        return Ok(());
    }
    let mut leaving = Vec::new();
    match output(network, packets, (port, max_len), &mut leaving) {
        // With this tag it cannot pass there.
        Err(Unsaid::Code(code::BAD_ACTION_BAD_ARGUMENT)) => return Ok(()),
        done => done.map_err(said)?,
    }
    for action in List::<Action<'_>>::parse(&leaving).map_err(unreadable)? {
        action.write(out);
        if matches!(action, Action::Output { .. }) {
            // The packet is a copy, so its tag needs not become again what it was.
            break;
        }
    }
    Ok(())
}

/// The destination that a bucket gives its packets, whatever it was. In a set that is so before they leave, in whatever order
/// it is written.
fn destination_written(actions: List<'_, Action<'_>>) -> Option<u128> {
    let written = actions.iter().filter_map(|action| match action {
        Action::SetField(oxm) if oxm.basic() == Some(OxmField::ETH_DST) => oxm.number(),
        _ => None,
    });
    written.last()
}

/// The outputs of a group's buckets in whose place exits stand. An exit's own buckets have none.
pub(crate) fn outputs_by_exits(network: &Network, group: &GroupMod<'_>) -> BTreeSet<Output> {
    let buckets = group.buckets.iter().filter(|_| !is_exit(group.group_id));
    buckets.filter_map(|bucket| output_by_exit(network, bucket.actions)).collect()
}

fn output_by_exit(network: &Network, actions: List<'_, Action<'_>>) -> Option<Output> {
    let Some(Action::Output { port, .. }) = exits::sent_by(actions) else { return None };
    let has_tag = || exits::ports_of(network, port).any(|port| network.is_tagged(port));
    let is_by_exit = exits::is_for_several(port)
        || has_tag() && actions.iter().any(|action| is_about_vlan(&action));
    is_by_exit.then_some(port)
}

fn is_about_vlan(action: &Action<'_>) -> bool {
    match action {
        Action::PushVlan(_) | Action::PopVlan => true,
        Action::SetField(oxm) => {
            matches!(oxm.basic(), Some(OxmField::VLAN_VID | OxmField::VLAN_PCP))
        }
        _ => false,
    }
}
