//! Tests of reading and printing matches: cases as data, and the round trip of any match.

mod common;

use flowspace::Match;
use proptest::prelude::*;

/// Each line of the file has a text and the canonical form of its match.
#[test]
fn matches_are_printed_in_the_canonical_form() {
    for (text, expected) in common::cases(include_str!("cases/matches.txt")) {
        let match_: Match = text.parse().unwrap_or_else(|e| panic!("`{text}`: {e}"));
        let expected = if expected == "(everything)" { "" } else { &expected };
        assert_eq!(match_.to_string(), expected, "`{text}`");
        assert_eq!(expected.parse::<Match>().as_ref(), Ok(&match_), "`{text}` printed and read");
    }
}

/// Each line of the file has a text and the message of its refusal.
#[test]
fn refusals() {
    for (text, expected) in common::cases(include_str!("cases/refusals.txt")) {
        match text.parse::<Match>() {
            Ok(match_) => panic!("`{text}` was read as `{match_}`"),
            Err(error) => assert_eq!(error.to_string(), expected, "`{text}`"),
        }
    }
}

#[test]
fn equivalent_match_texts_give_equal_matches() {
    for (one, other) in [
        ("tcp", "ip,nw_proto=6"),
        ("nw_proto=6 ip", "dl_type=0x0800,nw_proto=0x6"),
        ("dl_vlan=5", "vlan_vid=0x1005"),
        ("dl_vlan=5", "vlan_tci=0x1005/0x1fff"),
        ("dl_vlan=5", "vlan_tci=0x0005/0x0fff"),
        ("dl_vlan=0xffff", "vlan_tci=0"),
        ("dl_vlan=0xffff", "vlan_tci=0x0000/0x1fff"),
        ("dl_vlan=0xffff", "vlan_tci=0/0x1000"),
        ("ip,nw_tos=32", "ip,ip_dscp=8"),
        ("arp,nw_proto=2,nw_src=10.0.0.1", "arp,arp_op=2,arp_spa=10.0.0.1"),
        ("ip,nw_src=10.1.2.3/8", "ip,nw_src=10.0.0.0/255.0.0.0"),
        ("in_port=LOCAL", "in_port=65534"),
        ("in_port=none", "in_port=ANY"),
        ("tcp,tp_src=*", "tcp"),
        ("ip,tcp", "tcp"),
    ] {
        assert_eq!(one.parse::<Match>().unwrap(), other.parse().unwrap(), "{one} and {other}");
    }
}

proptest! {
    #[test]
    fn any_match_survives_printing(match_ in common::any_match()) {
        prop_assert_eq!(match_.to_string().parse::<Match>(), Ok(match_));
    }

    #[test]
    fn any_text_is_answered(text in "\\PC*") {
        let _ = text.parse::<Match>();
    }

    /// Nearly correct texts reach further into the parser than random texts.
    #[test]
    fn mangled_matches_are_answered(
        match_ in common::any_match(),
        at in any::<prop::sample::Index>(),
        insert in "[a-z0-9=/,:.*é]{0,3}",
    ) {
        let mut text: Vec<char> = match_.to_string().chars().collect();
        let at = at.index(text.len() + 1);
        text.splice(at..text.len().min(at + 1), insert.chars());
        let text: String = text.into_iter().collect();
        if let Ok(read) = text.parse::<Match>() {
            prop_assert_eq!(read.to_string().parse::<Match>(), Ok(read));
        }
    }
}
