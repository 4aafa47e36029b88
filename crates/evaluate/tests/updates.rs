//! Tests of `insert`, `change`, `delete` and `interaction` on emulated switches: each experiment finds the planted
//! values.

#![allow(clippy::unwrap_used, reason = "helpers of tests are test code too")]

mod common;

use common::{MS, VERSIONS, codes, config, measure};
use emulate::{Fault, ServiceTime};
use evaluate::modules::{Change, Delete, Insert, Interaction, MatchKind, Priorities};
use evaluate::{Case, Common, Experiment, Hardware, Outcome};

fn common(repetitions: u32) -> Common {
    Common { repetitions, ..Common::default() }
}

fn insert(rules: u32) -> Insert {
    Insert { rules: vec![rules], ..Insert::new(common(3)) }
}

fn case(rules: u32, matches: &str, priority: &str) -> Case {
    Case::new().with("rules", rules).with("match", matches).with("priority", priority)
}

fn sample(outcome: &Outcome, case: &Case, name: &str) -> Vec<f64> {
    let samples = outcome.record.samples(case, name);
    assert!(!samples.is_empty(), "no {name}: {:?} {:?}", outcome.partial, codes(outcome));
    samples.to_vec()
}

/// The three changes of 100 entries.
fn changes() -> [Box<dyn Experiment>; 3] {
    [Box::new(insert(100)), Box::new(Change(insert(100))), Box::new(Delete(insert(100)))]
}

#[test]
fn a_switch_with_correct_barriers_is_reported_as_honest() {
    for version in VERSIONS {
        for experiment in changes() {
            let outcome = measure(version, config(&[]), Hardware::default(), &*experiment);
            let name = experiment.name();
            assert_eq!(outcome.partial, None, "{name} {version:?}");
            assert!(codes(&outcome).is_empty(), "{name} {version:?} {:?}", codes(&outcome));
            let case = case(100, "exact", "equal");
            assert_eq!(sample(&outcome, &case, "barrier_honest"), [1.0; 3], "{name}");
            // The control channel takes 50 µs in each direction.
            assert_eq!(sample(&outcome, &case, "barrier_us"), [100.0; 3], "{name}");
            assert_eq!(sample(&outcome, &case, "rules_never_real"), [0.0; 3], "{name}");
            let histogram = outcome.record.histogram(&case, "each rule").unwrap();
            assert_eq!(histogram.count(), 300, "{name}");
        }
    }
}

#[test]
fn the_time_by_which_a_barrier_reply_is_too_early_is_measured() {
    const BY: u64 = 50 * MS;
    // The reply needs 50 µs to the controller, so the measured lie is shorter by 50 µs.
    let planted = (BY - 50_000) as f64 / 1e3;
    for version in VERSIONS {
        for experiment in changes() {
            let faults = [Fault::BarrierLies { by: BY }];
            let outcome = measure(version, config(&faults), Hardware::default(), &*experiment);
            let name = experiment.name();
            assert_eq!(outcome.partial, None, "{name}");
            assert_eq!(codes(&outcome), ["barrier-lies"], "{name} {version:?}");
            let case = case(100, "exact", "equal");
            let least = sample(&outcome, &case, "lie_at_least_us");
            let most = sample(&outcome, &case, "lie_at_most_us");
            let resolution = sample(&outcome, &case, "resolution_us")[0];
            for (least, most) in least.into_iter().zip(most) {
                assert!(least <= planted && planted <= most, "{name}: {least} to {most}");
                assert!(most - least <= resolution + 1.0, "{name}: {least} to {most}");
            }
            assert_eq!(sample(&outcome, &case, "barrier_honest"), [0.0; 3]);
        }
    }
}

