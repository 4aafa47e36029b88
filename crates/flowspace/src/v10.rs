//! Converts from and to the match of OpenFlow 1.0 (section 5.2.3).

use core::fmt;

use openflow::v10::{self, PortNo, VLAN_NONE, Wildcards};

use crate::field::{VLAN_PRESENT, ethertype, ip_proto};
use crate::{Field, Match, port_from_v10, port_to_v10};

/// A set that one match of a version of OpenFlow cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Inexpressible {
    /// The field that cannot be expressed.
    pub field: Field,
    /// "1.0" or "1.3".
    pub version: &'static str,
}

impl fmt::Display for Inexpressible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenFlow {} cannot match {} like this", self.version, self.field.name())
    }
}

impl core::error::Error for Inexpressible {}

impl Match {
    /// The set of packets of a 1.0 match.
    ///
    /// The match is normalized as in Open vSwitch: a field whose prerequisite is not matched is
    /// ignored; IP protocol, DSCP and ports also apply to IPv6, addresses apply to IPv4, ARP and
    /// RARP; a priority without a VLAN id requires a tag; `OFP_VLAN_NONE` requires no tag and makes
    /// the priority meaningless.
    pub fn from_v10(wire: &v10::Match) -> Match {
        let wildcards = wire.wildcards;
        let given = |field| !wildcards.contains(field);
        let mut match_ = Match::ANY;
        let mut set = |is_given: bool, field: Field, value: u128| {
            if is_given {
                match_.assign(field, value, field.full_mask());
            }
        };
        let in_port = port_from_v10(wire.in_port.0);
        set(given(Wildcards::IN_PORT), Field::InPort, in_port.into());
        set(given(Wildcards::DL_SRC), Field::DlSrc, ethernet(wire.dl_src));
        set(given(Wildcards::DL_DST), Field::DlDst, ethernet(wire.dl_dst));
        set(given(Wildcards::DL_TYPE), Field::DlType, wire.dl_type.into());
        match_.set_vlan_from_v10(wire);
        match match_.exact_u16(Field::DlType) {
            Some(ethertype::IP) => {
                match_.set_addresses_from_v10(wire);
                match_.set_ip_from_v10(wire, ip_proto::ICMP);
            }
            Some(ethertype::IPV6) => match_.set_ip_from_v10(wire, ip_proto::ICMPV6),
            Some(ethertype::ARP | ethertype::RARP) => {
                match_.set_addresses_from_v10(wire);
                if given(Wildcards::NW_PROTO) {
                    let operation = u128::from(wire.nw_proto);
                    match_.assign(Field::ArpOp, operation, Field::ArpOp.full_mask());
                }
            }
            _ => {}
        }
        match_
    }

    fn set_vlan_from_v10(&mut self, wire: &v10::Match) {
        let vid = !wire.wildcards.contains(Wildcards::DL_VLAN);
        let pcp = !wire.wildcards.contains(Wildcards::DL_VLAN_PCP);
        if vid && wire.dl_vlan == VLAN_NONE {
            *self = self.with(Field::VlanVid, 0);
            return;
        }
        if vid {
            *self = self.with(Field::VlanVid, u128::from(wire.dl_vlan & 0xfff) | VLAN_PRESENT);
        }
        if pcp {
            *self = self.with(Field::VlanPcp, u128::from(wire.dl_vlan_pcp));
        }
    }

    fn set_addresses_from_v10(&mut self, wire: &v10::Match) {
        let mask = |length: u8| !u32::MAX.checked_shr(length.into()).unwrap_or(0);
        let source = mask(wire.wildcards.nw_src_prefix());
        let destination = mask(wire.wildcards.nw_dst_prefix());
        self.assign(Field::NwSrc, wire.nw_src.into(), source.into());
        self.assign(Field::NwDst, wire.nw_dst.into(), destination.into());
    }

    fn set_ip_from_v10(&mut self, wire: &v10::Match, icmp: u8) {
        let given = |field| !wire.wildcards.contains(field);
        if given(Wildcards::NW_TOS) {
            self.assign(Field::NwDscp, (wire.nw_tos >> 2).into(), Field::NwDscp.full_mask());
        }
        if !given(Wildcards::NW_PROTO) {
            return;
        }
        self.assign(Field::NwProto, wire.nw_proto.into(), Field::NwProto.full_mask());
        let transports = [ip_proto::TCP, ip_proto::UDP, ip_proto::SCTP, icmp];
        if !transports.contains(&wire.nw_proto) {
            return;
        }
        if given(Wildcards::TP_SRC) {
            self.assign(Field::TpSrc, wire.tp_src.into(), Field::TpSrc.full_mask());
        }
        if given(Wildcards::TP_DST) {
            self.assign(Field::TpDst, wire.tp_dst.into(), Field::TpDst.full_mask());
        }
    }

