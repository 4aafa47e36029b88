//! Tests of the controller benchmarks with a controller in this process whose behaviour is planted: each benchmark must
//! find the planted number. The controller sleeps a planted time between the two events of the measurement. So a
//! benchmark never measures less, however busy the machine is, but may measure more.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "the relay is for the other tests")]
mod common;
mod planted;

use bench::rfc8456::Helpers;
use bench::rfc8456::helpers::{Discovered, FlowOrder, Northbound, Operator};
use bench::{ControllerPlan, Error, Test, Verdict, Version};
use planted::{Brain, Forwards, Plan, Planted};
use report::Point;
use std::sync::Arc;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// The expected value of one figure in every trial.
enum Expect {
    /// Exactly this value.
    Is(f64),
    /// This value or more.
    AtLeast(f64),
}

use Expect::{AtLeast, Is};

/// Short trials of one benchmark against a planted controller.
struct Bench {
    planted: Planted,
    plan: ControllerPlan,
    helpers: Helpers,
}

impl Bench {
    fn new(topology: &str, plan: Plan) -> Self {
        let planted = Planted::start(plan);
        let plan = ControllerPlan {
            layouts: vec![topology.parse().unwrap()],
            trials: 2,
            trial_ms: 300,
            limit_ms: 1_500,
            handshake_ms: 5_000,
            settle_ms: 100,
            query_ms: 200,
            switches: 2,
            macs: 5,
            outstanding: 10,
            ..ControllerPlan::new("planted", planted.address, Version::V1_0)
        };
        Self { planted, plan, helpers: Helpers::default() }
    }

    fn with_northbound(mut self) -> Self {
        self.helpers.northbound = Some(Box::new(PlantedNorthbound(self.planted.brain())));
        self
    }

    fn try_run(&mut self, test: &str) -> Result<Verdict, Error> {
        let test: Test = test.parse().unwrap();
        assert_eq!(self.plan.missing(test, &self.helpers), None, "{test:?}");
        self.plan.run(&[test], &mut self.helpers, &mut |_| {})
    }

    fn run(&mut self, test: &str) -> Verdict {
        self.try_run(test).unwrap()
    }

    /// Asserts that every trial of every point has the expected figures, and that no findings exist.
    #[track_caller]
    fn check(&mut self, test: &str, expected: &[(&str, Expect)]) {
        let verdict = self.run(test);
        let findings: Vec<_> =
            verdict.results.findings.iter().filter(|f| f.code != "few-trials").collect();
        assert!(findings.is_empty(), "{findings:?}");
        for point in &verdict.results.points {
            check_point(point, self.plan.trials, expected);
        }
    }

    /// Asserts that `code` is the only finding, and that the figure `figure` is missing.
    #[track_caller]
    fn check_finding(&mut self, test: &str, code: &str, figure: &str) {
        let verdict = self.run(test);
        let mut codes: Vec<_> = verdict.results.findings.iter().map(|f| f.code.as_str()).collect();
        codes.retain(|code| *code != "few-trials");
        codes.dedup();
        assert_eq!(codes, [code], "{:?}", verdict.results.findings);
        assert_eq!(verdict.results.points[0].mean(figure), None);
    }
}

#[track_caller]
fn check_point(point: &Point, trials: usize, expected: &[(&str, Expect)]) {
    for (figure, expected) in expected {
        let metric = point.metrics.get(*figure);
        let metric = metric.unwrap_or_else(|| panic!("no {figure} in {point:?}"));
        assert_eq!(metric.samples.len(), trials, "{figure} in {}", point.label());
        for sample in &metric.samples {
            match expected {
                Is(value) => assert_eq!(sample, value, "{figure} in {}", point.label()),
                AtLeast(least) => {
                    assert!(sample >= least, "{figure} is {sample} in {}", point.label());
                }
            }
        }
    }
}

/// The planted controller's northbound interface.
struct PlantedNorthbound(Arc<Brain>);

impl Northbound for PlantedNorthbound {
    fn install(&mut self, flows: &[FlowOrder]) -> Result<(), Error> {
        for flow in flows {
            self.0.install(flow.dpid, flow.source, flow.destination, flow.out_port as u16);
        }
        Ok(())
    }

