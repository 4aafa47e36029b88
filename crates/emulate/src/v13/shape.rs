//! The headers that a packet certainly has at a place in an action list, on which actions may rely.

use flowspace::{Field, Match};
use openflow::ErrorCode;
use openflow::error::v13 as code;
use openflow::v13::OxmField;

use crate::action::Action;
use crate::frame::{ETH_ARP, ETH_IPV4, ETH_IPV6, ETH_MPLS, ETH_MPLS_MULTICAST};

/// The headers that matter to actions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shape {
    /// The minimum number of VLAN tags.
    vlan_tags: u8,
    ether_type: Option<u16>,
    protocol: Option<u8>,
    icmp_type: Option<u8>,
}

const RARP: u16 = 0x8035;
const ICMPV6: u8 = 58;

impl Shape {
    /// The headers that packets of a match certainly have.
    pub(super) fn of(match_: &Match) -> Shape {
        let exact = |field| match_.is_exact(field).then(|| match_.get(field).0);
        Shape {
            vlan_tags: u8::from(has_vlan_tag(match_)),
            ether_type: exact(Field::DlType).map(|value| value as u16),
            protocol: exact(Field::NwProto).map(|value| value as u8),
            icmp_type: exact(Field::TpSrc).map(|value| value as u8),
        }
    }

    /// Checks that an action finds the headers that it needs. Returns the headers after the action.
    pub(super) fn after(mut self, action: &Action) -> Result<Shape, ErrorCode> {
        let has_what_it_needs = match *action {
            Action::PopVlan => self.vlan_tags > 0,
            Action::PopMpls(_) | Action::SetMplsTtl(_) | Action::DecMplsTtl => self.is_mpls(),
            Action::SetNwTtl(_) | Action::DecNwTtl => self.is_ip(),
            Action::SetField { field, .. } => self.has_field(field),
            _ => true,
        };
        if !has_what_it_needs {
            return Err(code::BAD_ACTION_MATCH_INCONSISTENT);
        }
        match *action {
            Action::PushVlan(_) => self.vlan_tags = self.vlan_tags.saturating_add(1),
            Action::PopVlan => self.vlan_tags -= 1,
            Action::PushMpls(ether_type) | Action::PopMpls(ether_type) => {
                self.ether_type = Some(ether_type);
                self.protocol = None;
                self.icmp_type = None;
            }
            _ => {}
        }
        Ok(self)
    }

    fn has_field(&self, field: OxmField) -> bool {
        let ip = |protocol: u8| self.is_ip() && self.protocol == Some(protocol);
        let neighbour = |wanted: &[u8]| {
            ip(ICMPV6) && self.icmp_type.is_some_and(|icmp_type| wanted.contains(&icmp_type))
        };
        match field {
            OxmField::VLAN_VID | OxmField::VLAN_PCP => self.vlan_tags > 0,
            OxmField::IP_DSCP | OxmField::IP_ECN => self.is_ip(),
            OxmField::IPV4_SRC | OxmField::IPV4_DST => self.ether_type == Some(ETH_IPV4),
            OxmField::IPV6_SRC | OxmField::IPV6_DST | OxmField::IPV6_FLABEL => {
                self.ether_type == Some(ETH_IPV6)
            }
            OxmField::TCP_SRC | OxmField::TCP_DST => ip(6),
            OxmField::UDP_SRC | OxmField::UDP_DST => ip(17),
            OxmField::SCTP_SRC | OxmField::SCTP_DST => ip(132),
            OxmField::ICMPV4_TYPE | OxmField::ICMPV4_CODE => ip(1),
            OxmField::ICMPV6_TYPE | OxmField::ICMPV6_CODE => ip(ICMPV6),
            OxmField::IPV6_ND_TARGET => neighbour(&[135, 136]),
            OxmField::IPV6_ND_SLL => neighbour(&[135]),
            OxmField::IPV6_ND_TLL => neighbour(&[136]),
            OxmField::ARP_OP
            | OxmField::ARP_SPA
            | OxmField::ARP_TPA
            | OxmField::ARP_SHA
            | OxmField::ARP_THA => matches!(self.ether_type, Some(ETH_ARP | RARP)),
            OxmField::MPLS_LABEL | OxmField::MPLS_TC => self.is_mpls(),
            _ => true,
        }
    }

    fn is_ip(&self) -> bool {
        matches!(self.ether_type, Some(ETH_IPV4 | ETH_IPV6))
    }

    fn is_mpls(&self) -> bool {
        matches!(self.ether_type, Some(ETH_MPLS | ETH_MPLS_MULTICAST))
    }
}

/// Whether packets of a match certainly have a VLAN tag.
fn has_vlan_tag(match_: &Match) -> bool {
    let (value, mask) = match_.get(Field::VlanVid);
    value & mask & flowspace::field::VLAN_PRESENT != 0
}
