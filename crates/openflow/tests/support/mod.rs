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

/// Says loudly that a test is skipped, past the test runner's capture; under CI=true that is a failure.
pub fn skip(test: &str, why: &str) {
    use std::io::Write as _;
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{test} cannot be skipped: {why}");
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {why}");
}
