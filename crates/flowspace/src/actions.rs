//! The image of a set of packets under an OpenFlow action: [`crate::Match::rewrite`] and its
//! companions under the names of the protocol.

use openflow::{v10, v13};

use crate::v10::ethernet;
use crate::v13::set_field_row;
use crate::{Field, Match};

impl Match {
    /// The image of this set under a 1.0 action, or a superset of it.
    ///
    /// Output and ENQUEUE do not change packets. The effect of a vendor's or unknown action is
    /// unknown, so its image is [`Match::ANY`].
    #[must_use]
    pub fn image_v10(&self, action: &v10::Action<'_>) -> Match {
        use v10::Action;
        match *action {
            Action::Output { .. } | Action::Enqueue { .. } => *self,
            Action::SetVlanVid(vid) => self.set_vlan_vid_v10(vid),
            Action::SetVlanPcp(pcp) => self.set_vlan_pcp_v10(pcp),
            Action::StripVlan => self.pop_vlan(),
            Action::SetDlSrc(address) => self.rewrite(Field::DlSrc, ethernet(address)),
            Action::SetDlDst(address) => self.rewrite(Field::DlDst, ethernet(address)),
            Action::SetNwSrc(address) => self.rewrite_unless_arp(Field::NwSrc, address),
            Action::SetNwDst(address) => self.rewrite_unless_arp(Field::NwDst, address),
            Action::SetNwTos(tos) => self.rewrite(Field::NwDscp, (tos >> 2).into()),
            Action::SetTpSrc(port) => self.rewrite_unless_icmp(Field::TpSrc, port),
            Action::SetTpDst(port) => self.rewrite_unless_icmp(Field::TpDst, port),
            Action::Vendor { .. } | Action::Unknown { .. } => Match::ANY,
        }
    }

    /// Whether 1.0's `SET_NW_*` changes an ARP packet's addresses differs between switches.
    fn rewrite_unless_arp(&self, field: Field, address: u32) -> Match {
        if self.is_arp() { self.without(field) } else { self.rewrite(field, address.into()) }
    }

    /// Whether 1.0's `SET_TP_*` changes an ICMP packet's type and code differs between switches.
    fn rewrite_unless_icmp(&self, field: Field, port: u16) -> Match {
        if self.is_icmp() { self.without(field) } else { self.rewrite(field, port.into()) }
    }

    /// The image of this set under a 1.3 action, or a superset of it.
    ///
    /// Actions that only send packets or count down a TTL do not change the set; the buckets of a
    /// group are separate lists of actions. The effect of an experimenter's or unknown action is
    /// unknown, so its image is [`Match::ANY`]. The same holds for a set-field of an unknown field.
    #[must_use]
    pub fn image_v13(&self, action: &v13::Action<'_>) -> Match {
        use v13::Action;
        match *action {
            Action::Output { .. }
            | Action::SetQueue(_)
            | Action::Group(_)
            | Action::CopyTtlOut
            | Action::CopyTtlIn
            | Action::SetMplsTtl(_)
            | Action::DecMplsTtl
            | Action::SetNwTtl(_)
            | Action::DecNwTtl => *self,
            Action::PushVlan(_) => self.push_vlan(),
            Action::PopVlan => self.pop_vlan(),
            Action::PushMpls(ethertype) => self.push_mpls(ethertype),
            Action::PopMpls(ethertype) => self.pop_mpls(ethertype),
            Action::PushPbb(_) => self.push_pbb(),
            Action::PopPbb => self.pop_pbb(),
            Action::SetField(oxm) => match (set_field_row(&oxm), oxm.number()) {
                // Without a tag to write to, a switch may refuse, do nothing, or add one.
                (Some((Field::VlanVid | Field::VlanPcp, _)), Some(_)) if !self.is_tagged() => {
                    self.with_unknown_tag()
                }
                (Some((field, needs)), Some(value)) if needs.met_by(self) => {
                    self.rewrite(field, value)
                }
                // The packets may lack the field, for example `tcp_src` on UDP packets, and
                // switches differ in the result.
                (Some((field, _)), Some(_)) => self.without(field),
                _ => Match::ANY,
            },
            Action::Experimenter { .. } | Action::Unknown { .. } => Match::ANY,
        }
    }

    fn with_unknown_tag(&self) -> Match {
        let mut image = *self;
        image.assign(Field::VlanVid, 0, 0);
        image.assign(Field::VlanPcp, 0, 0);
        image
    }
}
