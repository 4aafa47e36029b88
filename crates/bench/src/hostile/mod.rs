//! Measures one quiet tenant beside 19 hostile tenants, hostile strangers and hostile clients of the REST interface:
//! with each attack in turn, and with all attacks together.
//!
//! The quiet tenant is measured as in every other comparison ([`crate::Session`]). One more thread (`crowd`) plays the
//! hostile `tenants`, `strangers` and `clients`. During the attack `watch` observes the process.
//!
//! Start reading at [`Attack`] and [`Hostile::comparison`].

pub(crate) mod attack;
pub(crate) mod attacking;
mod clients;
mod crowd;
mod frames;
mod orders;
mod refusals;
mod seen;
mod strangers;
mod tenants;
mod watch;

pub use attack::Attack;

use crate::Error;
use crate::arrivals::Arrivals;
use crate::beside::Beside;
use crate::comparison::{Case, Comparison, Options, Verdict};
use crate::criterion::Criterion;
use crate::kind::Kind;
use crate::load::{Load, Stream};
use crate::measure::Collector;
use crate::outcome::Outcome;
use crate::plan::Setup;
use crate::scenarios::points::{figure_of, peak_memory};
use crate::system::{System, Target};
use report::{Better, Point, Scalar, Table};

/// The number of tenants: the quiet tenant and the hostile tenants.
pub const TENANTS: usize = 20;
/// The quiet tenant's messages of each kind per second.
const RATE: f64 = 500.0;
/// The messages that the quiet tenant sends and receives.
const KINDS: [Kind; 2] = [Kind::Echo, Kind::PacketIn];
/// The largest difference between the quiet tenant's p99 with and without the attack, in µs.
const P99_LIMIT_US: f64 = 5_000.0;
/// The most FLOW_MODs of the quiet tenant per second, and in a run, while other tenants fill a table or the store.
const FLOW_MODS: (f64, f64) = (10.0, 500.0);
/// The number of entries of a table that tenants fill: the quiet tenant's share is twice as large as its FLOW_MODs.
const SMALL_TABLE: u32 = TENANTS as u32 * 1_000;
/// The bytes in the store for each tenant of a system that this crate starts, and whose tenants fill the store: some
/// 1,000 long rules.
const STATE_BYTES: u32 = 4 << 20;
/// The limit of descriptors of a system that this crate starts, and whose tenants have many controllers: the usual
/// limit.
const DESCRIPTORS: u32 = 1_024;
const MEMORY_LIMIT_BYTES: f64 = 256e6;
const LOG_LIMIT_PER_S: f64 = 10.0;

/// The parameters of the measurement.
#[derive(Clone, Debug)]
pub struct Hostile {
    /// The attacks; [`Attack::None`] is measured in any case.
    pub attacks: Vec<Attack>,
    /// The systems. The criteria judge the first system.
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
                if is_possible(attack, system) {
                    cases.push(self.case(system, attack, options));
                }
            }
        }
        cases.iter().try_for_each(Case::check)?;
        attacks.retain(|attack| self.systems.first().is_some_and(|it| is_possible(*attack, it)));
        let subject = self.systems.first().map_or("", System::name).to_owned();
        let criteria = Box::new(move |points: &[Point]| {
            attacks.iter().flat_map(|&attack| criteria(points, &subject, attack)).collect()
        });
        Ok(Comparison { tool: "bench hostile".to_owned(), cases, criteria, kind: Kind::PacketIn })
    }

    fn case(&self, system: &System, attack: Attack, options: &Options) -> Case {
        let stream = |kind, rate| Stream::new(0, kind, Arrivals::Constant { rate });
        let mut streams = KINDS.map(|kind| stream(kind, RATE)).to_vec();
        if attack.is_against_rules() {
            let (rate, most) = FLOW_MODS;
            let rate = rate.min(most * 1e3 / options.duration_ms.max(1) as f64);
            streams.push(stream(Kind::FlowMod, rate));
        }
        let load = Load::new(streams, options.duration_ms);
        let mut system = system.clone();
        let mut setup = Setup { tenants: TENANTS, bound_to_switch: true, ..options.setup.clone() };
        if attack == Attack::FillTable {
            (setup.switch.table, setup.switch.entries) = (true, SMALL_TABLE);
        }
        if attack == Attack::FillStore {
            system = system.with_extra(&format!("[limits]\nstate_bytes = {STATE_BYTES}\n"));
        }
        if let (Attack::ManyControllers, System::Weir { command, .. }) = (attack, &mut system) {
            // The program gets the usual limit of descriptors as its hard limit, and keeps the shell's process id.
            let limited = format!("ulimit -n {DESCRIPTORS} && exec \"$@\"");
            let shell = ["sh", "-c", limited.as_str(), "sh"].map(str::to_owned);
            command.splice(0..0, shell);
            setup.controllers_each = tenants::controllers_each(TENANTS - 1);
        }
        Case {
            system,
            parameters: vec![("attack", attack.name().into())],
            setup,
            load: Load { cut_ms: options.cut_ms, ..load },
            afterwards: Some(by_kind),
            beside: Some(Beside::Attack { attack, rules: self.rules }),
        }
    }
}

