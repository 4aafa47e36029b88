//! What the core needs to follow a new placement of virtual networks.
//!
//! ```text
//! cargo run --release -p weir-hypervisor --example new_map
//! ```
//! One tenant has 10,000 entries that send to a virtual link. The link gets another label, so each rule on the switch changes. Printed
//! are the medians of the rounds: the CPU time of the core until nothing is left to do, the messages to the switch, and the longest
//! call into the core, for which all tenants of the event loop wait. In rows with "same" nothing changes in the new map. In rows with
//! "groups" the tenant has 1,000 groups as well, which send to both ports.

// It is a measurement: what goes wrong ends it.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../tests/behaviour/support/mod.rs"]
mod support;

use std::time::Duration;
use support::{Mode, WarmCore, median, request, seconds};

const ENTRIES: u32 = 10_000;
const GROUPS: u32 = 1_000;
const ROUNDS: u16 = 7;

fn main() {
    println!(
        "{:<8} {:<9} {:>8} {:>13} {:>16}",
        "version", "map", "CPU ms", "to the switch", "longest call us"
    );
    for version in support::VERSIONS {
        for map in ["new label", "same", "groups"] {
            if map == "groups" && version == support::Version::V1_0 {
                continue;
            }
            let mut core = WarmCore::new(version, 2, Mode::Networks);
            for n in 0..ENTRIES {
                let (high, low) = (n / 250, n % 250);
                let words = format!(
                    "flow add match=ip,nw_src=10.1.{high}.{low} priority=5 actions=output:2"
                );
                core.down(0, &request(version, n, &words));
            }
            for id in (1..=GROUPS).filter(|_| map == "groups") {
                let words = format!("group add id={id} buckets=output:1|output:2");
                core.down(0, &request(version, id, &words));
            }
            core.rest();
            let (mut times, mut sent, mut longest) = (Vec::new(), Vec::new(), Vec::new());
            for round in 1..=ROUNDS {
                let before = core.south;
                core.longest = Duration::ZERO;
                times.push(seconds(|| {
                    core.relabel(if map == "same" { 0 } else { 2 * round });
                    core.rest();
                }));
                sent.push((core.south - before) as f64);
                longest.push(core.longest.as_secs_f64());
            }
            println!(
                "{:<8} {:<9} {:>8.1} {:>13.0} {:>16.0}",
                version.to_string(),
                map,
                median(&mut times) * 1e3,
                median(&mut sent),
                median(&mut longest) * 1e6
            );
        }
    }
}
