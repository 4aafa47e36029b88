//! A host of an emulated network. The host answers ARP and ping, and stores the frames that it
//! received.

use std::collections::VecDeque;

use crate::frame::build::{Mac, Path};
use crate::frame::{ETH_VLAN, Headers, Network as Header, pop_vlan, push_vlan, set_vlan_vid};

/// An emulated host.
#[derive(Clone, Debug)]
pub struct Host {
    /// The Ethernet address of the host.
    pub mac: Mac,
    /// The IPv4 address of the host.
    pub ip: u32,
    /// Whether the host answers ARP requests and pings.
    pub answers: bool,
    /// The number of received frames, for any destination.
    pub packets: u64,
    received: VecDeque<Vec<u8>>,
}

/// The number of received frames that a host stores. The host deletes the oldest frames first.
const MEMORY: usize = 1024;

const ICMP: u8 = 1;
const ECHO_REQUEST: u8 = 8;

impl Host {
    /// Makes a host that answers ARP requests and pings.
    pub fn new(mac: Mac, ip: u32) -> Host {
        Host { mac, ip, answers: true, packets: 0, received: VecDeque::new() }
    }

    /// The last received frames, at most 1,024, the oldest first.
    pub fn received(&self) -> impl Iterator<Item = &[u8]> {
        self.received.iter().map(Vec::as_slice)
    }

    /// Deletes the received frames.
    pub fn forget(&mut self) {
        self.received.clear();
    }

    /// Receives a frame. Returns the reply, if the host sends one.
    pub(crate) fn receive(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        self.packets += 1;
        if self.received.len() >= MEMORY {
            self.received.pop_front();
        }
        self.received.push_back(frame.to_vec());
        if self.answers { self.answer(frame) } else { None }
    }

    /// The reply to a frame. The reply has the VLAN tag of the request.
    fn answer(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let mut untagged = frame.to_vec();
        let tag = Headers::locate(frame)?.vlan.and_then(|at| frame.get(at + 2..at + 4));
        if tag.is_some() {
            pop_vlan(&mut untagged);
        }
        let mut answer = self.answer_untagged(&untagged)?;
        if let Some(&[high, low]) = tag {
            push_vlan(&mut answer, ETH_VLAN);
            set_vlan_vid(&mut answer, u16::from_be_bytes([high, low]) & 0x0fff);
        }
        Some(answer)
    }

    fn answer_untagged(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let asker: Mac = frame.get(6..12)?.try_into().ok()?;
        let headers = Headers::locate(frame)?;
        match headers.network? {
            Header::Arp(at) => {
                let packet = frame.get(at..at + 28)?;
                let is_request = packet.get(6..8)? == [0, 1];
                let asks_for_us = packet.get(24..28)? == self.ip.to_be_bytes();
                let ip_dst = u32::from_be_bytes(packet.get(14..18)?.try_into().ok()?);
                let back = Path { eth_src: self.mac, eth_dst: asker, ip_src: self.ip, ip_dst };
                (is_request && asks_for_us).then(|| back.arp_reply())
            }
            Header::Ipv4(at) => {
                let is_for_us = frame.get(..6)? == self.mac
                    && frame.get(at + 16..at + 20)? == self.ip.to_be_bytes();
                let (ICMP, icmp) = headers.transport? else { return None };
                let end = at
                    + usize::from(u16::from_be_bytes(frame.get(at + 2..at + 4)?.try_into().ok()?));
                let message = frame.get(icmp..end)?;
                if !is_for_us || *message.first()? != ECHO_REQUEST {
                    return None;
                }
                let word =
                    |at: usize| Some(u16::from_be_bytes(message.get(at..at + 2)?.try_into().ok()?));
                let ip_dst = u32::from_be_bytes(frame.get(at + 12..at + 16)?.try_into().ok()?);
                let back = Path { eth_src: self.mac, eth_dst: asker, ip_src: self.ip, ip_dst };
                Some(back.icmp_echo(true, word(4)?, word(6)?, message.get(8..)?))
            }
            Header::Ipv6(_) => None,
        }
    }
}