    /// The 1.0 match with exactly this set of packets.
    ///
    /// # Errors
    /// Names the first field that 1.0 does not have or cannot mask in this way.
    pub fn to_v10(&self) -> Result<v10::Match, Inexpressible> {
        let mut wire = v10::Match::ANY;
        if let Some(port) = self.whole(Field::InPort)? {
            let refused = Inexpressible { field: Field::InPort, version: "1.0" };
            wire.in_port = PortNo(port_to_v10(port as u32).ok_or(refused)?);
            clear(&mut wire, Wildcards::IN_PORT);
        }
        if let Some(address) = self.whole(Field::DlSrc)? {
            wire.dl_src = ethernet_bytes(address);
            clear(&mut wire, Wildcards::DL_SRC);
        }
        if let Some(address) = self.whole(Field::DlDst)? {
            wire.dl_dst = ethernet_bytes(address);
            clear(&mut wire, Wildcards::DL_DST);
        }
        if let Some(dl_type) = self.whole(Field::DlType)? {
            wire.dl_type = dl_type as u16;
            clear(&mut wire, Wildcards::DL_TYPE);
        }
        self.vlan_to_v10(&mut wire)?;
        if self.is_arp() {
            self.addresses_to_v10(&mut wire)?;
            self.arp_operation_to_v10(&mut wire)?;
        } else if self.exact_u16(Field::DlType) == Some(ethertype::IP) {
            self.addresses_to_v10(&mut wire)?;
            self.ip_to_v10(&mut wire)?;
        } else if self.exact_u16(Field::DlType) == Some(ethertype::IPV6) {
            self.ip_to_v10(&mut wire)?;
        }
        match self.field_unknown_to_v10() {
            Some(field) => Err(Inexpressible { field, version: "1.0" }),
            None => Ok(wire),
        }
    }

    fn vlan_to_v10(&self, wire: &mut v10::Match) -> Result<(), Inexpressible> {
        if self.is_untagged() {
            wire.dl_vlan = VLAN_NONE;
            clear(wire, Wildcards::DL_VLAN);
            return Ok(());
        }
        let pcp = self.whole(Field::VlanPcp)?;
        if let Some(pcp) = pcp {
            wire.dl_vlan_pcp = pcp as u8;
            clear(wire, Wildcards::DL_VLAN_PCP);
        }
        match self.get(Field::VlanVid) {
            (_, 0) if pcp.is_none() => Ok(()),
            // With a priority, "any VLAN id" still requires a tag.
            (VLAN_PRESENT, VLAN_PRESENT) if pcp.is_some() => Ok(()),
            (vid, 0x1fff) => {
                wire.dl_vlan = (vid & 0xfff) as u16;
                clear(wire, Wildcards::DL_VLAN);
                Ok(())
            }
            _ => Err(Inexpressible { field: Field::VlanVid, version: "1.0" }),
        }
    }

    fn addresses_to_v10(&self, wire: &mut v10::Match) -> Result<(), Inexpressible> {
        let source = self.prefix_length(Field::NwSrc)?;
        let destination = self.prefix_length(Field::NwDst)?;
        wire.nw_src = self.value.get(Field::NwSrc) as u32;
        wire.nw_dst = self.value.get(Field::NwDst) as u32;
        wire.wildcards = wire.wildcards.with_nw_src_prefix(source).with_nw_dst_prefix(destination);
        Ok(())
    }

    fn arp_operation_to_v10(&self, wire: &mut v10::Match) -> Result<(), Inexpressible> {
        let refused = Inexpressible { field: Field::ArpOp, version: "1.0" };
        if let Some(operation) = self.whole(Field::ArpOp)? {
            wire.nw_proto = u8::try_from(operation).map_err(|_| refused)?;
            clear(wire, Wildcards::NW_PROTO);
        }
        Ok(())
    }

    fn ip_to_v10(&self, wire: &mut v10::Match) -> Result<(), Inexpressible> {
        if let Some(dscp) = self.whole(Field::NwDscp)? {
            wire.nw_tos = (dscp << 2) as u8;
            clear(wire, Wildcards::NW_TOS);
        }
        if let Some(protocol) = self.whole(Field::NwProto)? {
            wire.nw_proto = protocol as u8;
            clear(wire, Wildcards::NW_PROTO);
        }
        if let Some(port) = self.whole(Field::TpSrc)? {
            wire.tp_src = port as u16;
            clear(wire, Wildcards::TP_SRC);
        }
        if let Some(port) = self.whole(Field::TpDst)? {
            wire.tp_dst = port as u16;
            clear(wire, Wildcards::TP_DST);
        }
        Ok(())
    }

    /// A field's value if it is matched whole, `None` if it is wild.
    fn whole(&self, field: Field) -> Result<Option<u128>, Inexpressible> {
        match self.get(field) {
            (_, 0) => Ok(None),
            (value, mask) if mask == field.full_mask() => Ok(Some(value)),
            _ => Err(Inexpressible { field, version: "1.0" }),
        }
    }

    fn prefix_length(&self, field: Field) -> Result<u8, Inexpressible> {
        let mask = self.mask.get(field) as u32;
        let length = mask.leading_ones();
        if mask.count_ones() == length {
            Ok(length as u8)
        } else {
            Err(Inexpressible { field, version: "1.0" })
        }
    }

    fn field_unknown_to_v10(&self) -> Option<Field> {
        let mut unknown = [
            Field::InPhyPort,
            Field::Metadata,
            Field::TunnelId,
            Field::NwEcn,
            Field::MplsLabel,
            Field::MplsTc,
            Field::MplsBos,
            Field::PbbIsid,
            Field::Ipv6Src,
            Field::Ipv6Dst,
            Field::Ipv6Label,
            Field::Ipv6Exthdr,
            Field::ArpSha,
            Field::ArpTha,
            Field::NdTarget,
        ]
        .into_iter();
        unknown.find(|&field| !self.is_wild(field))
    }
}

fn clear(wire: &mut v10::Match, bit: Wildcards) {
    wire.wildcards = Wildcards(wire.wildcards.0 & !bit.0);
}

/// An Ethernet address as a field's value.
pub(crate) fn ethernet(bytes: [u8; 6]) -> u128 {
    let [a, b, c, d, e, f] = bytes;
    u64::from_be_bytes([0, 0, a, b, c, d, e, f]).into()
}

fn ethernet_bytes(address: u128) -> [u8; 6] {
    let [_, _, a, b, c, d, e, f] = (address as u64).to_be_bytes();
    [a, b, c, d, e, f]
}
