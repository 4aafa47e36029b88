//! One quiet tenant beside 19 hostile ones, hostile strangers and hostile clients of the REST interface: each attack in
//! turn, and all together.
//!
//! The quiet tenant is measured as in every other comparison ([`crate::Session`]); the hostile ones are one more thread
//! (`crowd`) with `tenants`, `strangers` and `clients`; `watch` looks at the process meanwhile.
//!
//! Start reading at [`Attack`] and [`Hostile::comparison`].

mod clients;
mod crowd;
mod strangers;
mod tenants;
mod watch;

use crate::arrivals::Arrivals;
use crate::comparison::{Case, Comparison, Criterion, Options, Verdict};
use crate::conn::Conn;
use crate::cpus::Cpus;
use crate::load::{Kind, Load, Stream};
use crate::measure::Collector;
use crate::outcome::Outcome;
use crate::plan::{Setup, Topology};
use crate::session::Controllers;
use crate::system::{System, Target};
use crate::wire::{HEADER_LEN, be16};
use crate::{Error, observe};
use crowd::{Crowd, Orders};
use report::table::number;
use report::{Better, Point, Scalar, Table};
use std::time::Duration;
use watch::Watcher;

/// The quiet tenant and the hostile ones.
pub const TENANTS: usize = 20;
/// The quiet tenant's messages of each kind per second.
const RATE: f64 = 500.0;
/// What the quiet tenant sends and gets.
const KINDS: [Kind; 2] = [Kind::Echo, Kind::PacketIn];
/// By how much the quiet tenant's p99 may be above that of alone, in µs.
const P99_LIMIT_US: f64 = 5_000.0;
const MEMORY_LIMIT_BYTES: f64 = 256e6;
const LOG_LIMIT_PER_S: f64 = 10.0;

/// How long a real switch has to clear away the rules of the case before.
const SETTLING: Duration = Duration::from_secs(1);

/// What the hostile ones do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// Nothing: what is measured is the quiet tenant alone.
    None,
    /// FLOW_MODs that modify all of a tenant's rules.
    ModifyAll,
    /// FLOW_MODs that add with CHECK_OVERLAP.
    CheckOverlap,
    /// FLOW_MODs that delete, and match nothing.
    DeleteNothing,
    /// FLOW_MODs that delete by a cookie that no rule has.
    DeleteCookie,
    /// Requests whose answers are not read.
    SlowReaders,
    /// Controllers that say HELLO and close.
    HelloAndClose,
    /// Strangers who play switches, whose statistics never end.
    EndlessStatistics,
    /// Strangers who play switches that have ever new ports.
    NewPorts,
    /// Connections at the switches' port that say nothing.
    Silent,
    /// Half-sent requests to the REST interface, and event subscribers who do not read.
    Api,
    /// All of these at once.
    All,
}

impl Attack {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::None,
        Self::ModifyAll,
        Self::CheckOverlap,
        Self::DeleteNothing,
        Self::DeleteCookie,
        Self::SlowReaders,
        Self::HelloAndClose,
        Self::EndlessStatistics,
        Self::NewPorts,
        Self::Silent,
        Self::Api,
        Self::All,
    ];

    /// As it is called on the command line and in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ModifyAll => "modify-all",
            Self::CheckOverlap => "check-overlap",
            Self::DeleteNothing => "delete-nothing",
            Self::DeleteCookie => "delete-cookie",
            Self::SlowReaders => "slow-readers",
            Self::HelloAndClose => "hello-and-close",
            Self::EndlessStatistics => "endless-statistics",
            Self::NewPorts => "new-ports",
            Self::Silent => "silent",
            Self::Api => "api",
            Self::All => "all",
        }
    }

    /// Those that hostile tenants make, rather than strangers.
    const OF_TENANTS: [Self; 6] = [
        Self::ModifyAll,
        Self::CheckOverlap,
        Self::DeleteNothing,
        Self::DeleteCookie,
        Self::SlowReaders,
        Self::HelloAndClose,
    ];

    /// What tenant `index` does, where this is the attack.
    fn of_tenant(self, index: usize) -> Self {
        match self {
            Self::All => {
                let place = index.checked_rem(Self::OF_TENANTS.len()).unwrap_or(0);
                Self::OF_TENANTS.get(place).copied().unwrap_or(Self::None)
            }
            other if Self::OF_TENANTS.contains(&other) => other,
            _ => Self::None,
        }
    }

    fn includes(self, other: Self) -> bool {
        self == other || self == Self::All
    }

    fn needs_rules(self) -> bool {
        matches!(
            self,
            Self::ModifyAll | Self::CheckOverlap | Self::DeleteNothing | Self::DeleteCookie
        )
    }
}

