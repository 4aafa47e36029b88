//! Tests with the corpus of the fuzz targets (`crates/openflow/fuzz/corpus`), by the same functions as in the fuzzer.
//!
//!     cargo +nightly fuzz run --fuzz-dir crates/openflow/fuzz any_bytes -- -max_total_time=60
//!
//! A message that the fuzzer finds becomes a case in `tests/cases/found.txt`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

mod support;

use std::path::Path;
use support::checks;

#[test]
fn any_bytes() {
    check("any_bytes", checks::any_bytes);
}

#[test]
fn round_trip() {
    check("round_trip", checks::round_trip);
}

fn check(target: &str, function: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut count = 0;
    for entry in
        std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
    {
        function(&std::fs::read(entry.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count >= 20, "{} has only {count} entries", folder.display());
}
