//! A CPU for the generator, and the others for the system under test: so that what is measured is the system, and not
//! where the scheduler happened to put the two.
//!
//! A generator that paces by spinning looks busy to the scheduler, and a system that sleeps between two messages looks
//! idle: on two CPUs both are at times put on the same one, and then wait for each other's time slice. For the same reason
//! both go before whatever else the machine does, where that may be said (as root).

use crate::plan::Setup;
use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The niceness of what goes before all else.
const FIRST: i32 = -20;

/// The CPUs that this process may use, in two parts.
#[derive(Clone, Debug)]
pub struct Cpus {
    all: CpuSet,
    generator: CpuSet,
    system: CpuSet,
    /// The niceness that a thread has otherwise; `None` where none may be lower.
    nice: Option<i32>,
}

impl Cpus {
    /// The first for the generator, the others for the system; `None` where there is only one, where several threads
    /// generate, or where it is not wanted.
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

    /// From here on this thread is the generator's.
    pub fn generate(&self) {
        // Without it the measurement is only less steady, and its lag is told anyway.
        let _ = sched_setaffinity(None, &self.generator);
        self.nice.map(|_| be_nice(FIRST));
    }

    /// From here on this thread runs on the generator's CPU, behind the generator.
    pub fn beside(&self) {
        let _ = sched_setaffinity(None, &self.generator);
    }

    /// What is started within inherits the system's part.
    pub fn for_system<T>(&self, start: impl FnOnce() -> T) -> T {
        let _ = sched_setaffinity(None, &self.system);
        self.nice.map(|_| be_nice(FIRST));
        let started = start();
        self.nice.map(be_nice);
        let _ = sched_setaffinity(None, &self.all);
        started
    }

    /// For the settings of a result: `generator 0, system 1, both first`.
    #[must_use]
    pub fn told(&self) -> String {
        let list = |set: &CpuSet| numbers(set).map(|cpu| cpu.to_string()).collect::<Vec<_>>();
        let (generator, system) = (list(&self.generator), list(&self.system));
        let first = if self.nice.is_some() { ", both first" } else { "" };
        format!("generator {}, system {}{first}", generator.join(" "), system.join(" "))
    }
}

/// Says how nice this thread is, and those that it starts. The answer is whether that may be said.
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
    fn the_two_share_no_cpu_and_nothing_stays_bound() {
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
