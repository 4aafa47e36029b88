//! Measures the idle time of the machine's processors: several labs at the same time need idle
//! processors.

use std::fs;

/// The ticks of all processors since the machine started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cpu {
    idle: u64,
    all: u64,
}

impl Cpu {
    /// The present counters of the kernel; zeros without counters.
    pub(super) fn now() -> Cpu {
        Cpu::read(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn read(text: &str) -> Cpu {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "));
        let ticks = line.into_iter().flat_map(str::split_whitespace);
        // The fields are user nice system idle iowait irq softirq steal; the time of guests is
        // already in user.
        let ticks: Vec<u64> = ticks.take(8).map_while(|tick| tick.parse().ok()).collect();
        Cpu { idle: ticks.iter().skip(3).take(2).sum(), all: ticks.iter().sum() }
    }

    /// The percentage of idle processor time since `before`; `None` without elapsed time.
    pub(super) fn idle_since(&self, before: &Cpu) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|all| *all > 0)?;
        Some(self.idle.saturating_sub(before.idle) as f64 * 100.0 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_idle_time_includes_iowait_but_not_steal_time() {
        let before = Cpu::read("cpu  10 0 10 100 0 0 0 0 7 0\ncpu0 1 1 1 1\n");
        let after = Cpu::read("cpu  20 5 15 130 10 5 5 30 9 0\n");
        assert_eq!((before, after.idle_since(&before)), (Cpu { idle: 100, all: 120 }, Some(40.0)));
        assert_eq!(after.idle_since(&after), None);
        assert_eq!(Cpu::read("none\n"), Cpu { idle: 0, all: 0 });
    }
}
