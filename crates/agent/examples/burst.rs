//! How long a burst of UDP is felt by a neighbour's TCP: prints TCP's goodput, tenth of a second by tenth.
//!
//! ```sh
//! cargo run --release -p weir-agent --example burst          # as root; with Open vSwitch
//! ```
//!
//! Three hosts on a switch, 20 Mbit/s links and VNICs: h1 sends TCP to h3; after two seconds h2 sends UDP to h3, ten
//! times its share of 10. First without an agent, then with one.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic)]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Network, with_agents};
use std::time::{Duration, Instant};

const TENTH: Duration = Duration::from_millis(100);
/// Half of 20 Mbit/s, of which 1,448 bytes of each 1,514 are TCP's payload.
const GUARANTEE: f64 = 10.0 * 1448.0 / 1514.0;

fn main() {
    let network = Network::single("burst", 3, "20Mbit");
    println!("guarantee: {GUARANTEE:.2} Mbit/s of TCP's payload");
    println!("without an agent:");
    run(&network);
    println!("with an agent:");
    let settings = network.settings(&[("h1", "20Mbit"), ("h2", "20Mbit"), ("h3", "20Mbit")]);
    with_agents(&[settings], || run(&network));
}

fn run(network: &Network) {
    let tcp = network.tcp("h1", "h3", 5001);
    std::thread::sleep(Duration::from_secs(1));
    let mut before = tcp.arrived();
    let mut looked = Instant::now();
    let mut tenth = |label: &str| {
        std::thread::sleep(TENTH.saturating_sub(looked.elapsed()));
        let (now, arrived) = (Instant::now(), tcp.arrived());
        let rate = (arrived - before) as f64 * 8e-6 / (now - looked).as_secs_f64();
        (before, looked) = (arrived, now);
        println!("  {label:>12}  {rate:6.2} Mbit/s  {}", "#".repeat(rate.max(0.0) as usize * 2));
        rate
    };
    for _ in 0..5 {
        tenth("TCP alone");
    }
    let udp = network.udp("h2", "h3", 5002, 100_000_000);
    let rates: Vec<f64> =
        (0..30).map(|number| tenth(&format!("{} ms", (number + 1) * 100))).collect();
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    let below = rates[1..].iter().filter(|rate| **rate < 0.95 * GUARANTEE).count();
    println!(
        "  first 100 ms: {:.2}; from then on: mean {:.2}, lowest {:.2}, {below} of {} tenths below 95 % of the guarantee",
        rates[0],
        mean(&rates[1..]),
        rates[1..].iter().copied().fold(f64::INFINITY, f64::min),
        rates.len() - 1,
    );
    drop(udp);
    std::thread::sleep(Duration::from_millis(500));
}
