//! What a refusal costs the core while a change of many entries is in flight, and how long other tenants wait for it.
//!
//! ```text
//! cargo run --release -p weir-hypervisor --example large_replay
//! ```
//! One tenant has 9,900 entries and modifies all of them. The switch refuses the last rule of the MODIFY: the tenant's entries become
//! what they were. Or the switch refuses an ADD before the MODIFY: the MODIFY is applied again without the ADD. Printed are the medians of the
//! rounds: the CPU time of the core until nothing is left to do, the messages to the switch, and the longest call into the core, for
//! which all tenants of the event loop wait. In rows with "nothing" the switch refuses nothing.

// It is a measurement: what goes wrong ends it.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../tests/behaviour/support/mod.rs"]
mod support;

use std::time::Duration;
use support::{Mode, WarmCore, median, request, seconds};

const ENTRIES: u32 = 9_900;
const ROUNDS: u32 = 7;

fn main() {
    println!(
        "{:<8} {:<9} {:<10} {:>8} {:>13} {:>16}",
        "version", "mode", "refused", "CPU ms", "to the switch", "longest call us"
    );
    for version in support::VERSIONS {
        for mode in [Mode::Slices, Mode::Networks] {
            for (refused, after) in
                [("nothing", None), ("last rule", Some(ENTRIES)), ("ADD", Some(0))]
            {
                let mut core = WarmCore::new(version, 2, mode);
                (0..ENTRIES).for_each(|n| core.down(0, &add(version, n)));
                core.rest();
                let (mut times, mut sent, mut longest) = (Vec::new(), Vec::new(), Vec::new());
                for round in 0..ROUNDS {
                    let port = 1 + round % 2;
                    let modify = format!("flow modify match=ip priority=5 actions=output:{port}");
                    let modify = request(version, 1, &modify);
                    let before = core.south;
                    core.refuses_after = after;
                    core.longest = Duration::ZERO;
                    times.push(seconds(|| {
                        core.say(0, &add(version, ENTRIES + round));
                        core.all_of(0, &modify);
                        core.rest();
                    }));
                    sent.push((core.south - before) as f64);
                    longest.push(core.longest.as_secs_f64());
                }
                let mode = if mode == Mode::Slices { "slices" } else { "networks" };
                println!(
                    "{:<8} {mode:<9} {refused:<10} {:>8.1} {:>13.0} {:>16.0}",
                    version.to_string(),
                    median(&mut times) * 1e3,
                    median(&mut sent),
                    median(&mut longest) * 1e6
                );
            }
        }
    }
}

fn add(version: support::Version, n: u32) -> Vec<u8> {
    let (high, low) = (n / 250, n % 250);
    let words = format!("flow add match=ip,nw_src=10.1.{high}.{low} priority=5 actions=output:2");
    request(version, n, &words)
}
