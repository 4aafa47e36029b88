//! What a tenant's refused entries cost the core, and how long other tenants wait for it.
//!
//! ```text
//! cargo run --release -p weir-hypervisor --example refusal_storm
//! ```
//! One tenant sends 4,096 ADDs, as quickly as the core reads them, and the switch refuses every second message that adds an entry. Printed are the medians of
//! the rounds: the CPU time of the core from the first ADD until nothing is left to do, the messages to the switch, and the longest
//! call into the core. All tenants of the event loop wait for a call, so the longest call is the stall of a neighbour.

// It is a measurement: what goes wrong ends it.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../tests/behaviour/support/mod.rs"]
mod support;

use std::time::Duration;
use support::{Mode, WarmCore, median, request, seconds};

const ENTRIES: u32 = 4_096;
const ROUNDS: usize = 7;

fn main() {
    println!(
        "{:<8} {:<9} {:>8} {:>13} {:>16}",
        "version", "mode", "CPU ms", "to the switch", "longest call us"
    );
    for version in support::VERSIONS {
        for mode in [Mode::Slices, Mode::Networks] {
            let (mut times, mut sent, mut longest) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                let mut core = WarmCore::new(version, 2, mode);
                let messages: Vec<Vec<u8>> = (0..ENTRIES).map(|n| add(version, n)).collect();
                core.refuses = true;
                core.longest = Duration::ZERO;
                let before = core.south;
                times.push(seconds(|| {
                    messages.iter().for_each(|it| core.say_when_read(0, it));
                    core.rest();
                }));
                sent.push((core.south - before) as f64);
                longest.push(core.longest.as_secs_f64());
            }
            let mode = if mode == Mode::Slices { "slices" } else { "networks" };
            println!(
                "{:<8} {mode:<9} {:>8.1} {:>13.0} {:>16.0}",
                version.to_string(),
                median(&mut times) * 1e3,
                median(&mut sent),
                median(&mut longest) * 1e6
            );
        }
    }
}

fn add(version: support::Version, n: u32) -> Vec<u8> {
    let (high, low) = (n / 250, n % 250);
    let words = format!("flow add match=ip,nw_src=10.1.{high}.{low} priority=5 actions=output:2");
    request(version, n, &words)
}
