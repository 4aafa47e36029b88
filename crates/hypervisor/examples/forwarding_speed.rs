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

use std::time::Instant;
use support::{Mode, WarmCore, median};

const TENANTS: u16 = 20;
const ROUNDS: usize = 15;
const REPEATS: u32 = 2_000;

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
                times[at].0.push(nanoseconds(|| {
                    messages[at].iter().for_each(|(packet_in, _)| core.up(packet_in));
                }));
                times[at].1.push(nanoseconds(|| {
                    for (tenant, (_, packet_out)) in messages[at].iter().enumerate() {
                        core.down(tenant, packet_out);
                    }
                }));
            }
        }
        for (mode, (mut up, mut down)) in modes.iter().zip(times) {
            let mode = if *mode == Mode::Slices { "slices" } else { "networks" };
            let name = if version == support::Version::V1_0 { "1.0" } else { "1.3" };
            println!("{name:<8} {mode:<9} {:>14.0} {:>15.0}", median(&mut up), median(&mut down));
        }
    }
}

/// Per message.
fn nanoseconds(mut round: impl FnMut()) -> f64 {
    let began = Instant::now();
    for _ in 0..REPEATS {
        round();
    }
    began.elapsed().as_nanos() as f64 / f64::from(REPEATS) / f64::from(TENANTS)
}