impl std::str::FromStr for Attack {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|attack| attack.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("{text} is no attack: must be one of {names}")
        })
    }
}

/// What a case has beside its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    /// The attack.
    pub attack: Attack,
    /// Rules of each hostile tenant that attacks by means of them.
    pub rules: u32,
}

/// What is measured.
#[derive(Clone, Debug)]
pub struct Hostile {
    /// The attacks; [`Attack::None`] is measured in any case.
    pub attacks: Vec<Attack>,
    /// The systems. The criteria are about the first.
    pub systems: Vec<System>,
    /// Rules of each hostile tenant.
    pub rules: u32,
}

impl Hostile {
    /// The comparison.
    ///
    /// # Errors
    /// [`Error::Setting`] naming the setting and its range.
    pub fn comparison(&self, options: &Options) -> Result<Comparison, Error> {
        let mut attacks = vec![Attack::None];
        attacks.extend(self.attacks.iter().filter(|attack| **attack != Attack::None));
        let mut cases = Vec::new();
        for &attack in &attacks {
            for system in &self.systems {
                // A REST interface is known of those systems alone that are started here.
                if attack == Attack::Api && !matches!(system, System::Weir { .. }) {
                    continue;
                }
                cases.push(self.case(system, attack, options));
            }
        }
        cases.iter().try_for_each(Case::check)?;
        let subject = self.systems.first().map_or("", System::name).to_owned();
        let criteria = Box::new(move |points: &[Point]| {
            attacks.iter().flat_map(|&attack| criteria(points, &subject, attack)).collect()
        });
        Ok(Comparison { tool: "bench hostile".to_owned(), cases, criteria, kind: Kind::PacketIn })
    }

    fn case(&self, system: &System, attack: Attack, options: &Options) -> Case {
        let stream = |kind| Stream::new(0, kind, Arrivals::Constant { rate: RATE });
        let load = Load::new(KINDS.map(stream).to_vec(), options.duration_ms);
        Case {
            system: system.clone(),
            parameters: vec![("attack", attack.name().into())],
            setup: Setup { tenants: TENANTS, bound_to_switch: true, ..options.setup.clone() },
            load: Load { cut_ms: options.cut_ms, ..load },
            afterwards: Some(by_kind),
            beside: Some(Beside { attack, rules: self.rules }),
        }
    }
}

const NAMES: [[&str; 3]; 2] = [
    ["echo_p50_us", "echo_p99_us", "echo_max_us"],
    ["packet_in_p50_us", "packet_in_p99_us", "packet_in_max_us"],
];

/// The quiet tenant's latency by message, and the most memory.
fn by_kind(collector: &mut Collector, outcome: &Outcome, target: &Target) {
    for (kind, latency) in &outcome.by_kind {
        let names = KINDS.iter().position(|it| it == kind).and_then(|place| NAMES.get(place));
        for (name, percent) in names.into_iter().flatten().zip([50.0, 99.0, 100.0]) {
            if let Some(ns) = latency.percentile(percent) {
                collector.sample(name, "µs", Better::Lower, ns as f64 / 1e3);
            }
        }
    }
    let peaks: Vec<u64> =
        target.pids.iter().filter_map(|&pid| observe::resident_peak(pid)).collect();
    if !peaks.is_empty() {
        let peak: u64 = peaks.iter().sum();
        collector.sample("resident_peak_bytes", "bytes", Better::Lower, peak as f64);
    }
}

