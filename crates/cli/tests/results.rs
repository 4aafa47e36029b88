//! Tests of results: the commit, the start time and the number of CPUs in a result, interrupted measurements, and bad
//! output folders.

#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic)]

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use report::environment::{program_starts, timestamp};
use report::{Environment, Results};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("weir-results-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn weir(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(arguments).arg("--out").arg(folder.0.join("out"));
    // The folder is not in a clone, because git's answer about the present folder does not describe the program.
    command.current_dir(&folder.0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the commit of the clone of these sources, or `None` for a tarball.
fn commit_of_clone() -> Option<String> {
    let git = |arguments: &[&str]| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let output = Command::new("git").args(arguments).current_dir(folder).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let is_ours = git(&["rev-parse", "--show-prefix"])? == "crates/cli/";
    git(&["rev-parse", "HEAD"]).filter(|_| is_ours)
}

#[test]
fn a_result_has_the_commit_and_the_start_time_of_the_program() {
    let folder = Folder::new("commit");
    let before = timestamp();
    let mut child = weir(&folder, &["bench", "search", "--system", "direct", "--trial", "1"])
        .args(["--low", "100", "--high", "1000"])
        .spawn()
        .expect("start weir");
    let mut talk = BufReader::new(child.stderr.take().expect("its stderr"));
    let mut first = String::new();
    talk.read_line(&mut first).expect("a line");
    let under_way = timestamp();
    let mut rest = String::new();
    talk.read_to_string(&mut rest).expect("text");
    let status = child.wait().expect("its end");
    assert!(matches!(status.code(), Some(0 | 1 | 4)), "{first}{rest}");
    assert!(rest.contains("trials, about"), "it says how long it takes: {rest}");

    let results = Results::read(&folder.0.join("out")).expect("result.json");
    assert!(before <= results.started && results.started <= under_way, "{}", results.started);
    let commit = std::env::var("WEIR_COMMIT").ok().or_else(commit_of_clone);
    assert_eq!(results.environment.commit, commit);
    let version = Command::new(env!("CARGO_BIN_EXE_weir")).arg("--version").output();
    let version = String::from_utf8(version.expect("its version").stdout).expect("text");
    match commit {
        Some(commit) => assert!(version.trim().ends_with(&format!("({commit})")), "{version}"),
        None => assert!(!version.contains('('), "{version}"),
    }
}

/// A calibration limits itself to one CPU. The result still has the number of all CPUs.
#[test]
fn a_result_has_the_number_of_cpus_available_at_program_start() {
    program_starts(None);
    let started_with = std::thread::available_parallelism().expect("CPUs").get();
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this).expect("its CPUs");
    let first = (0..CpuSet::count()).find(|cpu| allowed.is_set(*cpu) == Ok(true));
    let mut one = CpuSet::new();
    one.set(first.expect("a CPU")).expect("it is there");
    sched_setaffinity(this, &one).expect("one CPU");
    assert_eq!(std::thread::available_parallelism().expect("CPUs").get(), 1);
    assert_eq!(Environment::capture(&[]).cpus, started_with);
}

/// The result has the runs before Ctrl-C, and says that it is partial.
#[test]
fn an_interrupted_measurement_writes_partial_results() {
    let folder = Folder::new("interrupted");
    let arguments = ["bench", "run", "--system", "direct,weir", "--runs", "200"];
    let mut child = weir(&folder, &arguments)
        .args(["--rate", "500", "--duration", "0.2", "--cut", "0"])
        .spawn()
        .expect("start weir");
    let mut lines = BufReader::new(child.stderr.take().expect("its stderr")).lines();
    let mut lines = lines.by_ref().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("2 cases, 200 times each: about")), "it says how long");
    assert!(lines.any(|line| line.contains("(5 of 400, about")), "and what is left");
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("it is there");
    lines.for_each(drop);
    let output = child.wait_with_output().expect("its end");
    assert_eq!(output.status.code(), Some(130));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("partial: interrupted: ") && text.contains("of 400 runs"), "{text}");

    let results = Results::read(&folder.0.join("out")).expect("result.json");
    assert!(results.is_partial() && results.findings[0].code == "partial");
    let runs: Vec<usize> = results
        .points
        .iter()
        .map(|point| point.metrics.get("rate_per_s").map_or(0, |rate| rate.samples.len()))
        .collect();
    // The interrupted run may have a sample, and usually has none.
    assert!(runs.iter().all(|runs| (2..10).contains(runs)) && runs.len() == 2, "{runs:?}");
    assert!(folder.0.join("out/report.html").exists());
}

/// A measurement of hours must not be lost because its results cannot be written.
#[test]
fn a_bad_output_folder_is_refused_before_a_measurement() {
    let folder = Folder::new("place");
    fs::write(folder.0.join("out"), "a file").expect("a file");
    for arguments in [
        &["bench", "run", "--system", "direct"][..],
        &["bench", "controller", "tcp:127.0.0.1:9"],
        &["bench", "provisioning"],
        &["evaluate", "insert", "--switch", "emulated"],
        &["reproduce", "basta2017"],
        &["reproduce", "elbouanani2019"],
        &["reproduce", "oflops2012"],
        &["reproduce", "riggio2013"],
        &["reproduce", "riggio2013-edge"],
        &["sampling", "calibrate"],
        &["sampling", "simulate"],
        &["fabric", "simulate"],
        &["report", "compare", "a", "b"],
        &["demo"],
    ] {
        let output = weir(&folder, arguments).output().expect("start weir");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains("--out") && said.contains("is no folder"), "{arguments:?}: {said}");
    }
}
