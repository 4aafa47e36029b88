//! A header space small enough to enumerate, and a second, naive implementation of matches: the
//! oracle for the algebra. The oracle shares no code with the crate: packets are structs, not
//! words.
//!
//! The matches use few values and masks, so the points below have a representative of every
//! combination that such matches can distinguish.

use flowspace::{Field, Key, Match};
use proptest::prelude::*;
use proptest::sample::select;

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ipv4 { proto: u8, src: u32, ports: Option<u16> },
    Ipv6 { proto: u8, port: Option<u16> },
    Arp { op: u16, spa: u32 },
    Other { ethertype: u16 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) in_port: u32,
    /// VLAN id and priority.
    pub(crate) tag: Option<(u16, u8)>,
    pub(crate) kind: Kind,
}

impl Point {
    pub(crate) fn key(&self) -> Key {
        let mut key = Key::default().with(Field::InPort, self.in_port.into());
        if let Some((vid, pcp)) = self.tag {
            key.set(Field::VlanVid, u128::from(vid) | 0x1000);
            key.set(Field::VlanPcp, pcp.into());
        }
        match self.kind {
            Kind::Ipv4 { proto, src, ports } => key
                .with(Field::DlType, 0x800)
                .with(Field::NwProto, proto.into())
                .with(Field::NwSrc, src.into())
                .with(Field::TpSrc, ports.unwrap_or(0).into()),
            Kind::Ipv6 { proto, port } => key
                .with(Field::DlType, 0x86dd)
                .with(Field::NwProto, proto.into())
                .with(Field::TpSrc, port.unwrap_or(0).into()),
            Kind::Arp { op, spa } => key
                .with(Field::DlType, 0x806)
                .with(Field::ArpOp, op.into())
                .with(Field::NwSrc, spa.into()),
            Kind::Other { ethertype } => key.with(Field::DlType, ethertype.into()),
        }
    }

    fn dl_type(&self) -> u16 {
        match self.kind {
            Kind::Ipv4 { .. } => 0x800,
            Kind::Ipv6 { .. } => 0x86dd,
            Kind::Arp { .. } => 0x806,
            Kind::Other { ethertype } => ethertype,
        }
    }
}

/// A value and a mask.
pub(crate) type Ternary = (u32, u32);

fn meets((value, mask): Ternary, actual: u32) -> bool {
    actual & mask == value & mask
}

/// The VLAN tag in a match.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TagSpec {
    Any,
    None,
    Tagged { vid: Ternary, pcp: Option<u8> },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum KindSpec {
    Any,
    Type(u16),
    /// Ethernet type and protocol; source address; transport source port.
    Ip {
        v6: bool,
        proto: Option<(u8, Ternary)>,
        src: Ternary,
    },
    Arp {
        op: Option<u16>,
        spa: Ternary,
    },
}

/// A match with all its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    in_port: Ternary,
    tag: TagSpec,
    kind: KindSpec,
}

impl Spec {
    /// Whether the match contains the packet: the naive implementation.
    pub(crate) fn admits(&self, point: &Point) -> bool {
        meets(self.in_port, point.in_port)
            && match (self.tag, point.tag) {
                (TagSpec::Any, _) | (TagSpec::None, None) => true,
                (TagSpec::Tagged { vid, pcp }, Some((actual, priority))) => {
                    meets(vid, actual.into()) && pcp.is_none_or(|pcp| pcp == priority)
                }
                _ => false,
            }
            && match (self.kind, point.kind) {
                (KindSpec::Any, _) => true,
                (KindSpec::Type(dl_type), _) => dl_type == point.dl_type(),
                (
                    KindSpec::Ip { v6: false, proto, src },
                    Kind::Ipv4 { proto: p, src: s, ports },
                ) => meets(src, s) && proto.is_none_or(|want| proto_meets(want, p, ports)),
                (KindSpec::Ip { v6: true, proto, .. }, Kind::Ipv6 { proto: p, port }) => {
                    proto.is_none_or(|want| proto_meets(want, p, port))
                }
                (KindSpec::Arp { op, spa }, Kind::Arp { op: o, spa: s }) => {
                    op.is_none_or(|op| op == o) && meets(spa, s)
                }
                _ => false,
            }
    }