fn criteria(points: &[Point], subject: &str, attack: Attack) -> Vec<Criterion> {
    let parameters = |attack: Attack| [("attack", Scalar::from(attack.name()))];
    let of = |attack, metric: &str| {
        crate::scenarios::mean_of(points, subject, &parameters(attack), metric)
    };
    let name = attack.name();
    let mut criteria = Vec::new();
    if attack != Attack::None {
        for (kind, [_, p99, _]) in KINDS.iter().zip(NAMES) {
            let more = of(attack, p99).zip(of(Attack::None, p99));
            let title = format!("{name}: {} p99 beside − alone, µs", kind.name());
            let more = more.map(|(beside, alone)| beside - alone);
            criteria.push(Criterion::at_most(title, more, P99_LIMIT_US));
        }
    }
    let unanswered = of(attack, "unanswered_percent");
    criteria.push(Criterion::at_most(
        format!("{name}: the tenant's unanswered, %"),
        unanswered,
        0.0,
    ));
    for (title, metric, limit) in [
        ("most memory resident, bytes", "resident_peak_bytes", MEMORY_LIMIT_BYTES),
        ("log lines per second", "log_lines_per_s", LOG_LIMIT_PER_S),
        ("health unanswered", "health_unanswered", 0.0),
    ] {
        // Of a system that runs elsewhere nothing is known but what the quiet tenant feels.
        if let Some(measured) = of(attack, metric) {
            criteria.push(Criterion::at_most(format!("{name}: {title}"), Some(measured), limit));
        }
    }
    criteria
}

/// The measured points, for stdout.
#[must_use]
pub fn table(verdict: &Verdict) -> Table {
    const US: f64 = 1.0;
    let columns = [
        ("ECHO p50 µs", "echo_p50_us", US),
        ("p99", "echo_p99_us", US),
        ("max", "echo_max_us", US),
        ("PACKET_IN p50 µs", "packet_in_p50_us", US),
        ("p99", "packet_in_p99_us", US),
        ("max", "packet_in_max_us", US),
        ("unanswered %", "unanswered_percent", 1.0),
        ("attacks/s", "attacks_per_s", 1.0),
        ("CPU %", "cpu_percent", 1.0),
        ("MB at most", "resident_peak_bytes", 1e-6),
        ("descriptors", "descriptors", 1.0),
        ("log lines/s", "log_lines_per_s", 1.0),
        ("health ms at most", "health_max_ms", 1.0),
        ("lag p99 µs", "lag_p99_us", 1.0),
    ];
    let titles = columns.iter().map(|&(title, ..)| title);
    let mut table = Table::new(["system", "attack"].into_iter().chain(titles));
    for point in &verdict.results.points {
        let cell = |&(_, metric, factor): &(&str, &str, f64)| {
            point.mean(metric).map_or_else(|| "–".to_owned(), |value| number(value * factor))
        };
        let attack = point.parameters.get("attack").map(ToString::to_string).unwrap_or_default();
        table.row([point.system.clone(), attack].into_iter().chain(columns.iter().map(cell)));
    }
    table
}

/// What was seen of the process.
#[derive(Debug, Default)]
struct Seen {
    descriptors: Option<usize>,
    log_lines_per_s: Option<f64>,
    health: Option<Health>,
}

#[derive(Debug, Default)]
struct Health {
    unanswered: u64,
    slowest: Duration,
}

/// An attack that goes on beside a run.
#[derive(Debug)]
pub(crate) struct Attacking {
    crowd: Crowd,
    watcher: Option<Watcher>,
    since: std::time::Instant,
    before: u64,
}

