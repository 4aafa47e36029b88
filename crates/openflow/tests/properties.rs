//! Properties of reading and writing, over arbitrary messages, arbitrary bytes, and messages with damage.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use support::checks;

proptest! {
    // A case takes some ten microseconds; there are many kinds of message to get to.
    #![proptest_config(ProptestConfig { cases: 2048, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back(data in vec(any::<u8>(), 0..1200)) {
        checks::round_trip(&data);
    }

    #[test]
    fn arbitrary_bytes_are_a_message_or_a_typed_error(data in vec(any::<u8>(), 0..600)) {
        checks::any_bytes(&data);
    }

    #[test]
    fn arbitrary_bodies_are_a_message_or_a_typed_error(type_ in 0u8..31, body in vec(0u8..32, 0..300)) {
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
