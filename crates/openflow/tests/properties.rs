//! Tests of the properties of reading and writing, with arbitrary messages, arbitrary bytes and damaged messages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

mod support;

use openflow::Version;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use support::checks;

/// The first byte selects the version, and the second byte selects the message.
#[test]
fn every_message_type_is_generated() {
    for (choice, version) in [(0, Version::V1_0), (1, Version::V1_3)] {
        let made: BTreeSet<u8> =
            (0..=u8::MAX).map(|message| checks::frame_from(&[choice, message])[1]).collect();
        let named = support::named_types(version);
        let missing: Vec<&u8> = named.difference(&made).collect();
        assert_eq!(missing, [&0; 0], "{version:?}: types that are never generated");
        assert!(made.len() > named.len(), "{version:?}: unknown types are never generated");
    }
}

proptest! {
    // A case takes some ten microseconds, and there are many kinds of messages.
    #![proptest_config(ProptestConfig { cases: 2048, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn written_messages_are_read_back(data in vec(any::<u8>(), 0..1200)) {
        checks::round_trip(&data);
    }

    #[test]
    fn arbitrary_bytes_are_a_message_or_a_typed_error(data in vec(any::<u8>(), 0..600)) {
        checks::any_bytes(&data);
    }

    #[test]
    fn arbitrary_bodies_are_a_message_or_a_typed_error(type_ in 0..=last_type() + 1, body in vec(0u8..32, 0..300)) {
        let mut frame = vec![1, type_, 0, 0, 0, 0, 0, 1];
        frame.extend(body);
        checks::any_bytes(&frame);
    }

    #[test]
    fn truncated_messages_are_refused_or_read_as_less(data in vec(any::<u8>(), 0..600)) {
        let frame = checks::frame_from(&data);
        for length in 0..frame.len() {
            let cut = &frame[..length];
            // The header still says the old length.
            prop_assert!(openflow::v10::Message::parse(cut).is_err());
            prop_assert!(openflow::v13::Message::parse(cut).is_err());
            checks::any_bytes(cut);
        }
    }

    #[test]
    fn damaged_messages_are_a_message_or_a_typed_error(
        data in vec(any::<u8>(), 0..900),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut frame = checks::frame_from(&data);
        for (at, byte) in damage {
            let at = at.index(frame.len());
            frame[at] = byte;
        }
        checks::any_bytes(&frame);
    }
}

/// The highest message type of both versions.
fn last_type() -> u8 {
    support::named_types(Version::V1_3).last().copied().unwrap()
}
