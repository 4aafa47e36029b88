//! Tests of the data sheet: the data sheet shows the planted faults.

#![allow(clippy::unwrap_used, reason = "helpers of tests are test code too")]

mod common;

use common::{MS, VERSIONS, config, measure};
use emulate::{Config, Fault, ServiceTime};
use evaluate::modules::{Capacity, Insert, Modify, Packets, Statistics, Way};
use evaluate::{Common, DataSheet, Evaluation, Experiment, Hardware};
use report::Environment;

#[test]
fn the_data_sheet_shows_the_configured_faults_of_an_emulated_switch() {
    let common = Common { repetitions: 1, rate: 2_000.0, ..Common::default() };
    let experiments: [Box<dyn Experiment>; 5] = [
        Box::new(Insert {
            rules: vec![10],
            ..Insert::new(Common { rate: 12_500.0, ..common.clone() })
        }),
        Box::new(Capacity { limit: 2_000, ..Capacity::new(common.clone()) }),
        Box::new(Modify { duration: 100 * MS, ..Modify::new(common.clone()) }),
        Box::new(Packets { duration: 500 * MS, ..Packets::new(common.clone(), Way::Echo) }),
        Box::new(Statistics { rules: 100, polls: vec![2.0, 10.0], ..Statistics::new(common) }),
    ];
    let faults = [
        Fault::BarrierLies { by: 30 * MS },
        Fault::DropChangedPackets,
        // A reply of 100 entries takes 200 ms: two replies per second are safe, ten replies per second are not.
        Fault::PaceStatistics { entries: 10, interval: 20 * MS },
    ];
    // An ECHO takes 200 µs, so the switch answers 5,000 per second.
    let service = ServiceTime { default: 0, by_type: vec![(2, 200_000)] };
    let hardware = Hardware { service, ..Hardware::default() };
    let mut evaluation = Evaluation::new("evaluate all", Environment::default());
    for experiment in experiments {
        let config = Config { max_flows: 1_234, ..config(&faults) };
        let outcome = measure(VERSIONS[0], config, hardware.clone(), &*experiment);
        evaluation.add("emulated", experiment.name(), &outcome);
    }
    let sheet = DataSheet::of(&evaluation.results);
    assert_eq!(sheet.barrier_honest, Some(false));
    assert!((29_000.0..=29_950.0).contains(&sheet.barrier_lie_us.unwrap()), "{sheet:?}");
    assert_eq!(sheet.modification_loss["forward"], 0.0);
    assert_eq!(sheet.modification_loss["source-mac"], 100.0);
    // Messages that are still in the queue at the end of a trial of half a second do not count as done.
    assert!((4_700.0..=5_000.0).contains(&sheet.safe_rates["echo"]), "{sheet:?}");
    assert_eq!(sheet.safe_rates["stats-flow"], 2.0);
    // The switch answers the request for aggregate statistics before its late FLOW_MODs are applied. This is a finding.
    let codes: Vec<_> = sheet.findings.iter().map(|finding| finding.code.as_str()).collect();
    assert!(codes.contains(&"barrier-lies") && codes.contains(&"rules-vanish"), "{codes:?}");
    let again: DataSheet = serde_json::from_str(&sheet.to_json()).unwrap();
    assert_eq!(again, sheet);
}

#[test]
fn the_data_sheet_names_the_switch_and_the_unfinished_experiments() {
    for version in VERSIONS {
        let mut evaluation = Evaluation::new("evaluate all", Environment::default());
        let mut testbed =
            evaluate::Emulated::new(config(&[]), Hardware::default(), version).unwrap();
        evaluation.describe(&testbed);
        evaluation.ask_description(&mut testbed, 1_000 * MS).unwrap();
        let outcome = evaluate::Outcome { partial: Some("no".into()), ..Default::default() };
        evaluation.add("emulated", "echo", &outcome);
        let sheet = DataSheet::of(&evaluation.results);
        assert_eq!(sheet.switch["hardware"], "emulated switch".into());
        assert!(sheet.switch["software"].to_string().starts_with("weir-emulate"));
        assert_eq!((sheet.interrupted, sheet.unfinished), (false, vec!["echo".to_owned()]));
        evaluation.results.mark_partial("interrupted in experiment 2 of 3, echo");
        let sheet = DataSheet::of(&evaluation.results);
        assert_eq!((sheet.interrupted, sheet.unfinished.len()), (true, 1));
    }
}
