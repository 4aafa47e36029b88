//! Two equal paths that take turns of some milliseconds, so that the machine is equally fast for both. One of them is
//! sampled.
//!
//! ```text
//!   turn      without  with  with  without  without  with  ...      each of 5 ms, on one CPU
//!   time      ├───────┼──────▒┼────▒▒┼▒────────┼─────────┼───▒──
//!   samplers                 ▒     ▒▒ ▒ ◀── theirs, but not its time      ▒ = CPU time of samplers' threads
//! ```
//!
//! A virtual machine's speed changes by some per cent within a second. Two measurements of a second each differ by this
//! amount. With two hundred turns, each path has half of the turns, so both paths get the same speed. A sampler's
//! thread may still work after the end of its path's turn: its CPU time shows this work, which is charged to its path.
//! A round in which the machine stood still for some milliseconds would be charged to one path, so the round is
//! discarded.

use super::cpu::{CpuTime, ThreadTime};
use super::stream::{Batch, Stream};
use anyhow::ensure;
use lab::Lab;
use std::time::Duration;

/// Longer than a batch, and shorter than changes of the machine's speed.
const TURN: Duration = Duration::from_millis(5);

/// A turn that took longer was interrupted: a turn normally ends with the current batch.
const STALLED: Duration = Duration::from_micros(7_500);

/// The result of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Throughput {
    /// The frames per second that arrived.
    pub(crate) per_second: f64,
    /// The frames that arrived per second of CPU time of switch, hosts and samplers.
    pub(crate) per_cpu_second: f64,
}

/// The results of both paths in the same time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compared {
    /// The path that is never sampled.
    pub(crate) without: Throughput,
    pub(crate) with: Throughput,
    /// The rounds that were discarded because the machine stood still, and all rounds.
    pub(crate) stalled: u32,
    pub(crate) rounds: u32,
}

/// The two paths.
pub(crate) struct Turns {
    /// The path that is never sampled comes first.
    paths: [Stream; 2],
    cpu: CpuTime,
}

/// One path's account.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Account {
    frames: u64,
    seconds: f64,
    cpu_seconds: f64,
}

/// Both paths' accounts of one round, and whether no turn of it was interrupted.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    accounts: [Account; 2],
    is_whole: bool,
}

/// The sum of the valid rounds (the complete ones, or all if most were interrupted), and the number of discarded ones.
fn sum(rounds: &[Round]) -> ([Account; 2], u32) {
    let whole = rounds.iter().filter(|round| round.is_whole).count();
    let are_rare = 2 * whole >= rounds.len();
    let mut sums = [Account::default(); 2];
    for round in rounds.iter().filter(|round| round.is_whole || !are_rare) {
        for (sum, account) in sums.iter_mut().zip(&round.accounts) {
            sum.frames += account.frames;
            sum.seconds += account.seconds;
            sum.cpu_seconds += account.cpu_seconds;
        }
    }
    (sums, if are_rare { (rounds.len() - whole) as u32 } else { 0 })
}

impl Account {
    fn throughput(&self) -> anyhow::Result<Throughput> {
        let frames = self.frames as f64;
        ensure!(self.frames > 0 && self.seconds > 0.0 && self.cpu_seconds > 0.0, "nothing arrived");
        Ok(Throughput {
            per_second: frames / self.seconds,
            per_cpu_second: frames / self.cpu_seconds,
        })
    }
}

impl Turns {
    /// The hosts' names, those of the path without sampling first; the other users of CPU time, and the CPU.
    pub(crate) fn open(
        lab: &Lab,
        paths: [[&str; 2]; 2],
        processes: &[i32],
        cpu: usize,
        batch: Batch,
    ) -> anyhow::Result<Turns> {
        let [without, with] = paths;
        let paths = [Stream::open(lab, without, batch)?, Stream::open(lab, with, batch)?];
        Ok(Turns { paths, cpu: CpuTime::of(processes, cpu)? })
    }

    /// Runs both paths in turns for this time in all; `samplers` are the threads that work for the second path.
    pub(crate) fn compare(
        &mut self,
        time: Duration,
        samplers: &[ThreadTime],
    ) -> anyhow::Result<Compared> {
        let rounds = (time.as_secs_f64() / (4.0 * TURN.as_secs_f64())).ceil().max(1.0) as u32;
        let sampling = || samplers.iter().map(ThreadTime::seconds).sum::<f64>();
        self.paths.iter().try_for_each(Stream::remind)?;
        let mut all = Vec::with_capacity(rounds as usize);
        let (mut cpu, mut sampled) = (self.cpu.seconds(), sampling());
        for _ in 0..rounds {
            let mut round = Round { is_whole: true, ..Round::default() };
            // A steady change of speed affects both paths alike.
            for path in [0, 1, 1, 0] {
                let (frames, took) = self.paths[path].run(TURN)?;
                let (cpu_then, sampled_then) = (cpu, sampled);
                (cpu, sampled) = (self.cpu.seconds(), sampling());
                let late = if path == 0 { sampled - sampled_then } else { 0.0 };
                round.is_whole &= took < STALLED;
                let accounts = &mut round.accounts;
                accounts[path].frames += frames;
                accounts[path].seconds += took.as_secs_f64() - late;
                accounts[path].cpu_seconds += cpu - cpu_then - late;
                accounts[1].seconds += late;
                accounts[1].cpu_seconds += late;
            }
            all.push(round);
        }
        let ([without, with], stalled) = sum(&all);
        let (without, with) = (without.throughput()?, with.throughput()?);
        Ok(Compared { without, with, stalled, rounds })
    }

    /// Frames so far that did not arrive.
    pub(crate) fn lost(&self) -> anyhow::Result<u64> {
        self.paths.iter().map(Stream::lost).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalled_rounds_are_counted_only_when_most_rounds_are_stalled() {
        let round = |seconds, is_whole| {
            let account = Account { frames: 64, seconds, cpu_seconds: seconds };
            Round { accounts: [account; 2], is_whole }
        };
        let frames = |rounds: &[Round]| {
            let ([first, second], stalled) = sum(rounds);
            assert_eq!(first, second);
            (first.frames, first.seconds, stalled)
        };
        let (good, bad) = (round(1.0, true), round(3.0, false));
        assert_eq!(frames(&[good, bad, good]), (128, 2.0, 1));
        assert_eq!(frames(&[good, bad, bad]), (192, 7.0, 0));
    }
}
