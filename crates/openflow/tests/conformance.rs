//! Tests with the case files: every message is read as the case says, and written with the same bytes. `ovs_oracle`
//! checks the same files with Open vSwitch.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

mod support;

use openflow::{Version, v10, v13};
use std::collections::BTreeSet;
use support::cases::{self, Case, to_hex};

#[test]
fn v10_messages_are_read_as_stated_and_written_unchanged() {
    let cases = cases::load("v10.txt");
    cases.iter().for_each(check);
    covers_every_type(&cases, Version::V1_0, 16, 17);
}

#[test]
fn v13_messages_are_read_as_stated_and_written_unchanged() {
    let cases = cases::load("v13.txt");
    cases.iter().for_each(check);
    covers_every_type(&cases, Version::V1_3, 18, 19);
}

#[test]
fn damaged_and_unknown_messages_are_read_or_refused_as_stated() {
    cases::load("malformed.txt").iter().for_each(check);
}

/// A type can be damaged if one of its stored messages has a body that cannot be read without its last byte.
#[test]
fn each_message_type_that_can_be_damaged_has_a_damaged_case() {
    let type_of = |frame: &[u8]| (frame[0], frame[1]);
    let can_be_damaged = |case: &&Case| {
        let mut frame = case.frame[..case.frame.len() - 1].to_vec();
        let length = u16::try_from(frame.len()).unwrap();
        frame[2..4].copy_from_slice(&length.to_be_bytes());
        cases::read(&frame).starts_with("error")
    };
    let good = ["v10.txt", "v13.txt"].map(cases::load).concat();
    let with_body = good.iter().filter(|case| case.frame.len() > 8);
    let expected: BTreeSet<_> =
        with_body.filter(can_be_damaged).map(|case| type_of(&case.frame)).collect();
    let damaged: BTreeSet<_> = cases::load("malformed.txt")
        .iter()
        .filter(|case| case.read.starts_with("error") && case.frame.len() >= 8)
        .map(|case| type_of(&case.frame))
        .collect();
    let missing: Vec<_> = expected.difference(&damaged).collect();
    assert_eq!(missing, [&(0, 0); 0], "version and type without a case in malformed.txt");
}

/// The file has messages that the fuzzer found, and other messages that were once read wrongly.
#[test]
fn messages_found_by_the_fuzzer_are_read_or_refused_as_stated() {
    cases::load("found.txt").iter().for_each(check);
}

fn check(case: &Case) {
    assert_eq!(cases::read(&case.frame), case.read, "{}", case.name);
    let mut written = Vec::new();
    if let Ok((header, message)) = v10::Message::parse(&case.frame) {
        message.write(header.xid, &mut written).unwrap();
    } else if let Ok((header, message)) = v13::Message::parse(&case.frame) {
        message.write(header.xid, &mut written).unwrap();
    } else {
        assert!(case.read.starts_with("error"), "{}", case.name);
        return;
    }
    assert_eq!(to_hex(&written), to_hex(&case.frame), "{}: written otherwise", case.name);
}

/// Checks that the file has every message type and every statistics type, and that no case is read as unknown.
fn covers_every_type(cases: &[Case], version: Version, request: u8, reply: u8) {
    let seen: BTreeSet<u8> = cases.iter().map(|case| case.frame[1]).collect();
    assert_eq!(seen, support::named_types(version));
    let unread: Vec<&str> = cases
        .iter()
        .filter(|case| case.read.contains("Unknown"))
        .map(|case| case.name.as_str())
        .collect();
    assert_eq!(unread, [""; 0], "named types that are read as unknown");
    for multipart in [request, reply] {
        let seen: BTreeSet<u16> = cases
            .iter()
            .filter(|case| case.frame[1] == multipart)
            .map(|case| u16::from_be_bytes([case.frame[8], case.frame[9]]))
            .collect();
        let last = if version == Version::V1_0 { 5 } else { 13 };
        assert_eq!(seen, (0..=last).chain([0xffff]).collect::<BTreeSet<u16>>());
    }
}
