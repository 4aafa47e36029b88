//! Tests of experiments on a real Open vSwitch in a lab, over real interfaces. The tests need root.

#![allow(clippy::unwrap_used, reason = "helpers of tests are test code too")]

mod common;

use std::time::Duration;

use channel::{Address, Listener};
use common::{VERSIONS, codes, never};
use evaluate::modules::{
    Capacity, Change, Delete, Insert, Interaction, Modify, Packets, PathDelay, PortStatus, Queue,
    Statistics, Timestamp, Way,
};
use evaluate::{
    Case, Common, DataPort, Experiment, Gauges, Outcome, Real, RealOptions, RunOptions,
    SwitchAddress, run,
};
use lab::{FailMode, Lab, LabGuard, Options, Protocol, Requirements, StateDirectory, Topology};
use openflow::{Version, VersionSet};

/// A switch with three hosts, whose interfaces the test uses.
fn open(name: &str, version: Version) -> (LabGuard, Real) {
    let name = format!("e{}-{name}", std::process::id());
    let protocol = match version {
        Version::V1_0 => Protocol::OPENFLOW10,
        _ => Protocol::OPENFLOW13,
    };
    let options = Options {
        state: StateDirectory::at(std::env::temp_dir().join(format!("weir-{name}"))),
        name: Some(name),
        fail_mode: Some(FailMode::Secure),
        protocols: vec![protocol],
        ephemeral: true,
        ..Options::default()
    };
    let mut lab = Lab::up(&Topology::builtin("single,3").unwrap(), &options).unwrap();
    let here = Address::tcp((lab.controller_address().unwrap(), 0).into());
    let listener = Listener::bind(&here, None, channel::Options::default()).unwrap();
    lab.set_controllers(&[listener.address().to_string().parse().unwrap()]).unwrap();
    let lab = LabGuard::new(lab);
    let data = |host: &str, switch_port| DataPort {
        interface: "eth0".to_owned(),
        namespace: Some(lab.namespace(host).unwrap()),
        switch_port,
    };
    let process = lab.open_vswitch().unwrap().switch_process().unwrap().pid;
    let real = Real::open(RealOptions {
        name: "ovs".to_owned(),
        address: SwitchAddress::Listening(listener),
        tls: None,
        versions: VersionSet::only(version),
        ports: vec![data("h1", 1), data("h2", 2), data("h3", 3)],
        patience: Duration::from_secs(10),
        gauges: Gauges { process: Some(process.cast_unsigned()), snmp: None },
        trace: None,
    })
    .unwrap();
    (lab, real)
}

fn common(repetitions: u32) -> Common {
    Common { repetitions, ..Common::default() }
}

fn measure(real: &mut Real, experiment: &dyn Experiment) -> Outcome {
    let outcome = run(real, experiment.module().as_mut(), &RunOptions::new(never())).unwrap();
    let name = experiment.name();
    assert_eq!(outcome.partial, None, "{name}: {:?}", outcome.record.findings());
    assert!(!codes(&outcome).contains(&"tables-changed"), "{name}");
    outcome
}

#[test]
fn ovs_rule_updates_are_measured_and_each_rule_takes_effect() {
    if lab::testing::skip(
        "ovs_rule_updates_are_measured_and_each_rule_takes_effect",
        Requirements::ALL,
    ) {
        return;
    }
    for (name, version) in ["u10", "u13"].into_iter().zip(VERSIONS) {
        let (lab, mut real) = open(name, version);
        let insert = Insert { rules: vec![10, 100], ..Insert::new(common(2)) };
        let experiments: [Box<dyn Experiment>; 3] =
            [Box::new(insert.clone()), Box::new(Change(insert.clone())), Box::new(Delete(insert))];
        for experiment in experiments {
            let outcome = measure(&mut real, &*experiment);
            for rules in [10u32, 100] {
                let case = Case::new().with("rules", rules);
                let case = case.with("match", "exact").with("priority", "equal");
                for metric in ["sent_us", "barrier_us", "last_rule_us", "lie_at_most_us"] {
                    let samples = outcome.record.samples(&case, metric);
                    assert_eq!(samples.len(), 2, "{} {metric}", experiment.name());
                }
                assert_eq!(outcome.record.samples(&case, "rules_never_real"), [0.0; 2]);
            }
        }
        drop(real);
        lab.down().unwrap();
    }
}

