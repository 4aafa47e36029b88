//! Strategies for matches over the whole of header space.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "test code outside of #[test]")]

pub(crate) mod small;

use flowspace::{Field, Match};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// The kinds of packets that prerequisites distinguish.
const KINDS: &[&str] = &[
    "",
    "ip",
    "tcp",
    "udp",
    "sctp",
    "icmp",
    "ip,nw_proto=50",
    "arp",
    "rarp",
    "ipv6",
    "tcp6",
    "udp6",
    "sctp6",
    "icmp6",
    "icmp6,icmp_type=135,icmp_code=0",
    "icmp6,icmp_type=136,icmp_code=0",
    "ipv6,nw_proto=1",
    "mpls",
    "mplsm",
    "dl_type=0x88e7",
    "dl_type=0x88cc",
    "dl_type=0x05ff",
];

/// Whether a field may have a mask in a message.
fn maskable(field: Field, match_: &Match) -> bool {
    let icmp = matches!(match_.get(Field::NwProto), (1 | 58, 0xff));
    match field {
        Field::TpSrc | Field::TpDst => !icmp,
        // The values of this field are drawn separately.
        Field::VlanVid => false,
        _ => field.is_maskable_in_v13(),
    }
}

/// Any match that 1.3 can express.
pub(crate) fn any_match() -> impl Strategy<Value = Match> {
    let setting = (select(&Field::ALL[..]), any::<u128>(), any::<Index>(), any::<u128>());
    (select(KINDS), prop::collection::vec(setting, 0..6)).prop_map(|(kind, settings)| {
        let mut match_: Match = kind.parse().unwrap();
        for (field, value, shape, bits) in settings {
            match_ = add(match_, field, value, shape, bits);
        }
        match_
    })
}

fn add(match_: Match, field: Field, value: u128, shape: Index, bits: u128) -> Match {
    let full = field.full_mask();
    let is_type = matches!(field, Field::DlType | Field::NwProto);
    let icmp = matches!(match_.get(Field::NwProto), (1 | 58, 0xff));
    let value = match field {
        Field::TpSrc | Field::TpDst if icmp => value & 0xff,
        // The reserved numbers, which have two meanings, are left out.
        Field::InPort => value & 0xfeff,
        _ => value,
    };
    match field {
        Field::VlanVid => match shape.index(3) {
            0 => match_.with(field, 0),
            1 => match_.with_masked(field, 0x1000, 0x1000),
            _ => match_.with(field, value | 0x1000),
        },
        Field::VlanPcp => match_.with(field, value),
        _ if is_type || !match_.is_wild(field) || !match_.permits(field) => match_,
        _ if !maskable(field, &match_) => match_.with(field, value),
        _ => match shape.index(3) {
            0 => match_.with(field, value),
            1 => {
                let length = (bits % u128::from(field.width()) + 1) as u32;
                match_.with_masked(field, value, full & !full.checked_shr(length).unwrap_or(0))
            }
            _ => match_.with_masked(field, value, bits),
        },
    }
}

/// Any match that 1.0 can express.
pub(crate) fn any_v10_match() -> impl Strategy<Value = Match> {
    any_match().prop_filter("1.0 can say it", |match_| match_.to_v10().is_ok())
}

/// Lines of a case file: everything that is not blank and not a comment, split at ` => `.
pub(crate) fn cases(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (left, right) = line.split_once("=> ").expect("` => ` in each case");
            (left.trim().to_owned(), right.trim().to_owned())
        })
        .collect()
}
