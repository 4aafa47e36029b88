//! Prerequisites of a field under one of its names: `tp_src` of any transport is
//! [`Field::TpSrc`](crate::Field::TpSrc), but `tcp_src` exists only in TCP. The text form and OXM
//! share this module.

use crate::field::{
    NEIGHBOUR_ADVERTISEMENT, NEIGHBOUR_SOLICITATION, ethertype as eth, ip_proto as proto,
};
use crate::{Field, Match};

/// The fields that must be matched exactly before a field may be matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    /// One of these Ethernet types, if any are given.
    ethertypes: &'static [u16],
    /// One of these IP protocols, if any are given.
    protocols: &'static [u8],
    /// One of these ICMPv6 types, if any are given.
    icmpv6_types: &'static [u16],
    /// The words that a user has to write for these prerequisites.
    advice: &'static str,
}

impl Needs {
    pub(crate) const NOTHING: Needs = Needs::ethertypes(&[], "nothing");
    /// The port itself: [`Match::permits`] knows.
    pub(crate) const IN_PORT: Needs = Needs::ethertypes(&[], "in_port");
    /// A VLAN tag: [`Match::permits`] knows.
    pub(crate) const VLAN: Needs = Needs::ethertypes(&[], "a VLAN id that is not \"none\"");
    pub(crate) const IP: Needs = Needs::ethertypes(&[eth::IP, eth::IPV6], "ip or ipv6");
    pub(crate) const IP_OR_ARP: Needs =
        Needs::ethertypes(&[eth::IP, eth::IPV6, eth::ARP, eth::RARP], "ip, ipv6 or arp");
    pub(crate) const IPV4: Needs = Needs::ethertypes(&[eth::IP], "ip");
    pub(crate) const IPV4_OR_ARP: Needs =
        Needs::ethertypes(&[eth::IP, eth::ARP, eth::RARP], "ip or arp");
    pub(crate) const IPV6: Needs = Needs::ethertypes(&[eth::IPV6], "ipv6");
    pub(crate) const ARP: Needs = Needs::ethertypes(&[eth::ARP, eth::RARP], "arp or rarp");
    pub(crate) const MPLS: Needs =
        Needs::ethertypes(&[eth::MPLS, eth::MPLS_MULTICAST], "mpls or mplsm");
    pub(crate) const PBB: Needs = Needs::ethertypes(&[eth::PBB], "dl_type=0x88e7");
    pub(crate) const TCP: Needs =
        Needs::transport(&[eth::IP, eth::IPV6], &[proto::TCP], "tcp or tcp6");
    pub(crate) const UDP: Needs =
        Needs::transport(&[eth::IP, eth::IPV6], &[proto::UDP], "udp or udp6");
    pub(crate) const SCTP: Needs =
        Needs::transport(&[eth::IP, eth::IPV6], &[proto::SCTP], "sctp or sctp6");
    pub(crate) const ICMPV4: Needs = Needs::transport(&[eth::IP], &[proto::ICMP], "icmp");
    pub(crate) const ICMPV6: Needs = Needs::transport(&[eth::IPV6], &[proto::ICMPV6], "icmp6");
    pub(crate) const SOLICITATION: Needs =
        Needs::neighbour(&[NEIGHBOUR_SOLICITATION], "icmp6,icmp_type=135");
    pub(crate) const ADVERTISEMENT: Needs =
        Needs::neighbour(&[NEIGHBOUR_ADVERTISEMENT], "icmp6,icmp_type=136");
    pub(crate) const NEIGHBOUR: Needs = Needs::neighbour(
        &[NEIGHBOUR_SOLICITATION, NEIGHBOUR_ADVERTISEMENT],
        "icmp6,icmp_type=135 or icmp6,icmp_type=136",
    );
    /// [`Match::permits`] checks that each protocol belongs to one IP version.
    pub(crate) const ICMP: Needs =
        Needs::transport(&[eth::IP, eth::IPV6], &[proto::ICMP, proto::ICMPV6], "icmp or icmp6");
    /// Any transport: [`Match::permits`] knows.
    pub(crate) const TRANSPORT: Needs =
        Needs::ethertypes(&[eth::IP, eth::IPV6], "tcp, udp, sctp or icmp (or tcp6, …)");

    const fn ethertypes(ethertypes: &'static [u16], advice: &'static str) -> Needs {
        Needs { ethertypes, protocols: &[], icmpv6_types: &[], advice }
    }

    const fn transport(
        ethertypes: &'static [u16],
        protocols: &'static [u8],
        advice: &'static str,
    ) -> Needs {
        Needs { ethertypes, protocols, icmpv6_types: &[], advice }
    }

    const fn neighbour(icmpv6_types: &'static [u16], advice: &'static str) -> Needs {
        Needs { ethertypes: &[eth::IPV6], protocols: &[proto::ICMPV6], icmpv6_types, advice }
    }

    pub(crate) const fn advice(&self) -> &'static str {
        self.advice
    }

    /// Whether every packet of the set meets the prerequisites.
    pub(crate) fn met_by(&self, match_: &Match) -> bool {
        let is_one_of = |field, choices: &[u16]| {
            choices.is_empty() || match_.exact_u16(field).is_some_and(|v| choices.contains(&v))
        };
        is_one_of(Field::DlType, self.ethertypes)
            && (self.protocols.is_empty()
                || match_
                    .exact_u16(Field::NwProto)
                    .is_some_and(|v| self.protocols.iter().any(|&p| u16::from(p) == v)))
            && is_one_of(Field::TpSrc, self.icmpv6_types)
    }
}
