//! Skips tests that need root or Open vSwitch if these are missing. A message on stderr names each
//! skipped test.

use std::io::Write;

use crate::command::find_program;
use crate::missing::Missing;
use crate::options::Datapath;
use crate::requirements::Requirements;

/// Whether `test` must be skipped because this machine lacks a requirement. Writes the skip to
/// stderr.
///
/// ```no_run
/// # fn root_hosts_reach_each_other() {
/// if lab::testing::skip("root_hosts_reach_each_other", lab::Requirements::ALL) {
///     return;
/// }
/// # }
/// ```
///
/// # Panics
/// Under `CI=true`, where a skip is a failure.
pub fn skip(test: &str, requirements: Requirements) -> bool {
    report(test, &requirements.check())
}

/// Whether `test` must be skipped because a program of the test is missing. Each program has its
/// Debian package.
///
/// # Panics
/// Under `CI=true`, where a skip is a failure.
pub fn skip_without(test: &str, programs: &[(&str, &str)]) -> bool {
    let absent = programs.iter().filter(|(name, _)| find_program(name).is_none());
    let missing: Vec<_> = absent.map(|(name, package)| Missing::program(name, package)).collect();
    report(test, &missing)
}

/// The datapath of the switches in tests: the value of `WEIR_TEST_DATAPATH`, or `netdev` without
/// this variable.
///
/// # Panics
/// If the variable is neither `netdev` nor `system`.
#[allow(clippy::panic)] // A test's failure is a panic.
pub fn datapath() -> Datapath {
    match std::env::var("WEIR_TEST_DATAPATH").as_deref() {
        Err(_) | Ok("netdev") => Datapath::Netdev,
        Ok("system") => Datapath::System,
        Ok(other) => panic!("WEIR_TEST_DATAPATH={other}: neither netdev nor system"),
    }
}

#[allow(clippy::panic)] // A test's failure is a panic.
fn report(test: &str, missing: &[Missing]) -> bool {
    if missing.is_empty() {
        return false;
    }
    let reasons: Vec<_> = missing.iter().map(ToString::to_string).collect();
    let message = format!("SKIPPED {test}: {}", reasons.join("; "));
    if std::env::var_os("CI").is_some_and(|value| value == "true") {
        panic!("{message} (under CI=true this is a failure)");
    }
    // This is not `eprintln!`, because the test harness hides the output of `eprintln!` in a
    // passing test.
    let _ = writeln!(std::io::stderr(), "{message}");
    true
}
