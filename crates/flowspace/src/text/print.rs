//! Writes a match, in the order and the words of `ovs-ofctl dump-flows`.

use core::fmt::{self, Display, Formatter, LowerHex, Write};
use core::net::{Ipv4Addr, Ipv6Addr};

use super::vocabulary::{KEYWORDS, PORTS, tci_from_vlan_bits};
use crate::field::{VLAN_WORD, ethertype};
use crate::{Field, Match, port_to_v10};

impl Display for Match {
    /// The text that `ovs-ofctl` would print. Reading the text gives the same match.
    ///
    /// There are two exceptions, which a switch cannot get as one match: a part of a
    /// [`Match::subtract`] may have a partial mask on a field whose text form has no mask, and port
    /// numbers from 0xff00 to 0xffff, which 1.3 allows, are read as 1.0's reserved numbers.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Printer { match_: self, out: f, begun: false }.all()
    }
}

struct Printer<'a, 'b> {
    match_: &'a Match,
    out: &'a mut Formatter<'b>,
    begun: bool,
}

impl Printer<'_, '_> {
    fn all(&mut self) -> fmt::Result {
        let dl_type = self.match_.exact_u16(Field::DlType);
        let keyword = self.keyword(dl_type);
        if let Some((word, _)) = keyword {
            self.item()?;
            self.out.write_str(word)?;
        }
        self.number("tun_id", Field::TunnelId, Base::Hex)?;
        self.number("metadata", Field::Metadata, Base::Hex)?;
        self.in_port()?;
        self.number("in_phy_port", Field::InPhyPort, Base::Decimal)?;
        self.vlan()?;
        self.ethernet("dl_src", Field::DlSrc)?;
        self.ethernet("dl_dst", Field::DlDst)?;
        if keyword.is_none() {
            self.number("dl_type", Field::DlType, Base::PaddedHex(4))?;
        }
        let has_protocol = keyword.is_some_and(|(_, protocol)| protocol);
        match dl_type {
            Some(ethertype::ARP | ethertype::RARP) => self.arp(),
            Some(ethertype::IP) => {
                self.ipv4("nw_src", Field::NwSrc)?;
                self.ipv4("nw_dst", Field::NwDst)?;
                self.ip(has_protocol)
            }
            Some(ethertype::IPV6) => {
                self.ipv6("ipv6_src", Field::Ipv6Src)?;
                self.ipv6("ipv6_dst", Field::Ipv6Dst)?;
                self.number("ipv6_label", Field::Ipv6Label, Base::PaddedHex(5))?;
                self.number("ipv6_exthdr", Field::Ipv6Exthdr, Base::Hex)?;
                self.ip(has_protocol)
            }
            Some(ethertype::MPLS | ethertype::MPLS_MULTICAST) => {
                self.number("mpls_label", Field::MplsLabel, Base::Decimal)?;
                self.number("mpls_tc", Field::MplsTc, Base::Decimal)?;
                self.number("mpls_bos", Field::MplsBos, Base::Decimal)
            }
            Some(ethertype::PBB) => self.number("pbb_isid", Field::PbbIsid, Base::Hex),
            _ => Ok(()),
        }
    }

    /// The word for the Ethernet type, and whether the word includes the IP protocol.
    fn keyword(&self, dl_type: Option<u16>) -> Option<(&'static str, bool)> {
        let dl_type = dl_type?;
        let protocol = self.match_.exact_u16(Field::NwProto);
        let of_type = || KEYWORDS.iter().filter(|keyword| keyword.ethertype == Some(dl_type));
        let with_protocol = of_type().find(|keyword| {
            keyword.protocol.is_some() && keyword.protocol.map(u16::from) == protocol
        });
        match with_protocol {
            Some(keyword) => Some((keyword.word, true)),
            None => of_type().next().map(|keyword| (keyword.word, false)),
        }
    }

    fn arp(&mut self) -> fmt::Result {
        self.ipv4("arp_spa", Field::ARP_SPA)?;
        self.ipv4("arp_tpa", Field::ARP_TPA)?;
        self.number("arp_op", Field::ArpOp, Base::Decimal)?;
        self.ethernet("arp_sha", Field::ArpSha)?;
        self.ethernet("arp_tha", Field::ArpTha)
    }

    /// Writes the fields that IPv4 and IPv6 have in common.
    fn ip(&mut self, has_protocol: bool) -> fmt::Result {
        if !has_protocol {
            self.number("nw_proto", Field::NwProto, Base::Decimal)?;
        }
        match self.match_.get(Field::NwDscp) {
            (_, 0) => {}
            (dscp, 0x3f) => {
                self.item()?;
                write!(self.out, "nw_tos={}", dscp << 2)?;
            }
            _ => self.number("ip_dscp", Field::NwDscp, Base::Decimal)?,
        }
        self.number("nw_ecn", Field::NwEcn, Base::Decimal)?;
        if !self.match_.is_icmp() {
            self.number("tp_src", Field::TpSrc, Base::Decimal)?;
            return self.number("tp_dst", Field::TpDst, Base::Decimal);
        }
        self.number("icmp_type", Field::ICMP_TYPE, Base::Decimal)?;
        self.number("icmp_code", Field::ICMP_CODE, Base::Decimal)?;
        if self.match_.exact_u16(Field::DlType) == Some(ethertype::IPV6) {
            self.ipv6("nd_target", Field::NdTarget)?;
            self.ethernet("nd_sll", Field::ND_SLL)?;
            self.ethernet("nd_tll", Field::ND_TLL)?;
        }
        Ok(())
    }

