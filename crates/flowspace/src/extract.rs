//! From a frame's bytes to a [`Key`].
//!
//! The code runs on the forwarding path: no allocation, one pass, every read checked. A truncated or malformed header
//! ends the parsing, and all further fields are zero.

use crate::Key;
use crate::field::{
    Field, NEIGHBOUR_ADVERTISEMENT, NEIGHBOUR_SOLICITATION, VLAN_PRESENT_BIT, ethertype, ip_proto,
};

/// The number of VLAN tags that are skipped to find the Ethernet type.
const MAX_VLAN_TAGS: usize = 2;

impl Key {
    /// The key of `frame` as received on `in_port` (1.3 numbering). The function never fails: missing and truncated
    /// fields are zero.
    ///
    /// As in 1.3 section 7.2.3.7, VLAN fields are from the outermost tag, the Ethernet type is the type behind the tags
    /// (at most two tags are skipped), and MPLS fields are from the outermost shim. IP fragments have no transport
    /// fields. Metadata, tunnel id and physical port are zero, because a frame does not contain them.
    #[inline]
    pub fn extract(in_port: u32, frame: &[u8]) -> Key {
        extract(in_port, frame, MAX_VLAN_TAGS)
    }

    /// The key for a switch that skips only one VLAN tag, the default of Open vSwitch (`vlan-limit`): the Ethernet type
    /// is then the type of the second tag. `None` if there is no second tag.
    #[inline]
    pub fn extract_behind_one_tag(in_port: u32, frame: &[u8]) -> Option<Key> {
        // Almost no packet has a second tag; packets without one are not parsed again.
        let is_tag = |at: usize| {
            let type_ =
                frame.get(at..).and_then(<[u8]>::first_chunk).copied().map(u16::from_be_bytes);
            matches!(type_, Some(ethertype::VLAN | ethertype::SERVICE_VLAN))
        };
        (is_tag(12) && is_tag(16)).then(|| extract(in_port, frame, 1))
    }
}

#[inline(always)]
fn extract(in_port: u32, frame: &[u8], max_tags: usize) -> Key {
    let mut key = Key::ZERO;
    key.words[0] = u64::from(in_port) << 32;
    let Some((ethernet, rest)) = frame.split_first_chunk::<14>() else { return key };
    let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1] = *ethernet;
    let mut dl_type = u16::from_be_bytes([t0, t1]);
    let mut tag = 0;
    let mut payload = rest;
    if matches!(dl_type, ethertype::VLAN | ethertype::SERVICE_VLAN) {
        (dl_type, tag, payload) = vlan_tags(dl_type, payload, max_tags);
    }
    if dl_type < 0x600 {
        (dl_type, payload) = snap(payload);
    }
    key.words[3] = u64::from_be_bytes([s0, s1, s2, s3, s4, s5, 0, 0]) | u64::from(dl_type);
    key.words[4] = u64::from_be_bytes([d0, d1, d2, d3, d4, d5, 0, 0]) | tag;
    match dl_type {
        ethertype::IP => ipv4(&mut key, payload),
        ethertype::IPV6 => ipv6(&mut key, payload),
        ethertype::ARP | ethertype::RARP => arp(&mut key, payload),
        ethertype::MPLS | ethertype::MPLS_MULTICAST => {
            if let Some(&[a, b, c, _]) = payload.first_chunk() {
                key.words[5] = u64::from_be_bytes([a, b, c, 0, 0, 0, 0, 0]);
            }
        }
        ethertype::PBB => {
            if let Some(&[_, a, b, c]) = payload.first_chunk() {
                key.words[5] = u64::from_be_bytes([a, b, c, 0, 0, 0, 0, 0]);
            }
        }
        _ => {}
    }
    key
}

/// The Ethernet type behind the tags, the outermost tag in the form of the key, and the payload. For a truncated tag
/// the type is the type of the tag.
fn vlan_tags(mut dl_type: u16, mut payload: &[u8], max_tags: usize) -> (u16, u64, &[u8]) {
    let mut outermost = 0;
    for depth in 0..max_tags {
        if !matches!(dl_type, ethertype::VLAN | ethertype::SERVICE_VLAN) {
            break;
        }
        let Some((&[c0, c1, t0, t1], rest)) = payload.split_first_chunk() else { break };
        if depth == 0 {
            let control = u64::from(u16::from_be_bytes([c0, c1]));
            outermost = VLAN_PRESENT_BIT | (control & 0xfff) << 3 | control >> 13;
        }
        dl_type = u16::from_be_bytes([t0, t1]);
        payload = rest;
    }
    (dl_type, outermost, payload)
}