#[test]
fn ovs_experiments_other_than_updates_and_queues_give_correct_samples() {
    if lab::testing::skip(
        "ovs_experiments_other_than_updates_and_queues_give_correct_samples",
        Requirements::ALL,
    ) {
        return;
    }
    const DURATION: u64 = 200_000_000;
    let little = Common { repetitions: 1, rate: 1_000.0, ..Common::default() };
    let packets =
        |way| Packets { duration: DURATION, most: 1_000.0, ..Packets::new(little.clone(), way) };
    // Each experiment has a case and a metric that the result must contain.
    let rate = Case::new().with("rate", 1_000.0);
    let forward = Case::new().with("actions", 0u32).with("set", "forward");
    let flow = Case::new().with("kind", "flow").with("rules", 100u32).with("polls_per_s", 10.0);
    let length = |length: u32| rate.clone().with("length", length);
    let experiments: Vec<(Box<dyn Experiment>, Case, &str)> = vec![
        (
            Box::new(Modify { duration: DURATION, ..Modify::new(little.clone()) }),
            forward,
            "median_us",
        ),
        (
            Box::new(PathDelay {
                duration: DURATION,
                rates: vec![1_000.0],
                ..PathDelay::new(little.clone())
            }),
            length(1_500),
            "median_us",
        ),
        (
            Box::new(Capacity { limit: 500, ..Capacity::new(little.clone()) }),
            Case::new().with("match", "exact"),
            "capacity_rules",
        ),
        (Box::new(packets(Way::In)), rate.clone(), "median_us"),
        (Box::new(packets(Way::Out)), rate.clone(), "median_us"),
        (Box::new(packets(Way::Echo)), rate.clone(), "median_us"),
        (Box::new(packets(Way::Barrier)), rate.clone(), "median_us"),
        (
            Box::new(Statistics {
                rules: 100,
                polls: vec![10.0],
                ..Statistics::new(little.clone())
            }),
            flow,
            "cpu_percent",
        ),
        (
            Box::new(Interaction {
                rules: 10,
                table: 50,
                polls: vec![20.0],
                common: little.clone(),
            }),
            Case::new()
                .with("rules", 10u32)
                .with("match", "exact")
                .with("priority", "equal")
                .with("others", 40u32)
                .with("polls_per_s", 20.0),
            "last_rule_us",
        ),
        (
            Box::new(PortStatus { common: little.clone() }),
            Case::new().with("link", "down"),
            "port_status_us",
        ),
        (
            Box::new(Timestamp { common: little.clone(), duration: DURATION }),
            length(100),
            "kernel_drift_ppm",
        ),
    ];
    for (name, version) in ["o10", "o13"].into_iter().zip(VERSIONS) {
        let (lab, mut real) = open(name, version);
        for (experiment, case, metric) in &experiments {
            let outcome = measure(&mut real, &**experiment);
            let name = experiment.name();
            let samples = outcome.record.samples(case, metric);
            assert!(!samples.is_empty(), "{name} {version:?} {case:?} {metric}");
            if name == "statistics" {
                // In both versions a reply with 100 entries has the bytes of at least one segment.
                let segments = outcome.record.samples(case, "segments_per_reply");
                assert!(segments.iter().all(|it| *it >= 1.0) && !segments.is_empty());
            }
            // Packets are forwarded with the right changes and the right checksums.
            let wrong = ["not-changed", "checksum", "rules-vanish", "statistics-incomplete"];
            assert!(
                !codes(&outcome).iter().any(|code| wrong.contains(code)),
                "{name} {version:?} {:?}",
                outcome.record.findings()
            );
        }
        drop(real);
        lab.down().unwrap();
    }
}