    fn topology(&mut self) -> Result<Option<Discovered>, Error> {
        let switches = self.0.switches();
        Ok(Some(Discovered { switches, links: (switches - 1) * 2 }))
    }
}

#[test]
fn discovery_time_includes_the_configured_delay_of_the_controller() {
    let plan = Plan { discovery: 120 * MS, ..Plan::discovering(3) };
    let mut bench = Bench::new("leafspine,2,1", plan).with_northbound();
    // The controller sends one probe first, and then one probe from each of 2 + 2 + 3 ports. The last probes may not be
    // necessary.
    let expected = [
        ("discovery_ms", AtLeast(120.0)),
        ("discovery_messages", AtLeast(5.0)),
        ("confirmed_ms", AtLeast(120.0)),
    ];
    bench.check("discovery-time", &expected);
}

#[test]
fn a_controller_without_discovery_gives_a_no_discovery_finding() {
    let mut bench = Bench::new("linear,2", Plan::learning());
    bench.plan.limit_ms = 200;
    for (test, figure) in [
        ("discovery-time", "discovery_ms"),
        ("change-detection", "detection_ms"),
        ("discovery-size", "switches"),
    ] {
        bench.check_finding(test, "no-discovery", figure);
    }
}

#[test]
fn reactive_path_time_includes_a_decision_and_a_flow_mod_per_switch() {
    let plan = Plan { decision: 30 * MS, ..Plan::learning() };
    let mut bench = Bench::new("linear,3", plan);
    let expected =
        [("path_ms", AtLeast(90.0)), ("first_packet_ms", AtLeast(90.0)), ("flow_mods", Is(3.0))];
    bench.check("reactive-path-time", &expected);
}

#[test]
fn a_controller_that_floods_or_never_forwards_gives_a_finding() {
    let plan = Plan { forwards: Forwards::Floods, ..Plan::learning() };
    let mut bench = Bench::new("linear,3", plan);
    bench.check_finding("reactive-path-time", "no-provisioning", "path_ms");
    let plan = Plan { forwards: Forwards::Not, ..Plan::learning() };
    let mut bench = Bench::new("linear,3", plan);
    bench.plan.limit_ms = 200;
    bench.check_finding("reactive-path-time", "path-not-provisioned", "path_ms");
}

#[test]
fn proactive_path_time_is_measured_with_rules_from_northbound_orders() {
    let mut bench = Bench::new("leafspine,2,1", Plan::learning()).with_northbound();
    // The controller does not know the stations, because its switches send no PACKET_INs.
    bench.check(
        "proactive-path-time",
        &[("path_ms", AtLeast(0.0)), ("first_packet_ms", AtLeast(0.0))],
    );
}

#[test]
fn reactive_and_proactive_path_rates_are_measured_without_lost_paths() {
    let mut bench = Bench::new("linear,2", Plan::learning()).with_northbound();
    // Every path has an entry at both switches. Paths that are unfinished at the end have some more entries.
    let expected = [
        ("paths_per_s", AtLeast(10.0)),
        ("flow_mods_per_path", AtLeast(2.0)),
        ("lost_paths", Is(0.0)),
    ];
    bench.check("reactive-path-rate", &expected);
    bench.check("proactive-path-rate", &expected);
}

#[test]
fn slow_controller_decisions_limit_the_reactive_path_rate() {
    // One thread for each switch makes at most 50 decisions per second.
    let plan = Plan { decision: 20 * MS, ..Plan::learning() };
    let mut bench = Bench::new("linear,1", plan);
    bench.plan.trial_ms = 1_000;
    let verdict = bench.run("reactive-path-rate");
    let rate = &verdict.results.points[0].metrics["paths_per_s"];
    assert!(rate.samples.iter().all(|rate| (1.0..=51.0).contains(rate)), "{rate:?}");
}

#[test]
fn change_detection_time_includes_the_configured_delay_of_the_controller() {
    let plan = Plan { rediscovery: 80 * MS, ..Plan::discovering(3) };
    let mut bench = Bench::new("leafspine,2,1", plan);
    bench.check("change-detection", &[("detection_ms", AtLeast(80.0)), ("probes_per_s", Is(0.0))]);
}