/// Whether the attack is possible. The address of the REST interface is known only for systems that this crate starts.
fn is_possible(attack: Attack, system: &System) -> bool {
    attack != Attack::Api || matches!(system, System::Weir { .. })
}

const NAMES: [[&str; 3]; 2] = [
    ["echo_p50_us", "echo_p99_us", "echo_max_us"],
    ["packet_in_p50_us", "packet_in_p99_us", "packet_in_max_us"],
];

/// Samples the quiet tenant's latency by kind of message, and the largest memory.
fn by_kind(collector: &mut Collector, outcome: &Outcome, target: &Target) {
    for (kind, latency) in &outcome.by_kind {
        let names = KINDS.iter().position(|it| it == kind).and_then(|place| NAMES.get(place));
        for (name, percent) in names.into_iter().flatten().zip([50.0, 99.0, 100.0]) {
            if let Some(ns) = latency.percentile(percent) {
                collector.sample(name, "µs", Better::Lower, ns as f64 / 1e3);
            }
        }
    }
    peak_memory(collector, outcome, target);
}

fn criteria(points: &[Point], subject: &str, attack: Attack) -> Vec<Criterion> {
    let parameters = |attack: Attack| [("attack", Scalar::from(attack.name()))];
    let of = |attack, metric: &str| figure_of(points, subject, &parameters(attack), metric);
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
    if attack.is_against_rules() {
        let refused = of(attack, "refused_percent");
        criteria.push(Criterion::at_most(format!("{name}: the tenant's refused, %"), refused, 0.0));
    }
    for (title, metric, limit) in [
        ("most memory resident, bytes", "resident_peak_bytes", MEMORY_LIMIT_BYTES),
        ("log lines per second", "log_lines_per_s", LOG_LIMIT_PER_S),
        ("health unanswered", "health_unanswered", 0.0),
    ] {
        // For a system that runs elsewhere, only the quiet tenant's latency is known.
        if let Some(measured) = of(attack, metric) {
            criteria.push(Criterion::at_most(format!("{name}: {title}"), Some(measured), limit));
        }
    }
    criteria
}

/// The table of the measured points, for stdout.
#[must_use]
pub fn table(verdict: &Verdict) -> Table {
    let columns = [
        ("ECHO p50 µs", "echo_p50_us", 1.0),
        ("p99", "echo_p99_us", 1.0),
        ("max", "echo_max_us", 1.0),
        ("PACKET_IN p50 µs", "packet_in_p50_us", 1.0),
        ("p99", "packet_in_p99_us", 1.0),
        ("max", "packet_in_max_us", 1.0),
        ("unanswered %", "unanswered_percent", 1.0),
        ("attacks/s", "attacks_per_s", 1.0),
        ("REST refused", "api_refused", 1.0),
        ("CPU %", "cpu_percent", 1.0),
        ("MB at most", "resident_peak_bytes", 1e-6),
        ("descriptors", "descriptors", 1.0),
        ("log lines/s", "log_lines_per_s", 1.0),
        ("health ms at most", "health_max_ms", 1.0),
        ("lag p99 µs", "lag_p99_us", 1.0),
    ];
    let attack =
        |point: &Point| point.parameters.get("attack").map(ToString::to_string).unwrap_or_default();
    verdict.table_of("attack", attack, &columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attack_names_are_parsed_and_all_covers_every_attack_of_tenants() {
        for attack in Attack::ALL {
            assert_eq!(attack.name().parse(), Ok(attack));
            assert_eq!(Attack::All.includes(attack), !Attack::APART.contains(&attack));
        }
        assert!("flood".parse::<Attack>().unwrap_err().contains("modify-all"));
        let mut of_tenants: Vec<Attack> =
            (1..TENANTS).map(|index| Attack::All.of_tenant(index)).collect();
        of_tenants.dedup();
        for attack in Attack::OF_TENANTS {
            assert!(of_tenants.contains(&attack), "{attack:?} is made by no tenant");
        }
        for attack in Attack::APART {
            assert_eq!(attack.of_tenant(1), attack, "is made by a tenant when alone");
        }
    }

    #[test]
    fn an_attack_that_cannot_run_on_the_first_system_has_no_criterion() {
        let running = System::External {
            name: "flowvisor".to_owned(),
            switch_address: ([127, 0, 0, 1], 6633).into(),
            controllers: ([127, 0, 0, 1], 6701).into(),
            watched: None,
        };
        let weir = System::Weir {
            command: vec!["weir".to_owned()],
            extra: String::new(),
            tenancy: crate::system::Tenancy::Slices,
        };
        let options = Options::new(System::Direct, std::path::PathBuf::new());
        let judged = |systems: [&System; 2]| {
            let systems = systems.map(Clone::clone).to_vec();
            let hostile = Hostile { attacks: vec![Attack::Api, Attack::Silent], systems, rules: 1 };
            let criteria = (hostile.comparison(&options).unwrap().criteria)(&[]);
            let of = |attack: &str| criteria.iter().any(|it| it.name.starts_with(attack));
            (of("api: "), of("silent: "))
        };
        assert_eq!(judged([&running, &weir]), (false, true));
        assert_eq!(judged([&weir, &running]), (true, true));
    }
}
