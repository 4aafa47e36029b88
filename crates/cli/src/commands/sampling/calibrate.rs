//! `weir sampling calibrate`: what sampling costs here: α and β of each mechanism, measured and fitted.
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
//! Frames as fast as they go from h1 to h2 are the load; their throughput T(s) is what is measured. Switch, hosts and
//! samplers share one CPU: that is the model's server, whose capacity forwarding and sampling compete for. With a CPU
//! each, what one of them does would cost the others nothing.
//!
//! Beside throughput per second, as the paper has it, the throughput per second of CPU time is recorded: the same where
//! the CPU has nothing else to do, and still right where it has. The two paths take turns of some milliseconds, so that
//! how fast the machine is just then can be taken out; cases are in a random order within each repetition.

mod borrowed;
mod bridge;
mod calibration;
mod cpu;
mod mechanism;
mod stream;
mod turns;

use super::{Output, write};
use crate::exit::Exit;
use crate::signals::Interrupt;
use crate::terminal::{quiet, talk};
use agent::ovsdb::LARGEST_HEADER;
use anyhow::Context;
use borrowed::Target;
use bridge::Bridge;
pub use calibration::Calibration;
use calibration::{Lost, Turned};
use mechanism::{Mechanism, Running};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use report::pace::{Pace, told};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;
use stream::Batch;

/// Measure what sampling and mirroring cost on this machine, and fit the model's α and β
///
/// Makes a lab with a real Open vSwitch, or takes a named bridge, sends frames through it as fast as they go, and samples at rates from 0 to 1 with
/// each mechanism in turn. Needs root, Open vSwitch and iperf3. Exit status 1: a fit below R² = 0.99, which means
/// that the machine was too noisy or the law does not hold here.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir sampling calibrate --quick
  weir sampling calibrate --repetitions 10 --out calibration/
  weir sampling calibrate --bridge br0 --mechanism ovs-sflow,weir
  weir sampling plan --servers servers.csv --traffic matrix.csv --alpha 1.2 --beta 0.3")]
pub struct Calibrate {
    #[command(flatten)]
    effort: Effort,
    #[command(flatten)]
    output: Output,
}

/// Bytes of each sample, as sFlow agents have it.
const HEADER: u32 = 128;

/// What is measured, how often and for how long.
#[derive(clap::Args)]
pub struct Effort {
    /// Mechanisms to measure
    #[arg(
        long,
        value_name = "MECHANISMS",
        value_delimiter = ',',
        default_value = "ovs-sflow,mirror,user-space,user-space-read,weir"
    )]
    mechanism: Vec<Mechanism>,
    /// Sampling rates as "one of N packets"
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "20,10,5,3,2,1", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    one_in: Vec<u32>,
    /// Bytes of each sample where sFlow is sent, 64 to 512: by `ovs-sflow` and `weir` [default: 128; where the paper is
    /// reproduced, 512: Open vSwitch sends no more]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(64..=i64::from(LARGEST_HEADER)))]
    header: Option<u32>,
    /// How often each case is measured, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repetitions: u16,
    /// Seconds of each measurement, 0.1 to 3600; both paths have half of it
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// Frames that are handed over together, 1 to 128, as many as are no more than 64 KiB
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=128))]
    batch: u16,
    /// Bytes of a frame, without the frame check sequence, 64 to 1500
    #[arg(long, value_name = "BYTES", default_value_t = 1000, value_parser = clap::value_parser!(u16).range(64..=1500))]
    length: u16,
    /// Seconds of each line of figure 2a, 2 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u16).range(2..=3600))]
    course: u16,
    /// Five repetitions of 0.3 seconds at one of 10, 3 and 1: for a look, not for a verdict
    #[arg(long)]
    quick: bool,
    /// Measure at this bridge of an Open vSwitch that runs, not at one of a lab's own
    ///
    /// It gets two ports as long as that takes, which it has to connect (as NORMAL does), and its process runs on one
    /// CPU meanwhile.
    #[arg(long, value_name = "NAME")]
    bridge: Option<String>,
    /// Where the sockets of that bridge's Open vSwitch are
    #[arg(long, value_name = "DIR", default_value = "/run/openvswitch", requires = "bridge")]
    switch: PathBuf,
    /// The CPU that switch, hosts and samplers share [default: the last]
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
    /// What the order of cases is drawn from
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