/// The type in the SNAP header of an 802.3 frame, if the frame has a SNAP header.
fn snap(payload: &[u8]) -> (u16, &[u8]) {
    if let Some((&[0xaa, 0xaa, 0x03, 0, 0, 0, t0, t1], rest)) = payload.split_first_chunk() {
        let dl_type = u16::from_be_bytes([t0, t1]);
        if dl_type >= 0x600 {
            return (dl_type, rest);
        }
    }
    (ethertype::NONE, payload)
}

#[inline]
fn ipv4(key: &mut Key, packet: &[u8]) {
    let Some(header) = packet.first_chunk::<20>() else { return };
    let [version_length, tos, _, _, _, _, f0, f1, _, proto, _, _, a0, a1, a2, a3, b0, b1, b2, b3] =
        *header;
    let header_length = usize::from(version_length & 0xf) * 4;
    if version_length >> 4 != 4 || header_length < 20 {
        return;
    }
    key.words[5] = u64::from(proto) << 16 | u64::from(tos) << 8;
    key.words[6] = u64::from_be_bytes([a0, a1, a2, a3, b0, b1, b2, b3]);
    // More fragments, or an offset.
    let is_fragment = u16::from_be_bytes([f0, f1]) & 0x3fff != 0;
    if is_fragment {
        return;
    }
    let Some(segment) = packet.get(header_length..) else { return };
    match proto {
        ip_proto::ICMP => icmp(key, segment),
        _ => ports(key, proto, segment),
    }
}

#[inline]
fn ports(key: &mut Key, proto: u8, segment: &[u8]) {
    if matches!(proto, ip_proto::TCP | ip_proto::UDP | ip_proto::SCTP)
        && let Some(&[s0, s1, d0, d1]) = segment.first_chunk()
    {
        key.words[7] |= u64::from_be_bytes([s0, s1, d0, d1, 0, 0, 0, 0]);
    }
}

fn icmp(key: &mut Key, segment: &[u8]) {
    if let Some(&[kind, code]) = segment.first_chunk() {
        key.words[7] |= u64::from(kind) << 48 | u64::from(code) << 32;
    }
}

fn ipv6(key: &mut Key, packet: &[u8]) {
    let Some((header, rest)) = packet.split_first_chunk::<40>() else { return };
    let [v0, v1, v2, v3, _, _, next, _, addresses @ ..] = *header;
    let first = u32::from_be_bytes([v0, v1, v2, v3]);
    if first >> 28 != 6 {
        return;
    }
    let (words, _) = addresses.as_chunks::<8>();
    for (slot, word) in key.words.iter_mut().skip(8).zip(words) {
        *slot = u64::from_be_bytes(*word);
    }
    let chain = extension_headers(next, rest);
    let traffic_class = u64::from(first >> 20) & 0xff;
    key.words[5] = u64::from(chain.proto) << 16 | traffic_class << 8;
    key.words[7] = u64::from(first & 0xf_ffff) << 12 | chain.seen;
    let Some(segment) = chain.segment else { return };
    match chain.proto {
        ip_proto::ICMPV6 => {
            icmp(key, segment);
            neighbour_discovery(key, segment);
        }
        proto => ports(key, proto, segment),
    }
}

/// The result of parsing IPv6 extension headers.
struct Chain<'a> {
    /// The upper-layer protocol, or the header at which the parsing ended.
    proto: u8,
    /// `OFPIEH_*` bits (1.3 section 7.2.3.8).
    seen: u64,
    /// The upper layer; `None` in a fragment, or if a header was truncated.
    segment: Option<&'a [u8]>,
}

/// `OFPIEH_*`.
mod exthdr {
    pub(super) const NO_NEXT: u64 = 1 << 0;
    pub(super) const ESP: u64 = 1 << 1;
    pub(super) const AUTH: u64 = 1 << 2;
    pub(super) const DEST: u64 = 1 << 3;
    pub(super) const FRAG: u64 = 1 << 4;
    pub(super) const ROUTER: u64 = 1 << 5;
    pub(super) const HOP: u64 = 1 << 6;
    pub(super) const REPEATED: u64 = 1 << 7;
    pub(super) const OUT_OF_ORDER: u64 = 1 << 8;
}

