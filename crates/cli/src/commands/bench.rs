//! `weir bench`: load and latency of a hypervisor, switch or controller, seen from outside.
//!
//! One file per family of subcommands: [`scenario`] (the comparisons that Weir has to stand), [`run`] (whatever is asked
//! for), [`file`] (a load that changes while it runs), [`search`] (the highest rate), [`provisioning`] (how
//! fast tenants' networks start and move) and [`controller`] (a real controller). Here is what they share.

mod controller;
mod file;
mod hostile;
mod provisioning;
mod run;
mod scenario;
mod search;
mod switch;
pub mod values;

use crate::exit::Exit;
use crate::signals;
use anyhow::Context;
use bench::{Identity, Options, Ruling, Setup, Stop, System, TlsSides, Topology, Verdict};
use report::Finding;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use values::OpenFlow;

/// Measure load and latency of a hypervisor, a switch or a controller, from outside
///
/// Emulated switches on one side and emulated controllers on the other send tagged messages on a fixed schedule around
/// the system under test; each message is accounted for. Latency counts from when a message was meant to leave. stdout is
/// the result, stderr the talk. Exit status 0: all criteria met and nothing wrong; 1: findings; 4: undecided, since the
/// generator was late; 130: ended by Ctrl-C, with what was measured until then.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir bench relay --quick --out results/
  weir bench run --message packet-in --rate 10000,40000 --tenants 1,20 --system direct,weir
  weir bench controller tcp:127.0.0.1:6653 --test latency

See docs/bench.md.")]
pub struct Bench {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// PACKET_IN at 40,000/s through HAProxy and through Weir, 1 and 20 tenants
    Relay(scenario::Scenario),
    /// As many PACKET_INs per second as Weir takes
    Saturation(scenario::Scenario),
    /// 1 to 1,000 tenants at a constant total rate
    Tenants(scenario::Scenario),
    /// A switch that handles 8,000 messages/s, and a neighbour who sends 16,000/s
    IsolationSwitch(scenario::Scenario),
    /// A neighbour who floods 400,000 PACKET_OUTs/s
    IsolationFlood(scenario::Scenario),
    /// Resident memory with 20 tenants and 10,000 rules
    Memory(scenario::Scenario),
    /// Tenants' own networks beside slices: PACKET_IN at 40,000/s, and as much as passes
    Networks(scenario::Scenario),
    /// What following 10,000 flows and telling tenants labels costs, with rules that stand and that change
    Labels(scenario::Scenario),
    /// CPU time per message at 10,000 to 60,000/s and at saturation, beside a relay, and messages of Weir's own
    Work(scenario::Scenario),
    /// The generator itself: as much as passes, 1,000 connections, and how evenly it sends
    Generator(scenario::Scenario),
    Hostile(hostile::HostileCommand),
    Run(run::Run),
    Scenario(file::ScenarioFile),
    Search(search::SearchCommand),
    Provisioning(provisioning::Provisioning),
    Controller(Box<controller::Controller>),
}

impl Bench {
    pub fn run(self) -> anyhow::Result<Exit> {
        use bench::scenarios::Scenario;
        match self.command {
            Command::Relay(it) => it.run(Scenario::Relay),
            Command::Saturation(it) => it.run(Scenario::Saturation),
            Command::Tenants(it) => it.run(Scenario::Tenants),
            Command::IsolationSwitch(it) => it.run(Scenario::IsolationSwitch),
            Command::IsolationFlood(it) => it.run(Scenario::IsolationFlood),
            Command::Memory(it) => it.run(Scenario::Memory),
            Command::Networks(it) => it.run(Scenario::Networks),
            Command::Labels(it) => it.run(Scenario::Labels),
            Command::Work(it) => it.run(Scenario::Work),
            Command::Generator(it) => it.run(Scenario::Generator),
            Command::Hostile(hostile) => hostile.run(),
            Command::Run(run) => run.run(),
            Command::Scenario(file) => file.run(),
            Command::Search(search) => search.run(),
            Command::Provisioning(provisioning) => provisioning.run(),
            Command::Controller(controller) => controller.run(),
        }
    }
}

/// How long, how often.
#[derive(clap::Args)]
struct Effort {
    #[command(flatten)]
    times: Times,
    /// Three runs of three seconds, half a second cut: for a look, not for a verdict
    #[arg(long)]
    quick: bool,
}

/// What may be said of runs one by one.
#[derive(clap::Args)]
pub struct Times {
    /// How often each case is measured, in turn with the others, 1 to 1000 [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: Option<u16>,
    /// Seconds of sending per run, 0.1 to 86400 [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    duration: Option<u64>,
    /// Seconds cut off at each end before figures are drawn [default: 5]
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    cut: Option<u64>,
    /// What random choices are drawn from [default: 1]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
}

/// How the two ends are played.
#[derive(clap::Args)]
struct Ends {
    /// The OpenFlow version
    #[arg(long, value_name = "VERSION", default_value = "1.0")]
    openflow: OpenFlow,
    /// The generator's threads: 1 for both sides, or 2, one for each
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    threads: u8,
    /// Leave it to the scheduler who runs where; by default one thread generates on the first CPU, and a system that is
    /// started runs on the others
    #[arg(long)]
    any_cpu: bool,
    /// Leave Nagle's algorithm on at the generator's sockets (AGG instead of ND)
    #[arg(long)]
    nagle: bool,
    /// The emulated switches speak TLS; their identity as PEM files, as for `ovs-vsctl set-ssl`
    #[arg(long, value_name = "KEY,CERT,CA", value_parser = values::identity)]
    switch_tls: Option<Identity>,
    /// The emulated controllers speak TLS
    #[arg(long, value_name = "KEY,CERT,CA", value_parser = values::identity)]
    controller_tls: Option<Identity>,
    /// Weir's own identity towards them [default: the controllers', else the switches']
    #[arg(long, value_name = "KEY,CERT,CA", value_parser = values::identity)]
    weir_tls: Option<Identity>,
}

