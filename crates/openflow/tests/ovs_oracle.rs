//! Tests with Open vSwitch as oracle: for every sample `ovs-ofctl ofp-print` prints the text of the case files, and
//! never reports that the sample cannot be decoded.
//!
//! With WEIR_BLESS set, the tests write the case files again from the samples; look at the difference before you commit
//! the files. The tests need the Debian package openvswitch-common (3.1 printed the case files).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

mod support;

use openflow::{Version, error};
use std::process::Command;
use support::cases::{self, Case, to_hex};
use support::samples::{Sample, Samples};

const INTRODUCTION_V10: &str =
    "One OpenFlow 1.0 message of every kind. See tests/support/cases.rs for the format.\n";
const INTRODUCTION_MALFORMED: &str = "Messages that are not as they should be, and unknown ones that are kept. \
    See tests/support/cases.rs for the format.\n";
const INTRODUCTION_FOUND: &str = "Messages that were once read or written wrongly, by whoever found them. \
    See tests/support/cases.rs for the format.\n";
const INTRODUCTION_V13: &str =
    "One OpenFlow 1.3 message of every kind. See tests/support/cases.rs for the format.\n";

#[test]
fn ovs_reads_written_messages_as_stored_in_v10() {
    if ovs_is_there("ovs_reads_written_messages_as_stored_in_v10") {
        check("v10.txt", INTRODUCTION_V10, Samples::of_v10());
    }
}

#[test]
fn ovs_reads_written_messages_as_stored_in_v13() {
    if ovs_is_there("ovs_reads_written_messages_as_stored_in_v13") {
        check("v13.txt", INTRODUCTION_V13, Samples::of_v13());
    }
}

#[test]
fn ovs_reads_the_messages_found_by_the_fuzzer() {
    if ovs_is_there("ovs_reads_the_messages_found_by_the_fuzzer") {
        check_stored("found.txt", INTRODUCTION_FOUND, |ovs| !ovs.contains("decode error"));
    }
}

/// The case file has the output of Open vSwitch for damaged messages next to the output of Weir. If the two errors
/// differ, [`DIFFERENCES`] has the reason.
#[test]
fn ovs_reports_the_same_errors_for_malformed_messages() {
    if !ovs_is_there("ovs_reports_the_same_errors_for_malformed_messages") {
        return;
    }
    check_stored("malformed.txt", INTRODUCTION_MALFORMED, |_| true);
    let stored = cases::load("malformed.txt");
    for case in &stored {
        let ours = case.read.split_once("the peer is sent ").map(|(_, name)| ovs_name(name));
        let theirs =
            case.ovs.split_once("decode error: ").and_then(|(_, rest)| rest.split_once("***"));
        let theirs = theirs.map(|(name, _)| name);
        match DIFFERENCES.iter().find(|(name, ..)| *name == case.name) {
            Some((_, expected, why)) => assert_eq!(theirs, *expected, "{}: {why}", case.name),
            // A switch refuses an unknown part of a message, but Weir has to keep this part.
            None if case.name.ends_with(" is kept") => {
                assert!(ours.is_none() && theirs.is_some(), "{}", case.name)
            }
            None => assert_eq!(ours, theirs, "{}", case.name),
        }
    }
}

/// The cases in which Open vSwitch reports another error than Weir, with the reasons.
const DIFFERENCES: &[(&str, Option<&str>, &str)] = &[
    ("1.0: header cut", None, "it has no code for what is not a message"),
    ("1.0: length field below eight", None, "it prints what is there"),
    ("1.0: length field beyond the frame", None, "it prints what is there"),
    (
        "1.0: a version nobody speaks",
        Some("OFPBRC_BAD_LEN"),
        "it has nothing of this version to compare with",
    ),
    (
        "1.0: packet out with an action of length four",
        Some("OFPBRC_BAD_LEN"),
        "it looks at the length of all actions first; the fault is in the action all the same",
    ),
    (
        "1.0: flow mod with an action not a multiple of eight",
        Some("OFPBRC_BAD_LEN"),
        "it looks at the length of the message first",
    ),
    (
        "1.0: flow mod with half an action behind a whole one",
        Some("OFPBRC_BAD_LEN"),
        "it looks at the length of the message first",
    ),
    (
        "1.3: flow mod with an instruction not a multiple of eight",
        Some("OFPBRC_BAD_LEN"),
        "it looks at the length of the message first",
    ),
    (
        "1.3: flow mod with a standard match",
        Some("OFPBMC_BAD_LEN"),
        "it reads type 0 as the match of 1.1, which has 88 bytes; the specification has BAD_TYPE for it",
    ),
    (
        "1.3: flow mod with a field of a wrong length",
        Some("OFPBMC_BAD_FIELD"),
        "it takes the length as a part of the field's name",
    ),
    (
        "1.3: flow mod with a masked field of odd length",
        Some("OFPBMC_BAD_WILDCARDS"),
        "it reads the mask before the length",
    ),
    (
        "1.3: flow mod with a mask shorter than the value",
        Some("OFPBMC_BAD_WILDCARDS"),
        "it reads the mask before the length",
    ),
    (
        "1.3: flow mod with eight bytes too many behind a set-field",
        None,
        "it puts up with any number of zeros; the specification pads to the next multiple of eight",
    ),
];