impl Attacking {
    /// Takes all controllers but the first, and lets the hostile tenants behave at first.
    pub(crate) fn prepare(
        beside: Beside,
        setup: &Setup,
        controllers: &mut Controllers,
        target: &Target,
    ) -> Result<Self, Error> {
        let Some(switch_address) = target.switch_address else {
            let why = "hostile tenants need a hypervisor: there is none";
            return Err(Error::System(why.to_owned()));
        };
        let Beside { attack, rules } = beside;
        // Real switches run wherever they like, and so does the generator then.
        let is_real = matches!(target.topology, Topology::Interfaces { .. });
        let cpus = Cpus::of(setup).filter(|_| !is_real);
        let (api, setup) = (target.api, setup.clone());
        let orders = Orders { attack, rules, switch_address, api, cpus, setup };
        let crowd = Crowd::start(orders, controllers.split_off(1))?;
        Ok(Self { crowd, watcher: None, since: std::time::Instant::now(), before: 0 })
    }

    /// Begins the attack, when everybody is connected.
    pub(crate) fn begin(&mut self, target: &Target) -> Result<(), Error> {
        if matches!(target.topology, Topology::Interfaces { .. }) {
            std::thread::sleep(SETTLING);
        }
        self.crowd.attack()?;
        self.before = self.crowd.done();
        self.since = std::time::Instant::now();
        let log = target.log().map(ToOwned::to_owned);
        self.watcher = Watcher::start(target.pids.clone(), target.api, log);
        Ok(())
    }

    /// Ends it. What was seen goes to `collector`, if the run counts.
    pub(crate) fn finish(mut self, collector: Option<&mut Collector>) {
        let seen = self.watcher.take().map(Watcher::finish).unwrap_or_default();
        let done = (self.crowd.done() - self.before) as f64;
        let Some(collector) = collector else { return };
        let mut sample = |name, unit, value: Option<f64>| {
            if let Some(value) = value {
                collector.sample(name, unit, Better::Lower, value);
            }
        };
        sample("attacks_per_s", "1/s", Some(done / self.since.elapsed().as_secs_f64().max(1e-3)));
        sample("descriptors", "", seen.descriptors.map(|count| count as f64));
        sample("log_lines_per_s", "1/s", seen.log_lines_per_s);
        let health = seen.health.as_ref();
        sample("health_unanswered", "", health.map(|health| health.unanswered as f64));
        sample("health_max_ms", "ms", health.map(|health| health.slowest.as_secs_f64() * 1e3));
    }
}

/// Reads what has come, and gives each whole frame with the buffer for answers. False at the end.
fn frames(conn: &mut Conn, scratch: &mut [u8], mut each: impl FnMut(&[u8], &mut Vec<u8>)) -> bool {
    // One that keeps sending must not keep the others waiting.
    for _ in 0..8 {
        if !conn.may_read() {
            return true;
        }
        let Some(filled) = conn.read(scratch, 1 << 16) else { return false };
        if filled == 0 {
            return true;
        }
        let mut rest = scratch.get(..filled).unwrap_or_default();
        while let Some(length) = be16(rest, 2).map(usize::from) {
            if length < HEADER_LEN {
                return false;
            }
            let Some((frame, behind)) = rest.split_at_checked(length) else { break };
            each(frame, &mut conn.out);
            rest = behind;
        }
        conn.keep(rest);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attacks_are_read_by_name_and_all_has_each() {
        for attack in Attack::ALL {
            assert_eq!(attack.name().parse(), Ok(attack));
            assert!(Attack::All.includes(attack));
        }
        assert!("flood".parse::<Attack>().unwrap_err().contains("modify-all"));
        let mut of_tenants: Vec<Attack> =
            (1..TENANTS).map(|index| Attack::All.of_tenant(index)).collect();
        of_tenants.dedup();
        for attack in Attack::OF_TENANTS {
            assert!(of_tenants.contains(&attack), "{attack:?} is made by no tenant");
        }
    }
}
