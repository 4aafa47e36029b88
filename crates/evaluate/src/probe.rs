//! What an experiment's probes and entries look like, so that they meet nobody else's.
//!
//! Probes come from a made-up hardware address, and every entry that an experiment adds matches
//! that address: one DELETE takes all of them and nothing else, in 1.0 too, where a DELETE cannot
//! name a cookie. Their IPv4 addresses are those that are set aside for benchmarks (RFC 2544,
//! 198.18.0.0/15).

use std::net::Ipv4Addr;

use packet::Headers;

use crate::rule::{Mac, Match, Vlan};

/// Ethernet source of all probes.
pub const SOURCE_MAC: Mac = [0x02, 0x57, 0x45, 0x00, 0x00, 0x01];
/// Ethernet destination: no host has it, so no protocol stack answers.
pub const DESTINATION_MAC: Mac = [0x02, 0x57, 0x45, 0x00, 0x00, 0x02];
/// IPv4 source.
pub const SOURCE: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// UDP source port.
pub const SOURCE_PORT: u16 = 7000;
/// UDP destination port of the first flows.
pub const DESTINATION_PORT: u16 = 7001;
/// Cookie of the experiment's entries.
pub const OWN_COOKIE: u64 = 0x5745_4952_4556_0001;

/// Flows 0 to 131,071 differ in the destination address, those behind in the port as well.
const ADDRESSES: u32 = 1 << 17;

/// Most flows that can be told apart.
pub const MAX_FLOWS: u32 = ADDRESSES * 16;

/// The headers of flow `index`'s probes.
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

/// How an entry matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatchKind {
    /// Every field that 1.0 has.
    Exact,
    /// Source address of the hardware, destination address and port.
    Wildcard,
}

/// The match of flow `index`, whose probes come in at a port.
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

/// All probes, and all of an experiment's own entries.
pub fn own_match() -> Match {
    Match { source_mac: Some(SOURCE_MAC), ..Match::default() }
}