#[test]
fn ovs_prints_the_same_name_for_every_error_code() {
    if !ovs_is_there("ovs_prints_the_same_name_for_every_error_code") {
        return;
    }
    for (version, names) in [(Version::V1_0, error::v10::NAMES), (Version::V1_3, error::v13::NAMES)]
    {
        for (code, name) in names {
            let mut frame = Vec::new();
            error::Error { code: *code, data: &[] }.write_message(version, 1, &mut frame).unwrap();
            let printed = ofp_print(&frame);
            let expected = ovs_name(name);
            assert!(printed.contains(&format!(": {expected}")), "{name} is printed as {printed}");
            assert_eq!(code.display(version).to_string(), *name);
        }
    }
}

/// The name of an error code in Open vSwitch. If the name differs from the specification, it is mostly the name in the
/// other version.
fn ovs_name(name: &str) -> &str {
    match name {
        "OFPFMFC_ALL_TABLES_FULL" => "OFPFMFC_TABLE_FULL",
        "OFPBRC_BAD_MULTIPART" => "OFPBRC_BAD_STAT",
        "OFPBRC_BAD_EXPERIMENTER" => "OFPBRC_BAD_VENDOR",
        "OFPBRC_BAD_EXP_TYPE" => "OFPBRC_BAD_SUBTYPE",
        "OFPBRC_IS_SLAVE" => "OFPBRC_IS_SECONDARY",
        "OFPBAC_BAD_EXPERIMENTER" => "OFPBAC_BAD_VENDOR",
        "OFPBAC_BAD_EXP_TYPE" => "OFPBAC_BAD_VENDOR_TYPE",
        "OFPTFFC_BAD_TYPE" => "OFPBPC_BAD_TYPE",
        "OFPTFFC_BAD_LEN" => "OFPBPC_BAD_LEN",
        "OFPTFFC_BAD_ARGUMENT" => "OFPBPC_BAD_VALUE",
        name => name,
    }
}

fn check(file: &str, introduction: &str, samples: Vec<Sample>) {
    let now: Vec<Case> = samples
        .into_iter()
        .map(|Sample { name, frame, in_ovs }| {
            let (read, ovs) = (cases::read(&frame), ofp_print(&frame));
            assert!(!read.starts_with("error"), "{name}: we cannot read what we wrote: {read}");
            let reads = !ovs.contains("decode error");
            assert_eq!(reads, in_ovs, "{name}: whether Open vSwitch reads what we wrote: {ovs}");
            Case { name, frame, read, ovs }
        })
        .collect();
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(cases::path(file), cases::render(introduction, &now)).unwrap();
    }
    let stored = cases::load(file);
    assert_eq!(
        now.iter().map(|case| &case.name).collect::<Vec<_>>(),
        stored.iter().map(|case| &case.name).collect::<Vec<_>>()
    );
    for (now, stored) in now.iter().zip(&stored) {
        assert_eq!(to_hex(&now.frame), to_hex(&stored.frame), "{}: we write other bytes", now.name);
        assert_eq!(now.ovs, stored.ovs, "{}: Open vSwitch reads something else", now.name);
    }
}

fn ofp_print(frame: &[u8]) -> String {
    // The second argument is the level of detail; 2 shows ports and packets.
    let output = Command::new("ovs-ofctl")
        .args(["ofp-print", &to_hex(frame), "2"])
        .output()
        .expect("ovs-ofctl runs");
    assert!(output.status.success(), "ovs-ofctl: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("ovs-ofctl prints UTF-8");
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Checks cases that were written by hand. With WEIR_BLESS set, the outputs in the file are written again.
fn check_stored(file: &str, introduction: &str, is_right: fn(&str) -> bool) {
    let mut stored = cases::load(file);
    for case in &mut stored {
        let ovs = ofp_print(&case.frame);
        assert!(is_right(&ovs), "{}: {ovs}", case.name);
        if std::env::var_os("WEIR_BLESS").is_some() {
            (case.read, case.ovs) = (cases::read(&case.frame), ovs);
        } else {
            assert_eq!(ovs, case.ovs, "{}: Open vSwitch reads something else", case.name);
        }
    }
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(cases::path(file), cases::render(introduction, &stored)).unwrap();
    }
}

fn ovs_is_there(test: &str) -> bool {
    let there =
        Command::new("ovs-ofctl").arg("--version").output().is_ok_and(|run| run.status.success());
    if !there {
        support::skip(test, "ovs-ofctl is missing (apt-get install openvswitch-common)");
    }
    there
}
