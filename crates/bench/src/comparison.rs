//! Measures several systems or settings in turn, so that other work of the machine disturbs all of them equally.
//! Criteria judge the results.
//!
//! Start reading at [`Comparison`] and [`Comparison::run`].

use crate::Error;
use crate::beside::{Beside, Company};
use crate::control::Control;
use crate::cpus::{self, Cpus};
pub use crate::criterion::Criterion;
use crate::criterion::{self, Judge, Ruling};
use crate::load::{Kind, Load, Plan, Stream};
use crate::measure::{CPU_PER_MESSAGE, Collector, Measurement, OWN_MESSAGES, ceiling};
use crate::outcome::Outcome;
use crate::pacing::{GROUP_NS, Pacing, SPIN_RATE};
use crate::plan::{Setup, Topology};
use crate::probing::PROBE_EVERY_NS;
use crate::real::RealSwitches;
use crate::session::Session;
use crate::stop::Stop;
use crate::system::{Southbound, System, Target};
use report::pace::Pace;
use report::table::number;
use report::{Better, Environment, Histogram, Point, Results, Scalar, Table};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The options of a comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// The number of measurements of each case, in turn with the other cases.
    pub runs: usize,
    /// The sending time of each run, in ms.
    pub duration_ms: u64,
    /// The time that is cut off at each end of a run, in ms.
    pub cut_ms: u64,
    /// The hypervisor to measure, usually [`System::Weir`].
    pub subject: System,
    /// The relay that is compared with the subject.
    pub relay: System,
    /// Further systems for the comparison, which run already.
    pub others: Vec<System>,
    /// The OpenFlow version, the separation of tenants, the threads and so on. The topology and the tenants come from
    /// the case.
    pub setup: Setup,
    /// The seed of random choices.
    pub seed: u64,
    /// The folder of the systems' configurations and logs. The caller makes and removes this folder.
    pub work_dir: PathBuf,
    /// Real switches in place of emulated switches.
    pub switches: Option<Arc<dyn RealSwitches>>,
    /// Changes the load during a run.
    pub control: Option<Arc<Control>>,
    /// Ends the measurement early on request; the result then has the points measured so far.
    pub stop: Stop,
}

impl Options {
    /// Ten runs of thirty seconds, with five seconds cut off at each end, as in the 2017 paper.
    #[must_use]
    pub fn new(subject: System, work_dir: PathBuf) -> Self {
        Self {
            runs: 10,
            duration_ms: 30_000,
            cut_ms: 5_000,
            subject,
            relay: System::Haproxy { program: PathBuf::from("haproxy") },
            others: Vec::new(),
            setup: Setup::new(Topology::Direct, 1),
            seed: 1,
            work_dir,
            switches: None,
            control: None,
            stop: Stop::default(),
        }
    }

