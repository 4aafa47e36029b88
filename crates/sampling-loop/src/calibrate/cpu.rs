//! The CPU time of threads: the switch's, the samplers', this process's, and the kernel's work for them.
//!
//! The kernel charges interrupts and softirqs to the interrupted process, or runs them in its own thread `ksoftirqd`,
//! which is counted as well. A kernel that accounts interrupts separately (CONFIG_IRQ_TIME_ACCOUNTING) would hide that
//! part; Debian's kernel does not.

use anyhow::Context;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// A thread that may sleep during the query; its CPU time is known to the nanosecond.
pub(crate) struct ThreadTime {
    statistics: File,
}

impl ThreadTime {
    /// A thread of a process, both by their numbers.
    pub(crate) fn of(process: i32, thread: i32) -> anyhow::Result<ThreadTime> {
        let path = format!("/proc/{process}/task/{thread}/schedstat");
        let statistics = File::open(&path).with_context(|| format!("cannot read {path}"))?;
        Ok(ThreadTime { statistics })
    }

    /// The seconds until now; 0 for a thread that has ended.
    pub(crate) fn seconds(&self) -> f64 {
        let mut text = [0; 64];
        let Ok(length) = self.statistics.read_at(&mut text, 0) else { return 0.0 };
        // The first field is the thread's run time in nanoseconds.
        let text = std::str::from_utf8(&text[..length]).unwrap_or_default();
        let nanoseconds = text.split(' ').next().and_then(|field| field.parse::<f64>().ok());
        nanoseconds.unwrap_or(0.0) / 1e9
    }
}

/// The counted threads.
pub(crate) struct CpuTime {
    threads: Vec<ThreadTime>,
}

impl CpuTime {
    /// This process, the other processes with their current threads, and `ksoftirqd` of the CPU.
    pub(crate) fn of(others: &[i32], cpu: usize) -> anyhow::Result<CpuTime> {
        let mut threads = Vec::new();
        for &process in others.iter().chain(&softirq_thread(cpu)) {
            let tasks = fs::read_dir(format!("/proc/{process}/task"));
            for task in tasks.context("a process has ended")?.flatten() {
                let number = task.file_name().to_str().and_then(|name| name.parse().ok());
                threads.extend(number.map(|thread| ThreadTime::of(process, thread)).transpose()?);
            }
        }
        Ok(CpuTime { threads })
    }

    /// The seconds until now.
    pub(crate) fn seconds(&self) -> f64 {
        let own = getrusage(UsageWho::RUSAGE_SELF).map_or(0.0, |usage| {
            let micros =
                usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
            micros as f64 / 1e6
        });
        own + self.threads.iter().map(ThreadTime::seconds).sum::<f64>()
    }
}

fn softirq_thread(cpu: usize) -> Option<i32> {
    let name = format!("ksoftirqd/{cpu}\n");
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.find(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_of_the_own_process_is_counted() {
        let time = CpuTime::of(&[], 0).unwrap();
        let process = i32::try_from(std::process::id()).unwrap();
        let own = ThreadTime::of(process, nix::unistd::gettid().as_raw()).unwrap();
        let (before, start) = (time.seconds(), own.seconds());
        // Both count this thread, and `time` also those of other tests.
        while own.seconds() < start + 0.05 {
            std::hint::black_box((0..100_000_u64).fold(0, |sum, n| std::hint::black_box(sum ^ n)));
        }
        let counted = time.seconds() - before;
        assert!(counted > 0.03, "{counted}");
        assert!(ThreadTime::of(process, -1).is_err());
    }
}
