//! Measures and fits the costs of sampling on this machine: α and β of each mechanism.
//!
//! ```text
//!   h1 ══ s1-eth1 ┐                        mechanisms stand at s1-eth1 and s1-eth2,
//!                 s1 (Open vSwitch)        at the frames that come in, and take the share s of them
//!   h2 ══ s1-eth2 ┘
//!                 s1-eth3 ══ remote        where mirrored frames go
//!
//!   h3 ══ s2-eth1 ┐
//!                 s2 (the same process)    what the machine does without sampling, in turns with s1
//!   h4 ══ s2-eth2 ┘
//! ```
//!
//! The load is frames from h1 to h2, as fast as possible; their throughput T(s) is measured. Switch, hosts and samplers
//! share one CPU, which is the model's server: forwarding and sampling compete for its capacity. With a CPU each, the
//! work of one would cost the others nothing.
//!
//! Besides throughput per second, as in the paper, the throughput per second of CPU time is recorded. Both are equal on
//! an idle CPU; on a busy CPU the second is still right. The two paths take turns of some milliseconds, which removes
//! changes of the machine's speed. Cases are in a random order within each repetition.

mod borrowed;
mod bridge;
mod calibration;
mod cpu;
mod mechanism;
mod place;
mod settings;
mod stream;
mod turns;

pub use borrowed::Target;
pub use calibration::Calibration;
pub use mechanism::Mechanism;
pub use settings::Settings;

use anyhow::Context;
use bridge::Bridge;
use calibration::{Lost, Turned};
use lab::Interrupt;
use mechanism::Running;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use report::pace::{Pace, readable};
use report::terminal::talk;
use std::time::Duration;
use stream::Batch;

impl Settings {
    /// Makes the lab, measures, and takes the lab down in every case. After an interrupt the complete repetitions are
    /// the result, if there are enough.
    ///
    /// # Errors
    /// A missing part of the lab, the bridge or a mechanism; [`lab::Interrupted`].
    pub fn calibrate(&self, interrupt: &Interrupt) -> anyhow::Result<Calibration> {
        let header = self.header;
        let repetitions = self.repetitions;
        self.mechanism.iter().try_for_each(|mechanism| self.check(*mechanism, repetitions))?;
        let batch = Batch::of(self.batch, self.length)?;
        // Before the lab is made, because its processes inherit the CPU.
        let cpu = share_one_cpu(self.cpu)?;
        let bridge = Bridge::up(self.target.as_ref(), cpu)?;
        let measured = self.measure(&bridge, cpu, (batch, header), interrupt);
        bridge.down()?;
        if measured.is_err() {
            // A signal also ends iperf3, whose error then arrives here.
            interrupt.check()?;
        }
        let mut calibration = measured?;
        calibration.results.settings.insert("cpu".to_owned(), cpu.into());
        calibration.results.settings.insert("header".to_owned(), header.into());
        if let Some(target) = &self.target {
            let bridge = target.bridge.clone();
            calibration.results.settings.insert("bridge".to_owned(), bridge.into());
        }
        Ok(calibration)
    }

    /// Whether there is enough to fit a mechanism's law to: three measurements, not all without sampling.
    fn check(&self, mechanism: Mechanism, repetitions: u16) -> Result<(), sampling::Error> {
        let is_fitted = |&&number: &&u32| mechanism.is_itself_at(1.0 / f64::from(number));
        let rates = self.one_in.iter().filter(is_fitted).count();
        if rates > 0 && usize::from(repetitions) * (rates + 1) >= 3 {
            return Ok(());
        }
        let message = format!("too few rates to fit a law of {} to", mechanism.name());
        Err(sampling::Error::Input { place: "--one-in".to_owned(), message })
    }

