//! Tests of the experiments other than updates, on emulated switches: each experiment finds the planted value.

#![allow(clippy::unwrap_used, reason = "helpers of tests are test code too")]

mod common;

use common::{MS, VERSIONS, codes, config, measure};
use emulate::{Config, Fault, PortConfig, ServiceTime};
use evaluate::modules::{
    Capacity, MatchKind, Modification, Modify, Packets, PathDelay, PortStatus, Queue, Statistics,
    StatisticsKind, Timestamp, Way,
};
use evaluate::{Case, Common, Hardware, Outcome};

fn common(repetitions: u32) -> Common {
    Common { repetitions, rate: 2_000.0, ..Common::default() }
}

#[track_caller]
fn sample(outcome: &Outcome, case: &Case, name: &str) -> Vec<f64> {
    let samples = outcome.record.samples(case, name);
    assert!(!samples.is_empty(), "no {name}: {:?} {:?}", outcome.partial, codes(outcome));
    samples.to_vec()
}

#[track_caller]
fn is_clean(outcome: &Outcome) {
    assert_eq!((outcome.partial.as_deref(), codes(outcome)), (None, vec![]));
}

fn set(modifications: &[Modification]) -> Case {
    let names: Vec<_> = modifications.iter().map(|it| it.name()).collect();
    let name = if names.is_empty() { "forward".to_owned() } else { names.join("+") };
    Case::new().with("actions", modifications.len()).with("set", name)
}

#[test]
fn the_delay_of_each_packet_modification_is_measured_without_loss() {
    let hardware = Hardware { rewriting: 300_000, ..Hardware::default() };
    let experiment = Modify { duration: 100 * MS, ..Modify::new(common(2)) };
    for version in VERSIONS {
        let outcome = measure(version, config(&[]), hardware.clone(), &experiment);
        is_clean(&outcome);
        for modifications in &experiment.sets {
            let case = set(modifications);
            let expected = if modifications.is_empty() { 5.0 } else { 305.0 };
            for median in sample(&outcome, &case, "median_us") {
                assert!((median - expected).abs() < 1.0, "{case:?} {version:?}: {median}");
            }
            assert_eq!(sample(&outcome, &case, "loss_percent"), [0.0; 2], "{case:?}");
        }
    }
}

#[test]
fn a_switch_that_drops_modified_packets_has_full_loss_for_modifications() {
    let experiment = Modify { duration: 100 * MS, ..Modify::new(common(1)) };
    for version in VERSIONS {
        let faults = [Fault::DropChangedPackets];
        let outcome = measure(version, config(&faults), Hardware::default(), &experiment);
        for modifications in &experiment.sets {
            let lost = if modifications.is_empty() { 0.0 } else { 100.0 };
            let case = set(modifications);
            assert_eq!(sample(&outcome, &case, "loss_percent"), [lost], "{case:?} {version:?}");
        }
    }
}

#[test]
fn the_configured_table_capacity_is_found() {
    for version in VERSIONS {
        for match_ in [MatchKind::Exact, MatchKind::Wildcard] {
            for planted in [1_usize, 777, 1_000, 5_000] {
                let config = Config { max_flows: planted, ..config(&[]) };
                let experiment = Capacity { match_, limit: 2_000, ..Capacity::new(common(2)) };
                let outcome = measure(version, config, Hardware::default(), &experiment);
                is_clean(&outcome);
                let name = if match_ == MatchKind::Exact { "exact" } else { "wildcard" };
                let case = Case::new().with("match", name);
                let found = planted.min(2_000) as f64;
                assert_eq!(sample(&outcome, &case, "capacity_rules"), [found; 2], "{version:?}");
                let full = if planted < 2_000 { 1.0 } else { 0.0 };
                assert_eq!(sample(&outcome, &case, "full_seen"), [full; 2]);
            }
        }
    }
}

#[test]
fn the_highest_loss_free_rate_of_packet_ins_is_found() {
    let limit = 7_000.0;
    let hardware = Hardware { packet_ins: Some((limit, 100)), ..Hardware::default() };
    for version in VERSIONS {
        let experiment = Packets { duration: 500 * MS, ..Packets::new(common(1), Way::In) };
        let outcome = measure(version, config(&[]), hardware.clone(), &experiment);
        is_clean(&outcome);
        let found = sample(&outcome, &Case::new(), "highest_loss_free_per_s")[0];
        // The queue holds 100 messages. Over half a second this adds 200 messages per second to the found rate.
        assert!((limit * 0.94..=limit + 210.0).contains(&found), "{found}");
    }
}