#[test]
fn ovs_queues_give_a_queue_unused_finding_because_only_queue_0_is_used() {
    if lab::testing::skip(
        "ovs_queues_give_a_queue_unused_finding_because_only_queue_0_is_used",
        Requirements::ALL,
    ) {
        return;
    }
    for (name, version) in ["q10", "q13"].into_iter().zip(VERSIONS) {
        let (lab, mut real) = open(name, version);
        let rates = ["2Mbit", "1Mbit"].map(|rate| rate.parse().unwrap());
        lab.set_queues("s1-eth2", &rates).unwrap();
        // 12,500 probes per second are 10 Mbit/s.
        let experiment =
            Queue { duration: 500_000_000, rates: vec![12_500.0], ..Queue::new(common(1)) };
        let outcome = measure(&mut real, &experiment);
        assert!(codes(&outcome).contains(&"queue-unused"), "{:?}", outcome.record.findings());
        for queue in [0u32, 1] {
            let case = Case::new().with("queue", queue).with("rate", 12_500.0);
            let found = outcome.record.samples(&case, "throughput_mbps");
            // All packets use queue 0. At first HTB lets a burst pass.
            assert!(matches!(found, [mbps] if (1.0..4.0).contains(mbps)), "{queue}: {found:?}");
        }
        assert!(lab.set_queues("s1-eth9", &rates).is_err());
        lab.set_queues("s1-eth2", &[]).unwrap();
        let outcome = measure(&mut real, &experiment);
        assert!(codes(&outcome).contains(&"no-queues"), "{:?}", outcome.record.findings());
        drop(real);
        lab.down().unwrap();
    }
}

/// The script and the built-in experiment measure the same real switch. The test compares orders of magnitude, because
/// the machine may be busy with other work.
#[cfg(feature = "scripts")]
#[test]
fn ovs_a_script_gives_similar_results_to_the_built_in_experiment() {
    if lab::testing::skip(
        "ovs_a_script_gives_similar_results_to_the_built_in_experiment",
        Requirements::ALL,
    ) {
        return;
    }
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/experiments/insert.toml");
    let (lab, mut real) = open("script", VERSIONS[0]);
    let mut script = evaluate::Script::read(&example).unwrap();
    script.set_repetitions(10);
    let scripted = measure(&mut real, &script);
    let built_in = Insert { rules: vec![100], ..Insert::new(common(10)) };
    let built_in = measure(&mut real, &built_in);
    let of_script = Case::new().with("rules", 100.0);
    let of_module = Case::new().with("rules", 100u32);
    let of_module = of_module.with("match", "exact").with("priority", "equal");
    for metric in ["barrier_us", "last_rule_us"] {
        let median = |outcome: &Outcome, case: &Case| {
            let mut samples = outcome.record.samples(case, metric).to_vec();
            samples.sort_by(f64::total_cmp);
            assert_eq!(samples.len(), 10, "{metric}");
            samples[samples.len() / 2]
        };
        let (script, module) = (median(&scripted, &of_script), median(&built_in, &of_module));
        // A rotation of the probes takes 8 ms: this is the smallest difference that an experiment can measure.
        let noise = 8_000.0;
        assert!(script < 5.0 * module + noise, "{metric}: {script} against {module}");
        assert!(module < 5.0 * script + noise, "{metric}: {module} against {script}");
    }
    drop(real);
    lab.down().unwrap();
}

#[test]
fn ovs_the_error_for_a_missing_interface_or_namespace_has_the_name() {
    if lab::testing::skip(
        "ovs_the_error_for_a_missing_interface_or_namespace_has_the_name",
        Requirements::ALL,
    ) {
        return;
    }
    let missing = |interface: &str, namespace: Option<&str>| DataPort {
        interface: interface.to_owned(),
        namespace: namespace.map(str::to_owned),
        switch_port: 1,
    };
    for (port, sentence) in [
        (missing("no-such", None), "no interface \"no-such\""),
        (missing("eth0", Some("no-such")), "no network namespace \"no-such\""),
    ] {
        let error =
            evaluate::Looped::open([port.clone(), port]).err().map(|error| error.to_string());
        assert!(error.as_deref().is_some_and(|error| error.contains(sentence)), "{error:?}");
    }
}
