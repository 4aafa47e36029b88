//! How long one ADD takes at most while the tables of rules grow: all tenants of the event loop wait for this call.
//!
//! ```text
//! cargo run --release -p weir-hypervisor --example growing_tables
//! ```
//! 20 tenants of one switch add 9,900 entries each, in turn. Printed are the longest calls into the core in
//! milliseconds, the median of the rounds.

// A measurement ends when anything goes wrong.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../tests/behaviour/support/mod.rs"]
mod support;

use std::time::Duration;
use support::{Mode, WarmCore, median, request, row};

const TENANTS: u16 = 20;
const ENTRIES: u32 = 9_900;
const ROUNDS: usize = 3;

fn main() {
    println!("{:<8} {:<9} {:>15}", "version", "mode", "longest call ms");
    for version in support::VERSIONS {
        for mode in [Mode::Slices, Mode::Networks] {
            let mut longest: Vec<f64> = (0..ROUNDS).map(|_| round(version, mode)).collect();
            println!("{} {:>15.2}", row(version, mode), median(&mut longest));
        }
    }
}

/// All entries into empty tables. Gives the longest call in milliseconds.
fn round(version: support::Version, mode: Mode) -> f64 {
    let mut core = WarmCore::new(version, TENANTS, mode);
    core.longest = Some(Duration::ZERO);
    for n in 0..ENTRIES {
        for tenant in 1..=TENANTS {
            let (high, low) = (n / 250, n % 250);
            let words = format!(
                "flow add match=ip,nw_src=10.{tenant}.{high}.{low} priority=5 actions=output:2"
            );
            core.down(usize::from(tenant - 1), &request(version, n, &words));
        }
    }
    core.longest.unwrap_or_default().as_secs_f64() * 1e3
}
