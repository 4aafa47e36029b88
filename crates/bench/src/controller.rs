//! `weir bench controller`: a real controller, measured by emulated switches that dial it.
//!
//! cbench's latency and throughput modes, with every PACKET_IN matched to its own answer, and the
//! benchmarks of RFC 8456 that can be seen from the control channel alone: message processing time
//! (5.1.2) and rate (5.1.3), control sessions (5.2.1), exception handling (5.3.1) and denial of
//! service (5.3.2). What needs a network of switches or a northbound API is not here.
//!
//! As the RFC asks, each test is at least ten trials, reported as mean and sample variance with all
//! settings.

use crate::arrivals::Arrivals;
use crate::load::{Kind, Load, Stream};
use crate::measure::{Collector, Measurement};
use crate::plan::{Setup, SwitchModel, Topology, Version};
use crate::search::{Goal, Search};
use crate::session::{Controllers, Session};
use crate::{Error, Verdict};
use report::{Better, Environment, Finding, Histogram, Results, Scalar};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// One benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// One message in flight per switch: cbench's latency mode, RFC 8456 section 5.1.2.
    Latency,
    /// As many in flight as asked for: cbench's throughput mode.
    Throughput,
    /// The highest rate and the highest loss-free rate, RFC 8456 section 5.1.3.
    Rate,
    /// How many switches it holds at once, RFC 8456 section 5.2.1.
    Sessions,
    /// Latency at a steady rate with 0, 1 and 2 % malformed messages, RFC 8456 section 5.3.1.
    Exceptions,
    /// Latency at a steady rate while others connect and talk nonsense, RFC 8456 section 5.3.2.
    DenialOfService,
}

impl Test {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Latency,
        Self::Throughput,
        Self::Rate,
        Self::Sessions,
        Self::Exceptions,
        Self::DenialOfService,
    ];

    /// As it is called on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Throughput => "throughput",
            Self::Rate => "rate",
            Self::Sessions => "sessions",
            Self::Exceptions => "exceptions",
            Self::DenialOfService => "denial-of-service",
        }
    }
}

impl std::str::FromStr for Test {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|test| test.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("{text} is no controller benchmark: must be one of {names}")
        })
    }
}

/// What is measured, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerPlan {
    /// What results call it.
    pub name: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// Its process, when it is on this machine.
    pub pid: Option<u32>,
    /// The OpenFlow version.
    pub version: Version,
    /// How many emulated switches there are.
    pub switches: usize,
    /// How many hosts each switch has.
    pub macs: u32,
    /// How often each test is repeated; the RFC wants ten at least.
    pub trials: usize,
    /// How long one trial sends, in ms.
    pub trial_ms: u64,
    /// Messages in flight per switch in the throughput test.
    pub outstanding: u32,
    /// Messages per second in total in the tests at a steady rate.
    pub steady_rate: f64,
    /// The highest rate that the search tries, per second in total.
    pub highest_rate: f64,
    /// The most sessions that are tried.
    pub most_sessions: usize,
    /// What random choices are drawn from.
    pub seed: u64,
}

impl ControllerPlan {
    /// cbench's defaults where it has them: 16 switches; here with 100 hosts each.
    #[must_use]
    pub fn new(name: &str, address: SocketAddr, version: Version) -> Self {
        Self {
            name: name.to_owned(),
            address,
            pid: None,
            version,
            switches: 16,
            macs: 100,
            trials: 10,
            trial_ms: 3_000,
            outstanding: 100,
            steady_rate: 500.0,
            highest_rate: 500_000.0,
            most_sessions: 1_000,
            seed: 1,
        }
    }

    fn setup(&self, switches: usize) -> Setup {
        let switch = SwitchModel { macs: self.macs, ..SwitchModel::default() };
        let topology = Topology::Controller { address: self.address };
        Setup { version: self.version, switch, ..Setup::new(topology, switches) }
    }

