//! What the core alone needs for a big switch of two members, beside an ordinary switch of the same tenant's network.
//!
//! ```text
//! cargo run --release -p weir-hypervisor --example big_switch
//! ```
//! A message of a big switch passes three cores: the front, the joining controller, and a member. The sockets between
//! them are left out. ADD is microseconds per entry until all members have confirmed it; beside it stands how many
//! messages that was to switches. Both kinds take turns within a run; the median of the rounds is printed.

// A measurement ends when anything goes wrong.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../tests/behaviour/support/mod.rs"]
mod support;

use support::{WarmBig, median, nanoseconds, nth_add, request, seconds};

const ROUNDS: usize = 15;
const REPEATS: u32 = 40_000;
const ENTRIES: u32 = 2_000;

fn main() {
    println!(
        "{:<8} {:<9} {:>14} {:>15} {:>8} {:>12}",
        "version", "switch", "PACKET_IN ns", "PACKET_OUT ns", "ADD us", "messages/ADD"
    );
    for version in support::VERSIONS {
        let (mut big, mut ordinary) = WarmBig::new(version);
        let (packet_in, packet_out) = WarmBig::messages(version);
        let adds: Vec<Vec<u8>> = (0..ENTRIES).map(|n| nth_add(version, n)).collect();
        let delete = request(version, 1, "flow delete");
        let before = (big.north, big.south(), ordinary.north, ordinary.south);
        big.up(&packet_in);
        big.down(&packet_out);
        ordinary.up(&packet_in);
        ordinary.down(0, &packet_out);
        let after = (big.north, big.south(), ordinary.north, ordinary.south);
        assert_eq!(after, (before.0 + 1, before.1 + 1, before.2 + 1, before.3 + 1));
        let mut times: [[Vec<f64>; 4]; 2] = Default::default();
        for _ in 0..ROUNDS {
            let [of_big, of_ordinary] = &mut times;
            of_big[0].push(repeated(|| big.up(&packet_in)));
            of_ordinary[0].push(repeated(|| ordinary.up(&packet_in)));
            of_big[1].push(repeated(|| big.down(&packet_out)));
            of_ordinary[1].push(repeated(|| ordinary.down(0, &packet_out)));
            let south = big.south();
            let all = seconds(|| {
                adds.iter().for_each(|add| big.down(add));
                big.finish();
            });
            of_big[2].push(all * 1e6 / f64::from(ENTRIES));
            of_big[3].push((big.south() - south) as f64 / f64::from(ENTRIES));
            let south = ordinary.south;
            let all = seconds(|| {
                adds.iter().for_each(|add| ordinary.down(0, add));
                ordinary.finish();
            });
            of_ordinary[2].push(all * 1e6 / f64::from(ENTRIES));
            of_ordinary[3].push((ordinary.south - south) as f64 / f64::from(ENTRIES));
            big.down(&delete);
            big.finish();
            ordinary.all_of(0, &delete);
        }
        for (kind, times) in ["big", "ordinary"].iter().zip(&mut times) {
            let [up, down, add, messages] = times.each_mut().map(|times| median(times));
            let version = version.to_string();
            println!("{version:<8} {kind:<9} {up:>14.0} {down:>15.0} {add:>8.2} {messages:>12.1}");
        }
    }
}

/// Per message.
fn repeated(mut message: impl FnMut()) -> f64 {
    nanoseconds(REPEATS, || (0..REPEATS).for_each(|_| message()))
}
