//! What requests cost that are about a whole table: time, and examined entries, which are to be in proportion to it.
//!
//! ```text
//! cargo run --release -p weir-hypervisor --example request_speed
//! ```

// A measurement ends when anything goes wrong.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../tests/behaviour/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};
use support::{Mode, Version, WarmCore, median, packet, request};

const ENTRIES: usize = 9_900;

fn main() {
    println!(
        "{:<8} {:<24} {:>10} {:>10} {:>12}",
        "version", "request", "us", "examined", "ns each"
    );
    for version in support::VERSIONS {
        let mut core = WarmCore::new(version, 1, Mode::Slices);
        let began = Instant::now();
        let before = core.examined();
        add_entries(version, &mut core);
        print(version, "add", began.elapsed(), core.examined() - before, ENTRIES);
        let requests = [
            ("modify all", "flow modify actions=output:2"),
            ("modify all back", "flow modify actions=output:1"),
            (
                "modify by cookie",
                "flow modify cookie=3 cookie_mask=0xffffffffffffffff actions=output:2",
            ),
            ("delete, known match", "flow delete match=ip,nw_src=10.1.200.1"),
            ("delete, half known", "flow delete match=ip,nw_src=10.1.128.0/17"),
            ("delete, other mask", "flow delete match=ip,nw_src=10.1.128.0/17,nw_dst=10.1.1.1"),
            (
                "add, overlap",
                "flow add flags=overlap match=ip,nw_src=10.1.128.0/17,nw_dst=10.9.0.1 actions=output:1",
            ),
            ("table statistics", "stats table"),
            ("delete all", "flow delete"),
        ];
        for (name, words) in requests {
            if version == Version::V1_0 && words.contains("cookie") {
                continue;
            }
            let message = request(version, 1, words);
            let before = core.examined();
            let began = Instant::now();
            core.down(0, &message);
            core.rest();
            print(version, name, began.elapsed(), core.examined() - before, 1);
        }
    }
    println!("\n{:<8} {:<24} {:<10} {:>12}", "version", "statistics", "", "us, longest");
    for version in support::VERSIONS {
        for mode in [Mode::Slices, Mode::Networks] {
            statistics(version, mode);
        }
    }
    println!("\n{:<8} {:<35} {:>12}", "version", "trace", "us");
    for version in support::VERSIONS {
        trace(version);
    }
}

fn add_entries(version: Version, core: &mut WarmCore) {
    for n in 0..ENTRIES {
        let (high, low) = (n / 256, n % 256);
        let words =
            format!("flow add match=ip,nw_src=10.1.{high}.{low} cookie={n} actions=output:1");
        core.down(0, &request(version, 1, &words));
    }
    core.rest();
}

/// What answers cost that are about all entries, if the switch reports all of them: the longest call.
fn statistics(version: Version, mode: Mode) {
    let mut core = WarmCore::new(version, 1, mode);
    core.answers = true;
    add_entries(version, &mut core);
    for words in ["flow", "aggregate", "table"] {
        let mut longest = Vec::new();
        for _ in 0..7 {
            core.longest = Some(Duration::ZERO);
            core.down(0, &request(version, 1, &format!("stats {words}")));
            core.rest();
            longest.push(core.longest.unwrap_or_default().as_secs_f64());
        }
        let longest = median(&mut longest) * 1e6;
        let version = version.to_string();
        println!("{version:<8} {words:<24} {mode:<10?} {longest:>12.1}");
    }
}

/// What the trace of a packet costs that all entries match.
fn trace(version: Version) {
    let mut core = WarmCore::new(version, 1, Mode::Slices);
    for priority in 1..=ENTRIES {
        let words = format!("flow add match=ip prio={priority} actions=output:1");
        core.down(0, &request(version, 1, &words));
    }
    core.rest();
    let mut times = Vec::new();
    for _ in 0..7 {
        let began = Instant::now();
        let steps = core.trace(1, &packet("10.1.0.1>10.9.0.1"));
        times.push(began.elapsed().as_secs_f64());
        assert!(steps > 0, "the trace finds no rule");
    }
    println!("{:<8} {:<35} {:>12.1}", version.to_string(), "a packet", median(&mut times) * 1e6);
}

fn print(version: Version, name: &str, took: Duration, examined: u64, requests: usize) {
    let version = version.to_string();
    let us = took.as_nanos() as f64 / 1_000.0 / requests as f64;
    let each = took.as_nanos() as f64 / examined as f64;
    println!("{version:<8} {name:<24} {us:>10.1} {:>10} {each:>12.1}", examined / requests as u64);
}
