//! The comparisons that Weir has to stand: each a named scenario that starts its systems, measures
//! them interleaved in one run, and says which criterion was met.
//!
//! A scenario is data: its cases (which system under which load) and its criteria over the points
//! that came out. [`run`] does the rest. They are `weir bench relay`, `saturation`, `tenants`,
//! `isolation-switch`, `isolation-flood` and `memory`.

mod isolation;
mod memory;
mod relay;
mod saturation;
mod tenants;

use crate::measure::{Collector, Measurement, ceiling};
use crate::plan::{Kind, Load, Setup, Topology};
use crate::session::{Controllers, Outcome, Session};
use crate::system::System;
use crate::{Error, observe};
use report::table::number;
use report::{Better, Environment, Finding, Histogram, Point, Results, Scalar, Table};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Which comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// PACKET_IN at 40,000/s through a TCP relay and through Weir, 1 and 20 tenants.
    Relay,
    /// As many PACKET_INs per second as Weir takes.
    Saturation,
    /// 1 to 1,000 tenants at a constant total rate.
    Tenants,
    /// A switch that handles 8,000 messages/s, and a neighbour who sends 16,000/s.
    IsolationSwitch,
    /// A neighbour who floods 400,000 PACKET_OUTs/s.
    IsolationFlood,
    /// Resident memory with 20 tenants and 10,000 rules.
    Memory,
}

impl Scenario {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Relay,
        Self::Saturation,
        Self::Tenants,
        Self::IsolationSwitch,
        Self::IsolationFlood,
        Self::Memory,
    ];

    /// As it is called on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Relay => "relay",
            Self::Saturation => "saturation",
            Self::Tenants => "tenants",
            Self::IsolationSwitch => "isolation-switch",
            Self::IsolationFlood => "isolation-flood",
            Self::Memory => "memory",
        }
    }
}

impl std::str::FromStr for Scenario {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|scenario| scenario.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("{text} is no scenario: must be one of {names}")
        })
    }
}

/// How a scenario is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many times each case is measured, in turn with the others.
    pub runs: usize,
    /// How long is sent in each run, in ms.
    pub duration_ms: u64,
    /// How much is cut off at each end, in ms.
    pub cut_ms: u64,
    /// The hypervisor to measure, usually [`System::Weir`].
    pub subject: System,
    /// The relay to compare it with.
    pub relay: System,
    /// OpenFlow version, slicing, threads and so on; topology and tenants are the scenario's.
    pub setup: Setup,
    /// What random choices are drawn from.
    pub seed: u64,
    /// Where the systems' configurations and logs go. Removed by the caller, who made it.
    pub work_dir: PathBuf,
}

impl Options {
    /// Ten runs of thirty seconds, five cut off at each end, as the 2017 paper did.
    #[must_use]
    pub fn new(subject: System, work_dir: PathBuf) -> Self {
        Self {
            runs: 10,
            duration_ms: 30_000,
            cut_ms: 5_000,
            subject,
            relay: System::Haproxy { program: PathBuf::from("haproxy") },
            setup: Setup::new(Topology::Direct, 1),
            seed: 1,
            work_dir,
        }
    }

    /// Three short runs: for a look, not for a verdict.
    #[must_use]
    pub fn quick(mut self) -> Self {
        (self.runs, self.duration_ms, self.cut_ms) = (3, 3_000, 500);
        self
    }
}

/// A figure that is asked for, and what came out.
#[derive(Clone, Debug, PartialEq)]
pub struct Criterion {
    /// What is asked for.
    pub name: String,
    /// What was measured.
    pub measured: f64,
    /// The limit.
    pub limit: f64,
    /// Whether the limit is the least that will do, rather than the most.
    pub at_least: bool,
}

impl Criterion {
    fn at_most(name: impl Into<String>, measured: Option<f64>, limit: f64) -> Self {
        // What could not be measured is not met.
        let measured = measured.unwrap_or(f64::NAN);
        Self { name: name.into(), measured, limit, at_least: false }
    }

    fn at_least(name: impl Into<String>, measured: Option<f64>, limit: f64) -> Self {
        Self { at_least: true, ..Self::at_most(name, measured, limit) }
    }

    /// Whether it is met.
    #[must_use]
    pub fn is_met(&self) -> bool {
        if self.at_least { self.measured >= self.limit } else { self.measured <= self.limit }
    }
}

