//! Action lists: what a tenant may do with its packets, and how that is said to the switch.

use crate::flows::check_length;
use crate::ids::TenantIndex;
use crate::switch::Switch;
use crate::told;
use alloc::vec::Vec;
use flowspace::{Field, Key, Match, port_from_v10};
use openflow::error::v10 as code;
use openflow::v10::{Action, PortNo};
use openflow::{ErrorCode, List};

/// The packets that a list is applied to.
#[derive(Clone, Copy)]
pub(crate) enum Packets<'a> {
    /// Those of an entry on the switch.
    Region(&'a Match),
    /// One packet that is sent out; the port it entered by, if it did.
    One(&'a Key, Option<u32>),
}

impl Packets<'_> {
    fn region(&self) -> Match {
        match self {
            Packets::Region(region) => **region,
            Packets::One(key, _) => crate::view::exactly(key),
        }
    }

    /// Their Ethernet type, where it is the same for all. No action changes it.
    fn dl_type(&self) -> Option<u128> {
        match self {
            Packets::Region(region) => region.exact_value(Field::DlType),
            Packets::One(key, _) => Some(key.get(Field::DlType)),
        }
    }
}

impl Switch {
    /// Checks a list for the tenant, and appends it to `out` as it has to be on the switch.
    ///
    /// A packet may leave by ports of the slice only, and only while its headers are within the tenant's space:
    /// rewritten packets are checked where they are output. FLOOD and ALL become the slice's ports, unless all ports
    /// are the tenant's.
    pub(crate) fn translate_actions_v10(
        &self,
        tenant: TenantIndex,
        packets: Packets<'_>,
        actions: List<'_, Action<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        let mut rewritten: Option<Match> = None;
        let mut inside = true;
        for action in actions {
            let region = |rewritten: &Option<Match>| rewritten.unwrap_or_else(|| packets.region());
            let image = match action {
                Action::Output { port, max_len } => {
                    self.check_inside(tenant, &rewritten, &mut inside)?;
                    self.output_v10(tenant, packets, rewritten.is_some(), port, max_len, out)?;
                    check_length(out)?;
                    continue;
                }
                Action::Enqueue { port, queue_id } => {
                    self.check_inside(tenant, &rewritten, &mut inside)?;
                    let physical = port.is_physical() || port == PortNo::IN_PORT;
                    if !physical || !self.may_use_port(tenant, port) {
                        return Err(code::BAD_ACTION_BAD_OUT_PORT);
                    }
                    if !self.tenants[tenant.0 as usize].queues.contains(&queue_id) {
                        return Err(code::BAD_ACTION_BAD_QUEUE);
                    }
                    action.write(out);
                    continue;
                }
                Action::Vendor { vendor, .. } => {
                    if !self.tenants[tenant.0 as usize].experimenters.contains(&vendor) {
                        return Err(code::BAD_ACTION_BAD_VENDOR);
                    }
                    action.write(out);
                    continue;
                }
                Action::Unknown { .. } => return Err(code::BAD_ACTION_BAD_TYPE),
                Action::SetVlanVid(vid) if vid > 0xfff => {
                    return Err(code::BAD_ACTION_BAD_ARGUMENT);
                }
                Action::SetVlanPcp(pcp) if pcp > 7 => return Err(code::BAD_ACTION_BAD_ARGUMENT),
                Action::SetNwTos(tos) if tos & 3 != 0 => {
                    return Err(code::BAD_ACTION_BAD_ARGUMENT);
                }
                rewrite => region(&rewritten).image_v10(&rewrite),
            };
            rewritten = Some(image);
            inside = false;
            action.write(out);
        }
        Ok(())
    }

