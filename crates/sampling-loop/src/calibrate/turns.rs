//! Two equal paths, of which one is sampled, taking turns of some milliseconds: so the machine is equally fast for both.
//!
//! ```text
//!   turn      without  with  with  without  without  with  ...      each of 5 ms, on one CPU
//!   time      ├───────┼──────▒┼────▒▒┼▒────────┼─────────┼───▒──
//!   samplers                 ▒     ▒▒ ▒ ◀── theirs, but not its time      ▒ = CPU time of samplers' threads
//! ```
//!
//! A virtual machine's speed moves by some per cent within a second. Two measurements of a second each differ by that much;
//! of two hundred turns both paths have half. What a sampler's thread still has to do when its path's turn is over is known
//! by its own CPU time, and goes to its path's account. A round in which the machine stood still for some milliseconds would
//! be charged to one path; it counts for neither.

use super::cpu::{CpuTime, ThreadTime};
use super::stream::{Batch, Stream};
use anyhow::ensure;
use lab::Lab;
use std::time::Duration;

/// Long beside a batch and short beside the machine's moods.
const TURN: Duration = Duration::from_millis(5);

/// A turn that took longer was interrupted: of itself it ends with the batch that is under way.
const STALLED: Duration = Duration::from_micros(7_500);

/// What a stream came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Throughput {
    /// Frames per second that arrived.
    pub(crate) per_second: f64,
    /// Frames that arrived per second of CPU time that switch, hosts and samplers took.
    pub(crate) per_cpu_second: f64,
}

/// The same time by both paths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compared {
    /// By the path at which nothing is ever sampled.
    pub(crate) without: Throughput,
    pub(crate) with: Throughput,
    /// Rounds that count for nothing since the machine stood still, and rounds in all.
    pub(crate) stalled: u32,
    pub(crate) rounds: u32,
}

/// The two paths.
pub(crate) struct Turns {
    /// The untouched one first.
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

/// The sum of the rounds that count: the whole ones, or all where interruptions are the rule, and how many do not.
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
    /// The hosts' names, the untouched path's first; what else takes CPU time for the frames, and where.
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

    /// Both paths in turns, as long as that together; `samplers` are the threads that work for the second.
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
            // What moves steadily meets both alike.
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
    fn rounds_in_which_the_machine_stood_still_count_only_where_they_are_the_rule() {
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
