//! Measures a constant rate straight from emulated switches to emulated controllers, or through a
//! TCP address: `direct KIND RATE TENANTS SECONDS THREADS [SWITCH_ADDRESS CONTROLLER_BASE]`.

#![allow(clippy::print_stdout, reason = "an example talks to the terminal")]

use bench::{Controllers, Kind, Load, Session, Setup, Topology, Version};
use std::net::SocketAddr;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize, default: &str| -> String {
        arguments.get(index).cloned().unwrap_or_else(|| default.to_owned())
    };
    let kind: Kind = argument(0, "packet-in").parse()?;
    let rate: f64 = argument(1, "40000").parse()?;
    let tenants: usize = argument(2, "1").parse()?;
    let seconds: f64 = argument(3, "3").parse()?;
    let threads: usize = argument(4, "1").parse()?;
    let base: SocketAddr = argument(6, "127.0.0.1:0").parse()?;
    let controllers = Controllers::bind(tenants, base)?;
    let topology = match arguments.get(5) {
        Some(address) => Topology::Shared { switch_address: address.parse()?, switches: 1 },
        None => Topology::Direct,
    };
    let mut setup = Setup { threads, ..Setup::new(topology, tenants) };
    if let Ok(spin) = std::env::var("SPIN_US") {
        setup.spin_ns = spin.parse::<u64>()? * 1000;
    }
    if std::env::var("VERSION").is_ok_and(|version| version == "1.3") {
        setup.version = Version::V1_3;
    }
    let mut session = Session::open(setup, &controllers)?;
    let mut load = if rate > 0.0 {
        Load::constant(kind, tenants, rate, (seconds * 1000.0) as u64)
    } else {
        Load::saturating(kind, tenants, (seconds * 1000.0) as u64)
    };
    if let Ok(batch) = std::env::var("BATCH") {
        load.batch = batch.parse()?;
    }
    load.cut_ms = (seconds * 100.0) as u64;
    let outcome = session.run(&load, &[std::process::id()])?;
    let (latency, lag) = (outcome.latency().summary(), outcome.lag.summary());
    println!("{:?} rate {:.0}/s", outcome.counts(), outcome.rate());
    println!(
        "latency p50 {:.1} p90 {:.1} p99 {:.1} p99.9 {:.1} max {:.1} µs",
        latency.p50_us, latency.p90_us, latency.p99_us, latency.p999_us, latency.max_us
    );
    println!("lag     p50 {:.1} p99 {:.1} max {:.1} µs", lag.p50_us, lag.p99_us, lag.max_us);
    println!("{:?}", outcome.segments);
    println!("messages per write {:.2}", outcome.messages_per_write);
    for usage in &outcome.usage {
        println!("{usage:?}");
    }
    println!("{:?}", outcome.faults.sentences());
    Ok(())
}
