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
//! by its own CPU time, and goes to its path's account.

use super::cpu::{CpuTime, ThreadTime};
use super::stream::Stream;
use anyhow::ensure;
use lab::Lab;
use std::time::Duration;

/// Long beside a batch and short beside the machine's moods.
const TURN: Duration = Duration::from_millis(5);

/// What a stream came to.
#[derive(Clone, Copy, Debug)]
pub struct Throughput {
    /// Frames per second that arrived.
    pub per_second: f64,
    /// Frames that arrived per second of CPU time that switch, hosts and samplers took.
    pub per_cpu_second: f64,
}

/// The same time by both paths.
#[derive(Clone, Copy, Debug)]
pub struct Compared {
    /// By the path at which nothing is ever sampled.
    pub without: Throughput,
    pub with: Throughput,
}

/// The two paths.
pub struct Turns {
    /// The untouched one first.
    paths: [Stream; 2],
    cpu: CpuTime,
}

/// One path's account.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    frames: u64,
    seconds: f64,
    cpu_seconds: f64,
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
    pub fn open(
        lab: &Lab,
        paths: [[&str; 2]; 2],
        processes: &[i32],
        cpu: usize,
    ) -> anyhow::Result<Turns> {
        let [without, with] = paths;
        let paths = [Stream::open(lab, without)?, Stream::open(lab, with)?];
        Ok(Turns { paths, cpu: CpuTime::of(processes, cpu)? })
    }

    /// Both paths in turns, as long as that together; `samplers` are the threads that work for the second.
    pub fn compare(&mut self, time: Duration, samplers: &[ThreadTime]) -> anyhow::Result<Compared> {
        let rounds = (time.as_secs_f64() / (4.0 * TURN.as_secs_f64())).ceil().max(1.0) as u32;
        let sampling = || samplers.iter().map(ThreadTime::seconds).sum::<f64>();
        self.paths.iter().try_for_each(Stream::remind)?;
        let mut accounts = [Account::default(); 2];
        let (mut cpu, mut sampled) = (self.cpu.seconds(), sampling());
        for _ in 0..rounds {
            // What moves steadily meets both alike.
            for path in [0, 1, 1, 0] {
                let (frames, took) = self.paths[path].run(TURN)?;
                let (cpu_then, sampled_then) = (cpu, sampled);
                (cpu, sampled) = (self.cpu.seconds(), sampling());
                let late = if path == 0 { sampled - sampled_then } else { 0.0 };
                let account = &mut accounts[path];
                account.frames += frames;
                account.seconds += took.as_secs_f64() - late;
                account.cpu_seconds += cpu - cpu_then - late;
                accounts[1].seconds += late;
                accounts[1].cpu_seconds += late;
            }
        }
        let [without, with] = accounts;
        Ok(Compared { without: without.throughput()?, with: with.throughput()? })
    }

    /// Frames so far that did not arrive.
    pub fn lost(&self) -> anyhow::Result<u64> {
        self.paths.iter().map(Stream::lost).sum()
    }
}
