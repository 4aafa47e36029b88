//! What a tenant's refused entries cost the core, and how long other tenants wait for it.
//!
//! ```text
//! cargo run --release -p weir-hypervisor --example refusal_storm
//! ```
//! One tenant sends 4,096 ADDs, as quickly as the core reads them, and the switch refuses every second message that
//! adds an entry. Printed are the medians of the rounds: the CPU time of the core from the first ADD until nothing is
//! left to do, the messages to the switch, and the longest call into the core. All tenants of the event loop wait for a
//! call, so the longest call is the stall of a neighbour.

// A measurement ends when anything goes wrong.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../tests/behaviour/support/mod.rs"]
mod support;

use support::{Mode, Rounds, WarmCore, nth_add, row};

const ENTRIES: u32 = 4_096;
const ROUNDS: usize = 7;

fn main() {
    println!("{:<8} {:<9} {}", "version", "mode", Rounds::COLUMNS);
    for version in support::VERSIONS {
        for mode in [Mode::Slices, Mode::Networks] {
            let mut rounds = Rounds::default();
            for _ in 0..ROUNDS {
                let mut core = WarmCore::new(version, 2, mode);
                let messages: Vec<Vec<u8>> = (0..ENTRIES).map(|n| nth_add(version, n)).collect();
                core.refuses = true;
                rounds.measure(&mut core, |core| {
                    messages.iter().for_each(|it| core.say_when_read(0, it));
                    core.rest();
                });
            }
            println!("{} {}", row(version, mode), rounds.show());
        }
    }
}