impl Calibrate {
    pub fn run(self) -> anyhow::Result<Exit> {
        let calibration = self.effort.calibrate(HEADER)?;
        quiet();
        let mut stdout = std::io::stdout().lock();
        if self.output.json {
            write!(stdout, "{}", calibration.results.to_json())?;
        } else {
            write!(stdout, "{}\n{}", calibration.table(), calibration.remarks())?;
        }
        if let Some(out) = &self.output.out {
            calibration.results.write_with(out, &[], Duration::ZERO, &calibration.extras())?;
            write(&out.join("samples.csv"), &calibration.samples_table().to_csv())?;
            writeln!(std::io::stderr(), "results: {}", out.join("report.html").display())?;
        }
        Ok(Exit::of_results(&calibration.results))
    }
}

impl Effort {
    /// Whether it is for a look only.
    pub fn is_quick(&self) -> bool {
        self.quick
    }

    /// Makes the lab, measures, and takes the lab down, however that ends. Samples have so many bytes unless others are asked
    /// for. When it is interrupted, the repetitions that are whole are the result, if they are enough.
    pub fn calibrate(mut self, header: u32) -> anyhow::Result<Calibration> {
        let header = self.header.unwrap_or(header);
        if self.quick {
            (self.repetitions, self.seconds, self.course) = (5, 0.3, 4);
            self.one_in = vec![10, 3, 1];
        }
        let repetitions = self.repetitions;
        self.mechanism.iter().try_for_each(|mechanism| self.check(*mechanism, repetitions))?;
        let batch = Batch::of(self.batch, self.length)?;
        let interrupt = Interrupt::catch()?;
        // Before the lab is made: its processes inherit it.
        let cpu = share_one_cpu(self.cpu)?;
        let folder = self.switch.clone();
        let target = self.bridge.clone().map(|bridge| Target { bridge, folder });
        let bridge = Bridge::up(target.as_ref(), cpu)?;
        let measured = self.measure(&bridge, cpu, (batch, header), &interrupt);
        bridge.down()?;
        if measured.is_err() {
            // A signal also ends iperf3, and that is then what went wrong.
            interrupt.check()?;
        }
        let mut calibration = measured?;
        calibration.results.settings.insert("cpu".to_owned(), cpu.into());
        calibration.results.settings.insert("header".to_owned(), header.into());
        if let Some(bridge) = self.bridge {
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
        let mut random = Shuffle(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut turned = Vec::with_capacity(usize::from(self.repetitions) * cases.len());
        let time = Duration::from_secs_f64(self.seconds);
        let mut lost = Lost::default();
        let mut turns = bridge.turns(cpu, batch)?;
        // Warms up caches, neighbours and the switch's flow table; it counts for nothing.
        turns.compare(Duration::from_secs(1), &[])?;
        let mut pace = Pace::new(usize::from(self.repetitions), self.repetition_time());
        let courses = (self.mechanism.len() as u32 + 1) * u32::from(self.course);
        let (whole, course) = (pace.whole(), told(Duration::from_secs(courses.into())));
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
            courses.push(("no sampling".to_owned(), bridge.course(self.course)?));
            for mechanism in &self.mechanism {
                interrupt.check()?;
                talk(&format!("over time: {}", mechanism.name()));
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

    /// What a repetition takes, more or less.
    fn repetition_time(&self) -> Duration {
        // A mechanism takes its time to start and to stop.
        let around = Duration::from_millis(700);
        let measured = around + Duration::from_secs_f64(self.seconds);
        let each = |case: &Case| case.mechanism.settles() + measured;
        self.cases().iter().map(each).sum()
    }

    /// Whether laws can be fitted to so many repetitions.
    fn is_enough(&self, repetitions: u16) -> bool {
        self.mechanism.iter().all(|mechanism| self.check(*mechanism, repetitions).is_ok())
    }

    /// Every mechanism at every rate, and not there at all.
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

/// What a mechanism does.
#[derive(Clone, Copy)]
enum Work {
    Off,
    /// It is there, and chooses nothing: what it costs then is not a sample's cost.
    Standing,
    OneIn(u32),
}

/// One of so many packets that none is chosen while it is measured.
const NEVER: u32 = u32::MAX;

impl Work {
    /// The sampling rate; none where the mechanism is not there.
    fn rate(self) -> Option<f64> {
        match self {
            Work::Off => None,
            Work::Standing => Some(0.0),
            Work::OneIn(number) => Some(1.0 / f64::from(number)),
        }
    }
}

/// From here on this process and what it starts run on one CPU: that one, or the last that they may use.
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

/// Fisher and Yates's shuffle on Marsaglia's xorshift: an order that a seed repeats.
struct Shuffle(u64);

impl Shuffle {
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            items.swap(last, (self.0 % (last as u64 + 1)) as usize);
        }
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "not a number of seconds from 0.1 to 3600".to_owned())
}