#[test]
fn the_session_limit_of_a_controller_is_found_exactly() {
    let mut bench = Bench::new("linear,1", Plan { most_sessions: 11, ..Plan::learning() });
    bench.plan.handshake_ms = 600;
    bench.plan.most_sessions = 64;
    bench.check("sessions", &[("sessions", Is(11.0))]);
}

#[test]
fn the_largest_network_that_the_controller_discovers_is_found() {
    // The controller does not probe the seventh switch, so 7 switches in a row are not discovered completely.
    let plan = Plan { most_discovered: 6, ..Plan::discovering(1) };
    let mut bench = Bench::new("linear,2", plan);
    (bench.plan.limit_ms, bench.plan.most_switches) = (400, 20);
    bench.check("discovery-size", &[("switches", Is(6.0)), ("links", Is(10.0))]);
}

#[test]
fn table_capacity_counts_rules_until_the_controller_adds_no_more() {
    let plan = Plan { most_flows: 37, ..Plan::learning() };
    let mut bench = Bench::new("linear,2", plan);
    bench.plan.trials = 1;
    bench.plan.steady_rate = 4_000.0;
    bench.check("table-capacity", &[("flow_entries", Is(37.0))]);
    let plan = Plan { most_flows: 37, forwards: Forwards::Not, ..Plan::learning() };
    let mut bench = Bench::new("linear,2", plan).with_northbound();
    bench.plan.trials = 1;
    let verdict = bench.run("table-capacity");
    let proactive = &verdict.results.points[1];
    assert_eq!(
        (proactive.label().as_str(), proactive.mean("flow_entries")),
        ("test=table-capacity way=proactive", Some(37.0))
    );
}

/// Ends the active controller, and lets the standby controller take over after the time `after`.
struct Pair {
    active: Arc<Brain>,
    standby: Arc<Brain>,
    after: Duration,
}

impl Operator for Pair {
    fn fail(&mut self) -> Result<(), Error> {
        self.active.set_dead(true);
        let (standby, after) = (Arc::clone(&self.standby), self.after);
        std::thread::spawn(move || {
            std::thread::sleep(after);
            standby.set_passive(false);
        });
        Ok(())
    }

    fn restore(&mut self) -> Result<(), Error> {
        self.active.set_dead(false);
        self.standby.set_passive(true);
        Ok(())
    }
}

/// Adds a controller that makes no decisions.
fn add_passive(bench: &mut Bench) -> Planted {
    let passive = Planted::start(Plan::learning());
    passive.brain().set_passive(true);
    bench.plan.backups.push(passive.address);
    passive
}

/// Adds a standby controller that takes over after the time `after`.
fn add_standby(bench: &mut Bench, after: Duration) -> Planted {
    let standby = add_passive(bench);
    let pair = Pair { active: bench.planted.brain(), standby: standby.brain(), after };
    bench.helpers.operator = Some(Box::new(pair));
    standby
}

#[test]
fn failover_gap_includes_the_configured_delay_of_the_standby_controller() {
    let mut bench = Bench::new("linear,2", Plan::learning());
    let _standby = add_standby(&mut bench, 150 * MS);
    // A busy machine may send most packets of the gap after the gap.
    bench.check("failover", &[("gap_ms", AtLeast(150.0)), ("lost_packets", AtLeast(1.0))]);
}

/// All switches are connected to all three controllers. The idle controller takes no role, and does not disturb the
/// other two.
#[test]
fn failover_is_measured_in_a_cluster_of_three_controllers() {
    let mut bench = Bench::new("linear,2", Plan::learning());
    let _idle = add_passive(&mut bench);
    let _standby = add_standby(&mut bench, 150 * MS);
    bench.check("failover", &[("gap_ms", AtLeast(150.0)), ("lost_packets", AtLeast(1.0))]);
}

#[test]
fn a_standby_that_does_not_take_over_gives_a_no_failover_finding() {
    let mut bench = Bench::new("linear,2", Plan::learning());
    let _standby = add_standby(&mut bench, Duration::from_secs(3600));
    bench.check_finding("failover", "no-failover", "gap_ms");
}

