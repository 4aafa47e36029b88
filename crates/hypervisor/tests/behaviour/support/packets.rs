//! Frames by name. `10.1.0.1>10.1.0.2` is a UDP datagram, and `arp:10.1.0.1>10.1.0.2` is an ARP request. `vlan5:…` is
//! the datagram with a VLAN tag: the number is the last 16 bits of the tag, so `vlan8197` is VLAN 5 with priority 1.
//! `tp99:…` is the datagram to this port, `ttl1:…` is the datagram with this time to live, and `lldp` is a link probe.
//! A name with `*3` has 3 more bytes of data. ` dl_src=… dl_dst=…` after a name are other Ethernet addresses.

use emulate::frame::build::{Path, host_mac};
use fabric::discovery::{Discovery, Settings};
use fabric::{Dpid, Instant, LldpKey, PortId, PortNumber};
use flowspace::{Field, Key};
use openflow::v13::{self, MatchBuf, OxmField};
use openflow::{Version, v10};
use std::net::Ipv4Addr;

/// The match of one packet, without the ingress port and the VLAN.
pub const ONE_PACKET: &str = "dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,udp,nw_tos=0,\
    nw_src=10.1.0.1,nw_dst=10.0.0.2,tp_src=1000,tp_dst=2000";

/// The match of one packet with a VLAN tag, without the ingress port. With the ingress port the match has no wildcards.
pub fn but_for_the_port() -> String {
    format!("dl_vlan=5,dl_vlan_pcp=0,{ONE_PACKET}")
}

/// The place of the IPv4 time to live in a frame.
const TTL: usize = 14 + 8;

/// The frame with this name.
pub fn packet(name: &str) -> Vec<u8> {
    if let Some((name, address)) = name.rsplit_once(' ') {
        let mut frame = packet(name);
        let (field, address) = address.split_once('=').unwrap();
        let at = if field == "dl_dst" { 0 } else { 6 };
        let octets = address.split(':').map(|octet| u8::from_str_radix(octet, 16).unwrap());
        frame.splice(at..at + 6, octets);
        return frame;
    }
    if name == "lldp" {
        return lldp();
    }
    if let Some(hex) = name.strip_prefix("hex:") {
        return (0..hex.len() / 2)
            .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
            .collect();
    }
    let (kind, ends) = name.split_once(':').unwrap_or(("", name));
    let (ends, more) = ends.split_once('*').unwrap_or((ends, "0"));
    let (from, to) = ends.split_once('>').unwrap_or_else(|| panic!("no packet: {name}"));
    let [from, to]: [Ipv4Addr; 2] = [from.parse().unwrap(), to.parse().unwrap()];
    let path =
        Path { eth_src: mac_of(from), eth_dst: mac_of(to), ip_src: from.into(), ip_dst: to.into() };
    let data = vec![0x5a; 18 + more.parse::<usize>().unwrap()];
    if kind == "arp" {
        path.arp_request()
    } else if let Some(vid) = kind.strip_prefix("vlan") {
        let mut frame = path.udp(1000, 2000, &data);
        let tag = vid.parse::<u16>().unwrap().to_be_bytes();
        frame.splice(12..12, [0x81, 0x00, tag[0], tag[1]]);
        frame
    } else if let Some(hops) = kind.strip_prefix("ttl") {
        let mut frame = path.udp(1000, 2000, &data);
        frame[TTL] = hops.parse().unwrap();
        frame
    } else if let Some(port) = kind.strip_prefix("tp") {
        path.udp(1000, port.parse().unwrap(), &data)
    } else {
        path.udp(1000, 2000, &data)
    }
}

/// The name of a packet in descriptions.
pub fn name_of(data: &[u8]) -> String {
    let key = Key::extract(0, data);
    let addresses = || {
        let [from, to] = [Field::NwSrc, Field::NwDst]
            .map(|field| Ipv4Addr::from(key.get(field) as u32).to_string());
        format!("{from}>{to}")
    };
    let name = match key.get(Field::DlType) as u16 {
        0x0800 => addresses(),
        0x0806 => format!("arp:{}", addresses()),
        0x88cc => "lldp".to_owned(),
        other => format!("{other:#06x}"),
    };
    match data.get(12..16) {
        Some(&[0x81, 0x00, high, low]) => format!("vlan{}:{name}", u16::from_be_bytes([high, low])),
        _ => name,
    }
}

/// The differences from the sent frame: the name and the Ethernet addresses.
pub fn changes(sent: &[u8], got: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    if sent.get(12..) != got.get(12..) {
        all.push(name_of(got));
    }
    for (field, at) in [("dl_dst", 0..6), ("dl_src", 6..12)] {
        if sent.get(at.clone()) != got.get(at.clone()) {
            let octets: Vec<String> = got[at].iter().map(|octet| format!("{octet:02x}")).collect();
            all.push(format!("{field}={}", octets.join(":")));
        }
    }
    all
}

/// The address of the host with this IP address.
fn mac_of(ip: Ipv4Addr) -> [u8; 6] {
    let [_, b, _, d] = ip.octets();
    host_mac(u16::from_be_bytes([b, d]))
}

fn lldp() -> Vec<u8> {
    let mut frame = vec![0x01, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 0, 1, 0x88, 0xcc];
    frame.extend_from_slice(&[0x02, 0x07, 4, 2, 0, 0, 0, 0, 1]);
    frame.extend_from_slice(&[0x04, 0x03, 2, 0, 1]);
    frame.extend_from_slice(&[0x06, 0x02, 0, 120]);
    frame.extend_from_slice(&[0, 0]);
    frame
}

/// The PACKET_IN for a packet that the switch buffers under this number.
pub fn announcement(version: Version, number: u32, frame: &[u8]) -> Vec<u8> {
    packet_in(version, number, (1, None), frame)
}

/// A PACKET_IN for a packet that matches no entry, with the ingress port, and on 1.3 with the metadata, if any.
pub fn packet_in(
    version: Version,
    buffer_id: u32,
    (in_port, metadata): (u16, Option<u64>),
    data: &[u8],
) -> Vec<u8> {
    let mut out = Vec::new();
    let total_len = u16::try_from(data.len()).unwrap();
    let mut match_ = MatchBuf::new();
    match_.exact(OxmField::IN_PORT, in_port.into());
    if let Some(metadata) = metadata {
        match_.exact(OxmField::METADATA, metadata.into());
    }
    let (in_port, reason) = (v10::PortNo(in_port), v10::PacketInReason::NO_MATCH);
    let written = match version {
        Version::V1_0 => {
            v10::PacketIn { buffer_id, total_len, in_port, reason, data }.write_message(0, &mut out)
        }
        _ => v13::PacketIn {
            buffer_id,
            total_len,
            reason: v13::PacketInReason::NO_MATCH,
            table_id: 1,
            cookie: u64::MAX,
            match_: match_.as_match(),
            data,
        }
        .write_message(0, &mut out),
    };
    written.unwrap();
    out
}

/// A frame of one of Weir's own link probes.
pub fn probe() -> Vec<u8> {
    let mut discovery = Discovery::new(LldpKey([7; 16]), Settings::default());
    let port = PortId::new(Dpid(9), PortNumber::new(1).unwrap());
    discovery.set_port(port, true, Instant(0));
    discovery.poll_probe(Instant(0)).unwrap().frame
}