#[test]
fn measured_control_message_latency_equals_the_configured_delay() {
    // A PACKET_OUT needs 100 µs of the CPU, 50 µs to the switch and 5 µs to the port.
    let service = ServiceTime { default: 0, by_type: vec![(13, 100_000)] };
    let hardware = Hardware { service, ..Hardware::default() };
    for (way, expected) in
        [(Way::In, 50.0), (Way::Out, 155.0), (Way::Echo, 100.0), (Way::Barrier, 100.0)]
    {
        for version in VERSIONS {
            let experiment =
                Packets { duration: 200 * MS, most: 1_000.0, ..Packets::new(common(1), way) };
            let outcome = measure(version, config(&[]), hardware.clone(), &experiment);
            is_clean(&outcome);
            let case = Case::new().with("rate", 1_000.0);
            let median = sample(&outcome, &case, "median_us")[0];
            assert!((median - expected).abs() < 1.0, "{way:?} {version:?}: {median}");
            assert_eq!(sample(&outcome, &Case::new(), "highest_loss_free_per_s"), [1_000.0]);
        }
    }
}

#[test]
fn the_time_and_parts_of_paced_statistics_replies_are_measured() {
    // The reply has 100 entries in parts of 10. Each part is sent 5 ms after the previous part.
    let faults = [Fault::PaceStatistics { entries: 10, interval: 5 * MS }];
    for version in VERSIONS {
        let experiment = Statistics {
            rules: 100,
            kinds: vec![StatisticsKind::Flow, StatisticsKind::Aggregate],
            polls: vec![2.0, 10.0],
            ..Statistics::new(common(1))
        };
        let outcome = measure(version, config(&faults), Hardware::default(), &experiment);
        is_clean(&outcome);
        for (kind, parts, us) in [("flow", 10.0, 50_100.0), ("aggregate", 1.0, 5_100.0)] {
            for polls in [2.0, 10.0] {
                let case = Case::new().with("kind", kind).with("rules", 100u32);
                let case = case.with("polls_per_s", polls);
                let counts = sample(&outcome, &case, "parts");
                assert_eq!(counts, vec![parts; (2.0 * polls) as usize], "{kind} {version:?}");
                let reply = outcome.record.histogram(&case, "reply").unwrap();
                let median = reply.percentile(50.0).unwrap() as f64 / 1e3;
                assert!((median - us).abs() < us * 0.01, "{kind} {polls} {version:?}: {median}");
            }
        }
    }
}

#[test]
fn the_cpu_use_of_statistics_polls_equals_the_configured_cost() {
    let service = ServiceTime { default: 0, by_type: vec![(16, 4 * MS)] };
    let hardware = Hardware { service, ..Hardware::default() };
    let experiment = Statistics {
        rules: 10,
        kinds: vec![StatisticsKind::Flow],
        polls: vec![50.0, 100.0],
        ..Statistics::new(common(2))
    };
    let outcome = measure(VERSIONS[0], config(&[]), hardware, &experiment);
    is_clean(&outcome);
    for (polls, percent) in [(50.0, 20.0), (100.0, 40.0)] {
        let case = Case::new().with("kind", "flow").with("rules", 10u32).with("polls_per_s", polls);
        for cpu in sample(&outcome, &case, "cpu_percent") {
            assert!((cpu - percent).abs() < 1.0, "{polls}: {cpu}");
        }
    }
}

#[test]
fn measured_path_delay_equals_the_configured_forwarding_delay() {
    let hardware = Hardware { forwarding: 35_000, ..Hardware::default() };
    let experiment = PathDelay { duration: 100 * MS, ..PathDelay::new(common(1)) };
    let outcome = measure(VERSIONS[1], config(&[]), hardware, &experiment);
    is_clean(&outcome);
    for rate in [1_000.0, 12_500.0] {
        for length in [60u32, 100, 1_500] {
            let case = Case::new().with("rate", rate).with("length", length);
            let median = sample(&outcome, &case, "median_us")[0];
            assert!((median - 35.0).abs() < 0.1, "{median}");
        }
    }
}

