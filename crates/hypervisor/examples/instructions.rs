//! Work of the core for one message, to be counted by `scripts/count-instructions`: the same work, once with fewer and
//! once with more messages, gives the instructions of one message.
//!
//! ```text
//! instructions 1.0|1.3 slices|networks packet-in|packet-out COUNT
//! instructions 1.0|1.3 slices|networks none|add|modify|delete ENTRIES
//! ```
//! `modify` does the work of `add`, too, and `delete` the work of `modify`.

// A measurement ends when anything goes wrong.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../tests/behaviour/support/mod.rs"]
mod support;

use openflow::Version;
use support::{Mode, WarmCore, nth_add, request};

const TENANTS: u16 = 20;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [version, mode, work, count] = arguments.as_slice() else {
        panic!("four arguments are needed: version, mode, work, count");
    };
    let version = if version == "1.0" { Version::V1_0 } else { Version::V1_3 };
    let mode = || if mode == "slices" { Mode::Slices } else { Mode::Networks };
    let count: u32 = count.parse().unwrap();
    if let "packet-in" | "packet-out" = work.as_str() {
        let mut core = WarmCore::new(version, TENANTS, mode());
        let messages = WarmCore::messages(version, TENANTS, mode());
        core.round(&messages);
        for turn in 0..count as usize {
            let tenant = turn % messages.len();
            let (packet_in, packet_out) = &messages[tenant];
            match work.as_str() {
                "packet-in" => core.up(packet_in),
                _ => core.down(tenant, packet_out),
            }
        }
        return;
    }
    let mut core = WarmCore::new(version, 2, mode());
    let adds: Vec<Vec<u8>> = (0..count).map(|n| nth_add(version, n)).collect();
    let modify = request(version, 1, "flow modify actions=output:1");
    let delete = request(version, 1, "flow delete");
    let steps = ["none", "add", "modify", "delete"];
    let steps = steps.iter().position(|step| step == work).expect("an unknown work");
    if steps >= 1 {
        adds.iter().for_each(|add| core.down(0, add));
        core.rest();
    }
    for request in [modify, delete].iter().take(steps.saturating_sub(1)) {
        core.all_of(0, request);
        core.rest();
    }
}
