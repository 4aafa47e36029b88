//! How much CPU time the lab has used: switch, hosts, samplers, and the kernel's work for them.
//!
//! What interrupts and softirqs do is charged to the process that they interrupt, unless the kernel hands it to its own
//! thread `ksoftirqd`, which is counted as well. Where the kernel accounts interrupts apart
//! (CONFIG_IRQ_TIME_ACCOUNTING) that part would be missing; Debian's does not.

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::fs;

/// Who is asked.
pub struct CpuTime {
    processes: Vec<i32>,
}

impl CpuTime {
    /// Of this process, its children that have ended, those processes, and `ksoftirqd` of that CPU.
    pub fn of(mut processes: Vec<i32>, cpu: usize) -> CpuTime {
        processes.extend(softirq_thread(cpu));
        CpuTime { processes }
    }

    /// Seconds until now.
    pub fn seconds(&self) -> f64 {
        let own = [UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN]
            .into_iter()
            .filter_map(|who| getrusage(who).ok())
            .map(|usage: Usage| {
                let micros =
                    usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
                micros as f64 / 1e6
            });
        own.chain(self.processes.iter().map(|pid| of_process(*pid))).sum()
    }
}

/// The first field of each thread's `schedstat` is the nanoseconds that it ran.
fn of_process(pid: i32) -> f64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let ran = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    ran.sum::<f64>() / 1e9
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
    fn work_is_counted() {
        let time = CpuTime::of(Vec::new(), 0);
        let pid = i32::try_from(std::process::id()).unwrap();
        let (before, own) = (time.seconds(), of_process(pid));
        // Both count all threads of this process, and `time` also children of other tests.
        while of_process(pid) < own + 0.05 {
            std::hint::black_box((0..100_000_u64).fold(0, |sum, n| std::hint::black_box(sum ^ n)));
        }
        let counted = time.seconds() - before;
        assert!(counted > 0.03, "{counted}");
        assert_eq!(of_process(-1), 0.0);
    }
}
