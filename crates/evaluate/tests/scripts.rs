//! Tests of experiments as scripts: the example agrees with the built-in experiment, and the error for a wrong script
//! names the fault.

#![cfg(feature = "scripts")]
#![allow(clippy::unwrap_used, reason = "helpers of tests are test code too")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{MS, VERSIONS, codes, config, measure};
use emulate::{Fault, ServiceTime};
use evaluate::modules::Insert;
use evaluate::{Case, Common, Hardware, Script};

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/experiments/insert.toml")
}

#[test]
fn the_example_script_gives_the_results_of_the_built_in_experiment() {
    assert!(fs::read_to_string(example().with_extension("rhai")).unwrap().lines().count() < 100);
    let lies = [Fault::BarrierLies { by: 40 * MS }];
    let slow = ServiceTime { default: 0, by_type: vec![(14, 100_000)] };
    let hardware = [Hardware::default(), Hardware { service: slow, ..Hardware::default() }];
    for version in VERSIONS {
        for faults in [&[][..], &lies] {
            for hardware in &hardware {
                let mut script = Script::read(&example()).unwrap();
                script.set_repetitions(3);
                let scripted = measure(version, config(faults), hardware.clone(), &script);
                let common = Common { repetitions: 3, ..Common::default() };
                let built_in = Insert { rules: vec![100], ..Insert::new(common) };
                let built_in = measure(version, config(faults), hardware.clone(), &built_in);
                assert_eq!(scripted.partial, None);
                assert_eq!(codes(&scripted), codes(&built_in));
                let of_script = Case::new().with("rules", 100.0);
                let of_module = Case::new().with("rules", 100u32);
                let of_module = of_module.with("match", "exact").with("priority", "equal");
                // A rotation of the probes takes 8 ms: this is the smallest difference that an experiment can measure.
                for (metric, noise) in [
                    ("sent_us", 0.001),
                    ("barrier_us", 0.001),
                    ("last_rule_us", 8_001.0),
                    ("lie_at_least_us", 8_001.0),
                    ("lie_at_most_us", 8_001.0),
                ] {
                    let scripted = scripted.record.samples(&of_script, metric);
                    let built_in = built_in.record.samples(&of_module, metric);
                    assert_eq!((scripted.len(), built_in.len()), (3, 3), "{metric}");
                    for (a, b) in scripted.iter().zip(built_in) {
                        assert!((a - b).abs() <= noise, "{metric}: {a} and {b}");
                    }
                }
            }
        }
    }
}

/// Writes the files of an experiment and reads the experiment.
fn experiment(name: &str, toml: &str, script: &str) -> Result<Script, String> {
    let folder = std::env::temp_dir().join(format!("weir-script-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("it.rhai"), script).unwrap();
    fs::write(folder.join("it.toml"), format!("name = \"it\"\nscript = \"it.rhai\"\n{toml}"))
        .unwrap();
    let read = Script::read(&folder.join("it.toml")).map_err(|error| error.to_string());
    fs::remove_dir_all(&folder).unwrap();
    read
}

#[test]
fn errors_for_invalid_script_files_have_the_reason() {
    let cases = [
        ("key", "repetition = 3", "fn start() {}", "repetition"),
        ("repetitions", "repetitions = 0", "fn start() {}", "1 to 10000"),
        ("no-start", "", "fn begin() {}", "no function start()"),
        ("syntax", "", "fn start() { let }", "line 1"),
        (
            "arguments",
            "",
            "fn start() {} fn probe(x) {}",
            "probe(at, channel, sequence, sent, seen)",
        ),
    ];
    for (name, toml, script, sentence) in cases {
        let error = experiment(name, toml, script).map(|_| ()).unwrap_err();
        assert!(error.contains(sentence), "{name}: {error}");
    }
    let mut script = Script::read(&example()).unwrap();
    assert!(script.set("rulez", "3").unwrap_err().to_string().contains("rules"));
    assert!(Script::read(Path::new("no/such.toml")).is_err());
}

#[test]
fn a_script_that_fails_gives_a_partial_result_with_the_reason() {
    let cases = [
        ("unknown", "fn start() { jump(); }", "jump"),
        ("for-ever", "fn start() { loop {} }", "operations"),
        ("channel", "fn start() { add(0, 1, 7); }", "no channel 7"),
        ("priority", "fn start() { add(0, 70000, 1); }", "priority 70000"),
        ("rate", "fn start() { generate(1, 0, 1, -5, 1, 100); }", "no rate"),
        ("channels", "fn start() { end(); }", "needs 9 data channels"),
        ("given-up", "fn start() { give_up(`no ${1 + 1}`); }", "no 2"),
    ];
    for (name, script, sentence) in cases {
        let toml = if name == "channels" { "channels = 9" } else { "" };
        let script = experiment(name, toml, script).unwrap();
        let outcome = measure(VERSIONS[0], config(&[]), Hardware::default(), &script);
        let partial = outcome.partial.unwrap_or_default();
        assert!(partial.contains(sentence), "{name}: {partial:?}");
    }
}