    fn measure(
        &self,
        bridge: &Bridge,
        cpu: usize,
        (batch, header): (Batch, u32),
        interrupt: &Interrupt,
    ) -> anyhow::Result<Calibration> {
        let mut cases = self.cases();
        let mut random = fastrand::Rng::with_seed(self.seed);
        let mut turned = Vec::with_capacity(usize::from(self.repetitions) * cases.len());
        let time = Duration::from_secs_f64(self.seconds);
        let mut lost = Lost::default();
        let mut turns = bridge.turns(cpu, batch)?;
        // Warms up caches, neighbour tables and the switch's flow table; the result is not used.
        turns.compare(Duration::from_secs(1), &[])?;
        let mut pace = Pace::new(usize::from(self.repetitions), self.repetition_time());
        let courses = (self.mechanism.len() as u32 + 1) * u32::from(self.course);
        let (whole, course) = (pace.whole(), readable(Duration::from_secs(courses.into())));
        talk(&format!("{} repetitions: {whole}, then {course} for figure 2a", self.repetitions));
        let mut made = 0;
        for repetition in 1..=self.repetitions {
            random.shuffle(&mut cases);
            talk(&format!("repetition {}", pace.step()));
            let mut its = Vec::with_capacity(cases.len());
            let mut measure_all = || -> anyhow::Result<()> {
                for &Case { mechanism, work } in &cases {
                    interrupt.check()?;
                    let running = match work {
                        Work::Off => None,
                        Work::Standing => Some(mechanism.start(bridge, NEVER, header)?),
                        Work::OneIn(number) => Some(mechanism.start(bridge, number, header)?),
                    };
                    let samplers = running.as_ref().map(Running::samplers).transpose()?;
                    let samplers = samplers.unwrap_or_default();
                    turns.compare(mechanism.settles(), &samplers)?;
                    let compared = turns.compare(time, &samplers)?;
                    lost.samples += running.map_or(Ok(0), Running::stop)?;
                    its.push(Turned { repetition, mechanism, rate: work.rate(), compared });
                }
                Ok(())
            };
            match measure_all() {
                Err(_) if interrupt.is_asked() && self.is_enough(made) => break,
                outcome => outcome?,
            }
            made = repetition;
            turned.append(&mut its);
        }
        let mut courses = Vec::new();
        let mut measure_courses = || -> anyhow::Result<()> {
            lost.frames = turns.lost()?;
            let length = Duration::from_secs(self.course.into());
            let mut pace = Pace::new(self.mechanism.len() + 1, length);
            talk(&format!("over time: no sampling ({})", pace.step()));
            courses.push(("no sampling".to_owned(), bridge.course(self.course)?));
            for mechanism in &self.mechanism {
                interrupt.check()?;
                talk(&format!("over time: {} ({})", mechanism.name(), pace.step()));
                let running = mechanism.start(bridge, 1, header)?;
                courses.push((mechanism.name().to_owned(), bridge.course(self.course)?));
                running.stop()?;
            }
            Ok(())
        };
        if made == self.repetitions {
            match measure_courses() {
                Err(_) if interrupt.is_asked() => {}
                outcome => outcome?,
            }
        }
        let mut calibration = Calibration::of(self, &turned, lost, courses)?;
        if interrupt.is_asked() {
            let of = self.repetitions;
            let text = format!("interrupted: {made} of {of} repetitions are whole");
            calibration.results.mark_partial(&text);
        }
        Ok(calibration)
    }

    /// The approximate time of a repetition.
    fn repetition_time(&self) -> Duration {
        // A mechanism needs time to start and to stop.
        let around = Duration::from_millis(700);
        let measured = around + Duration::from_secs_f64(self.seconds);
        let each = |case: &Case| case.mechanism.settles() + measured;
        self.cases().iter().map(each).sum()
    }

    /// Whether laws can be fitted to so many repetitions.
    fn is_enough(&self, repetitions: u16) -> bool {
        self.mechanism.iter().all(|mechanism| self.check(*mechanism, repetitions).is_ok())
    }

    /// Every mechanism at every rate, and no mechanism.
    fn cases(&self) -> Vec<Case> {
        let work = |&mechanism| {
            let rates = self.one_in.iter().copied().map(Work::OneIn);
            let all = rates.chain([Work::Off, Work::Standing]);
            all.map(move |work| Case { mechanism, work })
        };
        self.mechanism.iter().flat_map(work).collect()
    }
}

/// One thing to measure.
#[derive(Clone, Copy)]
struct Case {
    mechanism: Mechanism,
    work: Work,
}

/// The state of a mechanism.
#[derive(Clone, Copy)]
enum Work {
    Off,
    /// The mechanism is present and selects nothing: its cost in this state is not the cost of a sample.
    Standing,
    OneIn(u32),
}

/// A rate so low that no packet is selected during a measurement.
const NEVER: u32 = u32::MAX;

impl Work {
    /// The sampling rate; `None` without the mechanism.
    fn rate(self) -> Option<f64> {
        match self {
            Work::Off => None,
            Work::Standing => Some(0.0),
            Work::OneIn(number) => Some(1.0 / f64::from(number)),
        }
    }
}

/// From here on this process and its children run on one CPU: the given one, or the last that they may use.
fn share_one_cpu(wanted: Option<usize>) -> anyhow::Result<usize> {
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this).context("cannot ask for this process's CPUs")?;
    let may = |cpu: &usize| allowed.is_set(*cpu) == Ok(true);
    let cpu = match wanted {
        Some(cpu) => Some(cpu).filter(may),
        None => (0..CpuSet::count()).rev().find(may),
    };
    let cpu = cpu.ok_or_else(|| sampling::Error::Input {
        place: "--cpu".to_owned(),
        message: "this process may not use that CPU".to_owned(),
    })?;
    let mut one = CpuSet::new();
    one.set(cpu).context("there is no such CPU")?;
    sched_setaffinity(this, &one).context("cannot choose a CPU")?;
    Ok(cpu)
}
