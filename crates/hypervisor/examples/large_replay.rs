//! What a refusal costs the core while a change of many entries is in flight, and how long other tenants wait for it.
//!
//! ```text
//! cargo run --release -p weir-hypervisor --example large_replay
//! ```
//! One tenant has 9,900 entries and modifies all of them. In rows with "last rule" the switch refuses the last rule of
//! the MODIFY, so Weir restores all entries. In rows with "ADD" the switch refuses an ADD before the MODIFY, so Weir
//! applies the MODIFY again without the ADD. In rows with "nothing" the switch refuses nothing. The example prints the
//! medians of the rounds: the CPU time of the core until nothing is left to do, the messages to the switch, and the
//! longest call into the core, for which all tenants of the event loop wait.

// A measurement ends when anything goes wrong.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../tests/behaviour/support/mod.rs"]
mod support;

use support::{Mode, Rounds, WarmCore, nth_add, request, row};

const ENTRIES: u32 = 9_900;
const ROUNDS: u32 = 7;

fn main() {
    println!("{:<8} {:<9} {:<10} {}", "version", "mode", "refused", Rounds::COLUMNS);
    for version in support::VERSIONS {
        for mode in [Mode::Slices, Mode::Networks] {
            for (refused, after) in
                [("nothing", None), ("last rule", Some(ENTRIES)), ("ADD", Some(0))]
            {
                let mut core = WarmCore::new(version, 2, mode);
                (0..ENTRIES).for_each(|n| core.down(0, &nth_add(version, n)));
                core.rest();
                let mut rounds = Rounds::default();
                for round in 0..ROUNDS {
                    let port = 1 + round % 2;
                    let modify = format!("flow modify match=ip priority=5 actions=output:{port}");
                    let modify = request(version, 1, &modify);
                    core.refuses_after = after;
                    rounds.measure(&mut core, |core| {
                        core.say(0, &nth_add(version, ENTRIES + round));
                        core.all_of(0, &modify);
                        core.rest();
                    });
                }
                println!("{} {refused:<10} {}", row(version, mode), rounds.show());
            }
        }
    }
}