#[test]
fn measured_port_status_time_equals_the_configured_link_detection_time() {
    let hardware = Hardware { link_detection: 30 * MS, ..Hardware::default() };
    for version in VERSIONS {
        let experiment = PortStatus { common: common(3) };
        let outcome = measure(version, config(&[]), hardware.clone(), &experiment);
        is_clean(&outcome);
        for link in ["down", "up"] {
            let case = Case::new().with("link", link);
            assert_eq!(sample(&outcome, &case, "port_status_us"), [30_050.0; 3], "{link}");
        }
    }
}

#[test]
fn measured_throughput_of_a_slow_queue_equals_the_configured_rate() {
    let mut config = config(&[]);
    config.ports[1] = PortConfig { queues: vec![0, 3], ..PortConfig::new(2) };
    // Queue 3 has 1 Mbit/s. 2,000 probes of 100 bytes per second are 1.6 Mbit/s.
    let hardware = Hardware { queues: vec![(3, 1_000_000)], ..Hardware::default() };
    for version in VERSIONS {
        let experiment =
            Queue { rates: vec![2_000.0], duration: 3_000 * MS, ..Queue::new(common(1)) };
        let outcome = measure(version, config.clone(), hardware.clone(), &experiment);
        is_clean(&outcome);
        for (queue, planted) in [(0u32, 1.6), (3, 1.0)] {
            let case = Case::new().with("queue", queue).with("rate", 2_000.0);
            let found = sample(&outcome, &case, "throughput_mbps")[0];
            assert!((found - planted).abs() < 0.01 * planted, "{queue}: {found}");
        }
    }
}

#[test]
fn a_switch_that_ignores_queues_gives_a_queue_unused_finding() {
    let mut config = config(&[Fault::IgnoreQueues]);
    config.ports[1] = PortConfig { queues: vec![0, 3], ..PortConfig::new(2) };
    for version in VERSIONS {
        let experiment = Queue { rates: vec![2_000.0], ..Queue::new(common(1)) };
        let outcome = measure(version, config.clone(), Hardware::default(), &experiment);
        assert_eq!(outcome.partial, None);
        assert_eq!(codes(&outcome), ["queue-unused"]);
        assert!(outcome.record.findings()[0].text.contains("queue 3"));
    }
}

#[test]
fn the_configured_drift_of_the_capture_clock_is_measured() {
    let hardware = Hardware { clock_drift_ppm: 50.0, ..Hardware::default() };
    let experiment = Timestamp { common: common(1), duration: 10_000 * MS };
    let outcome = measure(VERSIONS[0], config(&[]), hardware, &experiment);
    is_clean(&outcome);
    let case = Case::new().with("rate", 2_000.0).with("length", 100u32);
    assert!((sample(&outcome, &case, "kernel_drift_ppm")[0] - 50.0).abs() < 0.1);
    assert!(sample(&outcome, &case, "user_drift_ppm")[0].abs() < 0.1);
    let user = outcome.record.histogram(&case, "user space").unwrap();
    assert_eq!(user.percentile(50.0).map(|ns| ns / 1_000), Some(25));
}

#[test]
fn a_switch_that_does_not_answer_gives_a_partial_result_or_a_finding() {
    // BARRIER_REQUEST has the message type 18 in OpenFlow 1.0.
    let silent = [Fault::NeverAnswers { message_type: 18 }];
    let experiments: [Box<dyn evaluate::Experiment>; 5] = [
        Box::new(Modify::new(common(1))),
        Box::new(Capacity::new(common(1))),
        Box::new(Packets::new(common(1), Way::In)),
        Box::new(Statistics::new(common(1))),
        Box::new(Timestamp { common: common(1), duration: MS }),
    ];
    for experiment in experiments {
        let outcome = measure(VERSIONS[0], config(&silent), Hardware::default(), &*experiment);
        let partial = outcome.partial.unwrap_or_default();
        assert!(partial.contains("not answered"), "{}: {partial:?}", experiment.name());
    }
    // The switch never answers statistics requests. So the table cannot be read either, and both faults are findings.
    let silent = [Fault::NeverAnswers { message_type: 16 }];
    let experiment = Statistics { polls: vec![2.0], ..Statistics::new(common(1)) };
    let outcome = measure(VERSIONS[0], config(&silent), Hardware::default(), &experiment);
    assert!(codes(&outcome).contains(&"tables-unknown"), "{:?}", codes(&outcome));
    assert!(codes(&outcome).contains(&"polls-unanswered"), "{:?}", codes(&outcome));
}
