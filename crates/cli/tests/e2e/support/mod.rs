//! The tools of the scenarios: `weir serve` as a process, os-ken applications, labs, certificates.
//!
//! Nothing here knows Weir's insides: a scenario sees what an operator sees. Everything that is started or made
//! is ended or removed when its value is dropped.

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

/// How long anything may take that must happen. Generous: a busy machine is no failure, nor is an emulated one.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `happened`, or fails with `what`.
#[track_caller]
pub fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !happened() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A port that nobody has, for somebody who will bind it in a moment.
pub fn free_port() -> u16 {
    packet::free_port().expect("a free port")
}

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}
