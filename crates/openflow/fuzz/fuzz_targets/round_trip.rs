//! Arbitrary messages, which the bytes choose: read back as they were written, edited in place and nowhere else.
#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::checks::round_trip(data));
