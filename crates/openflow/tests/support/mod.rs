//! What several test programs, and the fuzz targets, share.
//!
//! [`generate`] turns arbitrary bytes into arbitrary messages, so that property tests and the fuzzer use one generator;
//! [`checks`] holds what must be true of any bytes.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part")]

pub mod cases;
pub mod checks;
pub mod generate;
pub mod generate_v10;
pub mod generate_v13;
pub mod samples;
pub mod samples_v10;
pub mod samples_v13;
pub mod samples_v13_multipart;

use openflow::{Version, v10, v13};
use std::collections::BTreeSet;

/// The message types of a version that the codec has names for.
pub fn named_types(version: Version) -> BTreeSet<u8> {
    let name = |type_: u8| match version {
        Version::V1_0 => v10::MessageType(type_).name(),
        _ => v13::MessageType(type_).name(),
    };
    (0..=u8::MAX).filter(|type_| name(*type_).is_some()).collect()
}

/// Says loudly that a test is skipped, past the test runner's capture; under CI=true that is a failure.
pub fn skip(test: &str, why: &str) {
    use std::io::Write as _;
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{test} cannot be skipped: {why}");
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {why}");
}