impl Ends {
    fn setup(&self) -> Setup {
        let version = self.openflow.version();
        let threads = usize::from(self.threads);
        let (switches, controllers) = (self.switch_tls.clone(), self.controller_tls.clone());
        let own = [&self.weir_tls, &controllers, &switches].into_iter().flatten().next().cloned();
        let tls = TlsSides { switches, controllers, system: own };
        let (nodelay, apart) = (!self.nagle, !self.any_cpu);
        Setup { version, threads, apart, nodelay, tls, ..Setup::new(Topology::Direct, 1) }
    }
}

impl Times {
    /// Puts them in the place of the options' own.
    pub fn apply(&self, options: &mut Options) {
        options.runs = self.runs.map_or(options.runs, usize::from);
        options.duration_ms = self.duration.unwrap_or(options.duration_ms);
        // A short run has short ends, unless somebody says otherwise.
        options.cut_ms = self.cut.unwrap_or(options.cut_ms.min(options.duration_ms / 6));
        options.seed = self.seed.unwrap_or(options.seed);
    }
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
    fn give(&self, verdict: &Verdict) -> anyhow::Result<Exit> {
        let mut text = verdict.table().to_string();
        if !verdict.criteria.is_empty() {
            text += &format!("\n{}", verdict.criteria_table());
        }
        self.give_as(verdict, &text, |out| verdict.write(out))
    }

    /// The same, told in other words.
    pub fn give_as(
        &self,
        verdict: &Verdict,
        text: &str,
        write: impl FnOnce(&Path) -> Result<(), bench::Error>,
    ) -> anyhow::Result<Exit> {
        report::terminal::quiet();
        let mut stdout = std::io::stdout().lock();
        if self.json {
            write!(stdout, "{}", verdict.results.to_json())?;
        } else {
            write!(stdout, "{text}{}", findings(&verdict.results.findings))?;
        }
        if let Some(out) = &self.out {
            write(out)?;
            writeln!(std::io::stderr(), "results: {}", out.join("report.html").display())?;
        }
        Ok(match verdict.ruling() {
            _ if verdict.results.is_partial() => Exit::Interrupted,
            Ruling::Met => Exit::Success,
            Ruling::NotMet => Exit::Finding,
            Ruling::Undecided => Exit::Undecided,
        })
    }
}

/// The first of each kind in full, and how many more there are: a busy machine makes the same remark at every point.
fn findings(all: &[Finding]) -> String {
    let mut codes: Vec<&str> = all.iter().map(|finding| finding.code.as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    let mut text = String::new();
    for code in codes {
        let alike: Vec<_> = all.iter().filter(|finding| finding.code == code).collect();
        if let Some(first) = alike.first() {
            text += &format!("\n{code}: {}\n", first.text);
        }
        if alike.len() > 1 {
            text += &format!(
                "  and {} more of this kind; --json or --out gives all\n",
                alike.len() - 1
            );
        }
    }
    text
}

/// A folder for the systems' configurations and logs; it goes with the command, however that ends.
pub struct Work {
    path: PathBuf,
    stop: Stop,
}

impl Work {
    fn new() -> anyhow::Result<Work> {
        Work::beside(|| {})
    }

    /// When a second signal ends the command at once, `clean_up` is called first.
    pub fn beside(clean_up: impl FnOnce() + Send + 'static) -> anyhow::Result<Work> {
        let path = std::env::temp_dir().join(format!("weir-bench-{}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        let again = path.clone();
        let stop = Stop::default();
        let asked = stop.clone();
        signals::stop_with_children(
            move || asked.ask(),
            move || {
                clean_up();
                remove(&again);
            },
        )?;
        Ok(Work { path, stop })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What a signal asks for.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// A comparison's options.
    fn options(&self, effort: &Effort, ends: &Ends, subject: System) -> Options {
        let mut options = Options { stop: self.stop(), ..Options::new(subject, self.path.clone()) };
        if effort.quick {
            options = options.quick();
        }
        effort.times.apply(&mut options);
        options.setup = ends.setup();
        options
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn remove(path: &Path) {
    // When a signal ends the command, the measurement may just be writing into it: it goes no further than its next
    // word ([`talk`]). Nobody is left to be told about a folder that cannot be removed.
    for _ in 0..50 {
        let _ = fs::remove_dir_all(path);
        if !path.exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// This program's own `serve`, as a command.
pub fn own_serve() -> anyhow::Result<Vec<String>> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    Ok(vec![program.display().to_string(), "serve".to_owned()])
}

/// Says on stderr what is being done: on one line of a terminal, else line by line.
pub fn talk(text: &str) {
    signals::let_end();
    report::terminal::talk(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_of_a_kind_are_told_once() {
        let finding =
            |code: &str, text: &str| Finding { code: code.to_owned(), text: text.to_owned() };
        assert_eq!(findings(&[]), "");
        let all = [finding("late", "a"), finding("leak", "b"), finding("late", "c")];
        let expected =
            "\nlate: a\n  and 1 more of this kind; --json or --out gives all\n\nleak: b\n";
        assert_eq!(findings(&all), expected);
    }
}