    /// Whether the packets, if they were rewritten since the last look, are still within the tenant's space.
    fn check_inside(
        &self,
        tenant: TenantIndex,
        rewritten: &Option<Match>,
        inside: &mut bool,
    ) -> Result<(), ErrorCode> {
        if let Some(region) = rewritten
            && !*inside
        {
            // A packet that entered by no port has no port to be checked.
            let region = if region.exact_value(Field::InPort) == Some(NOWHERE) {
                region.without(Field::InPort)
            } else {
                *region
            };
            if !self.view.wins_everywhere(tenant, &region)
                && !self.wins_at_own_ports(tenant, &region)
            {
                return Err(code::BAD_ACTION_EPERM);
            }
            *inside = true;
        }
        Ok(())
    }

    /// For a region without a port: whether it is the tenant's at one of the tenant's ports.
    pub(crate) fn wins_at_own_ports(&self, tenant: TenantIndex, region: &Match) -> bool {
        region.is_wild(Field::InPort)
            && self.visible_ports(tenant).into_iter().any(|port| {
                self.view.wins_everywhere(tenant, &region.with(Field::InPort, u128::from(port)))
            })
    }

    fn output_v10(
        &self,
        tenant: TenantIndex,
        packets: Packets<'_>,
        rewritten: bool,
        port: PortNo,
        max_len: u16,
        out: &mut Vec<u8>,
    ) -> Result<(), ErrorCode> {
        match port {
            PortNo::FLOOD | PortNo::ALL if !self.view.may_output_everywhere(tenant) => {
                let entered = match packets {
                    Packets::Region(_) => None,
                    Packets::One(_, in_port) => in_port,
                };
                for (number, known) in &self.ports {
                    let flooded = port == PortNo::ALL || !known.no_flood;
                    let local = port_from_v10(PortNo::LOCAL.0);
                    if flooded
                        && *number != local
                        && Some(*number) != entered
                        && self.view.may_output(tenant, *number)
                        && let Some(port) = flowspace::port_to_v10(*number)
                    {
                        Action::Output { port: PortNo(port), max_len }.write(out);
                    }
                }
                Ok(())
            }
            PortNo::TABLE => {
                // Back through the tables, where the packet has to meet its own tenant's rules and no other's.
                let Packets::One(key, in_port) = packets else {
                    return Err(code::BAD_ACTION_BAD_OUT_PORT);
                };
                let own = self.view.owner(key) == Some(tenant);
                if !own || (rewritten && in_port.is_none()) {
                    return Err(code::BAD_ACTION_EPERM);
                }
                Action::Output { port, max_len }.write(out);
                Ok(())
            }
            PortNo::CONTROLLER => {
                let max_len = told::length(max_len, packets.dl_type());
                Action::Output { port, max_len }.write(out);
                Ok(())
            }
            port if self.may_use_port(tenant, port) => {
                Action::Output { port, max_len }.write(out);
                Ok(())
            }
            _ => Err(code::BAD_ACTION_BAD_OUT_PORT),
        }
    }

    /// Whether a packet may be sent to the port; NORMAL would hand it to a forwarding that knows no tenants.
    fn may_use_port(&self, tenant: TenantIndex, port: PortNo) -> bool {
        match port {
            PortNo::FLOOD | PortNo::ALL | PortNo::CONTROLLER | PortNo::IN_PORT => true,
            PortNo::NORMAL | PortNo::TABLE | PortNo::NONE => false,
            port => self.view.may_output(tenant, port_from_v10(port.0)),
        }
    }
}

/// Whether two lists do the same: a switch may report a length limit that it does not use.
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    let (Ok(a), Ok(b)) = (List::<Action<'_>>::parse(a), List::<Action<'_>>::parse(b)) else {
        return false;
    };
    let shortened = |action| match action {
        Action::Output { port, .. } if port != PortNo::CONTROLLER => {
            Action::Output { port, max_len: 0 }
        }
        other => other,
    };
    a.iter().map(shortened).eq(b.iter().map(shortened))
}

/// OFPP_NONE in the 32-bit numbering.
const NOWHERE: u128 = port_from_v10(PortNo::NONE.0) as u128;
