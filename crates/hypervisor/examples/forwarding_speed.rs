//! What the core alone needs for a PACKET_IN and a PACKET_OUT, of slices and of networks, without sockets.
//!
//! ```text
//! cargo run --release -p weir-hypervisor --example forwarding_speed
//! ```
//! The modes take turns within a run; the median of the rounds is printed.

// A measurement ends when anything goes wrong.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../tests/behaviour/support/mod.rs"]
mod support;

use support::{Mode, WarmCore, median, nanoseconds, row};

const TENANTS: u16 = 20;
const ROUNDS: usize = 15;
const REPEATS: u32 = 2_000;
const COUNT: u32 = REPEATS * TENANTS as u32;

fn main() {
    println!("{:<8} {:<9} {:>14} {:>15}", "version", "mode", "PACKET_IN ns", "PACKET_OUT ns");
    for version in support::VERSIONS {
        let modes = [Mode::Slices, Mode::Networks];
        let mut cores = modes.map(|mode| WarmCore::new(version, TENANTS, mode));
        let messages = modes.map(|mode| WarmCore::messages(version, TENANTS, mode));
        let mut times = modes.map(|_| (Vec::new(), Vec::new()));
        for _ in 0..ROUNDS {
            for (at, core) in cores.iter_mut().enumerate() {
                core.round(&messages[at]);
                times[at].0.push(nanoseconds(COUNT, || {
                    for (packet_in, _) in (0..REPEATS).flat_map(|_| &messages[at]) {
                        core.up(packet_in);
                    }
                }));
                times[at].1.push(nanoseconds(COUNT, || {
                    for _ in 0..REPEATS {
                        for (tenant, (_, packet_out)) in messages[at].iter().enumerate() {
                            core.down(tenant, packet_out);
                        }
                    }
                }));
            }
        }
        for (mode, (mut up, mut down)) in modes.into_iter().zip(times) {
            let row = row(version, mode);
            println!("{row} {:>14.0} {:>15.0}", median(&mut up), median(&mut down));
        }
    }
}
