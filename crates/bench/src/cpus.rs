//! Gives one CPU to the generator, and the other CPUs to the system under test. So the measurement shows the system,
//! and not the scheduler's choice of CPUs.
//!
//! A generator that paces by spinning looks busy to the scheduler, and a system that sleeps between two messages looks
//! idle. With two CPUs the scheduler at times puts both on the same CPU, where each waits for the other's time slice.
//! For the same reason both get a higher priority than all other work of the machine, if a higher priority is allowed
//! (as root).

use crate::plan::Setup;
use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The niceness of the highest priority.
const FIRST: i32 = -20;

/// The CPUs that this process may use, in two parts.
#[derive(Clone, Debug)]
pub struct Cpus {
    all: CpuSet,
    generator: CpuSet,
    system: CpuSet,
    /// The usual niceness of a thread; `None` if no lower niceness is allowed.
    nice: Option<i32>,
}

impl Cpus {
    /// The first CPU is for the generator, and the other CPUs are for the system. Returns `None` if there is only one
    /// CPU, if several threads generate, or if the setup does not want a division.
    #[must_use]
    pub fn of(setup: &Setup) -> Option<Cpus> {
        if !setup.apart || setup.threads != 1 {
            return None;
        }
        let all = sched_getaffinity(None).ok()?;
        let first = numbers(&all).next()?;
        let (mut generator, mut system) = (CpuSet::new(), all);
        generator.set(first);
        system.unset(first);
        let nice = getpriority_process(None).ok().filter(|_| be_nice(FIRST));
        nice.map(be_nice);
        (system.count() > 0).then_some(Cpus { all, generator, system, nice })
    }

    /// Moves this thread to the generator's CPU, with the highest priority if that is allowed.
    pub fn generate(&self) {
        // Without its own CPU the measurement is only less steady, and the results show the generator's lag anyway.
        let _ = sched_setaffinity(None, &self.generator);
        self.nice.map(|_| be_nice(FIRST));
    }

    /// Moves this thread to the generator's CPU, with a lower priority than the generator.
    pub fn beside(&self) {
        let _ = sched_setaffinity(None, &self.generator);
    }

    /// Calls `start`. Processes and threads that `start` makes inherit the CPUs of the system.
    pub fn for_system<T>(&self, start: impl FnOnce() -> T) -> T {
        let _ = sched_setaffinity(None, &self.system);
        self.nice.map(|_| be_nice(FIRST));
        let started = start();
        self.nice.map(be_nice);
        let _ = sched_setaffinity(None, &self.all);
        started
    }

    /// The text for the settings of a result: `generator 0, system 1, both first`.
    #[must_use]
    pub fn description(&self) -> String {
        let list = |set: &CpuSet| numbers(set).map(|cpu| cpu.to_string()).collect::<Vec<_>>();
        let (generator, system) = (list(&self.generator), list(&self.system));
        let first = if self.nice.is_some() { ", both first" } else { "" };
        format!("generator {}, system {}{first}", generator.join(" "), system.join(" "))
    }
}

/// Gives this thread, and the threads and processes that it will start, the highest priority if that is allowed (as
/// root): a real switch, the systems and the generator go before all other work of the machine.
pub fn go_first() {
    be_nice(FIRST);
}

/// Gives this thread the usual priority: the thread is a part of neither the measurement nor the system under test.
pub(crate) fn go_behind() {
    be_nice(0);
}

/// Whether this thread has the highest priority.
pub(crate) fn is_first() -> bool {
    getpriority_process(None).is_ok_and(|nice| nice == FIRST)
}

/// Sets the niceness of this thread and of the threads that this thread starts. Returns whether this niceness is
/// allowed.
fn be_nice(nice: i32) -> bool {
    setpriority_process(None, nice).is_ok()
}

fn numbers(set: &CpuSet) -> impl Iterator<Item = usize> {
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Topology;

    #[test]
    fn system_and_generator_share_no_cpu_and_the_affinity_is_restored() {
        let setup = Setup { apart: true, ..Setup::new(Topology::Direct, 1) };
        let before = sched_getaffinity(None).unwrap();
        let nice = getpriority_process(None).unwrap();
        let Some(cpus) = Cpus::of(&setup) else {
            assert_eq!(before.count(), 1, "it has a CPU only for one");
            return;
        };
        let of_thread = || (sched_getaffinity(None).unwrap(), getpriority_process(None).unwrap());
        let (inside, first) = cpus.for_system(of_thread);
        let expected = cpus.nice.map_or(nice, |_| FIRST);
        assert_eq!(first, expected);
        assert_eq!(getpriority_process(None).unwrap(), nice);
        assert!(numbers(&inside).all(|cpu| !cpus.generator.is_set(cpu)));
        assert_eq!(inside.count() + 1, before.count());
        assert!(sched_getaffinity(None).unwrap() == before);
        let thread = std::thread::spawn(move || {
            cpus.generate();
            of_thread()
        });
        let (cpus, first) = thread.join().unwrap();
        assert_eq!((cpus.count(), first), (1, expected));
        for setup in [Setup { threads: 2, ..setup.clone() }, Setup { apart: false, ..setup }] {
            assert!(Cpus::of(&setup).is_none());
        }
    }
}
