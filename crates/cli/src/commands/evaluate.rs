//! `weir evaluate`: what a switch really does.
//!
//! One subcommand per experiment. Here is what they share: effort, output, and one run of experiments on one switch;
//! [`target`] finds or makes the switch, [`modules`] has each experiment's own options.

mod all;
mod modules;
#[cfg(feature = "scripts")]
mod own;
mod target;

use crate::exit::Exit;
use crate::signals;
use evaluate::modules::Timestamp;
use evaluate::{Common, Evaluation, Experiment, RunOptions};
use lab::Interrupted;
use modules::Build;
use report::pace::left_after;
use report::terminal::{quiet, talk};
use report::{Environment, Extras};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};
pub use target::{Target, data_port};

/// Measure what a switch really does, from outside
///
/// Experiments send OpenFlow messages over the control channel and probes through the switch's ports, and see from
/// the data plane what became true and when. stdout is the result, stderr the talk. The switch's flow tables are left
/// as they were found. Exit status 0: nothing wrong; 1: findings, such as a barrier that lies.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  weir evaluate insert                           a private Open vSwitch on this machine (root)
  weir evaluate insert --switch emulated --fault barrier-lies=50
  weir evaluate all --switch listen:0.0.0.0:6653 --channel eth1=1 --channel eth2=2 --out sheet/

See docs/evaluate.md.")]
pub struct Evaluate {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Add entries: until sent, until the barrier reply, until packets pass; does the barrier lie?
    Insert(One<modules::Insert>),
    /// Modify entries that drop so that they forward
    Change(One<modules::Change>),
    /// Delete entries, until traffic really stops
    Delete(One<modules::Delete>),
    /// Change entries while statistics are polled
    Interaction(One<modules::Interaction>),
    /// Delay, deviation and loss of forwarding and of each modification
    Modify(One<modules::Modify>),
    /// How many entries fit, and the time of an insertion as the table fills
    Capacity(One<modules::Capacity>),
    /// Latency and loss of PACKET_IN against rate, and the highest rate without loss
    PacketIn(One<modules::PacketIn>),
    /// The same for PACKET_OUT
    PacketOut(One<modules::PacketOut>),
    /// Time of ECHO replies against rate, and the highest rate at which all are answered
    Echo(One<modules::Echo>),
    /// The same for BARRIER
    Barrier(One<modules::Barrier>),
    /// What polling of statistics costs
    Statistics(One<modules::Statistics>),
    /// Delay from port to port against rate and frame size
    PathDelay(One<modules::PathDelay>),
    /// From a link's change until its PORT_STATUS
    PortStatus(One<modules::PortStatus>),
    /// Delay and rate of each queue of the receiving port
    Queue(One<modules::Queue>),
    /// How precise the tool's own capture is
    Timestamp(One<modules::Timestamp>),
    All(all::All),
    #[cfg(feature = "scripts")]
    Run(own::Run),
}

impl Evaluate {
    pub fn run(self) -> anyhow::Result<Exit> {
        match self.command {
            Command::Insert(it) => it.run(),
            Command::Change(it) => it.run(),
            Command::Delete(it) => it.run(),
            Command::Interaction(it) => it.run(),
            Command::Modify(it) => it.run(),
            Command::Capacity(it) => it.run(),
            Command::PacketIn(it) => it.run(),
            Command::PacketOut(it) => it.run(),
            Command::Echo(it) => it.run(),
            Command::Barrier(it) => it.run(),
            Command::Statistics(it) => it.run(),
            Command::PathDelay(it) => it.run(),
            Command::PortStatus(it) => it.run(),
            Command::Queue(it) => it.run(),
            Command::Timestamp(it) => it.run(),
            Command::All(all) => all.run(),
            #[cfg(feature = "scripts")]
            Command::Run(own) => own.run(),
        }
    }
}

/// One experiment with everything around it.
#[derive(clap::Args)]
struct One<T: clap::Args> {
    #[command(flatten)]
    own: T,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    effort: Effort,
    #[command(flatten)]
    output: Output,
}

impl<T: clap::Args + Build> One<T> {
    fn run(self) -> anyhow::Result<Exit> {
        if let Some(wrong) = self.target.wrong() {
            return Ok(Exit::usage(&wrong));
        }
        let common = self.effort.common();
        let experiment = match self.own.build(common, self.effort.quick) {
            Ok(experiment) => experiment,
            Err(error) => return Ok(Exit::usage(&error)),
        };
        let tool = format!("evaluate {}", experiment.name());
        let evaluation =
            measure(&tool, &self.target, &self.effort, &self.effort.floor(), &[experiment])?;
        self.output.give(&evaluation)
    }
}

/// How much of it.
#[derive(clap::Args)]
pub struct Effort {
    /// How often each case is measured, 1 to 10000 [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repetitions: Option<u32>,
    /// Probes per second
    #[arg(long, value_name = "RATE", default_value = "12500", value_parser = rate)]
    rate: f64,
    /// Bytes of a probe, without the frame check sequence, 60 to 9000
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u16).range(60..=9000))]
    length: u16,
    /// Seconds that the switch has for any step, 1 to 600
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=600))]
    patience: u16,
    /// Three repetitions and fewer cases: for a look, not for a verdict
    #[arg(long)]
    quick: bool,
}

impl Effort {
    pub fn common(&self) -> Common {
        Common {
            repetitions: self.repetitions.unwrap_or(if self.quick { 3 } else { 10 }),
            rate: self.rate,
            length: self.length.into(),
            patience: u64::from(self.patience) * 1_000_000_000,
        }
    }
}

