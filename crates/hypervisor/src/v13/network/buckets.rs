//! Buckets of a network's groups: each is an action set, carried out on a copy of a packet.

use super::{Packets, said};
use crate::ids::TenantIndex;
use crate::network::{Entered, Network};
use crate::switch::Switch;
use crate::v13::unreadable;
use alloc::vec::Vec;
use openflow::error::v13 as code;
use openflow::v13::{Action, OxmField, PortNo};
use openflow::{ErrorCode, List};

impl Switch {
    /// A bucket, of this group and for packets that came so: its actions are a set, carried out on a copy of a packet. It
    /// has one output, so FLOOD cannot become several.
    pub(crate) fn network_bucket_v13(
        &self,
        tenant: TenantIndex,
        network: &Network,
        (group, entered): (u32, Entered),
        actions: List<'_, Action<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        let packets = Packets { entered, dl_dst: None };
        let has_group = actions.iter().any(|action| matches!(action, Action::Group(_)));
        let outputs = actions.iter().filter(|action| matches!(action, Action::Output { .. }));
        // The last output counts, and none beside a group.
        let mut replaced = if has_group { usize::MAX } else { outputs.count().saturating_sub(1) };
        let mut sent = Vec::new();
        let mut changes_vlan = false;
        for action in actions {
            let mut leaving = Vec::new();
            match action {
                Action::Output { port: PortNo::FLOOD | PortNo::ALL, .. } => {
                    return Err(code::BAD_ACTION_BAD_OUT_PORT);
                }
                Action::Output { port: PortNo::CONTROLLER, .. } => action.write(&mut leaving),
                // What comes from nowhere has nowhere to go back to.
                Action::Output { port: PortNo::IN_PORT, .. } if entered == Entered::Nowhere => {}
                Action::Output { port, .. } => {
                    let done = self.network_output_v13(network, packets, port, 0, &mut leaving);
                    done.map_err(said)?;
                }
                Action::Group(number) if number == group => {
                    return Err(code::GROUP_MOD_FAILED_LOOP);
                }
                Action::Group(number) => {
                    let done = self.network_group_v13(tenant, number, entered, &mut sent);
                    done.map_err(said)?;
                }
                other => {
                    self.check_action(tenant, &other)?;
                    changes_vlan |= is_about_vlan(&other);
                    other.write(out);
                }
            }
            if matches!(action, Action::Output { .. }) {
                match replaced {
                    0 => sent.extend(leaving),
                    _ => replaced -= 1,
                }
            }
        }
        let leaving = List::<Action<'_>>::parse(&sent).map_err(unreadable)?;
        for action in leaving {
            // The packet is a copy, so the tag needs not be taken from it again.
            if action == Action::PopVlan {
                continue;
            }
            if changes_vlan && is_about_vlan(&action) {
                // In a set there is one VLAN id and one PUSH_VLAN.
                return Err(code::BAD_ACTION_UNSUPPORTED_ORDER);
            }
            action.write(out);
        }
        Ok(())
    }
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
