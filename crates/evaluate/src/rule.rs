//! Flow entries independent of the OpenFlow version, written as 1.0 or 1.3.
//!
//! The types have only the fields of experiments; the probes of experiments are UDP over IPv4. A
//! field that is `None` is a wildcard.

use std::net::Ipv4Addr;

use openflow::v13::{MatchBuf, Oxm, OxmField};
use openflow::{ListBuf, v10, v13};

/// A hardware address.
pub type Mac = [u8; 6];

/// The match on a VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vlan {
    /// The packet has no tag.
    Untagged,
    /// The packet has a tag with this id.
    Id(u16),
}

/// The match of an entry; fields that need IPv4 imply IPv4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// The ingress port.
    pub in_port: Option<u32>,
    /// The Ethernet source address.
    pub source_mac: Option<Mac>,
    /// The Ethernet destination address.
    pub destination_mac: Option<Mac>,
    /// The VLAN tag.
    pub vlan: Option<Vlan>,
    /// The type of service; only the upper six bits count.
    pub tos: Option<u8>,
    /// The IPv4 source address.
    pub source: Option<Ipv4Addr>,
    /// The IPv4 destination address.
    pub destination: Option<Ipv4Addr>,
    /// The UDP source port.
    pub source_port: Option<u16>,
    /// The UDP destination port.
    pub destination_port: Option<u16>,
}

impl Match {
    /// Whether the match has UDP fields.
    fn is_udp(&self) -> bool {
        self.source_port.is_some() || self.destination_port.is_some()
    }

    /// Whether the match has IPv4 fields.
    fn is_ipv4(&self) -> bool {
        self.is_udp() || self.tos.is_some() || self.source.is_some() || self.destination.is_some()
    }

    pub(crate) fn to_v10(self) -> v10::Match {
        use v10::Wildcards as W;
        let mut wire = v10::Match::ANY;
        let mut given = W::NONE;
        if let Some(port) = self.in_port {
            wire.in_port = v10::PortNo(port_v10(port));
            given |= W::IN_PORT;
        }
        if let Some(mac) = self.source_mac {
            wire.dl_src = mac;
            given |= W::DL_SRC;
        }
        if let Some(mac) = self.destination_mac {
            wire.dl_dst = mac;
            given |= W::DL_DST;
        }
        match self.vlan {
            Some(Vlan::Untagged) => {
                // The VLAN priority has no meaning here, but an entry is exact only if the match has the field.
                wire.dl_vlan = v10::VLAN_NONE;
                given |= W::DL_VLAN | W::DL_VLAN_PCP;
            }
            Some(Vlan::Id(id)) => {
                wire.dl_vlan = id;
                given |= W::DL_VLAN;
            }
            None => {}
        }
        if self.is_ipv4() {
            wire.dl_type = ETHERTYPE_IPV4;
            given |= W::DL_TYPE;
        }
        if let Some(tos) = self.tos {
            wire.nw_tos = tos & 0xfc;
            given |= W::NW_TOS;
        }
        if self.is_udp() {
            wire.nw_proto = PROTOCOL_UDP;
            given |= W::NW_PROTO;
        }
        if let Some(port) = self.source_port {
            wire.tp_src = port;
            given |= W::TP_SRC;
        }
        if let Some(port) = self.destination_port {
            wire.tp_dst = port;
            given |= W::TP_DST;
        }
        wire.wildcards = W::ALL.without(given);
        if let Some(address) = self.source {
            wire.nw_src = address.to_bits();
            wire.wildcards = wire.wildcards.with_nw_src_prefix(32);
        }
        if let Some(address) = self.destination {
            wire.nw_dst = address.to_bits();
            wire.wildcards = wire.wildcards.with_nw_dst_prefix(32);
        }
        wire
    }

    pub(crate) fn to_v13(self) -> MatchBuf {
        let mut wire = MatchBuf::new();
        let mut exact = |field: OxmField, value: Option<u128>| {
            if let Some(value) = value {
                wire.exact(field, value);
            }
        };
        // Prerequisites come before the fields that need the prerequisites (specification 1.3.5, section 7.2.3.6).
        exact(OxmField::IN_PORT, self.in_port.map(u128::from));
        exact(OxmField::ETH_DST, self.destination_mac.map(mac_number));
        exact(OxmField::ETH_SRC, self.source_mac.map(mac_number));
        let vlan = self.vlan.map(|vlan| match vlan {
            Vlan::Untagged => v13::VLAN_NONE,
            Vlan::Id(id) => id | v13::VLAN_PRESENT,
        });
        exact(OxmField::VLAN_VID, vlan.map(u128::from));
        exact(OxmField::ETH_TYPE, self.is_ipv4().then_some(u128::from(ETHERTYPE_IPV4)));
        exact(OxmField::IP_DSCP, self.tos.map(|tos| u128::from(tos >> 2)));
        exact(OxmField::IP_PROTO, self.is_udp().then_some(u128::from(PROTOCOL_UDP)));
        exact(OxmField::IPV4_SRC, self.source.map(|address| address.to_bits().into()));
        exact(OxmField::IPV4_DST, self.destination.map(|address| address.to_bits().into()));
        exact(OxmField::UDP_SRC, self.source_port.map(u128::from));
        exact(OxmField::UDP_DST, self.destination_port.map(u128::from));
        wire
    }
}

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_VLAN: u16 = 0x8100;
const PROTOCOL_UDP: u8 = 17;

