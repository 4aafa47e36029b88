//! Arbitrary bytes: never a panic, always a message that is written back or a typed error.
#![no_main]

#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::checks::any_bytes(data));
