//! The comparisons of Weir. Each comparison is a named scenario that starts its systems, measures the systems
//! interleaved in one run, and reports which criteria are met.
//!
//! A scenario is data: its cases (a system and a load) and its criteria for the measured points; [`Comparison::run`]
//! does the rest. The scenarios are `weir bench relay`, `saturation`, `tenants`, `isolation-switch`,
//! `isolation-delays`, `isolation-flood`, `memory`, `networks`, `labels`, `page` and `work`; and `generator`, which
//! measures the generator itself.

mod delays;
mod generator;
mod isolation;
mod labels;
mod memory;
mod networks;
mod page;
pub(crate) mod points;
mod relay;
mod saturation;
mod tenants;
mod work;

use crate::Error;
use crate::comparison::Comparison;
pub use crate::comparison::{Criterion, Options, Verdict};

/// A scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// PACKET_IN at 40,000/s through a TCP relay and through Weir, 1 and 20 tenants.
    Relay,
    /// As many PACKET_INs per second as Weir reads.
    Saturation,
    /// 1 to 1,000 tenants at a constant total rate.
    Tenants,
    /// A switch that handles 8,000 messages/s, and a neighbour that sends 16,000/s.
    IsolationSwitch,
    /// A switch of this speed whose work or whose answers are delayed.
    IsolationDelays,
    /// A neighbour that floods 400,000 PACKET_OUTs/s.
    IsolationFlood,
    /// Resident memory with 20 tenants and 10,000 rules.
    Memory,
    /// Tenants' own networks compared with slices.
    Networks,
    /// Followed flows and labels, compared with Weir without followed flows and labels.
    Labels,
    /// Viewers of the page, and clients with tokens, compared with the load alone.
    Page,
    /// CPU time per message, and the hypervisor's own messages.
    Work,
    /// The generator's own maximum, with no system between its ends.
    Generator,
}

impl Scenario {
    /// All scenarios.
    pub const ALL: [Self; 12] = [
        Self::Relay,
        Self::Saturation,
        Self::Tenants,
        Self::IsolationSwitch,
        Self::IsolationDelays,
        Self::IsolationFlood,
        Self::Memory,
        Self::Networks,
        Self::Labels,
        Self::Page,
        Self::Work,
        Self::Generator,
    ];

    /// Whether the scenario can be measured on a real switch. The other scenarios need a switch of a known speed or
    /// size, or a switch that sends requests by itself.
    #[must_use]
    pub const fn runs_on_real_switches(self) -> bool {
        use Scenario::{IsolationFlood, Labels, Networks, Relay, Tenants, Work};
        matches!(self, Relay | Tenants | IsolationFlood | Networks | Labels | Work)
    }