    /// An open session whose hosts the controller has learned.
    fn session(&self) -> Result<Session, Error> {
        let mut session = Session::open(self.setup(self.switches), &Controllers::none())?;
        // What the controller does on connecting is not what is measured, nor is learning hosts.
        let warm_up = Load { drain_ms: 500, ..self.closed(1, 500) };
        session.run(&warm_up, &[])?;
        Ok(session)
    }

    fn closed(&self, outstanding: u32, duration_ms: u64) -> Load {
        let arrivals = Arrivals::Closed { outstanding };
        let stream = |switch| Stream::new(switch, Kind::Response, arrivals.clone());
        Load::new((0..self.switches).map(stream).collect(), duration_ms)
    }

    fn steady(&self) -> Load {
        Load {
            seed: self.seed,
            ..Load::constant(Kind::Response, self.switches, self.steady_rate, self.trial_ms)
        }
    }

    /// Runs these benchmarks. `talk` is told what is being done.
    ///
    /// # Errors
    /// [`Error::Handshake`] when the controller does not talk to the switches, otherwise as
    /// [`Session::run`].
    pub fn run(&self, tests: &[Test], talk: &mut dyn FnMut(&str)) -> Result<Verdict, Error> {
        let environment =
            Environment::capture(&[("ovs-testcontroller", "ovs-testcontroller", &["--version"])]);
        let mut results = Results::new("bench controller", self.seed, environment);
        results.settings.extend(self.settings());
        if self.trials < 10 {
            results.findings.push(Finding {
                code: "few-trials".to_owned(),
                text: format!("{} trials: RFC 8456 asks for at least 10", self.trials),
            });
        }
        let mut histograms: Vec<(String, Histogram)> = Vec::new();
        for &test in tests {
            talk(&format!("{} of {}", test.name(), self.name));
            for measurement in self.measure(test, talk)? {
                histograms.extend(measurement.histograms);
                results.findings.extend(measurement.findings);
                results.points.push(measurement.point);
            }
        }
        let window = Duration::from_millis(self.trial_ms);
        Ok(Verdict { results, histograms, criteria: Vec::new(), window })
    }

    fn settings(&self) -> [(String, Scalar); 8] {
        let version = if self.version == Version::V1_0 { "1.0" } else { "1.3" };
        [
            ("openflow", version.into()),
            ("controller", self.address.to_string().into()),
            ("switches", self.switches.into()),
            ("macs_per_switch", self.macs.into()),
            ("trials", self.trials.into()),
            ("trial_ms", self.trial_ms.into()),
            ("outstanding", self.outstanding.into()),
            ("steady_rate_per_s", self.steady_rate.into()),
        ]
        .map(|(name, value): (&str, Scalar)| (name.to_owned(), value))
    }

    fn measure(&self, test: Test, talk: &mut dyn FnMut(&str)) -> Result<Vec<Measurement>, Error> {
        let steady = [("test", Scalar::from(test.name()))];
        match test {
            Test::Latency => Ok(vec![self.repeat(&steady, &self.closed(1, self.trial_ms))?]),
            Test::Throughput => {
                Ok(vec![self.repeat(&steady, &self.closed(self.outstanding, self.trial_ms))?])
            }
            Test::Rate => Ok(vec![self.rate()?]),
            Test::Sessions => Ok(vec![self.sessions(talk)?]),
            Test::Exceptions => {
                [0.0, 1.0, 2.0].into_iter().map(|part| self.exceptions(part)).collect()
            }
            Test::DenialOfService => {
                [0, 1000].into_iter().map(|intruders| self.denial(intruders)).collect()
            }
        }
    }

    fn pids(&self) -> Vec<u32> {
        self.pid.iter().copied().collect()
    }

    fn repeat(&self, parameters: &[(&str, Scalar)], load: &Load) -> Result<Measurement, Error> {
        let mut session = self.session()?;
        let mut collector = Collector::new(&self.name, parameters);
        for _ in 0..self.trials.max(1) {
            collector.add(&session.run(load, &self.pids())?);
        }
        Ok(collector.finish())
    }

