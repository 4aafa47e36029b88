//! Probe frames: Ethernet, perhaps a VLAN tag, IPv4, UDP, and eighteen bytes of payload.
//!
//! ```text
//!   payload:  tag (8)  sequence (4)  time (6)  zeros up to the frame's length
//! ```
//!
//! The tag distinguishes one experiment's probes from everything else. The time is the low 48 bits of
//! nanoseconds since 1970, which [`crate::Observation`] completes from the arrival's. So the
//! shortest probe is Ethernet's shortest frame: 60 bytes, or 64 with the frame check sequence that
//! the hardware adds.

use std::net::Ipv4Addr;

use crate::checksum::{fold, sum};
use crate::error::{Error, Result};
use crate::timestamp::Timestamp;

/// Length of the Ethernet header without a VLAN tag.
pub(crate) const ETHERNET: usize = 14;
/// Length of an 802.1Q tag.
pub(crate) const VLAN: usize = 4;
/// Length of an IPv4 header without options.
pub(crate) const IPV4: usize = 20;
/// Length of a UDP header.
pub(crate) const UDP: usize = 8;
/// Length of tag, sequence and time.
pub(crate) const PAYLOAD: usize = 18;

pub(crate) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(crate) const ETHERTYPE_VLAN: u16 = 0x8100;
/// An outer tag (802.1ad).
pub(crate) const ETHERTYPE_SERVICE_VLAN: u16 = 0x88a8;
pub(crate) const PROTOCOL_UDP: u8 = 17;

/// Destination and source address, behind which a VLAN tag stands.
pub(crate) const ADDRESSES: usize = 12;

/// A VLAN tag as it stands in a frame, of what the kernel says when it has taken it out: `protocol` where it says that.
pub(crate) fn tag_in_place(protocol: Option<u16>, control: u16) -> [u8; VLAN] {
    let [a, b] = protocol.unwrap_or(ETHERTYPE_VLAN).to_be_bytes();
    let [c, d] = control.to_be_bytes();
    [a, b, c, d]
}

/// Bits of the time that a probe carries.
pub(crate) const TIME_BITS: u32 = 48;

/// An 802.1Q tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VlanTag {
    /// VLAN id, 0 to 4095.
    pub id: u16,
    /// Priority (PCP), 0 to 7.
    pub priority: u8,
}

impl VlanTag {
    /// From the tag control information as it is on the wire.
    pub(crate) fn from_control(control: u16) -> VlanTag {
        VlanTag { id: control & 0x0fff, priority: (control >> 13) as u8 }
    }

    pub(crate) fn control(self) -> u16 {
        u16::from(self.priority) << 13 | self.id
    }
}

/// The header fields of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Headers {
    /// Source hardware address.
    pub source_mac: [u8; 6],
    /// Destination hardware address.
    pub destination_mac: [u8; 6],
    /// VLAN tag, if any.
    pub vlan: Option<VlanTag>,
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Type of service, all eight bits.
    pub tos: u8,
    /// Time to live.
    pub ttl: u8,
    /// UDP source port.
    pub source_port: u16,
    /// UDP destination port.
    pub destination_port: u16,
}

/// Where [`crate::generate`] takes its frames from.
pub trait Probes {
    /// The frame with that sequence number and time.
    fn stamp(&mut self, sequence: u32, time: Timestamp) -> &[u8];
}

/// All frames are alike.
impl Probes for ProbeTemplate {
    fn stamp(&mut self, sequence: u32, time: Timestamp) -> &[u8] {
        ProbeTemplate::stamp(self, sequence, time)
    }
}

/// Several templates in turn: a frame is made from the one at its sequence number modulo their
/// number, so that the sequence number says which it was. Of none, frames are empty.
impl Probes for Vec<ProbeTemplate> {
    fn stamp(&mut self, sequence: u32, time: Timestamp) -> &[u8] {
        let turn = (sequence as usize).checked_rem(self.len()).unwrap_or(0);
        self.get_mut(turn).map_or(&[], |template| template.stamp(sequence, time))
    }
}

/// A probe that is complete but for its sequence number and time.
#[derive(Clone, Debug)]
pub struct ProbeTemplate {
    frame: Vec<u8>,
    /// Where the payload starts.
    payload: usize,
    /// Sum over everything that the UDP checksum covers, with sequence and time zero.
    base: u64,
    tag: u64,
}