    /// Whether the scenario measures further systems ([`Options::others`]); `real` says whether the switch is real.
    /// Labels are compared only with Weir without labels, because no other hypervisor has labels.
    #[must_use]
    pub const fn takes_others(self, real: bool) -> bool {
        matches!(self, Self::Work)
            || real && self.runs_on_real_switches() && !matches!(self, Self::Labels)
    }

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Relay => "relay",
            Self::Saturation => "saturation",
            Self::Tenants => "tenants",
            Self::IsolationSwitch => "isolation-switch",
            Self::IsolationDelays => "isolation-delays",
            Self::IsolationFlood => "isolation-flood",
            Self::Memory => "memory",
            Self::Networks => "networks",
            Self::Labels => "labels",
            Self::Page => "page",
            Self::Work => "work",
            Self::Generator => "generator",
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

/// Runs a scenario. `talk` gets the current step.
///
/// # Errors
/// As [`Comparison::run`].
pub fn run(
    scenario: Scenario,
    options: &Options,
    talk: &mut dyn FnMut(&str),
) -> Result<Verdict, Error> {
    comparison(scenario, options).run(options, talk)
}

fn comparison(scenario: Scenario, options: &Options) -> Comparison {
    let comparison = match scenario {
        Scenario::Relay => relay::scene(options),
        Scenario::Saturation => saturation::scene(options),
        Scenario::Tenants => tenants::scene(options),
        Scenario::IsolationSwitch => isolation::switch(options),
        Scenario::IsolationDelays => delays::scene(options),
        Scenario::IsolationFlood => isolation::flood(options),
        Scenario::Memory => memory::scene(options),
        Scenario::Networks => networks::scene(options),
        Scenario::Labels => labels::scene(options),
        Scenario::Page => page::scene(options),
        Scenario::Work => work::scene(options),
        Scenario::Generator => generator::scene(options),
    };
    Comparison { tool: format!("bench {}", scenario.name()), ..comparison }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::real::{RealSwitches, Size, Stand};
    use crate::system::{System, Tenancy};
    use crate::{Topology, Version};
    use report::{Better, Point};
    use std::net::SocketAddr;
    use std::path::PathBuf;
    use std::sync::Arc;

    /// Real switches that are not available: every call fails.
    #[derive(Debug)]
    struct Unavailable;

    impl RealSwitches for Unavailable {
        fn name(&self) -> String {
            "unavailable".to_owned()
        }
        fn prepare(&self, _: Size) -> Result<Stand, String> {
            Err("there are none".to_owned())
        }
        fn connect(&self, _: Size, _: &[SocketAddr], _: Version) -> Result<(), String> {
            Err("there are none".to_owned())
        }
        fn forget(&self, _: Size) -> Result<(), String> {
            Ok(())
        }
        fn down(&self) {}
    }

    fn options(real: bool) -> Options {
        let subject =
            System::Weir { command: Vec::new(), extra: String::new(), tenancy: Tenancy::default() };
        let mut options = Options::new(subject, PathBuf::new());
        options.switches = real.then(|| Arc::new(Unavailable) as Arc<dyn RealSwitches>);
        options
    }

    /// The checks accept every load of every scenario, on every switch.
    #[test]
    fn setup_and_load_checks_accept_each_case_of_each_scenario() {
        for real in [false, true] {
            for scenario in Scenario::ALL {
                if real && !scenario.runs_on_real_switches() {
                    continue;
                }
                let comparison = comparison(scenario, &options(real));
                assert!(!comparison.cases.is_empty(), "{scenario:?}");
                for case in &comparison.cases {
                    let mut setup = case.system.fit(&case.setup);
                    if real {
                        let port = |place: usize| crate::DataPort {
                            interface: "eth0".to_owned(),
                            namespace: None,
                            switch_port: place as u16 + 1,
                        };
                        let ports = (0..case.system.size(&setup).ports).map(port).collect();
                        setup.topology = Topology::Interfaces { ports, switches: 1, dpid: 1 };
                    }
                    let checked = setup.check().and_then(|()| case.load.check(&setup));
                    assert!(checked.is_ok(), "{scenario:?} {:?} {checked:?}", case.parameters);
                }
                // Without points no criterion is met, and no criterion panics.
                assert!((comparison.criteria)(&[]).iter().all(|it| it.measured.is_nan()));
            }
        }
    }

    /// Each scenario that takes further systems measures these systems beside its own systems.
    #[test]
    fn scenarios_that_accept_further_systems_measure_an_external_system() {
        for real in [false, true] {
            let takes = |scenario: &Scenario| !real || scenario.runs_on_real_switches();
            for scenario in Scenario::ALL.into_iter().filter(takes) {
                let mut options = options(real);
                options.others = vec![System::External {
                    name: "other".to_owned(),
                    switch_address: SocketAddr::from(([127, 0, 0, 1], 6633)),
                    controllers: SocketAddr::from(([127, 0, 0, 1], 6701)),
                    watched: None,
                }];
                let cases = comparison(scenario, &options).cases;
                let is_measured = cases.iter().any(|case| case.system.name() == "other");
                assert_eq!(is_measured, scenario.takes_others(real), "{scenario:?}, {real}");
            }
        }
    }

    /// Each criterion of these two scenarios uses figures that the scenario's cases have.
    #[test]
    fn scenario_criteria_are_computed_from_metrics_of_the_cases() {
        for (scenario, real) in [
            (Scenario::Work, false),
            (Scenario::Relay, true),
            (Scenario::IsolationFlood, true),
            (Scenario::Networks, true),
        ] {
            let comparison = comparison(scenario, &options(real));
            let points: Vec<Point> = comparison
                .cases
                .iter()
                .map(|case| {
                    let mut point = Point::new(case.system.name(), case.parameters.iter().cloned());
                    for metric in ["p50_us", "p99_us", "unanswered_percent"]
                        .into_iter()
                        .chain([crate::measure::CPU_PER_MESSAGE, crate::measure::OWN_MESSAGES])
                    {
                        let metric_of = report::Metric::new("", Better::Lower, vec![1.0]);
                        point.metrics.insert(metric.to_owned(), metric_of);
                    }
                    point
                })
                .collect();
            for criterion in (comparison.criteria)(&points) {
                assert!(criterion.measured.is_finite(), "{scenario:?}: {criterion:?}");
            }
        }
    }
}