impl Effort {
    /// Whether it is for a look only.
    pub fn is_quick(&self) -> bool {
        self.quick
    }

    /// A second of probes on looped interfaces.
    pub fn floor(&self) -> Timestamp {
        Timestamp { common: self.common(), duration: 1_000_000_000 }
    }
}

/// Probes per second.
fn rate(text: &str) -> Result<f64, String> {
    let rate: Option<f64> = text.parse().ok().filter(|rate| (1.0..=10_000_000.0).contains(rate));
    rate.ok_or_else(|| "not a number of probes per second within 1 to 10000000".to_owned())
}

/// What becomes of the results.
#[derive(clap::Args)]
pub struct Output {
    /// Write result.json, raw histograms, CSV and report.html here
    #[arg(long, value_name = "DIR", value_parser = crate::out::folder)]
    out: Option<PathBuf>,
    /// Print result.json instead of tables
    #[arg(long)]
    json: bool,
}

impl Output {
    /// Prints and writes what was found.
    fn give(&self, evaluation: &Evaluation) -> anyhow::Result<Exit> {
        self.give_with(evaluation, Extras::default())
    }

    /// The same with tables and figures of its own.
    pub fn give_with(&self, evaluation: &Evaluation, extras: Extras) -> anyhow::Result<Exit> {
        quiet();
        let mut stdout = std::io::stdout().lock();
        if self.json {
            write!(stdout, "{}", evaluation.results.to_json())?;
        } else {
            for (heading, table) in &extras.tables {
                writeln!(stdout, "{heading}\n{table}")?;
            }
            write!(stdout, "{}", evaluation.table())?;
            for finding in &evaluation.results.findings {
                writeln!(stdout, "\n{}: {}", finding.code, finding.text)?;
            }
        }
        self.write(evaluation, extras)?;
        Ok(Exit::of_results(&evaluation.results))
    }

    /// Writes the results directory, if one was asked for.
    fn write(&self, evaluation: &Evaluation, extras: Extras) -> anyhow::Result<()> {
        if let Some(out) = &self.out {
            evaluation.write(out, extras)?;
            writeln!(std::io::stderr(), "results: {}", out.join("report.html").display())?;
        }
        Ok(())
    }
}

/// Runs experiments one after another on one switch; first of all the tool's own floor, where it can be measured.
pub fn measure(
    tool: &str,
    target: &Target,
    effort: &Effort,
    floor: &Timestamp,
    experiments: &[Box<dyn Experiment>],
) -> anyhow::Result<Evaluation> {
    let interrupt = signals::interrupt()?;
    let options = RunOptions::new(interrupt.flag());
    let peers: &[(&str, &str, &[&str])] = &[("openvswitch", "ovs-vswitchd", &["--version"])];
    let mut evaluation = Evaluation::new(tool, environment(peers));
    let settings = &mut evaluation.results.settings;
    settings.insert("repetitions".to_owned(), effort.common().repetitions.into());
    settings.insert("rate".to_owned(), effort.rate.into());
    settings.insert("length".to_owned(), u32::from(effort.length).into());
    let mut bed = target.open()?;
    if let Some(looped) = &mut bed.looped {
        talk("floor: two looped interfaces");
        let outcome = step(evaluate::run(looped.as_mut(), floor.module().as_mut(), &options))?;
        evaluation.add("tool", "floor", &outcome);
    }
    let mut testbed = bed.connect()?;
    evaluation.describe(testbed.as_ref());
    let count = experiments.len();
    let start = Instant::now();
    for (index, experiment) in experiments.iter().enumerate() {
        let name = experiment.name();
        talk(&format!("{name} ({} of {count}{})", index + 1, left(index, count, start.elapsed())));
        bed.prepare(name)?;
        let mut module = experiment.module();
        let outcome = match evaluate::run(testbed.as_mut(), module.as_mut(), &options) {
            // Of this one there is nothing, but of others.
            Err(evaluate::Error::Interrupted) if index > 0 => None,
            outcome => Some(step(outcome)?),
        };
        let is_whole = outcome.as_ref().is_some_and(|outcome| outcome.partial.is_none());
        if let Some(outcome) = outcome {
            let system = testbed.bench().name.clone();
            evaluation.add(&system, name, &outcome);
        }
        if interrupt.is_asked() && (index + 1 < count || !is_whole) {
            let text = format!("interrupted in experiment {} of {count}, {name}", index + 1);
            evaluation.results.mark_partial(&text);
            break;
        }
    }
    testbed.finish()?;
    Ok(evaluation)
}

/// How long the rest takes, if it is like what is done; how long an experiment takes is the switch's own.
fn left(done: usize, count: usize, elapsed: Duration) -> String {
    if done == 0 {
        return ", at most 10 min each".to_owned();
    }
    left_after(done, count, elapsed)
}

/// The machine and the command, without what lets us into the switch's SNMP agent.
fn environment(peers: &[(&str, &str, &[&str])]) -> Environment {
    let mut environment = Environment::capture(peers);
    let mut is_agent = false;
    for word in &mut environment.command {
        let start = if word.starts_with("--snmp=") { "--snmp=".len() } else { 0 };
        if is_agent || start > 0 {
            let place = word[start..].split(',').next().unwrap_or_default();
            *word = format!("{}{place},...", &word[..start]);
        }
        is_agent = word == "--snmp";
    }
    environment
}

/// The wish to end is no failure.
fn step<T>(result: evaluate::Result<T>) -> anyhow::Result<T> {
    result.map_err(|error| match error {
        evaluate::Error::Interrupted => Interrupted.into(),
        other => other.into(),
    })
}