/// An action of an entry; a list of actions is executed in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send the packet out of a port.
    Output(u32),
    /// Send the complete packet to the controller.
    Controller,
    /// Send the packet out of a port through a queue.
    Enqueue {
        /// The port.
        port: u32,
        /// The queue.
        queue: u32,
    },
    /// Set the Ethernet source address.
    SetSourceMac(Mac),
    /// Set the Ethernet destination address.
    SetDestinationMac(Mac),
    /// Set the IPv4 source address.
    SetSource(Ipv4Addr),
    /// Set the IPv4 destination address.
    SetDestination(Ipv4Addr),
    /// Set the upper six bits of the type of service.
    SetTos(u8),
    /// Set the UDP source port.
    SetSourcePort(u16),
    /// Set the UDP destination port.
    SetDestinationPort(u16),
    /// Add an empty VLAN tag to an untagged packet. OpenFlow 1.0 has no such action: its actions for VLAN id and
    /// priority add the tag.
    PushVlan,
    /// Set the VLAN id.
    SetVlanId(u16),
    /// Set the VLAN priority.
    SetVlanPriority(u8),
    /// Remove the VLAN tag.
    StripVlan,
}

impl Action {
    fn push_v10(self, list: &mut ListBuf<v10::Action<'static>>) {
        list.push(match self {
            Action::Output(port) => {
                v10::Action::Output { port: v10::PortNo(port_v10(port)), max_len: 0 }
            }
            Action::Controller => {
                v10::Action::Output { port: v10::PortNo::CONTROLLER, max_len: u16::MAX }
            }
            Action::Enqueue { port, queue } => {
                v10::Action::Enqueue { port: v10::PortNo(port_v10(port)), queue_id: queue }
            }
            Action::SetSourceMac(mac) => v10::Action::SetDlSrc(mac),
            Action::SetDestinationMac(mac) => v10::Action::SetDlDst(mac),
            Action::SetSource(address) => v10::Action::SetNwSrc(address.to_bits()),
            Action::SetDestination(address) => v10::Action::SetNwDst(address.to_bits()),
            Action::SetTos(tos) => v10::Action::SetNwTos(tos & 0xfc),
            Action::SetSourcePort(port) => v10::Action::SetTpSrc(port),
            Action::SetDestinationPort(port) => v10::Action::SetTpDst(port),
            Action::PushVlan => return,
            Action::SetVlanId(id) => v10::Action::SetVlanVid(id),
            Action::SetVlanPriority(priority) => v10::Action::SetVlanPcp(priority),
            Action::StripVlan => v10::Action::StripVlan,
        });
    }

    fn push_v13(self, list: &mut ListBuf<v13::Action<'static>>) {
        let output = |port, max_len| v13::Action::Output { port, max_len };
        match self {
            Action::Output(port) => list.push(output(v13::PortNo(port), 0)),
            Action::Controller => {
                list.push(output(v13::PortNo::CONTROLLER, v13::CONTROLLER_NO_BUFFER));
            }
            Action::Enqueue { port, queue } => {
                list.push(v13::Action::SetQueue(queue));
                list.push(output(v13::PortNo(port), 0));
            }
            Action::SetSourceMac(mac) => set_field(list, OxmField::ETH_SRC, &mac),
            Action::SetDestinationMac(mac) => set_field(list, OxmField::ETH_DST, &mac),
            Action::SetSource(address) => set_field(list, OxmField::IPV4_SRC, &address.octets()),
            Action::SetDestination(address) => {
                set_field(list, OxmField::IPV4_DST, &address.octets());
            }
            Action::SetTos(tos) => set_field(list, OxmField::IP_DSCP, &[tos >> 2]),
            Action::SetSourcePort(port) => set_field(list, OxmField::UDP_SRC, &port.to_be_bytes()),
            Action::SetDestinationPort(port) => {
                set_field(list, OxmField::UDP_DST, &port.to_be_bytes());
            }
            Action::PushVlan => list.push(v13::Action::PushVlan(ETHERTYPE_VLAN)),
            Action::SetVlanId(id) => {
                set_field(list, OxmField::VLAN_VID, &(id | v13::VLAN_PRESENT).to_be_bytes());
            }
            Action::SetVlanPriority(priority) => set_field(list, OxmField::VLAN_PCP, &[priority]),
            Action::StripVlan => list.push(v13::Action::PopVlan),
        }
    }
}

fn set_field(list: &mut ListBuf<v13::Action<'static>>, field: OxmField, value: &[u8]) {
    list.push(v13::Action::SetField(Oxm::exact(field, value)));
}

pub(crate) fn actions_v10(actions: &[Action]) -> ListBuf<v10::Action<'static>> {
    let mut list = ListBuf::new();
    actions.iter().for_each(|action| action.push_v10(&mut list));
    list
}

pub(crate) fn actions_v13(actions: &[Action]) -> ListBuf<v13::Action<'static>> {
    let mut list = ListBuf::new();
    actions.iter().for_each(|action| action.push_v13(&mut list));
    list
}

/// A flow entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The match of the entry.
    pub match_: Match,
    /// The priority; the entry with the highest priority wins.
    pub priority: u16,
    /// The actions; an empty list drops the packet.
    pub actions: Vec<Action>,
}

/// Converts the number of a port to 1.0; the 16-bit numbers of reserved ports are the lower 16 bits.
pub(crate) fn port_v10(port: u32) -> u16 {
    port as u16
}

fn mac_number(mac: Mac) -> u128 {
    mac.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}