impl ProbeTemplate {
    /// A template of frames of `length` bytes, counted without the frame check sequence.
    ///
    /// `length` is at least [`ProbeTemplate::shortest`] and at most 65,549 (what IPv4 can carry).
    pub fn new(headers: &Headers, tag: u64, length: usize) -> Result<ProbeTemplate> {
        let shortest = ProbeTemplate::shortest(headers);
        let ethernet = shortest - (IPV4 + UDP + PAYLOAD);
        let ip_length = length.checked_sub(ethernet).and_then(|rest| u16::try_from(rest).ok());
        let Some(ip_length) = ip_length.filter(|_| length >= shortest) else {
            return Err(Error::Invalid(format!(
                "a probe of {length} bytes is not possible: {shortest} to {} are",
                ethernet + usize::from(u16::MAX)
            )));
        };
        if let Some(tag) = headers.vlan.filter(|tag| tag.id > 0x0fff || tag.priority > 7) {
            return Err(Error::Invalid(format!(
                "{tag:?} is not a VLAN tag: its id is at most 4095, its priority 7"
            )));
        }
        let udp_length = ip_length - IPV4 as u16;
        let mut frame = Vec::with_capacity(length);
        frame.extend(headers.destination_mac);
        frame.extend(headers.source_mac);
        if let Some(tag) = headers.vlan {
            frame.extend(ETHERTYPE_VLAN.to_be_bytes());
            frame.extend(tag.control().to_be_bytes());
        }
        frame.extend(ETHERTYPE_IPV4.to_be_bytes());
        frame.extend(ipv4_header(headers, ip_length));
        frame.extend(headers.source_port.to_be_bytes());
        frame.extend(headers.destination_port.to_be_bytes());
        frame.extend(udp_length.to_be_bytes());
        frame.extend([0, 0]);
        let payload = frame.len();
        frame.extend(tag.to_be_bytes());
        frame.resize(length, 0);
        let base = pseudo_header(headers.source, headers.destination, udp_length)
            + frame.get(payload - UDP..).map_or(0, sum);
        Ok(ProbeTemplate { frame, payload, base, tag })
    }

    /// Length of the shortest frame with such headers: 60 bytes, 64 with a VLAN tag.
    pub fn shortest(headers: &Headers) -> usize {
        let vlan = if headers.vlan.is_some() { VLAN } else { 0 };
        ETHERNET + vlan + IPV4 + UDP + PAYLOAD
    }

    /// The tag that its probes carry.
    pub fn tag(&self) -> u64 {
        self.tag
    }

    /// Length of its frames.
    pub fn length(&self) -> usize {
        self.frame.len()
    }

    /// The frame with that sequence number and time.
    pub fn stamp(&mut self, sequence: u32, time: Timestamp) -> &[u8] {
        let mut stamp = [0; 10];
        stamp[..4].copy_from_slice(&sequence.to_be_bytes());
        // The low 48 bits.
        stamp[4..].copy_from_slice(&time.0.to_be_bytes()[2..]);
        // A checksum of zero would mean "none" (RFC 768).
        let checksum = match fold(self.base + sum(&stamp)) {
            0 => 0xffff,
            checksum => checksum,
        };
        if let Some(field) = self.frame.get_mut(self.payload - 2..self.payload) {
            field.copy_from_slice(&checksum.to_be_bytes());
        }
        if let Some(field) = self.frame.get_mut(self.payload + 8..self.payload + PAYLOAD) {
            field.copy_from_slice(&stamp);
        }
        &self.frame
    }
}

fn ipv4_header(headers: &Headers, length: u16) -> [u8; IPV4] {
    let mut header = [0; IPV4];
    header[0] = 0x45;
    header[1] = headers.tos;
    header[2..4].copy_from_slice(&length.to_be_bytes());
    // Don't fragment: a fragment would be a lost probe that looks like a delivered packet.
    header[6] = 0x40;
    header[8] = headers.ttl;
    header[9] = PROTOCOL_UDP;
    header[12..16].copy_from_slice(&headers.source.octets());
    header[16..20].copy_from_slice(&headers.destination.octets());
    let checksum = fold(sum(&header));
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

/// Sum of the pseudo header that the UDP checksum also covers (RFC 768).
pub(crate) fn pseudo_header(source: Ipv4Addr, destination: Ipv4Addr, udp_length: u16) -> u64 {
    sum(&source.octets())
        + sum(&destination.octets())
        + u64::from(PROTOCOL_UDP)
        + u64::from(udp_length)
}
