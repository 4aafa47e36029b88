//! What the core alone needs for FLOW_MODs, of slices and of networks, without sockets and without a store.
//!
//! ```text
//! cargo run --release -p weir-hypervisor --example flow_mod_speed
//! ```
//! One tenant adds 10,000 entries, modifies all of them by one request, and deletes them by one. ADD is microseconds
//! per request, MODIFY and DELETE are milliseconds until the last entry has changed, the switch's barrier replies
//! included. All tenants wait for a call into the core: the longest one of MODIFY and DELETE is printed. The medians of
//! the rounds are printed.

// A measurement ends when anything goes wrong.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../tests/behaviour/support/mod.rs"]
mod support;

use std::time::Duration;
use support::{Mode, WarmCore, median, nth_add, request, row, seconds};

const ENTRIES: u32 = 10_000;
const ROUNDS: usize = 7;

fn main() {
    println!(
        "{:<8} {:<9} {:>8} {:>10} {:>10} {:>16}",
        "version", "mode", "ADD us", "MODIFY ms", "DELETE ms", "longest call us"
    );
    for version in support::VERSIONS {
        for mode in [Mode::Slices, Mode::Networks] {
            let mut core = WarmCore::new(version, 2, mode);
            let (mut adds, mut modifies, mut deletes) = (Vec::new(), Vec::new(), Vec::new());
            let mut calls = Vec::new();
            let messages: Vec<Vec<u8>> = (0..ENTRIES).map(|n| nth_add(version, n)).collect();
            let modify = request(version, 1, "flow modify actions=output:1");
            let delete = request(version, 1, "flow delete");
            for _ in 0..ROUNDS {
                let all = seconds(|| messages.iter().for_each(|it| core.down(0, it)));
                adds.push(all * 1e6 / f64::from(ENTRIES));
                core.rest();
                core.longest = Some(Duration::ZERO);
                modifies.push(seconds(|| core.all_of(0, &modify)) * 1e3);
                core.rest();
                deletes.push(seconds(|| core.all_of(0, &delete)) * 1e3);
                core.rest();
                calls.push(core.longest.unwrap_or_default().as_secs_f64() * 1e6);
            }
            println!(
                "{} {:>8.2} {:>10.1} {:>10.1} {:>16.0}",
                row(version, mode),
                median(&mut adds),
                median(&mut modifies),
                median(&mut deletes),
                median(&mut calls)
            );
        }
    }
}
