//! `weir sampling calibrate`: what sampling costs here: α and β of each mechanism, measured and fitted.
//!
//! ```text
//!   h1 ══ s1-eth1 ┐                        mechanisms stand at s1-eth1 and s1-eth2,
//!                 s1 (Open vSwitch)        at the frames that come in, and take the share s of them
//!   h2 ══ s1-eth2 ┘
//!                 s1-eth3 ══ remote        where mirrored frames go
//! ```
//!
//! A TCP stream as fast as it goes from h1 to h2 is the load; its throughput T(s) is what is measured. Switch, hosts and
//! samplers share one CPU: that is the model's server, whose capacity forwarding and sampling compete for. With a CPU
//! each, what one of them does would cost the others nothing.
//!
//! Beside throughput per second, as the paper has it, the throughput per second of CPU time is recorded: the same where
//! the CPU has nothing else to do, and still right where it has. Cases are run in a
//! random order within each repetition, so that a drift of the machine falls on all of them alike.

mod bridge;
mod calibration;
mod cpu;
mod mechanism;

use super::{Output, write};
use crate::exit::Exit;
use crate::signals::Interrupt;
use anyhow::Context;
use bridge::Bridge;
pub use calibration::Calibration;
use calibration::Taken;
use mechanism::Mechanism;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::io::Write;
use std::time::Duration;

/// Measure what sampling and mirroring cost on this machine, and fit the model's α and β
///
/// Makes a lab with a real Open vSwitch, sends a TCP stream through it as fast as it goes, and samples at rates from 0 to
/// 1 with each mechanism in turn. Needs root, Open vSwitch and iperf3. Exit status 1: a fit below R² = 0.99, which means
/// that the machine was too noisy or the law does not hold here.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir sampling calibrate --quick
  weir sampling calibrate --repetitions 10 --out calibration/
  weir sampling plan --servers servers.csv --traffic matrix.csv --alpha 1.2 --beta 0.3")]
pub struct Calibrate {
    #[command(flatten)]
    effort: Effort,
    #[command(flatten)]
    output: Output,
}

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
    /// How often each case is measured, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repetitions: u16,
    /// Seconds of each measurement, 1 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=3600))]
    seconds: u16,
    /// Seconds of each line of figure 2a, 2 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u16).range(2..=3600))]
    course: u16,
    /// Three repetitions of one second at one of 10, 3 and 1: for a look, not for a verdict
    #[arg(long)]
    quick: bool,
    /// The CPU that switch, hosts and samplers share [default: the last]
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
    /// What the order of cases is drawn from
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

impl Calibrate {
    pub fn run(self) -> anyhow::Result<Exit> {
        let calibration = self.effort.calibrate()?;
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
        let is_clean = calibration.results.findings.is_empty();
        Ok(if is_clean { Exit::Success } else { Exit::Finding })
    }
}

impl Effort {
    /// Whether it is for a look only.
    pub fn is_quick(&self) -> bool {
        self.quick
    }

    /// Makes the lab, measures, and takes the lab down, however that ends.
    pub fn calibrate(mut self) -> anyhow::Result<Calibration> {
        if self.quick {
            (self.repetitions, self.seconds, self.course) = (3, 1, 4);
            self.one_in = vec![10, 3, 1];
        }
        let interrupt = Interrupt::catch()?;
        // Before the lab is made: its processes inherit it.
        let cpu = share_one_cpu(self.cpu)?;
        let bridge = Bridge::up(cpu)?;
        let measured = self.measure(&bridge, &interrupt);
        bridge.down()?;
        // A signal also ends iperf3, and that is then what went wrong.
        interrupt.check()?;
        let mut calibration = measured?;
        calibration.results.settings.insert("cpu".to_owned(), cpu.into());
        Ok(calibration)
    }

    fn measure(&self, bridge: &Bridge, interrupt: &Interrupt) -> anyhow::Result<Calibration> {
        let mut cases = self.cases();
        let total = usize::from(self.repetitions) * cases.len();
        let mut random = Shuffle(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut samples = Vec::with_capacity(total);
        // The first stream warms up caches, neighbours and the switch's flow table; it counts for nothing.
        bridge.throughput(1)?;
        for repetition in 1..=self.repetitions {
            random.shuffle(&mut cases);
            for case in &cases {
                interrupt.check()?;
                talk(&format!("repetition {repetition} of {}: {}", self.repetitions, case.name()));
                let running =
                    case.mechanism.map(|one| one.start(bridge, case.one_in)).transpose()?;
                let throughput = bridge.throughput(self.seconds)?;
                running.map(mechanism::Running::stop).transpose()?;
                samples.push(Taken {
                    repetition,
                    mechanism: case.mechanism,
                    rate: case.rate(),
                    throughput,
                });
            }
        }
        let mut courses = vec![("no sampling".to_owned(), bridge.course(self.course)?)];
        for mechanism in &self.mechanism {
            interrupt.check()?;
            talk(&format!("over time: {}", mechanism.name()));
            let running = mechanism.start(bridge, 1)?;
            courses.push((mechanism.name().to_owned(), bridge.course(self.course)?));
            running.stop()?;
        }
        Calibration::of(self, &samples, courses)
    }

    /// Every mechanism at every rate, and as often as there are mechanisms none.
    fn cases(&self) -> Vec<Case> {
        let with = self.mechanism.iter().flat_map(|mechanism| {
            self.one_in.iter().map(|one_in| Case { mechanism: Some(*mechanism), one_in: *one_in })
        });
        let without = self.mechanism.iter().map(|_| Case { mechanism: None, one_in: 0 });
        with.chain(without).collect()
    }
}

/// One thing to measure.
#[derive(Clone, Copy)]
struct Case {
    mechanism: Option<Mechanism>,
    one_in: u32,
}

impl Case {
    fn rate(self) -> f64 {
        if self.mechanism.is_some() { 1.0 / f64::from(self.one_in) } else { 0.0 }
    }

    fn name(self) -> String {
        match self.mechanism {
            Some(mechanism) => format!("{}, one of {}", mechanism.name(), self.one_in),
            None => "no sampling".to_owned(),
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

/// Says on stderr what is being done.
fn talk(text: &str) {
    // If stderr is gone there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "{text}");
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