    fn vlan(&mut self) -> fmt::Result {
        let value = tci_from_vlan_bits(self.match_.value.words[VLAN_WORD]);
        let mask = tci_from_vlan_bits(self.match_.mask.words[VLAN_WORD]);
        let whole = |bits: u16| mask & bits == 0 || mask & bits == bits;
        let (vid, pcp, present) = (0x0fff, 0xe000, 0x1000);
        if mask == 0 {
            return Ok(());
        }
        if value & present != 0 && whole(vid) && whole(pcp) && mask != present {
            if mask & vid != 0 {
                self.item()?;
                write!(self.out, "dl_vlan={}", value & vid)?;
            }
            if mask & pcp != 0 {
                self.item()?;
                write!(self.out, "dl_vlan_pcp={}", value >> 13)?;
            }
            return Ok(());
        }
        self.item()?;
        write!(self.out, "vlan_tci=0x{value:04x}")?;
        if mask != 0xffff {
            write!(self.out, "/0x{mask:04x}")?;
        }
        Ok(())
    }

    fn in_port(&mut self) -> fmt::Result {
        let Some(port) = self.match_.exact_value(Field::InPort).map(|port| port as u32) else {
            return self.number("in_port", Field::InPort, Base::Decimal);
        };
        self.item()?;
        match (PORTS.iter().find(|(_, number)| *number == port), port_to_v10(port)) {
            (Some((name, _)), _) => write!(self.out, "in_port={name}"),
            (None, Some(number)) => write!(self.out, "in_port={number}"),
            (None, None) => write!(self.out, "in_port={port}"),
        }
    }

    fn number(&mut self, name: &str, field: Field, base: Base) -> fmt::Result {
        let (value, mask) = self.match_.get(field);
        if mask == 0 {
            return Ok(());
        }
        self.item()?;
        write!(self.out, "{name}=")?;
        if mask == field.full_mask() {
            return base.write(self.out, value);
        }
        let base = if matches!(base, Base::Decimal) { Base::Hex } else { base };
        base.write(self.out, value)?;
        self.out.write_char('/')?;
        base.write(self.out, mask)
    }

    fn ethernet(&mut self, name: &str, field: Field) -> fmt::Result {
        self.address(name, field, |bits| EthernetAddress(bits as u64), false)
    }

    fn ipv4(&mut self, name: &str, field: Field) -> fmt::Result {
        self.address(name, field, |bits| Ipv4Addr::from_bits(bits as u32), true)
    }

    fn ipv6(&mut self, name: &str, field: Field) -> fmt::Result {
        self.address(name, field, Ipv6Addr::from_bits, true)
    }

    fn address<A: Display>(
        &mut self,
        name: &str,
        field: Field,
        address: impl Fn(u128) -> A,
        has_prefixes: bool,
    ) -> fmt::Result {
        let (value, mask) = self.match_.get(field);
        if mask == 0 {
            return Ok(());
        }
        self.item()?;
        write!(self.out, "{name}={}", address(value))?;
        let wild = field.full_mask() & !mask;
        let is_prefix = wild & (wild + 1) == 0;
        match wild {
            0 => Ok(()),
            _ if has_prefixes && is_prefix => write!(self.out, "/{}", mask.count_ones()),
            _ => write!(self.out, "/{}", address(mask)),
        }
    }

    /// Begins the next item of the list.
    fn item(&mut self) -> fmt::Result {
        if core::mem::replace(&mut self.begun, true) { self.out.write_char(',') } else { Ok(()) }
    }
}

#[derive(Clone, Copy)]
enum Base {
    Decimal,
    /// `0x` and digits, but 0 is `0`.
    Hex,
    /// `0x` and at least so many digits.
    PaddedHex(usize),
}

impl Base {
    fn write(self, out: &mut Formatter<'_>, value: u128) -> fmt::Result {
        match self {
            Base::Hex if value != 0 => {
                out.write_str("0x")?;
                LowerHex::fmt(&value, out)
            }
            Base::Decimal | Base::Hex => write!(out, "{value}"),
            Base::PaddedHex(width) => write!(out, "0x{value:0width$x}"),
        }
    }
}

pub(super) struct EthernetAddress(pub(super) u64);

impl Display for EthernetAddress {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let [_, _, a, b, c, d, e, g] = self.0.to_be_bytes();
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}
