//! What the scenarios are told with: `weir serve` as a process, os-ken applications, labs, certificates.
//!
//! Nothing here knows Weir's insides: a scenario sees what an operator sees. Everything that is started or made
//! is ended or removed when its value is dropped.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
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
pub mod puppet;
pub mod requirements;
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
///
/// Below the kernel's ephemeral ports: one of those may become the near end of any connection in that moment, even of
/// the one that dials it.
pub fn free_port() -> u16 {
    const FIRST: u32 = 10_000;
    const COUNT: u32 = 22_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Test runs side by side start at different places.
    let start = process::id().wrapping_mul(97);
    loop {
        let number = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + number % COUNT).expect("a port");
        if TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok() {
            return port;
        }
    }
}

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}
