//! Tests of the handshake as data: the messages that each side sends, the answers, and the outcome.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use channel::{Established, Handshake, HandshakeError, Step};
use openflow::error::v13::HELLO_FAILED_INCOMPATIBLE;
use openflow::{ErrorCode, Version, VersionSet};

const BOTH: VersionSet = VersionSet::SUPPORTED;
const ONLY_1_0: VersionSet = VersionSet::only(Version::V1_0);
const ONLY_1_3: VersionSet = VersionSet::only(Version::V1_3);

/// The bytes of a hexadecimal text such as "01 05 0008".
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn features(version: u8, dpid: u64, auxiliary_id: u8) -> Vec<u8> {
    let mut frame = hex(&format!("{version:02x} 06 0020 00000009"));
    frame.extend_from_slice(&dpid.to_be_bytes());
    frame.extend_from_slice(&hex("00000100 fe"));
    frame.push(auxiliary_id);
    frame.resize(32, 0);
    frame
}

/// Feeds frames one by one. Each step has a frame, the expected answer and the expected outcome ("done …", "continue",
/// …).
fn check(name: &str, mut handshake: Handshake, start: &str, steps: &[(Vec<u8>, &str, &str)]) {
    let mut out = Vec::new();
    handshake.start(&mut out);
    assert_eq!(out, hex(start), "{name}: start");
    for (i, (frame, answer, expected)) in steps.iter().enumerate() {
        out.clear();
        let got = match handshake.handle(frame, &mut out) {
            Ok(Step::Continue) => "continue".to_owned(),
            Ok(Step::NotOurs) => "not ours".to_owned(),
            Ok(Step::Done(Established { version, switch: None })) => {
                format!("done {:#x}", version.0)
            }
            Ok(Step::Done(Established { version, switch: Some(switch) })) => {
                assert_eq!(&switch.frame, frame, "{name}: the reply is kept whole");
                format!("done {:#x} dpid {:x}.{}", version.0, switch.dpid, switch.auxiliary_id)
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(got, *expected, "{name}: step {i}");
        assert_eq!(out, hex(answer), "{name}: answer to step {i}");
    }
}

#[test]
fn handshake_with_a_switch_negotiates_the_version_and_reads_features() {
    let hello_both = "04 00 0010 00000009 0001 0008 00000012";
    let request_13 = "04 05 0008 00000009";
    let request_10 = "01 05 0008 00000009";
    let plain_10 = hex("01 00 0008 00000001");
    let plain_13 = hex("04 00 0008 00000001");
    let towards = |allowed| Handshake::towards_switch(allowed, 9);

    check(
        "1.3 with bitmap",
        towards(BOTH),
        hello_both,
        &[
            (hex("04 00 0010 00000001 0001 0008 00000010"), request_13, "continue"),
            (features(4, 0xab, 0), "", "done 0x4 dpid ab.0"),
            (hex("04 0a 0008 00000000"), "", "not ours"),
        ],
    );
    check(
        "an old switch",
        towards(BOTH),
        hello_both,
        &[(plain_10.clone(), request_10, "continue"), (features(1, 7, 3), "", "done 0x1 dpid 7.0")],
    );
    check(
        "a newer switch without bitmap: the smaller version",
        towards(BOTH),
        hello_both,
        &[
            (hex("06 00 0008 00000001"), request_13, "continue"),
            (features(4, 1, 2), "", "done 0x4 dpid 1.2"),
        ],
    );
    check(
        "a newer switch whose bitmap names 1.0 and 1.5 only",
        towards(BOTH),
        hello_both,
        &[(hex("06 00 0010 00000001 0001 0008 00000042"), request_10, "continue")],
    );
    check(
        "1.0 only: no bitmap is sent",
        towards(ONLY_1_0),
        "01 00 0008 00000009",
        &[(plain_13.clone(), request_10, "continue")],
    );
    check(
        "unknown hello elements and a cut bitmap are skipped",
        towards(BOTH),
        hello_both,
        &[(hex("04 00 0014 00000001 0009 0008 ffffffff 0001 0010"), request_13, "continue")],
    );
    check(
        "echo, events and a second HELLO before the features",
        towards(BOTH),
        hello_both,
        &[
            (plain_13.clone(), request_13, "continue"),
            (hex("04 02 000b 00000005 616263"), "04 03 000b 00000005 616263", "continue"),
            (hex("04 0c 0008 00000000"), "", "not ours"),
            (plain_13.clone(), "", "continue"),
            (features(4, 5, 0), "", "done 0x4 dpid 5.0"),
        ],
    );
}

#[test]
fn handshake_with_a_controller_is_complete_after_hello() {
    check(
        "HELLO alone",
        Handshake::towards_controller(BOTH, 1),
        "04 00 0010 00000001 0001 0008 00000012",
        &[
            (hex("01 00 0008 00000002"), "", "done 0x1"),
            (hex("01 05 0008 00000003"), "", "not ours"),
        ],
    );
}

#[test]
fn faults_of_the_peer_end_the_handshake_with_a_reason() {
    let hello_both = "04 00 0010 00000009 0001 0008 00000012";
    let request_13 = "04 05 0008 00000009";
    let hello_13 = hex("04 00 0008 00000001");
    let check_fault = |name, steps: &[(Vec<u8>, &str, &str)]| {
        check(name, Handshake::towards_switch(BOTH, 9), hello_both, steps);
    };
    check_fault(
        "PACKET_IN first",
        &[(
            hex("01 0a 0012 00000007 ffffffff 0000 0001 00 00"),
            "01 01 001e 00000007 0001 0001 01 0a 0012 00000007 ffffffff 0000 0001 00 00",
            "a message of type 10 came before HELLO",
        )],
    );
    check_fault(
        "another version after the agreement",
        &[
            (hello_13.clone(), request_13, "continue"),
            (
                hex("01 06 0008 00000009"),
                "01 01 0014 00000009 0001 0000 01 06 0008 00000009",
                "a message of OpenFlow 1.0 came after 1.3 was agreed on",
            ),
        ],
    );
    check_fault(
        "features too short",
        &[
            (hello_13.clone(), request_13, "continue"),
            (
                hex("04 06 0010 00000009 0000000000000001"),
                "04 01 001c 00000009 0001 0006 04 06 0010 00000009 0000000000000001",
                "a malformed message of type 6 in the handshake",
            ),
        ],
    );
    check_fault(
        "the peer refuses",
        &[(
            hex("01 01 0010 00000009 0000 0000 6e6f 0000"),
            "",
            "the peer refused: OFPHFC_INCOMPATIBLE (\"no\")",
        )],
    );
    check_fault(
        "an error instead of the features",
        &[
            (hello_13, request_13, "continue"),
            (
                hex("04 01 0014 00000009 0001 0005 04 05 0008 00000009"),
                "",
                "the peer refused: OFPBRC_EPERM",
            ),
        ],
    );
    check_fault(
        "an error without a code",
        &[(hex("04 01 000a 00000009 0001"), "", "a malformed message of type 1 in the handshake")],
    );
}

#[test]
fn an_incompatible_peer_gets_a_hello_failed_error_with_a_reason() {
    for (allowed, hello, version, theirs) in [
        (ONLY_1_3, "01 00 0008 00000007", 4, ONLY_1_0),
        (BOTH, "06 00 0010 00000007 0001 0008 00000060", 4, VersionSet(0x60)),
        (ONLY_1_0, "04 00 0010 00000007 0001 0008 00000010", 1, ONLY_1_3),
        (BOTH, "00 00 0008 00000007", 1, VersionSet(1)),
        (BOTH, "02 00 0008 00000007", 1, VersionSet(4)),
    ] {
        let mut handshake = Handshake::towards_controller(allowed, 1);
        let mut out = Vec::new();
        let error = handshake.handle(&hex(hello), &mut out).unwrap_err();
        assert_eq!(error, HandshakeError::Incompatible { ours: allowed, theirs }, "{hello}");
        assert_eq!((out[0], out[1]), (version, 1), "{hello}: the error's version and type");
        assert_eq!(out[4..12], hex("00000007 0000 0000"), "{hello}: xid, HELLO_FAILED");
        assert_eq!(usize::from(out[2]) << 8 | usize::from(out[3]), out.len());
        let text = String::from_utf8(out[12..].to_vec()).unwrap();
        assert!(text.starts_with("no OpenFlow version in common: we speak 1."), "{text}");

        // The other side reads the error with its version, code and text.
        let refused = Handshake::towards_switch(BOTH, 9).handle(&out, &mut Vec::new());
        let code = HELLO_FAILED_INCOMPATIBLE;
        let version = Version(version);
        assert_eq!(refused, Err(HandshakeError::Refused { version, code, text }));
    }
}

#[test]
fn a_long_error_text_is_cut() {
    let mut frame = hex("04 01 ffff 00000009 0000 0001");
    frame.resize(65_535, b'x');
    match Handshake::towards_switch(BOTH, 9).handle(&frame, &mut Vec::new()) {
        Err(HandshakeError::Refused { code: ErrorCode { type_: 0, code: 1 }, text, .. }) => {
            assert_eq!(text, "x".repeat(200));
        }
        other => panic!("{other:?}"),
    }
}

/// The handshake gets arbitrary frames. Each answer is a sequence of whole frames, and the handshake never panics.
#[test]
fn handshake_answers_to_arbitrary_frames_are_whole_frames() {
    use proptest::prelude::*;
    let body = proptest::collection::vec(any::<u8>(), 0..80);
    let header = (0..8_u8, 0..20_u8);
    proptest!(|(frames in proptest::collection::vec((header, body), 1..6), switch: bool)| {
        let mut handshake = match switch {
            true => Handshake::towards_switch(BOTH, 9),
            false => Handshake::towards_controller(BOTH, 9),
        };
        for ((version, type_), body) in frames {
            let mut frame = vec![version, type_, 0, 8 + body.len() as u8, 0, 0, 0, 1];
            frame.extend_from_slice(&body);
            let mut out = Vec::new();
            let result = handshake.handle(&frame, &mut out);
            let mut rest = &out[..];
            while let Some(length) = openflow::frame::next(rest).unwrap() {
                rest = &rest[length..];
            }
            prop_assert!(rest.is_empty());
            if result.is_err() {
                break;
            }
        }
    });
}
