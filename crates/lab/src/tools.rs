//! Runs `ip` and `tc` for callers that configure their own interfaces, inside a lab or on a server.

use crate::command::{program, run_with_input};
use crate::error::Result;
use crate::namespace::inside;

/// Runs `ip -batch` with that input, in the network namespace of that name or path, or in the caller's namespace. The
/// command stops at the first line that fails.
pub fn ip(namespace: Option<&str>, script: &str) -> Result<()> {
    batch("ip", namespace, script)
}

/// Runs `tc -batch` as [`ip`] runs `ip -batch`.
pub fn tc(namespace: Option<&str>, script: &str) -> Result<()> {
    batch("tc", namespace, script)
}

fn batch(name: &str, namespace: Option<&str>, script: &str) -> Result<()> {
    if script.is_empty() {
        return Ok(());
    }
    let work = || run_with_input(program(name).args(["-batch", "-"]), script).map(drop);
    match namespace {
        Some(namespace) => inside(namespace, work),
        None => work(),
    }
}