fn extension_headers(mut proto: u8, mut rest: &[u8]) -> Chain<'_> {
    let mut seen = 0;
    let mut order = 0;
    let mut fragment = false;
    loop {
        // The bit, and the header's place in the order that RFC 8200 section 4.1 prefers.
        let (bit, place) = match proto {
            0 => (exthdr::HOP, 1),
            43 => (exthdr::ROUTER, 3),
            44 => (exthdr::FRAG, 4),
            51 => (exthdr::AUTH, 5),
            50 => (exthdr::ESP, 6),
            // Destination options may come before the routing header, and last.
            60 => (exthdr::DEST, if order < 2 { 2 } else { 7 }),
            59 => (exthdr::NO_NEXT, 8),
            _ => break,
        };
        let may_repeat = bit == exthdr::DEST && order < 7;
        if seen & bit != 0 && !may_repeat {
            seen |= exthdr::REPEATED;
        } else if place < order {
            seen |= exthdr::OUT_OF_ORDER;
        }
        order = order.max(place);
        seen |= bit;
        if matches!(proto, 50 | 59) {
            return Chain { proto, seen, segment: None };
        }
        let Some(&[next, length, o0, o1]) = rest.first_chunk() else {
            return Chain { proto, seen, segment: None };
        };
        let bytes = match proto {
            44 => 8,
            51 => (usize::from(length) + 2) * 4,
            _ => (usize::from(length) + 1) * 8,
        };
        let Some(after) = rest.get(bytes..) else {
            return Chain { proto, seen, segment: None };
        };
        if proto == 44 {
            let offset_and_more = u16::from_be_bytes([o0, o1]) & 0xfff9;
            fragment |= offset_and_more != 0;
            if offset_and_more & 0xfff8 != 0 {
                // A later fragment: no header follows.
                return Chain { proto: next, seen, segment: None };
            }
        }
        proto = next;
        rest = after;
    }
    Chain { proto, seen, segment: (!fragment).then_some(rest) }
}

/// Target and link-layer option of a neighbour solicitation or advertisement (RFC 4861 section 4).
fn neighbour_discovery(key: &mut Key, segment: &[u8]) {
    let Some((header, mut options)) = segment.split_first_chunk::<24>() else { return };
    let [kind, code, _, _, _, _, _, _, target @ ..] = *header;
    let kind = u16::from(kind);
    if code != 0 || !matches!(kind, NEIGHBOUR_SOLICITATION | NEIGHBOUR_ADVERTISEMENT) {
        return;
    }
    key.set(Field::NdTarget, u128::from_be_bytes(target));
    let (wanted, field) = match kind {
        NEIGHBOUR_SOLICITATION => (1, Field::ND_SLL),
        _ => (2, Field::ND_TLL),
    };
    while let Some(&[option, length, a, b, c, d, e, f]) = options.first_chunk() {
        if option == wanted && length == 1 {
            let address = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
            key.set(field, u128::from(address));
            return;
        }
        let next = options.get(usize::from(length) * 8..);
        match next {
            Some(next) if length != 0 => options = next,
            _ => return,
        }
    }
}

fn arp(key: &mut Key, packet: &[u8]) {
    let Some(header) = packet.first_chunk::<28>() else { return };
    let [0, 1, 8, 0, 6, 4, o0, o1, addresses @ ..] = *header else { return };
    let [h0, h1, h2, h3, h4, h5, p0, p1, p2, p3, rest @ ..] = addresses;
    let [t0, t1, t2, t3, t4, t5, q0, q1, q2, q3] = rest;
    key.words[5] = u64::from(u16::from_be_bytes([o0, o1])) << 16;
    key.words[6] = u64::from_be_bytes([p0, p1, p2, p3, q0, q1, q2, q3]);
    key.words[12] = u64::from_be_bytes([h0, h1, h2, h3, h4, h5, 0, 0]);
    key.words[13] = u64::from_be_bytes([t0, t1, t2, t3, t4, t5, 0, 0]);
}
