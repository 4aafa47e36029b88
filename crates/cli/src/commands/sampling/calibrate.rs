//! Measures and fits α and β of each sampling mechanism on this machine (`weir sampling calibrate`).

use super::text::write;
use crate::exit::Exit;
use crate::out::Output;
use crate::signals;
use agent::ovsdb::LARGEST_HEADER;
use sampling_loop::calibrate::{Mechanism, Settings, Target};
use std::path::PathBuf;
use std::time::Duration;

/// Measure the costs of sampling and mirroring on this machine, and fit α and β of the model
///
/// The command makes a lab with a real Open vSwitch, or uses a named bridge. Frames pass the switch at the highest rate
/// that the switch forwards, and each mechanism in turn samples at rates from 0 to 1. Needs root, Open vSwitch and
/// iperf3. Exit status 1: a fit is below R² = 0.99, so the machine was too noisy or the model does not hold on this
/// machine.
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

/// The default number of bytes of each sample, as in sFlow agents.
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
    mechanism: Vec<MechanismOption>,
    /// Sampling rates as "one of N packets"
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "20,10,5,3,2,1", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    one_in: Vec<u32>,
    /// Bytes of each sFlow sample of `ovs-sflow` and `weir`, 64 to 512, the most that Open vSwitch sends [default: 128;
    /// 512 in
    /// `weir reproduce`]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(64..=i64::from(LARGEST_HEADER)))]
    header: Option<u32>,
    /// How often each case is measured, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repetitions: u16,
    /// Seconds of each measurement, 0.1 to 3600, half of them for each path
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// Frames per system call, 1 to 128 and at most 64 KiB
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=128))]
    batch: u16,
    /// Bytes of a frame, without the frame check sequence, 64 to 1500
    #[arg(long, value_name = "BYTES", default_value_t = 1000, value_parser = clap::value_parser!(u16).range(64..=1500))]
    length: u16,
    /// Seconds of each line of figure 2a, 2 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u16).range(2..=3600))]
    course: u16,
    /// Five repetitions of 0.3 seconds at one of 10, 3 and 1 packets: a quick look, too short for conclusions
    #[arg(long)]
    quick: bool,
    /// Measure at this bridge of a running Open vSwitch, and make no lab
    ///
    /// During the measurement the bridge has two ports more, which its flows have to connect (as NORMAL does), and its
    /// process runs on one CPU.
    #[arg(long, value_name = "NAME")]
    bridge: Option<String>,
    /// The directory with the sockets of the bridge's Open vSwitch
    #[arg(long, value_name = "DIR", default_value = "/run/openvswitch", requires = "bridge")]
    switch: PathBuf,
    /// The CPU of the switch, the hosts and the samplers [default: the last]
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
    /// Seed for the random order of cases
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

impl Calibrate {
    pub fn run(self) -> anyhow::Result<Exit> {
        let calibration = self.effort.settings(HEADER).calibrate(&signals::interrupt()?)?;
        let text = format!("{}\n{}", calibration.table(), calibration.remarks());
        self.output.give(
            &text,
            || calibration.results.to_json(),
            |out| {
                calibration.results.write_with(out, &[], Duration::ZERO, &calibration.extras())?;
                write(&out.join("samples.csv"), &calibration.samples_table().to_csv())
            },
        )?;
        Ok(Exit::of_results(&calibration.results))
    }
}

impl Effort {
    /// The settings. `header` is the number of bytes of a sample if the options have no number.
    pub fn settings(self, header: u32) -> Settings {
        let settings = Settings {
            mechanism: self.mechanism.into_iter().map(MechanismOption::mechanism).collect(),
            one_in: self.one_in,
            header: self.header.unwrap_or(header),
            repetitions: self.repetitions,
            seconds: self.seconds,
            batch: self.batch,
            length: self.length,
            course: self.course,
            quick: self.quick,
            target: self.bridge.map(|bridge| Target { bridge, folder: self.switch }),
            cpu: self.cpu,
            seed: self.seed,
        };
        if !settings.quick {
            return settings;
        }
        let one_in = vec![10, 3, 1];
        Settings { one_in, repetitions: 5, seconds: 0.3, course: 4, ..settings }
    }
}

/// A way to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum MechanismOption {
    /// Open vSwitch's own sFlow
    OvsSflow,
    /// The kernel clones frames into a VXLAN tunnel to a remote server
    Mirror,
    /// A program receives whole frames, and does not read them
    UserSpace,
    /// A program receives whole frames, and reads every byte
    UserSpaceRead,
    /// Weir's sampler: the first bytes go to a program, which sends sFlow
    Weir,
}

impl MechanismOption {
    fn mechanism(self) -> Mechanism {
        match self {
            MechanismOption::OvsSflow => Mechanism::OvsSflow,
            MechanismOption::Mirror => Mechanism::Mirror,
            MechanismOption::UserSpace => Mechanism::UserSpace,
            MechanismOption::UserSpaceRead => Mechanism::UserSpaceRead,
            MechanismOption::Weir => Mechanism::Weir,
        }
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "not a number of seconds from 0.1 to 3600".to_owned())
}
