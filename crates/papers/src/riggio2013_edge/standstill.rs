//! Detects the times at which the machine stood still: the host lends a virtual machine's processors to others for
//! milliseconds at a time.
//!
//! ```text
//!   a thread on each CPU, before all others:   sleep 1 ms ▷ sleep 1 ms ▷ sleep ────────────── 7 ms late ▷ sleep 1 ms ▷
//!   that CPU's timer, every 0.5 ms:             ▽   ▽   ▽   ▽   ▽   ▽   ▽   ▽              ▽   ▽   ▽   ▽
//!   what had the CPU:                                                  softirqs │ nobody here
//! ```
//!
//! The threads only read the clock, and no ordinary thread can delay the threads (SCHED_FIFO). The kernel's packet
//! processing can delay the threads, also the processing of a neighbour's packets. Packet processing cannot delay the
//! timer's interrupts, at which perf (`cpu-clock`) records the time. Therefore, when a thread is late and no interrupt
//! occurred in between, nobody on this machine had the processor.

use anyhow::Context;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use perf_event::data::Record;
use perf_event::events::Software;
use perf_event::{Builder, Clock, SampleFlag, Sampler};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The sleeping time of the threads.
const TICK: Duration = Duration::from_millis(1);
/// The time from interrupt to interrupt.
const PERIOD: Duration = Duration::from_micros(500);
/// The tolerated lateness of a thread or an interrupt.
const TOLERATED: Duration = Duration::from_micros(500);
/// The ring for the interrupts of a processor until a thread reads the ring; 24 bytes each, enough for a second.
const RING: usize = 1 << 16;
/// The most stored standstills of each processor; the oldest are deleted.
const MOST: usize = 10_000;

/// A period in which a processor ran nothing of this machine, on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standstill {
    began: Duration,
    ended: Duration,
}

type Found = Arc<Mutex<VecDeque<Standstill>>>;

/// Watches all processors that this process may use.
pub(super) struct Watch {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    found: Vec<Found>,
    /// The same moment on both clocks.
    both: (Instant, Duration),
}

impl Watch {
    /// # Errors
    /// When this user may not give a thread that priority, or may not record interrupts.
    pub(super) fn start() -> anyhow::Result<Watch> {
        let this = Pid::from_raw(0);
        let allowed = sched_getaffinity(this).context("cannot ask for this process's CPUs")?;
        let stop = Arc::new(AtomicBool::new(false));
        let both = (Instant::now(), monotonic()?);
        let mut watch = Watch { stop, threads: Vec::new(), found: Vec::new(), both };
        for cpu in (0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu) == Ok(true)) {
            let found = Found::default();
            let (sender, receiver) = std::sync::mpsc::sync_channel(1);
            let (stop, kept) = (Arc::clone(&watch.stop), Arc::clone(&found));
            let work = move || match prepare(cpu) {
                Ok(timer) => {
                    let _ = sender.send(Ok(()));
                    look(&stop, timer, &kept);
                }
                Err(error) => drop(sender.send(Err(error))),
            };
            let thread = std::thread::Builder::new().name(format!("standstill {cpu}")).spawn(work);
            watch.threads.push(thread.context("cannot start a thread")?);
            watch.found.push(found);
            receiver.recv().context("a thread ended before it began")??;
        }
        Ok(watch)
    }

    /// The total standstill between these times, of the processor with the longest total.
    pub(super) fn stood(&self, from: Instant, to: Instant) -> Duration {
        let (from, to) = (self.monotonic(from), self.monotonic(to));
        let of_one = |found: &Found| {
            let found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.iter().map(|one| overlap(one, from, to)).sum()
        };
        self.found.iter().map(of_one).max().unwrap_or_default()
    }

    fn monotonic(&self, time: Instant) -> Duration {
        let (instant, monotonic) = self.both;
        (monotonic + time.saturating_duration_since(instant))
            .saturating_sub(instant.saturating_duration_since(time))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            // The threads cannot fail, and nobody could receive an error here.
            let _ = thread.join();
        }
    }
}

fn monotonic() -> anyhow::Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_MONOTONIC).context("there is no monotonic clock")?.into())
}

fn prepare(cpu: usize) -> anyhow::Result<Timer> {
    let mut one = CpuSet::new();
    one.set(cpu).context("there is no such CPU")?;
    sched_setaffinity(Pid::from_raw(0), &one).context("cannot choose a CPU")?;
    packet::run_first()?;
    let mut builder = Builder::new(Software::CPU_CLOCK);
    // Interrupts of every process count.
    builder.one_cpu(cpu).any_pid().include_kernel();
    builder.sample_period(u64::try_from(PERIOD.as_nanos())?);
    builder.sample(SampleFlag::TIME).clockid(Clock::MONOTONIC);
    let sampler = builder.build().and_then(|counter| counter.sampled(RING));
    let mut sampler = sampler.with_context(|| format!("cannot note CPU {cpu}'s interrupts"))?;
    sampler.enable().context("cannot start a timer")?;
    Ok(Timer { sampler, is_held_back: false })
}