/// What a scenario found.
#[derive(Debug)]
pub struct Verdict {
    /// For the results directory.
    pub results: Results,
    /// The raw distributions by name.
    pub histograms: Vec<(String, Histogram)>,
    /// What was asked for and what came out.
    pub criteria: Vec<Criterion>,
    /// A run's measured time.
    pub window: Duration,
}

impl Verdict {
    /// Whether every criterion is met and nothing was wrong: else it is a finding.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.criteria.iter().all(Criterion::is_met) && self.results.findings.is_empty()
    }

    /// The measured points, for stdout.
    #[must_use]
    pub fn table(&self) -> Table {
        let mut table = Table::new([
            "system",
            "case",
            "rate/s",
            "p50 µs",
            "p90 µs",
            "p99 µs",
            "p99.9 µs",
            "max µs",
            "unanswered %",
            "CPU %",
            "MB",
            "busy %",
        ]);
        for point in &self.results.points {
            let cell = |metric: &str| point.mean(metric).map_or_else(|| "–".to_owned(), number);
            let megabytes = point.mean("resident_bytes").map(|bytes| bytes / 1e6);
            table.row([
                point.system.clone(),
                point.label(),
                cell("rate_per_s"),
                cell("p50_us"),
                cell("p90_us"),
                cell("p99_us"),
                cell("p999_us"),
                cell("max_us"),
                cell("unanswered_percent"),
                cell("cpu_percent"),
                megabytes.map_or_else(|| "–".to_owned(), number),
                cell("switch_busy_percent"),
            ]);
        }
        table
    }

    /// The criteria, for stdout.
    #[must_use]
    pub fn criteria_table(&self) -> Table {
        let mut table = Table::new(["criterion", "measured", "limit", ""]);
        for criterion in &self.criteria {
            let sign = if criterion.at_least { "≥" } else { "≤" };
            table.row([
                criterion.name.clone(),
                number(criterion.measured),
                format!("{sign} {}", number(criterion.limit)),
                if criterion.is_met() { "met".to_owned() } else { "NOT MET".to_owned() },
            ]);
        }
        table
    }

    /// Writes the results directory.
    ///
    /// # Errors
    /// [`Error::Report`].
    pub fn write(&self, dir: &Path) -> Result<(), Error> {
        Ok(self.results.write(dir, &self.histograms, self.window)?)
    }
}