    /// The same match as a [`Match`] of the crate.
    pub(crate) fn to_match(self) -> Match {
        let ternary = |match_: Match, field, (value, mask): Ternary| {
            match_.with_masked(field, value.into(), mask.into())
        };
        let mut match_ = ternary(Match::ANY, Field::InPort, self.in_port);
        match self.tag {
            TagSpec::Any => {}
            TagSpec::None => match_ = match_.with(Field::VlanVid, 0),
            TagSpec::Tagged { vid: (vid, mask), pcp } => {
                match_ = ternary(match_, Field::VlanVid, (vid | 0x1000, mask & 0xfff | 0x1000));
                if let Some(pcp) = pcp {
                    match_ = match_.with(Field::VlanPcp, pcp.into());
                }
            }
        }
        match self.kind {
            KindSpec::Any => match_,
            KindSpec::Type(dl_type) => match_.with(Field::DlType, dl_type.into()),
            KindSpec::Ip { v6, proto, src } => {
                match_ = match_.with(Field::DlType, if v6 { 0x86dd } else { 0x800 });
                if !v6 {
                    match_ = ternary(match_, Field::NwSrc, src);
                }
                if let Some((proto, port)) = proto {
                    match_ = match_.with(Field::NwProto, proto.into());
                    if has_ports(proto) {
                        match_ = ternary(match_, Field::TpSrc, (port.0, port.1 & 0xffff));
                    }
                }
                match_
            }
            KindSpec::Arp { op, spa } => {
                match_ = match_.with(Field::DlType, 0x806);
                if let Some(op) = op {
                    match_ = match_.with(Field::ArpOp, op.into());
                }
                ternary(match_, Field::ARP_SPA, spa)
            }
        }
    }
}

fn has_ports(proto: u8) -> bool {
    proto == 6 || proto == 17
}

fn proto_meets((proto, port): (u8, Ternary), actual: u8, actual_port: Option<u16>) -> bool {
    proto == actual && actual_port.is_none_or(|actual| meets(port, actual.into()))
}

/// Every packet of the small space.
pub(crate) fn points() -> Vec<Point> {
    let mut kinds = vec![
        Kind::Ipv6 { proto: 50, port: None },
        // Types and protocols that no match here names stand for all others.
        Kind::Ipv6 { proto: 51, port: None },
        Kind::Other { ethertype: 0x88cc },
        Kind::Other { ethertype: 0x0801 },
    ];
    for address in [0, 1, 2, 3, 0x8000_0000, 0x8000_0001] {
        kinds.push(Kind::Ipv4 { proto: 50, src: address, ports: None });
        kinds.push(Kind::Ipv4 { proto: 51, src: address, ports: None });
        kinds.extend([1, 2, 3].map(|op| Kind::Arp { op, spa: address }));
        for port in [0, 1, 2, 3] {
            kinds.push(Kind::Ipv4 { proto: 6, src: address, ports: Some(port) });
            kinds.push(Kind::Ipv4 { proto: 17, src: address, ports: Some(port) });
        }
    }
    for port in [0, 1, 2, 3] {
        kinds.push(Kind::Ipv6 { proto: 6, port: Some(port) });
    }
    let mut tags = vec![None];
    for vid in [0, 1, 2, 3] {
        tags.extend([0, 1, 2].map(|pcp| Some((vid, pcp))));
    }
    let mut points = Vec::new();
    for in_port in [0, 1, 2, 3] {
        for &tag in &tags {
            points.extend(kinds.iter().map(|&kind| Point { in_port, tag, kind }));
        }
    }
    points
}

/// Exact 0 or 1, odd or even, or anything. 2 and 3 stand for all other values.
fn ternary() -> impl Strategy<Value = Ternary> {
    prop_oneof![
        3 => Just((0, 0)),
        1 => (0..2u32, Just(u32::MAX)),
        1 => (0..2u32, Just(1)),
    ]
}

/// The same, or only the top bit.
fn address() -> impl Strategy<Value = Ternary> {
    prop_oneof![
        4 => ternary(),
        1 => select(vec![(0x8000_0000, 0x8000_0000), (0, 0x8000_0000)]),
    ]
}

pub(crate) fn spec() -> impl Strategy<Value = Spec> {
    let tag = prop_oneof![
        3 => Just(TagSpec::Any),
        1 => Just(TagSpec::None),
        2 => (ternary(), prop::option::of(0..2u8))
            .prop_map(|(vid, pcp)| TagSpec::Tagged { vid, pcp }),
    ];
    let proto = prop::option::of((select(vec![6u8, 17, 50]), ternary()));
    let proto6 = prop::option::of((select(vec![6u8, 50]), ternary()));
    let kind = prop_oneof![
        2 => Just(KindSpec::Any),
        1 => select(vec![0x800, 0x806, 0x86dd, 0x88cc]).prop_map(KindSpec::Type),
        3 => (proto, address())
            .prop_map(|(proto, src)| KindSpec::Ip { v6: false, proto, src }),
        1 => proto6.prop_map(|proto| KindSpec::Ip { v6: true, proto, src: (0, 0) }),
        1 => (prop::option::of(1..3u16), address())
            .prop_map(|(op, spa)| KindSpec::Arp { op, spa }),
    ];
    (ternary(), tag, kind).prop_map(|(in_port, tag, kind)| Spec { in_port, tag, kind })
}