fn look(stop: &AtomicBool, mut timer: Timer, found: &Mutex<VecDeque<Standstill>>) {
    let Ok(mut before) = monotonic() else { return };
    while !stop.load(Ordering::SeqCst) {
        std::thread::sleep(TICK);
        let Ok(now) = monotonic() else { return };
        let due = before + TICK;
        let interrupts = timer.interrupts();
        if now.saturating_sub(due) > TOLERATED
            && let Some(interrupts) = interrupts
        {
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            for standstill in unattended(due, now, &interrupts) {
                if found.len() == MOST {
                    found.pop_front();
                }
                found.push_back(standstill);
            }
        }
        before = now;
    }
}

/// The timer interrupts of a processor.
struct Timer {
    sampler: Sampler,
    /// The kernel records no more interrupts until its own next tick.
    is_held_back: bool,
}

impl Timer {
    /// The interrupts since the last call; `None` if the kernel did not record all interrupts.
    fn interrupts(&mut self) -> Option<Vec<Duration>> {
        let mut all_noted = !self.is_held_back;
        let mut interrupts = Vec::new();
        while let Some(record) = self.sampler.next_record() {
            match record.parse_record() {
                Ok(Record::Sample(sample)) => interrupts.extend(sample.time()),
                Ok(Record::Throttle(_)) => (self.is_held_back, all_noted) = (true, false),
                Ok(Record::Unthrottle(_)) => self.is_held_back = false,
                _ => all_noted = false,
            }
        }
        all_noted.then(|| interrupts.into_iter().map(Duration::from_nanos).collect())
    }
}

/// The periods between these times without any interrupt, although an interrupt was due.
fn unattended(due: Duration, now: Duration, interrupts: &[Duration]) -> Vec<Standstill> {
    let within = interrupts.iter().copied().filter(|at| (due..now).contains(at));
    let ends = within.chain([now]);
    let mut began = due;
    let mut found = Vec::new();
    for ended in ends {
        if ended.saturating_sub(began) > PERIOD + TOLERATED {
            found.push(Standstill { began, ended });
        }
        began = ended;
    }
    found
}

fn overlap(one: &Standstill, from: Duration, to: Duration) -> Duration {
    one.ended.min(to).saturating_sub(one.began.max(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(list: &[(u64, u64)]) -> Found {
        let one = |&(began, ended): &(u64, u64)| Standstill {
            began: Duration::from_micros(began),
            ended: Duration::from_micros(ended),
        };
        Arc::new(Mutex::new(list.iter().map(one).collect()))
    }

    #[test]
    fn the_standstill_is_the_longest_total_of_a_processor() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let watch = Watch {
            stop: Arc::default(),
            threads: Vec::new(),
            found: vec![found(&[(1_000, 3_000), (5_000, 8_000)]), found(&[(2_000, 6_000)])],
            both: (start, Duration::ZERO),
        };
        for (from, to, ms) in [(0, 10, 5), (4, 6, 2), (6, 10, 2), (0, 1, 0), (8, 10, 0)] {
            assert_eq!(watch.stood(at(from), at(to)), Duration::from_millis(ms), "{from} to {to}");
        }
    }

    #[test]
    fn time_spent_in_interrupts_is_not_counted_as_standstill() {
        let ms = |at: &u64| Duration::from_micros(*at);
        for (interrupts, expected) in [
            // The cases: no interrupt in the period; interrupts during the whole period; interrupts during a part; two
            // standstills.
            (&[][..], &[(10_000, 14_000)][..]),
            (&[9_000, 14_200], &[(10_000, 14_000)]),
            (&[10_400, 10_900, 11_400, 11_900, 12_400, 12_900, 13_400, 13_900], &[]),
            (&[10_400, 10_900, 11_400, 13_100, 13_600], &[(11_400, 13_100)]),
            (&[11_500, 12_300], &[(10_000, 11_500), (12_300, 14_000)]),
        ] {
            let interrupts: Vec<Duration> = interrupts.iter().map(ms).collect();
            let found_now = unattended(ms(&10_000), ms(&14_000), &interrupts);
            let expected = found(expected);
            assert_eq!(VecDeque::from(found_now), *expected.lock().unwrap(), "{interrupts:?}");
        }
    }
}