    fn rate(&self) -> Result<Measurement, Error> {
        let mut collector = Collector::new(&self.name, &[("test", Test::Rate.name().into())]);
        let mut session = self.session()?;
        for _ in 0..self.trials.max(1) {
            for (goal, name) in
                [(Goal::Highest, "highest_rate_per_s"), (Goal::LossFree, "loss_free_rate_per_s")]
            {
                let search = Search {
                    kind: Kind::Response,
                    tenants: self.switches,
                    low: 100.0,
                    high: self.highest_rate,
                    resolution: 0.05,
                    trial_ms: self.trial_ms.min(1_000),
                    goal,
                };
                let found = search.run(&mut session)?;
                collector.sample(name, "1/s", Better::Higher, found.rate.unwrap_or(0.0));
            }
        }
        Ok(collector.finish())
    }

    /// Doubles the number of switches until one is not taken, or the most is reached.
    fn sessions(&self, talk: &mut dyn FnMut(&str)) -> Result<Measurement, Error> {
        let mut collector = Collector::new(&self.name, &[("test", Test::Sessions.name().into())]);
        let mut held = 0;
        let mut wanted = 1;
        loop {
            wanted = wanted.min(self.most_sessions);
            talk(&format!("{wanted} sessions"));
            match Session::open(self.setup(wanted), &Controllers::none()) {
                Ok(mut session) => {
                    // Taken is not held: every one of them has to be answered once more.
                    let rate = wanted as f64;
                    let load = Load::constant(Kind::Response, wanted, rate, 1000);
                    let counts = session.run(&load, &[])?.counts();
                    if counts.unanswered() + counts.blocked > 0 {
                        break;
                    }
                    held = wanted;
                }
                Err(Error::Handshake { ready, .. }) => {
                    held = held.max(ready);
                    break;
                }
                Err(error) => return Err(error),
            }
            if wanted == self.most_sessions {
                break;
            }
            wanted *= 2;
        }
        collector.sample("sessions", "", Better::Higher, held as f64);
        Ok(collector.finish())
    }

    fn exceptions(&self, percent: f64) -> Result<Measurement, Error> {
        let mut load = self.steady();
        if percent > 0.0 {
            let rate = self.steady_rate * percent / 100.0;
            let malformed =
                Stream::new(0, Kind::Malformed, Arrivals::Constant { rate }).as_background();
            load.streams.push(malformed);
            // Nothing comes back for these, so the end cannot be seen.
            load.drain_ms = 500;
        }
        let parameters =
            [("test", Test::Exceptions.name().into()), ("malformed_percent", percent.into())];
        self.repeat(&parameters, &load)
    }

    fn denial(&self, intruders_per_s: u64) -> Result<Measurement, Error> {
        let parameters = [
            ("test", Test::DenialOfService.name().into()),
            ("connections_per_s", (intruders_per_s as f64).into()),
        ];
        let intruder =
            (intruders_per_s > 0).then(|| Intruder::start(self.address, intruders_per_s));
        let mut measurement = self.repeat(&parameters, &self.steady())?;
        if let Some(intruder) = intruder {
            let connections =
                report::Metric::new("", Better::Neither, vec![intruder.stop() as f64]);
            measurement.point.metrics.insert("intruding_connections".to_owned(), connections);
        }
        Ok(measurement)
    }
}

/// Connects again and again, says something that is no OpenFlow, and leaves.
struct Intruder {
    stop: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Intruder {
    fn start(address: SocketAddr, per_second: u64) -> Self {
        let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let gap = Duration::from_nanos(1_000_000_000 / per_second.max(1));
        let shared = (Arc::clone(&stop), Arc::clone(&count));
        let thread = std::thread::spawn(move || {
            let (stop, count) = shared;
            while !stop.load(Ordering::Relaxed) {
                if let Ok(mut stream) =
                    TcpStream::connect_timeout(&address, Duration::from_millis(100))
                {
                    // Whether the controller has hung up already is its own affair.
                    let _ = stream.write_all(&[0xff; 64]);
                    count.fetch_add(1, Ordering::Relaxed);
                }
                std::thread::sleep(gap);
            }
        });
        Self { stop, count, thread: Some(thread) }
    }

    fn stop(self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

impl Drop for Intruder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