/// Two paths from switch 1 to switch 3 in a ring of four: over switch 2, and over switch 4.
fn two_ways(after: Duration) -> Plan {
    let first = vec![(1, 1, 2), (2, 2, 3), (3, 1, 2)];
    let second = vec![(1, 1, 3), (4, 2, 3), (3, 1, 3)];
    Plan { forwards: Forwards::Along(first, second, after), ..Plan::discovering(4) }
}

#[test]
fn reprovisioning_time_includes_the_configured_delay_of_the_controller() {
    let mut bench = Bench::new("ring,4", two_ways(100 * MS));
    let expected = [
        ("forward_ms", AtLeast(100.0)),
        ("reverse_ms", AtLeast(100.0)),
        ("reprovisioning_ms", AtLeast(100.0)),
        ("control_ms", AtLeast(100.0)),
        ("lost_forward", AtLeast(10.0)),
        ("lost_reverse", AtLeast(10.0)),
    ];
    bench.check("reprovisioning", &expected);
}

#[test]
fn traffic_that_is_not_rerouted_is_reported() {
    let mut bench = Bench::new("ring,4", two_ways(Duration::from_secs(3600)));
    bench.check_finding("reprovisioning", "not-reprovisioned", "reprovisioning_ms");
}

#[test]
fn benchmarks_are_measured_with_and_without_exceptions_and_attacks() {
    let plan = Plan { decision: 10 * MS, ..Plan::learning() };
    let mut bench = Bench::new("linear,2", plan);
    (bench.plan.limit_ms, bench.plan.trial_ms) = (300, 150);
    for (test, parameter) in [("exceptions", "malformed_percent"), ("denial-of-service", "attack")]
    {
        let verdict = bench.run(test);
        let points = &verdict.results.points;
        // A measurable benchmark has three points. A benchmark that this controller does not support has one point.
        for (of, count, figure) in [
            ("reactive-path-time", 3, Some("path_ms")),
            ("reactive-path-rate", 3, Some("paths_per_s")),
            ("change-detection", 1, None),
            ("latency", 3, Some("p50_us")),
        ] {
            let of = report::Scalar::from(of);
            let these: Vec<_> = points.iter().filter(|p| p.parameters["of"] == of).collect();
            assert_eq!(these.len(), count, "{test} {of}");
            for point in these {
                assert!(point.parameters.contains_key(parameter));
                if let Some(figure) = figure {
                    check_point(point, 2, &[(figure, AtLeast(0.0))]);
                }
            }
        }
    }
}

#[test]
fn a_controller_that_never_completes_the_handshake_is_reported() {
    for (plan, word) in [
        (Plan { asks: false, ..Plan::learning() }, "never asked for their features"),
        (Plan { most_sessions: 1, ..Plan::learning() }, "were closed"),
    ] {
        let mut bench = Bench::new("linear,3", plan);
        bench.plan.handshake_ms = 300;
        let error = bench.try_run("reactive-path-time").unwrap_err();
        assert!(matches!(error, Error::Handshake { wanted: 3, .. }), "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn a_flood_that_multiplies_in_a_loop_ends_the_test_with_an_error() {
    let mut bench = Bench::new("ring,3", Plan { forwards: Forwards::Floods, ..Plan::learning() });
    // The test ends with an error after two million messages. This may take a minute on a busy machine. A trial also
    // ends when the controller is silent for 100 ms, which can happen on a busy machine. Then the next trial has as
    // many messages.
    bench.plan.limit_ms = 300_000;
    bench.plan.trials = 100;
    let error = bench.try_run("reactive-path-time").unwrap_err();
    assert!(error.to_string().contains("the topology has loops"), "{error}");
}

#[test]
fn errors_for_invalid_plans_name_the_setting() {
    let check = |edit: fn(&mut ControllerPlan), word: &str| {
        let mut bench = Bench::new("linear,1", Plan::learning());
        edit(&mut bench.plan);
        let error = bench.plan.run(&[], &mut bench.helpers, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    };
    check(|plan| plan.trials = 0, "trials is 0: must be at least 1");
    check(|plan| plan.frame_bytes = 9, "frame bytes is 9: must be 64 to 1518");
    check(|plan| plan.steady_rate = f64::NAN, "steady rate");
    check(|plan| plan.traffic_rate = 0.0, "traffic rate");
}
