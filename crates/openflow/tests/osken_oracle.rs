//! Tests with os-ken as oracle. `tests/oracle/osken_fixtures.py` makes the samples again with os-ken's own classes, and
//! reads our messages with os-ken; its output is `tests/oracle/osken.txt`. The tests compare this output with the
//! messages that we write and read, and make the output again where os-ken is installed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use support::cases::{self, Case, from_hex, to_hex};

/// The output of os-ken for a sample.
enum Line {
    Written(Vec<u8>),
    Read(String),
}

#[test]
fn os_ken_writes_the_same_bytes() {
    let cases = all_cases();
    let mut compared = 0;
    for (name, line) in fixtures() {
        if let Line::Written(frame) = line {
            assert_eq!(to_hex(&cases[&name].frame), to_hex(&frame), "{name}");
            compared += 1;
        }
    }
    assert!(compared >= 80, "only {compared} messages were compared");
}

/// Fields have the names of the specification in os-ken and in Weir. So each number that Weir reads for a name has to
/// be among the numbers that os-ken reads for this name.
#[test]
fn os_ken_reads_the_same_field_values() {
    let cases = all_cases();
    let mut compared = 0;
    for (name, line) in fixtures() {
        let Line::Read(theirs) = line else { continue };
        let theirs = numbers(&theirs.replace('"', ""));
        for (field, values) in numbers(&cases[&name].read) {
            let Some(expected) = theirs.get(&field) else { continue };
            let mut expected = expected.clone();
            for value in values {
                let found = expected.iter().position(|other| *other == value);
                expected.swap_remove(
                    found.unwrap_or_else(|| {
                        panic!("{name}: {field}: {value} is not in {expected:?}")
                    }),
                );
                compared += 1;
            }
        }
    }
    assert!(compared >= 400, "only {compared} numbers were compared");
}

#[test]
fn every_sample_is_written_or_read_by_os_ken() {
    let seen: BTreeSet<String> = fixtures().into_iter().map(|(name, _)| name).collect();
    let all: BTreeSet<String> = all_cases().into_keys().collect();
    let unseen: Vec<&String> = all.difference(&seen).collect();
    // os-ken cannot write Nicira's statistics requests of 1.0, and reads no statistics request.
    assert_eq!(unseen, ["v10 stats request: vendor"]);
}

#[test]
fn os_ken_output_equals_the_stored_fixtures() {
    let Some(python) = python_with_os_ken("os_ken_output_equals_the_stored_fixtures") else {
        return;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle");
    let output =
        Command::new(python).arg(folder.join("osken_fixtures.py")).output().expect("python runs");
    assert!(
        output.status.success(),
        "osken_fixtures.py: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let now = String::from_utf8(output.stdout).expect("the script prints UTF-8");
    let stored = std::fs::read_to_string(folder.join("osken.txt")).unwrap();
    for (now, stored) in now.lines().zip(stored.lines()) {
        assert_eq!(now, stored);
    }
    assert_eq!(now.lines().count(), stored.lines().count());
}

fn all_cases() -> BTreeMap<String, Case> {
    let label = |label: &'static str| move |case: Case| (format!("{label} {}", case.name), case);
    let v10 = cases::load("v10.txt").into_iter().map(label("v10"));
    v10.chain(cases::load("v13.txt").into_iter().map(label("v13"))).collect()
}

fn fixtures() -> Vec<(String, Line)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/osken.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let mut name = "";
    let mut fixtures = Vec::new();
    for line in text.lines() {
        if let Some(next) = line.strip_prefix("# ") {
            name = next;
        } else if let Some(hex) = line.strip_prefix("written: ") {
            fixtures.push((name.to_owned(), Line::Written(from_hex(hex))));
        } else if let Some(read) = line.strip_prefix("read: ") {
            fixtures.push((name.to_owned(), Line::Read(read.to_owned())));
        }
    }
    fixtures
}

/// The numbers of every `name: NUMBER` in a text, by name.
fn numbers(text: &str) -> BTreeMap<String, Vec<u64>> {
    let mut numbers: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (at, _) in text.match_indices(": ") {
        let name: &str =
            text[..at].rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap();
        let rest = &text[at + 2..];
        let digits = &rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())];
        let ends = rest[digits.len()..].starts_with([',', ' ', '}', ']', ')']);
        // Digits that continue are a part of an address: 10.1.0.1, 02:00:00:00:00:01.
        if let (Ok(number), true) = (digits.parse(), ends) {
            numbers.entry(name.to_owned()).or_default().push(number);
        }
    }
    numbers
}

/// The Python of WEIR_PYTHON, or of the project's virtual environment, if it has os-ken.
fn python_with_os_ken(test: &str) -> Option<PathBuf> {
    let python = std::env::var_os("WEIR_PYTHON").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python"),
        PathBuf::from,
    );
    let there = Command::new(&python)
        .args(["-c", "import os_ken"])
        .output()
        .is_ok_and(|run| run.status.success());
    if there {
        return Some(python);
    }
    support::skip(test, &format!("{} has no os-ken (scripts/setup installs it)", python.display()));
    None
}