#[test]
fn the_insertion_time_of_a_slow_switch_is_measured() {
    // Each FLOW_MOD takes a millisecond, as with Switch1 of the paper.
    let service = ServiceTime { default: 0, by_type: vec![(14, MS)] };
    let hardware = Hardware { service, ..Hardware::default() };
    let experiment = Insert { rules: vec![1, 10, 100], ..Insert::new(common(1)) };
    for version in VERSIONS {
        let outcome = measure(version, config(&[]), hardware.clone(), &experiment);
        for rules in [1, 10, 100] {
            let case = case(rules, "exact", "equal");
            assert_eq!(sample(&outcome, &case, "barrier_us"), [f64::from(rules) * 1e3 + 100.0]);
            let last = sample(&outcome, &case, "last_rule_us")[0];
            let resolution = sample(&outcome, &case, "resolution_us")[0];
            let real = f64::from(rules) * 1e3 + 50.0;
            assert!(last >= real && last <= real + resolution + 6.0, "{rules}: {last}");
        }
    }
}

#[test]
fn insertion_works_with_each_match_kind_and_priority_order() {
    let experiment = Insert {
        rules: vec![50],
        matches: vec![MatchKind::Exact, MatchKind::Wildcard],
        priorities: vec![
            Priorities::Increasing,
            Priorities::Decreasing,
            Priorities::Equal,
            Priorities::Random,
        ],
        ..Insert::new(common(1))
    };
    for version in VERSIONS {
        let outcome = measure(version, config(&[]), Hardware::default(), &experiment);
        assert_eq!((outcome.partial.as_deref(), codes(&outcome)), (None, vec![]));
        for matches in ["exact", "wildcard"] {
            for priority in ["increasing", "decreasing", "equal", "random"] {
                let case = case(50, matches, priority);
                assert_eq!(sample(&outcome, &case, "rules_never_real"), [0.0]);
            }
        }
    }
}

#[test]
fn cpu_use_and_reply_time_of_polls_during_rule_changes_are_measured() {
    // Each request for flow statistics takes 20 ms: 25 requests per second use half of the CPU.
    let service = ServiceTime { default: 0, by_type: vec![(16, 20 * MS), (18, 20 * MS)] };
    let hardware = Hardware { service, ..Hardware::default() };
    let experiment = Interaction { polls: vec![0.0, 25.0], ..Interaction::new(common(5)) };
    let version = VERSIONS[0];
    let outcome = measure(version, config(&[]), hardware, &experiment);
    assert_eq!(outcome.partial, None);
    let case =
        |polls: f64| case(100, "exact", "equal").with("others", 924u32).with("polls_per_s", polls);
    let cpu = sample(&outcome, &case(25.0), "cpu_percent");
    assert!(cpu.iter().all(|cpu| (35.0..80.0).contains(cpu)), "{cpu:?}");
    let replies = outcome.record.histogram(&case(25.0), "statistics reply").unwrap();
    // The switch needs 20 ms, and each direction 50 µs. A barrier of 20 ms may be before the request in the queue (a
    // barrier of 1.0 has the same type number as statistics of 1.3).
    assert!(replies.percentile(50.0).unwrap() >= 20_000_000, "{replies:?}");
}

#[test]
fn switch_faults_end_the_experiment_with_the_reason() {
    let cases: [(Fault, &str); 4] = [
        (Fault::NeverAnswers { message_type: 18 }, "not answered a BARRIER_REQUEST"),
        (Fault::RefuseFlowMods { every: 50 }, "OFPFMFC_ALL_TABLES_FULL"),
        (Fault::DisconnectInReply { message: 60 }, "ended the control channel"),
        (Fault::Garbage { message: 60, bytes: vec![1, 0, 0, 3, 0, 0, 0, 0] }, "no OpenFlow"),
    ];
    for (fault, sentence) in cases {
        let mut testbed =
            common::testbed(VERSIONS[0], config(std::slice::from_ref(&fault)), Hardware::default());
        let options = evaluate::RunOptions::new(common::never());
        let mut module = insert(100).module();
        let outcome = evaluate::run(&mut testbed, module.as_mut(), &options).unwrap();
        let partial = outcome.partial.unwrap_or_default();
        assert!(partial.contains(sentence), "{fault:?}: {partial:?}");
    }
}
