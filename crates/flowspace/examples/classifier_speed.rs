//! Measures how fast keys are extracted and looked up, and entries inserted and removed.
//!
//! `cargo run --release -p weir-flowspace --example classifier_speed`
//!
//! There are three kinds of look-up. Hits look up the entries' own headers in random order, and
//! misses look up headers that no entry has; both have entries of one priority, where no tuple can
//! be skipped. The third kind is hits over tuples of descending priorities, where the search can
//! stop early. "Few" is 4 masks, "many" is 50.

#![allow(clippy::print_stdout, reason = "an example prints")]

use fastrand::Rng;
use std::hint::black_box;
use std::time::{Duration, Instant};

use flowspace::{Classifier, Field, Key, Match};

/// The CPU time of this thread, so that a busy machine does not change the averages; wall time if
/// the kernel does not report CPU time.
struct Clock {
    wall: Instant,
    cpu: Option<Duration>,
}

impl Clock {
    fn start() -> Clock {
        Clock { wall: Instant::now(), cpu: Clock::cpu() }
    }

    fn cpu() -> Option<Duration> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    }

    /// Nanoseconds per round.
    fn per(&self, rounds: usize) -> f64 {
        let cpu = self.cpu.zip(Clock::cpu()).map(|(start, end)| end.saturating_sub(start));
        cpu.unwrap_or_else(|| self.wall.elapsed()).as_secs_f64() * 1e9 / rounds as f64
    }
}

fn main() {
    extraction();
    println!();
    println!(
        " entries  tuples priorities   hit ns  miss ns   ins. ns  99.9% µs     max µs  rem. ns \
         strict ns"
    );
    for entries in [100, 10_000, 100_000] {
        for (tuples, priorities) in [(1, 1), (4, 1), (50, 1), (50, 50)] {
            classifier(entries, tuples, priorities);
        }
    }
}

fn extraction() {
    let hex = |text: &str| -> Vec<u8> {
        let digits: Vec<u8> =
            text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
        digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect()
    };
    let l2 = "0a0b0c0d0e0f 020304050607";
    let ports = "1234 0050 00000000 00000000 5000ffff 00000000";
    let ip = "45000028 00000000 40060000 0a000001 c0a80102";
    let v6 =
        "60000000 0014 06 40 fe800000000000000000000000000001 20010db8000000000000000000000002";
    for (name, frame) in [
        ("TCP over IPv4", format!("{l2} 0800 {ip} {ports}")),
        ("TCP over IPv4 in a VLAN", format!("{l2} 8100 0005 0800 {ip} {ports}")),
        ("TCP over IPv6", format!("{l2} 86dd {v6} {ports}")),
        ("ARP", format!("{l2} 0806 0001 0800 06 04 0001 {}", "00".repeat(20))),
    ] {
        let frame = hex(&frame);
        let rounds = 5_000_000;
        let start = Clock::start();
        for _ in 0..rounds {
            black_box(Key::extract(black_box(1), black_box(&frame)));
        }
        println!("extract {name:<24} {:>6.1} ns", start.per(rounds));
    }
}

/// The mask of tuple `index`: address prefixes of both sides, and ports for every other one.
fn entry(index: usize, numbers: &mut Rng) -> Match {
    let (high, low) = (numbers.u64(..), numbers.u64(..));
    let lengths = (32 - index % 9, 32 - index / 9 % 6);
    let mask = |length: usize| u128::from(u32::MAX << (32 - length));
    let base = Match::exact(Field::DlType, 0x800);
    let base = base.with(Field::NwProto, 6).with(Field::InPort, u128::from(low >> 60));
    let base = base.with_masked(Field::NwSrc, u128::from(high as u32), mask(lengths.0));
    let base = base.with_masked(Field::NwDst, u128::from((high >> 32) as u32), mask(lengths.1));
    base.with(Field::TpDst, u128::from(low & 0xffff))
}

fn key_in(match_: &Match, numbers: &mut Rng) -> Key {
    let mut key = Key::ZERO;
    for field in [Field::InPort, Field::DlType, Field::NwProto, Field::TpDst] {
        key.set(field, match_.get(field).0);
    }
    for field in [Field::NwSrc, Field::NwDst] {
        let (value, mask) = match_.get(field);
        key.set(field, value | u128::from(numbers.u64(..)) & !mask);
    }
    key.with(Field::TpSrc, u128::from(numbers.u64(..) & 0xffff))
}

fn classifier(count: usize, tuples: usize, priorities: u32) {
    let mut numbers = Rng::with_seed(1);
    let matches: Vec<Match> = (0..count).map(|i| entry(i % tuples, &mut numbers)).collect();
    let priority = |i: usize| 1000 - (i % tuples) as u32 % priorities;

    // Small sets are filled and emptied again and again: the clock needs milliseconds.
    let repeats = (200_000 / count).max(1);
    let mut classifier = Classifier::new();
    let mut ids = Vec::with_capacity(count);
    let (mut insert, mut remove) = (0.0, 0.0);
    for _ in 0..repeats {
        let start = Clock::start();
        for (i, match_) in matches.iter().enumerate() {
            ids.push(classifier.insert(*match_, priority(i), i as u32));
        }
        insert += start.per(count * repeats);
        let start = Clock::start();
        for id in ids.drain(..) {
            black_box(classifier.remove(id));
        }
        remove += start.per(count * repeats);
    }
    // Each insertion is measured alone, in wall time, so that growing tables are visible.
    let mut classifier = Classifier::new();
    let mut times: Vec<Duration> = Vec::with_capacity(count);
    for (i, match_) in matches.iter().enumerate() {
        let start = Instant::now();
        classifier.insert(*match_, priority(i), i as u32);
        times.push(start.elapsed());
    }
    times.sort();
    let at = |share: f64| {
        let index = ((count - 1) as f64 * share) as usize;
        times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e6)
    };
    let (late, slowest) = (at(0.999), at(1.0));

    let picks: Vec<usize> = (0..count).map(|_| numbers.u64(..) as usize % count).collect();
    let picked = picks.iter().filter_map(|&i| matches.get(i));
    let hits: Vec<Key> = picked.map(|match_| key_in(match_, &mut numbers)).collect();
    let misses: Vec<Key> = hits.iter().map(|key| key.with(Field::NwProto, 17)).collect();
    let hit = look_up(&classifier, &hits, true);
    let miss = look_up(&classifier, &misses, false);

    let rounds = 1_000_000 / count * count;
    let start = Clock::start();
    for i in 0..rounds {
        let at = i % count;
        if let Some(match_) = matches.get(at) {
            black_box(classifier.find_strict(match_, priority(at)));
        }
    }
    let strict = start.per(rounds);
    println!(
        "{count:>8} {tuples:>7} {priorities:>10} {hit:>8.0} {miss:>8.0} {insert:>8.0} {late:>10.1} \
         {slowest:>10.0} {remove:>8.0} {strict:>8.0}"
    );
}

fn look_up(classifier: &Classifier<u32>, keys: &[Key], expected: bool) -> f64 {
    let rounds = (1_000_000 / keys.len()).max(1);
    let mut found = 0;
    let start = Clock::start();
    for _ in 0..rounds {
        for key in keys {
            found += usize::from(classifier.lookup(black_box(key)).is_some());
        }
    }
    let time = start.per(rounds * keys.len());
    assert_eq!(found, if expected { rounds * keys.len() } else { 0 });
    time
}