    /// A case for each system that is compared on a real switch: switch-only, the relay if there is one tenant, Weir's
    /// slices and networks, and the further systems. With several tenants a relay needs a switch for each tenant.
    pub(crate) fn on_a_real_switch(
        &self,
        parameters: &[(&'static str, Scalar)],
        setup: &Setup,
        load: &Load,
    ) -> Vec<Case> {
        let relay = Some(&self.relay).filter(|_| setup.tenants == 1);
        let (direct, networks) = (System::Direct, self.subject.clone().with_networks());
        let own = [&direct].into_iter().chain(relay).chain([&self.subject, &networks]);
        let case =
            |system: &System| Case::new(system, parameters.to_vec(), setup.clone(), load.clone());
        own.chain(&self.others).map(case).collect()
    }

    /// Three short runs, for a quick look without a verdict.
    #[must_use]
    pub fn quick(mut self) -> Self {
        (self.runs, self.duration_ms, self.cut_ms) = (3, 3_000, 500);
        self
    }
}

/// The result of a comparison.
#[derive(Debug)]
pub struct Verdict {
    /// The content of the results directory.
    pub results: Results,
    /// The raw distributions by name.
    pub histograms: Vec<(String, Histogram)>,
    /// The criteria, with the measured values.
    pub criteria: Vec<Criterion>,
    /// The measured time of a run.
    pub window: Duration,
}

impl Verdict {
    /// The result is met if every criterion is met and no fault was found. Otherwise the result is a finding, or
    /// undecided.
    #[must_use]
    pub fn ruling(&self) -> Ruling {
        criterion::overall(&self.results, &self.criteria)
    }

    /// The table of the measured points, for stdout.
    #[must_use]
    pub fn table(&self) -> Table {
        let columns = [
            ("rate/s", "rate_per_s", 1.0),
            ("p50 µs", "p50_us", 1.0),
            ("p90 µs", "p90_us", 1.0),
            ("p99 µs", "p99_us", 1.0),
            ("p99.9 µs", "p999_us", 1.0),
            ("max µs", "max_us", 1.0),
            ("unanswered %", "unanswered_percent", 1.0),
            ("CPU %", "cpu_percent", 1.0),
            ("CPU µs/message", CPU_PER_MESSAGE, 1.0),
            ("own %", OWN_MESSAGES, 1.0),
            ("MB", "resident_bytes", 1e-6),
            ("busy %", "switch_busy_percent", 1.0),
            ("lag p99 µs", "lag_p99_us", 1.0),
        ];
        self.table_of("case", Point::label, &columns)
    }

    /// A table of the points. The first columns are the system, and the name of the case with this title. Each further
    /// column has a title, and the mean of a metric over the runs, multiplied by a factor.
    pub(crate) fn table_of(
        &self,
        title: &str,
        name: impl Fn(&Point) -> String,
        columns: &[(&str, &str, f64)],
    ) -> Table {
        let titles = columns.iter().map(|&(title, ..)| title);
        let mut table = Table::new(["system", title].into_iter().chain(titles));
        for point in &self.results.points {
            let cells = columns.iter().map(|&(_, metric, factor)| {
                number(point.mean(metric).map_or(f64::NAN, |mean| mean * factor))
            });
            table.row([point.system.clone(), name(point)].into_iter().chain(cells));
        }
        table
    }

    /// The table of the criteria, for stdout.
    #[must_use]
    pub fn criteria_table(&self) -> Table {
        criterion::table(&self.criteria)
    }

    /// Writes the results directory.
    ///
    /// # Errors
    /// [`Error::Report`].
    pub fn write(&self, dir: &Path) -> Result<(), Error> {
        Ok(self.results.write(dir, &self.histograms, self.window)?)
    }
}

/// Takes more samples after a run, while the system still runs.
pub type Afterwards = fn(&mut Collector, &Outcome, &Target);

/// One system under one load.
#[derive(Clone, Debug)]
pub struct Case {
    /// The system. Every run uses a fresh instance of the system.
    pub system: System,
    /// The parameters that distinguish this case from other cases of the same system.
    pub parameters: Vec<(&'static str, Scalar)>,
    /// The setup without the topology, which the system determines.
    pub setup: Setup,
    /// The load.
    pub load: Load,
    /// Takes more samples after each run, if set.
    pub afterwards: Option<Afterwards>,
    /// An attack, viewers of the page, or clients with tokens, if any.
    pub beside: Option<Beside>,
}

impl Case {
    /// The load alone: no further samples are taken, and nothing runs beside the load.
    #[must_use]
    pub fn new(
        system: &System,
        parameters: Vec<(&'static str, Scalar)>,
        setup: Setup,
        load: Load,
    ) -> Self {
        let system = system.clone();
        Self { system, parameters, setup, load, afterwards: None, beside: None }
    }

    /// Checks the case before any system starts.
    ///
    /// # Errors
    /// [`Error::Setting`] naming the setting and its range, [`Error::Arrivals`], [`Error::Tls`].
    pub fn check(&self) -> Result<(), Error> {
        self.setup.check()?;
        if matches!(self.system, System::Direct | System::Haproxy { .. }) {
            self.setup.check_tls_sides(&Topology::Direct)?;
        }
        self.load.check(&self.setup)
    }
}

/// Cases that are measured together, and the criteria for their results.
pub struct Comparison {
    /// The command, for the result.
    pub tool: String,
    /// The cases, which are measured in this order, again and again.
    pub cases: Vec<Case>,
    /// The criteria for the points.
    pub criteria: Judge,
    /// The kind of message for the generator's maximum beside the results.
    pub kind: Kind,
}

impl Comparison {
    /// Measures the load of a scenario file on each of these systems. There are no criteria.
    ///
    /// # Errors
    /// [`Error::Setting`] or [`Error::Arrivals`] for an error in the file.
    pub fn of_plan(plan: &Plan, systems: &[System]) -> Result<Self, Error> {
        let mut kinds = plan.load.streams.iter().flat_map(|stream| &stream.mix);
        let kind = kinds.next().map_or(Kind::Echo, |&(kind, _)| kind);
        let case = |system| {
            let parameters = vec![("tenants", plan.setup.tenants.into())];
            Case::new(system, parameters, plan.setup.clone(), plan.load.clone())
        };
        let cases: Vec<Case> = systems.iter().map(case).collect();
        cases.iter().try_for_each(Case::check)?;
        Ok(Self { tool: "bench".to_owned(), cases, criteria: Box::new(|_| Vec::new()), kind })
    }

    /// Measures all cases, or the cases until the user ends the measurement. `talk` gets the current step.
    ///
    /// # Errors
    /// As [`Session::open`], [`Session::run`] and [`System::start`]; [`Error::Interrupted`] if nothing was measured.
    pub fn run(&self, options: &Options, talk: &mut dyn FnMut(&str)) -> Result<Verdict, Error> {
        let environment = Environment::capture(&[
            ("haproxy", "haproxy", &["-v"]),
            ("openvswitch", "ovs-vswitchd", &["--version"]),
        ]);
        let mut results = Results::new(&self.tool, options.seed, environment);
        settings(&mut results, options);
        if let Some(case) = self.cases.first() {
            let load = &case.load;
            let times = [("duration_ms", load.duration_ms), ("cut_ms", load.cut_ms)];
            let times = times.map(|(name, ms)| (name.to_owned(), Scalar::from(ms)));
            results.settings.extend(times);
        }
        if self.cases.iter().flat_map(|case| &case.load.streams).any(Stream::is_probed) {
            let us = PROBE_EVERY_NS as f64 / 1e3;
            results.settings.insert("first_packet_probe_every_us".to_owned(), us.into());
        }
        let (cases, runs) = (self.cases.len(), options.runs.max(1));
        let wanted = runs * cases;
        let pace = Pace::new(wanted, self.run_time());
        talk(&format!("{cases} cases, {runs} times each: {}", pace.whole()));
        talk("measuring the generator's own ceiling");
        let most = ceiling(&options.setup, self.kind, 1000)?;
        results.settings.insert("generator_ceiling_per_s".to_owned(), most.into());
        talk(&format!("the generator itself can do {}/s of {}", number(most), self.kind.name()));
        let (measured, made) = interleave(&self.cases, options, pace, talk)?;
        if let Some(control) = &options.control {
            results.settings.insert("changes".to_owned(), control.log().join("; ").into());
        }
        if options.stop.is_asked() && made < wanted {
            results.mark_partial(&format!("interrupted: {made} of {wanted} runs were made"));
        }
        let mut histograms = Vec::new();
        for measurement in measured {
            histograms.extend(measurement.histograms);
            results.findings.extend(measurement.findings);
            results.points.push(measurement.point);
        }
        let criteria = criterion::judge(&results, &self.criteria);
        results.findings.extend(criterion::findings(&criteria));
        let longest = self.cases.iter().map(|case| case.load.window_s()).fold(0.0, f64::max);
        let window = Duration::from_secs_f64(longest);
        Ok(Verdict { results, histograms, criteria, window })
    }

    /// The time of one run, with the work before and after the run.
    fn run_time(&self) -> Duration {
        let sends = self.cases.iter().map(|case| case.load.duration_ms).max().unwrap_or(0);
        Duration::from_millis(sends) + AROUND_A_RUN
    }
}

fn settings(results: &mut Results, options: &Options) {
    let switches = options.switches.as_ref().map_or("emulated".to_owned(), |it| it.name());
    let apart = Cpus::of(&options.setup).filter(|_| options.switches.is_none());
    let any = if cpus::is_first() { "any, all first" } else { "any" };
    let pacing = match options.switches {
        None => ("spin_us", options.setup.spin_ns),
        Some(_) => ("group_us", GROUP_NS),
    };
    let settings: [(&str, Scalar); 7] = [
        ("switches", switches.into()),
        ("runs", options.runs.into()),
        ("openflow", if options.setup.version.wire() == 1 { "1.0" } else { "1.3" }.into()),
        ("nodelay", options.setup.nodelay.into()),
        ("generator_threads", options.setup.threads.into()),
        ("cpus", apart.map_or(any.to_owned(), |cpus| cpus.description()).into()),
        (pacing.0, (pacing.1 as f64 / 1e3).into()),
    ];
    results.settings.extend(settings.map(|(name, value)| (name.to_owned(), value)));
    if options.switches.is_some() {
        results.settings.insert("spins_up_to_per_s".to_owned(), SPIN_RATE.into());
    }
}

/// The time to start systems before a run and to end the systems after the run.
const AROUND_A_RUN: Duration = Duration::from_millis(1_500);

/// Measures every case once, then every case again, and so on, so that other work of the machine disturbs all cases
/// equally. Every measurement has a fresh system. Also returns the number of runs.
fn interleave(
    cases: &[Case],
    options: &Options,
    mut pace: Pace,
    talk: &mut dyn FnMut(&str),
) -> Result<(Vec<Measurement>, usize), Error> {
    let mut collectors: Vec<Collector> =
        cases.iter().map(|case| Collector::new(case.system.name(), &case.parameters)).collect();
    let mut failed: Vec<Option<Error>> = cases.iter().map(|_| None).collect();
    let mut made = 0;
    'runs: for run in 0..options.runs.max(1) {
        for ((case, collector), failed) in cases.iter().zip(&mut collectors).zip(&mut failed) {
            let step = pace.step();
            if failed.is_some() {
                continue;
            }
            let label: Vec<String> =
                case.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let (system, label) = (case.system.name(), label.join(" "));
            talk(&format!("run {} of {}: {system} {label} ({step})", run + 1, options.runs));
            let mut counts = measure_once(case, options, run, collector);
            while let Ok(false) = counts {
                talk("the generator fell behind its schedule: once more");
                counts = measure_once(case, options, run, collector);
            }
            match counts {
                Ok(_) => made += 1,
                // The signal that ended the measurement may have ended the system as well.
                Err(_) if options.stop.is_asked() => break 'runs,
                // A fault of one system is a part of the result, and no reason to lose the results of the other
                // systems.
                Err(error @ (Error::Handshake { .. } | Error::System(_))) => {
                    collector.fail(&error);
                    *failed = Some(error);
                }
                Err(error) => return Err(error),
            }
            if options.stop.is_asked() {
                break 'runs;
            }
        }
    }
    if failed.iter().all(Option::is_some)
        && let Some(first) = failed.into_iter().flatten().next()
    {
        return Err(first);
    }
    collectors.retain(|collector| !collector.is_empty());
    if collectors.is_empty() {
        return Err(Error::Interrupted);
    }
    Ok((collectors.into_iter().map(Collector::finish).collect(), made))
}

/// Returns whether the run counts. Otherwise the run is repeated.
fn measure_once(
    case: &Case,
    options: &Options,
    run: usize,
    collector: &mut Collector,
) -> Result<bool, Error> {
    let switches = options.switches.as_deref();
    let mut controllers = case.system.controllers(&case.setup, switches)?;
    let dir = options.work_dir.join(format!("{}-{run}", case.system.name()));
    std::fs::create_dir_all(&dir).map_err(Error::io(dir.display().to_string()))?;
    // A fresh system starts without the state that the previous system stored.
    let _ = std::fs::remove_dir_all(dir.join("state"));
    let setup = case.system.fit(&case.setup);
    let mut target = case.system.start(&setup, &controllers, &dir, switches)?;
    let size = case.system.size(&setup);
    let prepare = |beside| Company::prepare(beside, &setup, &mut controllers, &target);
    let mut company = case.beside.map(prepare).transpose()?;
    let tenants = controllers.addresses().len();
    let setup = Setup { topology: target.topology.clone(), tenants, ..setup };
    let mut session = Session::open_until(setup.clone(), &controllers, options.stop.clone())?;
    if let (Some(switches), Topology::Interfaces { .. }) = (switches, &target.topology) {
        switches.forget(size).map_err(Error::System)?;
    }
    if let Some(company) = &mut company {
        company.begin(&target)?;
    }
    let before = target.southbound();
    let load = Load { seed: options.seed.wrapping_add(run as u64), ..case.load.clone() };
    let pacing =
        matches!(target.topology, Topology::Interfaces { .. }).then(|| Pacing::of(&setup, &load));
    let outcome = session.run_under(&load, &target.pids, options.control.as_deref())?;
    // If the generator has its own CPU and still falls behind, other work of the machine is the reason: such a run is
    // no measurement.
    let is_alone = switches.is_none() && Cpus::of(&case.setup).is_some();
    let is_alone = is_alone && !matches!(case.system, System::External { .. });
    let counts =
        !(is_alone && options.control.is_none() && collector.sets_aside(&outcome, options.runs));
    if let Some(company) = company {
        company.finish(counts.then_some(&mut *collector));
    }
    if counts {
        collector.add(&outcome);
        if let Some(pacing) = pacing {
            collector.sample("spin_us", "µs", Better::Neither, pacing.spin_us());
        }
        if let Some(percent) = before.zip(target.southbound()).and_then(own_percent) {
            collector.sample(OWN_MESSAGES, "%", Better::Lower, percent);
        }
        if let Some(look) = case.afterwards {
            look(collector, &outcome, &target);
        }
    }
    if !target.is_alive() {
        return Err(Error::System(format!("{} ended during the run", case.system.name())));
    }
    Ok(counts)
}

/// The system's own messages per hundred messages of tenants, between two counts.
fn own_percent((before, after): (Southbound, Southbound)) -> Option<f64> {
    let own = after.own - before.own;
    let of_tenants = after.all - before.all - own;
    (of_tenants > 0.0).then(|| own / of_tenants * 100.0)
}