/// One system under one load.
struct Case {
    system: System,
    parameters: Vec<(&'static str, Scalar)>,
    setup: Setup,
    load: Load,
    /// Looked at after the run while the system still stands.
    afterwards: Option<fn(&mut Collector, &Outcome, &[u32])>,
}

/// From points to criteria.
type Judge = Box<dyn Fn(&[Point]) -> Vec<Criterion>>;

/// A scenario's cases, and what is asked of their points (in the cases' order).
struct Scene {
    cases: Vec<Case>,
    criteria: Judge,
    /// The kind whose generator ceiling stands beside the results.
    kind: Kind,
}

/// Runs a scenario. `talk` is told what is being done.
///
/// # Errors
/// As [`Session::open`], [`Session::run`] and [`System::start`].
pub fn run(
    scenario: Scenario,
    options: &Options,
    talk: &mut dyn FnMut(&str),
) -> Result<Verdict, Error> {
    let scene = match scenario {
        Scenario::Relay => relay::scene(options),
        Scenario::Saturation => saturation::scene(options),
        Scenario::Tenants => tenants::scene(options),
        Scenario::IsolationSwitch => isolation::switch(options),
        Scenario::IsolationFlood => isolation::flood(options),
        Scenario::Memory => memory::scene(options),
    };
    let environment = Environment::capture(&[
        ("haproxy", "haproxy", &["-v"]),
        ("openvswitch", "ovs-vswitchd", &["--version"]),
    ]);
    let mut results =
        Results::new(&format!("bench {}", scenario.name()), options.seed, environment);
    settings(&mut results, options);
    talk("measuring the generator's own ceiling");
    let most = ceiling(&options.setup, scene.kind, 1000)?;
    results.settings.insert("generator_ceiling_per_s".to_owned(), most.into());
    let measured = interleave(&scene.cases, options, talk)?;
    let mut histograms = Vec::new();
    for measurement in measured {
        histograms.extend(measurement.histograms);
        results.findings.extend(measurement.findings);
        results.points.push(measurement.point);
    }
    let criteria = (scene.criteria)(&results.points);
    for criterion in criteria.iter().filter(|criterion| !criterion.is_met()) {
        results.findings.push(Finding {
            code: "criterion-not-met".to_owned(),
            text: format!(
                "{}: measured {}, limit {}",
                criterion.name,
                number(criterion.measured),
                number(criterion.limit)
            ),
        });
    }
    let window = Duration::from_millis(options.duration_ms - 2 * options.cut_ms);
    Ok(Verdict { results, histograms, criteria, window })
}

fn settings(results: &mut Results, options: &Options) {
    let settings: [(&str, Scalar); 7] = [
        ("runs", options.runs.into()),
        ("duration_ms", options.duration_ms.into()),
        ("cut_ms", options.cut_ms.into()),
        ("openflow", if options.setup.version.wire() == 1 { "1.0" } else { "1.3" }.into()),
        ("nodelay", options.setup.nodelay.into()),
        ("generator_threads", options.setup.threads.into()),
        ("spin_us", (options.setup.spin_ns as f64 / 1e3).into()),
    ];
    results.settings.extend(settings.map(|(name, value)| (name.to_owned(), value)));
}

/// Measures every case once, then every case again, and so on: what the machine does meanwhile
/// meets all of them alike. Every measurement has a fresh system.
fn interleave(
    cases: &[Case],
    options: &Options,
    talk: &mut dyn FnMut(&str),
) -> Result<Vec<Measurement>, Error> {
    let mut collectors: Vec<Collector> =
        cases.iter().map(|case| Collector::new(case.system.name(), &case.parameters)).collect();
    for run in 0..options.runs.max(1) {
        for (case, collector) in cases.iter().zip(&mut collectors) {
            let label: Vec<String> =
                case.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
            talk(&format!(
                "run {} of {}: {} {}",
                run + 1,
                options.runs,
                case.system.name(),
                label.join(" ")
            ));
            measure_once(case, options, run, collector)?;
        }
    }
    Ok(collectors.into_iter().map(Collector::finish).collect())
}

fn measure_once(
    case: &Case,
    options: &Options,
    run: usize,
    collector: &mut Collector,
) -> Result<(), Error> {
    let controllers = Controllers::bind(case.setup.tenants, SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let dir = options.work_dir.join(format!("{}-{run}", case.system.name()));
    std::fs::create_dir_all(&dir).map_err(Error::io(dir.display().to_string()))?;
    // A fresh system starts from nothing: not from what the one before it stored.
    let _ = std::fs::remove_dir_all(dir.join("state"));
    let mut target = case.system.start(&case.setup, &controllers, &dir)?;
    let setup = Setup { topology: target.topology.clone(), ..case.setup.clone() };
    let mut session = Session::open(setup, &controllers)?;
    let load = Load { seed: options.seed.wrapping_add(run as u64), ..case.load.clone() };
    let outcome = session.run(&load, &target.pids)?;
    collector.add(&outcome);
    if let Some(look) = case.afterwards {
        look(collector, &outcome, &target.pids);
    }
    if !target.is_alive() {
        return Err(Error::System(format!("{} ended during the run", case.system.name())));
    }
    Ok(())
}

/// The load of a scenario with the options' times.
fn timed(load: Load, options: &Options) -> Load {
    Load { duration_ms: options.duration_ms, cut_ms: options.cut_ms, ..load }
}

/// A metric's mean at the point of `system` whose parameters include these.
fn mean_of(
    points: &[Point],
    system: &str,
    parameters: &[(&str, Scalar)],
    metric: &str,
) -> Option<f64> {
    find(points, system, parameters)?.mean(metric)
}

fn find<'a>(points: &'a [Point], system: &str, parameters: &[(&str, Scalar)]) -> Option<&'a Point> {
    points.iter().find(|point| {
        point.system == system
            && parameters.iter().all(|(name, value)| point.parameters.get(*name) == Some(value))
    })
}

/// The median over runs of a metric's ratio: `of` over `to`, run by run as they were interleaved.
fn ratio(of: Option<&Point>, to: Option<&Point>, metric: &str) -> Option<f64> {
    let samples = |point: Option<&Point>| Some(point?.metrics.get(metric)?.samples.clone());
    let ratios: Vec<f64> =
        samples(of)?.iter().zip(samples(to)?).map(|(upper, lower)| upper / lower).collect();
    report::stats::median(&ratios)
}

/// The most memory that the system had resident since it was started.
fn peak_memory(collector: &mut Collector, _: &Outcome, pids: &[u32]) {
    let peak: u64 = pids.iter().filter_map(|&pid| observe::resident_peak(pid)).sum();
    collector.sample("resident_peak_bytes", "bytes", Better::Lower, peak as f64);
}
