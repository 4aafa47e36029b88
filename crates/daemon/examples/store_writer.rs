//! Writes to a store until the process is stopped, and prints the acknowledged events: the process that
//! `tests/store_crash.rs` kills, and the measurement of commit latency.
//!
//! ```text
//! store_writer DIR [always|MILLISECONDS [BATCHES [IN_FLIGHT [PAUSE_MICROSECONDS [again]]]]]
//! ```
//!
//! stdout: `safe SEQ` for changes in the journal, `stored SEQ` or `failed SEQ` per event. stderr, at the end:
//! percentiles of the time from the push until the change is in the journal, and until the event. After twenty failures
//! the process ends. With `again` the process pushes failed changes once more, as a shard does, and prints `full` and
//! `room` when this state changes.

use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use daemon::metrics::Registry;
use daemon::store::{Event, Pushed, Store, Sync};

#[path = "../tests/support/mod.rs"]
mod support;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: u64| arguments.get(i).map_or(Ok(default), |text| text.parse());
    let dir = arguments
        .first()
        .ok_or("usage: store_writer DIR [always|MS [BATCHES [IN_FLIGHT [PAUSE_US]]]]")?;
    let sync = match arguments.get(1).map(String::as_str) {
        Some("always") => Sync::Always,
        _ => Sync::Every(Duration::from_millis(number(1, 100)?)),
    };
    let (batches, in_flight, pause) =
        (number(2, u64::MAX)?, number(3, 8)?, Duration::from_micros(number(4, 0)?));

    let (again, registry) = (arguments.get(5).is_some_and(|it| it == "again"), Registry::new());
    let mut is_full = false;
    let store = Store::open(Path::new(dir), sync, registry.clone())?;
    let (sender, events) = mpsc::channel();
    let mut shard = store.register(move |event| drop(sender.send(event)))?;
    let mut out = io::stdout().lock();
    let mut pushed: Vec<Instant> = Vec::new();
    let (mut nanos, mut safe): (Vec<u128>, Vec<u128>) = (Vec::new(), Vec::new());
    let (mut open, mut failures) = (0, 0);
    let mut next = 1;
    while (next <= batches && failures < 20) || open > 0 {
        while next <= batches && failures < 20 && open < in_flight {
            pushed.push(Instant::now());
            match shard.push(support::batch(next)) {
                Ok(Pushed::Later) => open += 1,
                Ok(Pushed::Journaled) => {
                    safe.push(pushed.last().map_or(0, |started| started.elapsed().as_nanos()));
                    writeln!(out, "safe {next}")?;
                    open += 1;
                }
                other => return Err(format!("push {next}: {other:?}").into()),
            }
            next += 1;
        }
        match events.recv()? {
            Event::Stored(seq) => {
                shard.committed(seq);
                // Acknowledgements are cumulative.
                for started in pushed.iter().skip(nanos.len()).take(seq as usize - nanos.len()) {
                    nanos.push(started.elapsed().as_nanos());
                    open -= 1;
                }
                writeln!(out, "stored {seq}")?;
            }
            Event::Failed(batch) if again => {
                std::thread::sleep(Duration::from_millis(1));
                let _ = shard.push(batch).map_err(|full| format!("{full:?}"))?;
            }
            Event::Failed(batch) => {
                nanos.push(u128::MAX);
                open -= 1;
                writeln!(out, "failed {}", batch.seq)?;
                failures += 1;
            }
            Event::Loaded { .. } => {}
        }
        if again && registry.store_full().is_some() != is_full {
            is_full = !is_full;
            writeln!(out, "{}", if is_full { "full" } else { "room" })?;
        }
        out.flush()?;
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
    }
    nanos.retain(|&n| n != u128::MAX);
    for (what, nanos) in [("journaled", &mut safe), ("stored", &mut nanos)] {
        nanos.sort_unstable();
        let at = |q: f64| {
            let nanos = nanos.get((q * nanos.len() as f64) as usize).or(nanos.last());
            nanos.map_or(0.0, |&n| n as f64 / 1e3)
        };
        let [p50, p90, p99, p999, max] = [0.5, 0.9, 0.99, 0.999, 1.0].map(at);
        writeln!(
            io::stderr(),
            "{what}, {sync:?}, {in_flight} in flight: p50 {p50:.0} µs, p90 {p90:.0} µs, p99 {p99:.0} µs, p99.9 {p999:.0} µs, max {max:.0} µs",
        )?;
    }
    Ok(())
}
