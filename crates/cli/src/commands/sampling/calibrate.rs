//! `weir sampling calibrate`: α and β of each mechanism, measured and fitted here.

use super::text::write;
use crate::exit::Exit;
use crate::out::Output;
use crate::signals;
use agent::ovsdb::LARGEST_HEADER;
use sampling_loop::calibrate::{Mechanism, Settings, Target};
use std::path::PathBuf;
use std::time::Duration;

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
    mechanism: Vec<MechanismOption>,
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
    /// Samples have so many bytes unless others are asked for.
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
    /// A program receives whole frames, and does not look at them
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
