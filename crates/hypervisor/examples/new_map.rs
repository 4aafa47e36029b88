//! What the core needs to follow a new placement of virtual networks.
//!
//! ```text
//! cargo run --release -p weir-hypervisor --example new_map
//! ```
//! One tenant has 10,000 entries that send to a virtual link. The link gets another label, so each rule on the switch
//! changes. Printed are the medians of the rounds: the CPU time of the core until nothing is left to do, the messages
//! to the switch, and the longest call into the core, for which all tenants of the event loop wait. In rows with "same"
//! nothing changes in the new map. In rows with "groups" the tenant has 1,000 groups as well, which send to both ports.

// A measurement ends when anything goes wrong.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../tests/behaviour/support/mod.rs"]
mod support;

use support::{Mode, Rounds, WarmCore, nth_add, request};

const ENTRIES: u32 = 10_000;
const GROUPS: u32 = 1_000;
const ROUNDS: u16 = 7;

fn main() {
    println!("{:<8} {:<9} {}", "version", "map", Rounds::COLUMNS);
    for version in support::VERSIONS {
        for map in ["new label", "same", "groups"] {
            if map == "groups" && version == support::Version::V1_0 {
                continue;
            }
            let mut core = WarmCore::new(version, 2, Mode::Networks);
            (0..ENTRIES).for_each(|n| core.down(0, &nth_add(version, n)));
            for id in (1..=GROUPS).filter(|_| map == "groups") {
                let words = format!("group add id={id} buckets=output:1|output:2");
                core.down(0, &request(version, id, &words));
            }
            core.rest();
            let mut rounds = Rounds::default();
            for round in 1..=ROUNDS {
                rounds.measure(&mut core, |core| {
                    core.relabel(if map == "same" { 0 } else { 2 * round });
                    core.rest();
                });
            }
            println!("{:<8} {map:<9} {}", version.to_string(), rounds.show());
        }
    }
}
