//! Defines the probes and entries of an experiment, which match no other traffic and no other
//! entries.
//!
//! Probes have a hardware address that no host has, and every entry of an experiment matches that
//! address. Therefore one DELETE deletes all these entries and no other entries, also in 1.0, where
//! a DELETE cannot match a cookie. The IPv4 addresses of probes are those reserved for benchmarks
//! (RFC 2544, 198.18.0.0/15).

use std::net::Ipv4Addr;

use packet::Headers;

use crate::rule::{Mac, Match, Vlan};

/// The Ethernet source address of all probes.
pub const SOURCE_MAC: Mac = [0x02, 0x57, 0x45, 0x00, 0x00, 0x01];
/// The Ethernet destination address: no host has the address, so no protocol stack replies.
pub const DESTINATION_MAC: Mac = [0x02, 0x57, 0x45, 0x00, 0x00, 0x02];
/// The IPv4 source address.
pub const SOURCE: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// The UDP source port.
pub const SOURCE_PORT: u16 = 7000;
/// The UDP destination port of the first flows.
pub const DESTINATION_PORT: u16 = 7001;
/// The cookie of the experiment's entries.
pub const OWN_COOKIE: u64 = 0x5745_4952_4556_0001;

/// Flows 0 to 131,071 differ in the destination address; later flows differ in the port as well.
const ADDRESSES: u32 = 1 << 17;

/// The most flows that are distinguishable.
pub const MAX_FLOWS: u32 = ADDRESSES * 16;

/// The headers of the probes of flow `index`.
pub fn headers(index: u32) -> Headers {
    Headers {
        source_mac: SOURCE_MAC,
        destination_mac: DESTINATION_MAC,
        vlan: None,
        source: SOURCE,
        destination: Ipv4Addr::from_bits(0xc612_0000 + index % ADDRESSES),
        tos: 0,
        ttl: 64,
        source_port: SOURCE_PORT,
        destination_port: DESTINATION_PORT + (index / ADDRESSES) as u16,
    }
}

/// The kind of match of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatchKind {
    /// The match has every field of OpenFlow 1.0.
    Exact,
    /// The match has the Ethernet source address, the IPv4 destination address and the UDP
    /// destination port.
    Wildcard,
}

impl MatchKind {
    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            MatchKind::Exact => "exact",
            MatchKind::Wildcard => "wildcard",
        }
    }
}

/// The match of flow `index` for probes that arrive at the port `in_port`.
pub fn flow_match(index: u32, kind: MatchKind, in_port: u32) -> Match {
    let headers = headers(index);
    let wildcard = Match {
        source_mac: Some(SOURCE_MAC),
        destination: Some(headers.destination),
        destination_port: Some(headers.destination_port),
        ..Match::default()
    };
    match kind {
        MatchKind::Wildcard => wildcard,
        MatchKind::Exact => Match {
            in_port: Some(in_port),
            destination_mac: Some(DESTINATION_MAC),
            vlan: Some(Vlan::Untagged),
            tos: Some(0),
            source: Some(SOURCE),
            source_port: Some(SOURCE_PORT),
            ..wildcard
        },
    }
}

/// The match of all probes, and of all of an experiment's own entries.
pub fn own_match() -> Match {
    Match { source_mac: Some(SOURCE_MAC), ..Match::default() }
}
