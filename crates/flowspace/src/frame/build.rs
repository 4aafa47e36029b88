//! Frames for emulated hosts and for tests: whole, with right lengths and checksums.

use super::bytes::write;
use super::edit::internet_checksum;
use super::headers::*;
use alloc::vec;
use alloc::vec::Vec;

/// An Ethernet address.
pub type Mac = [u8; 6];

/// An address of the form 02:00:00:00:hh:ll, for the host numbered `n`.
pub fn host_mac(n: u16) -> Mac {
    let [high, low] = n.to_be_bytes();
    [2, 0, 0, 0, high, low]
}

/// Ethernet header and payload, padded to the 60 bytes that Ethernet asks for.
pub fn ethernet(destination: Mac, source: Mac, ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(60.max(14 + payload.len()));
    frame.extend_from_slice(&destination);
    frame.extend_from_slice(&source);
    frame.extend_from_slice(&ether_type.to_be_bytes());
    frame.extend_from_slice(payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// The addresses of a packet between two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Ethernet source.
    pub eth_src: Mac,
    /// Ethernet destination.
    pub eth_dst: Mac,
    /// IPv4 source.
    pub ip_src: u32,
    /// IPv4 destination.
    pub ip_dst: u32,
}

impl Path {
    /// A UDP datagram.
    pub fn udp(&self, source: u16, destination: u16, data: &[u8]) -> Vec<u8> {
        let mut segment = Vec::with_capacity(8 + data.len());
        segment.extend_from_slice(&source.to_be_bytes());
        segment.extend_from_slice(&destination.to_be_bytes());
        segment.extend_from_slice(&((8 + data.len()) as u16).to_be_bytes());
        segment.extend_from_slice(&[0, 0]);
        segment.extend_from_slice(data);
        let checksum = match self.transport_checksum(UDP, &segment) {
            0 => 0xffff,
            other => other,
        };
        write(&mut segment, 6, &checksum.to_be_bytes());
        self.ipv4(UDP, &segment)
    }

    /// A TCP segment with the SYN flag.
    pub fn tcp(&self, source: u16, destination: u16, data: &[u8]) -> Vec<u8> {
        let mut segment = Vec::with_capacity(20 + data.len());
        segment.extend_from_slice(&source.to_be_bytes());
        segment.extend_from_slice(&destination.to_be_bytes());
        segment.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 0xff, 0xff, 0, 0, 0, 0]);
        segment.extend_from_slice(data);
        let checksum = self.transport_checksum(TCP, &segment);
        write(&mut segment, 16, &checksum.to_be_bytes());
        self.ipv4(TCP, &segment)
    }

    /// An ICMP echo request (`reply` false) or reply.
    pub fn icmp_echo(&self, reply: bool, identifier: u16, sequence: u16, data: &[u8]) -> Vec<u8> {
        let mut message = vec![if reply { 0 } else { 8 }, 0, 0, 0];
        message.extend_from_slice(&identifier.to_be_bytes());
        message.extend_from_slice(&sequence.to_be_bytes());
        message.extend_from_slice(data);
        let checksum = internet_checksum(&[&message]);
        write(&mut message, 2, &checksum.to_be_bytes());
        self.ipv4(ICMP, &message)
    }

    /// An IPv4 packet of any protocol, TTL 64.
    pub fn ipv4(&self, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0];
        packet.extend_from_slice(&((20 + payload.len()) as u16).to_be_bytes());
        packet.extend_from_slice(&[0, 0, 0x40, 0, 64, protocol, 0, 0]);
        packet.extend_from_slice(&self.ip_src.to_be_bytes());
        packet.extend_from_slice(&self.ip_dst.to_be_bytes());
        let checksum = internet_checksum(&[&packet]);
        write(&mut packet, 10, &checksum.to_be_bytes());
        packet.extend_from_slice(payload);
        ethernet(self.eth_dst, self.eth_src, ETH_IPV4, &packet)
    }

    /// An ARP request for `ip_dst`, broadcast.
    pub fn arp_request(&self) -> Vec<u8> {
        self.arp(1, [0xff; 6], [0; 6])
    }

    /// An ARP reply from source to destination.
    pub fn arp_reply(&self) -> Vec<u8> {
        self.arp(2, self.eth_dst, self.eth_dst)
    }

    fn arp(&self, operation: u16, eth_dst: Mac, target: Mac) -> Vec<u8> {
        let mut packet = vec![0, 1, 8, 0, 6, 4];
        packet.extend_from_slice(&operation.to_be_bytes());
        packet.extend_from_slice(&self.eth_src);
        packet.extend_from_slice(&self.ip_src.to_be_bytes());
        packet.extend_from_slice(&target);
        packet.extend_from_slice(&self.ip_dst.to_be_bytes());
        ethernet(eth_dst, self.eth_src, ETH_ARP, &packet)
    }

    fn transport_checksum(&self, protocol: u8, segment: &[u8]) -> u16 {
        let length = (segment.len() as u16).to_be_bytes();
        internet_checksum(&[
            &self.ip_src.to_be_bytes(),
            &self.ip_dst.to_be_bytes(),
            &[0, protocol],
            &length,
            segment,
        ])
    }
}
