//! Tests of a comparison from beginning to end: systems are started and measured in turn, and the results are written
//! and read again.

#![allow(clippy::unwrap_used, reason = "test code")]

use bench::{Comparison, Kind, Load, Matrix, Options, Plan, Setup, Shape, System, Topology};
use report::Results;
use std::path::PathBuf;

#[test]
fn a_comparison_measures_direct_connections_and_haproxy() {
    let mut systems = vec![System::Direct];
    // Without HAProxy only direct connections are measured.
    let name = "a_comparison_measures_direct_connections_and_haproxy";
    if !lab::testing::skip_without(name, &[("haproxy", "haproxy")]) {
        systems.push(System::Haproxy { program: PathBuf::from("haproxy") });
    }
    let dir = std::env::temp_dir().join(format!("weir-bench-comparison-{}", std::process::id()));
    let mut options = Options::new(System::Direct, dir.join("work"));
    (options.runs, options.duration_ms, options.cut_ms) = (2, 200, 50);
    let matrix = Matrix {
        systems: systems.clone(),
        mixes: vec![vec![(Kind::PacketIn, 1)], vec![(Kind::Echo, 1), (Kind::PacketOut, 1)]],
        rates: vec![2000.0],
        tenants: vec![1, 3],
        shape: Shape::Poisson,
        batch: 1,
    };
    let mut said = Vec::new();
    let comparison: Comparison = matrix.comparison(&options).unwrap();
    let verdict = comparison.run(&options, &mut |line| said.push(line.to_owned())).unwrap();

    let cases = systems.len() * 4;
    assert_eq!(verdict.results.points.len(), cases);
    assert_eq!(said.len(), 3 + 2 * cases);
    assert_eq!(
        said[0],
        format!("{cases} cases, 2 times each: about {} s", (3.4 * cases as f64).round())
    );
    assert!(said[2].starts_with("the generator itself can do"), "{}", said[2]);
    let last = said.last().unwrap();
    assert!(last.contains(&format!("({0} of {0}, about ", 2 * cases)), "{last}");
    for point in &verdict.results.points {
        let metric = |name: &str| point.metrics.get(name).map(|metric| metric.samples.clone());
        assert_eq!(metric("unanswered_percent"), Some(vec![0.0, 0.0]), "{point:?}");
        assert_eq!(metric("p99_us").map(|samples| samples.len()), Some(2));
        assert_eq!(metric("cpu_percent").is_some(), point.system == "haproxy");
        let cost = point.mean("cpu_us_per_message");
        assert_eq!(cost.is_some_and(|us| us > 0.0), point.system == "haproxy", "{cost:?}");
    }
    assert_eq!(verdict.table().to_string().lines().count(), 1 + cases);

    verdict.write(&dir).unwrap();
    let read = Results::read(&dir).unwrap();
    assert_eq!(read.points.len(), cases);
    assert!(read.settings.contains_key("generator_ceiling_per_s"));
    let pairs = [("a".to_owned(), read), ("b".to_owned(), verdict.results)];
    assert!(!report::compare(&pairs).lines.is_empty());
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_plan_of_a_scenario_file_is_measured_on_a_system() {
    let dir = std::env::temp_dir().join(format!("weir-bench-plan-{}", std::process::id()));
    let mut options = Options::new(System::Direct, dir.clone());
    options.runs = 1;
    let load = Load::constant(Kind::Barrier, 2, 1000.0, 100);
    let plan = Plan { setup: Setup::new(Topology::Direct, 2), load };
    let comparison = Comparison::of_plan(&plan, &[System::Direct]).unwrap();
    let verdict = comparison.run(&options, &mut |_| {}).unwrap();
    let received: u64 =
        verdict.results.points[0].tenants.iter().map(|tenant| tenant.received).sum();
    assert_eq!(received, 100);
    assert_eq!(verdict.window.as_millis(), 100);
    std::fs::remove_dir_all(dir).unwrap();
}
