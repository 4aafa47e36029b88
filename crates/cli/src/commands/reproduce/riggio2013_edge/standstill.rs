//! When the machine stood still: a virtual one's processors are lent to others for milliseconds at a time.
//!
//! ```text
//!   a thread on each CPU, before all others:   sleep 1 ms ▷ sleep 1 ms ▷ sleep ──────── 7 ms late ▷ sleep 1 ms ▷
//! ```
//!
//! These threads look at nothing but the clock, and no ordinary thread can hold them up (SCHED_FIFO). What the kernel does for
//! interrupts and softirqs can, a neighbour's packets among them, so what they find is not wholly the machine's.

use anyhow::Context;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(1);
/// What a timer may be late without anybody being to blame.
const TOLERATED: Duration = Duration::from_micros(500);
/// Of each processor; older ones are forgotten.
const MOST: usize = 10_000;

/// A time in which a processor ran nobody.
#[derive(Clone, Copy, Debug)]
struct Standstill {
    began: Instant,
    ended: Instant,
}

type Found = Arc<Mutex<VecDeque<Standstill>>>;

/// Watches all processors that this process may use.
pub struct Watch {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    found: Vec<Found>,
}

impl Watch {
    /// # Errors
    /// When this user may not give a thread that priority.
    pub fn start() -> anyhow::Result<Watch> {
        let this = Pid::from_raw(0);
        let allowed = sched_getaffinity(this).context("cannot ask for this process's CPUs")?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut watch = Watch { stop, threads: Vec::new(), found: Vec::new() };
        for cpu in (0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu) == Ok(true)) {
            let found = Found::default();
            let (tell, told) = std::sync::mpsc::sync_channel(1);
            let (stop, kept) = (Arc::clone(&watch.stop), Arc::clone(&found));
            let work = move || {
                let ready = prepare(cpu);
                let is_ready = ready.is_ok();
                let _ = tell.send(ready);
                if is_ready {
                    look(&stop, &kept);
                }
            };
            let thread = std::thread::Builder::new().name(format!("standstill {cpu}")).spawn(work);
            watch.threads.push(thread.context("cannot start a thread")?);
            watch.found.push(found);
            told.recv().context("a thread ended before it began")??;
        }
        Ok(watch)
    }

    /// How long the processor that stood still longest did so between these times.
    pub fn stood(&self, from: Instant, to: Instant) -> Duration {
        let of_one = |found: &Found| {
            let found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.iter().map(|one| overlap(one, from, to)).sum()
        };
        self.found.iter().map(of_one).max().unwrap_or_default()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            // It cannot fail, and there is nobody to tell.
            let _ = thread.join();
        }
    }
}

fn prepare(cpu: usize) -> anyhow::Result<()> {
    let mut one = CpuSet::new();
    one.set(cpu).context("there is no such CPU")?;
    sched_setaffinity(Pid::from_raw(0), &one).context("cannot choose a CPU")?;
    Ok(packet::run_first()?)
}

fn look(stop: &AtomicBool, found: &Mutex<VecDeque<Standstill>>) {
    let mut before = Instant::now();
    while !stop.load(Ordering::SeqCst) {
        std::thread::sleep(TICK);
        let now = Instant::now();
        let due = before + TICK;
        if now - due > TOLERATED {
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            if found.len() == MOST {
                found.pop_front();
            }
            found.push_back(Standstill { began: due, ended: now });
        }
        before = now;
    }
}

fn overlap(one: &Standstill, from: Instant, to: Instant) -> Duration {
    one.ended.min(to).saturating_duration_since(one.began.max(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_within_counts() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let one = Standstill { began: at(10), ended: at(30) };
        for (from, to, ms) in
            [(0, 40, 20), (0, 15, 5), (20, 40, 10), (12, 14, 2), (0, 10, 0), (30, 40, 0)]
        {
            let found = overlap(&one, at(from), at(to));
            assert_eq!(found, Duration::from_millis(ms), "{from} to {to}");
        }
    }

    #[test]
    fn the_longest_of_all_processors_is_told() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let found = |list: &[(u64, u64)]| -> Found {
            let one = |&(began, ended)| Standstill { began: at(began), ended: at(ended) };
            Arc::new(Mutex::new(list.iter().map(one).collect()))
        };
        let watch = Watch {
            stop: Arc::default(),
            threads: Vec::new(),
            found: vec![found(&[(1, 3), (5, 8)]), found(&[(2, 6)])],
        };
        assert_eq!(watch.stood(at(0), at(10)), Duration::from_millis(5));
        assert_eq!(watch.stood(at(4), at(6)), Duration::from_millis(2));
    }
}
