//! Tools of the end-to-end tests: `weir serve` as a process, os-ken applications, labs, certificates.
//!
//! The tools do not use Weir's insides: a test sees the same as an operator. Each process and each file is ended or
//! removed when its value is dropped.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

pub mod app;
pub mod browser;
pub mod faucet;
pub mod folder;
pub mod http;
pub mod network;
pub mod pki;
pub mod program;
pub mod requirements;
pub mod scripted;
pub mod weir;

/// How long a test waits for an event that must happen. The time is long, because a busy or an emulated machine is no
/// failure.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `happened` returns true, or fails with `what`.
#[track_caller]
pub fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !happened() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Returns a port that no program uses, for a program that binds to this port soon.
pub fn free_port() -> u16 {
    packet::free_port().expect("a free port")
}

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}
