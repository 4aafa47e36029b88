//! Tests of the output of commands on a terminal and in a pipe. On a terminal progress is one line, which is redrawn
//! with the remaining time, and tables are no wider than the terminal. In a pipe progress is a line for each step, and
//! tables are complete.

#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::print_stderr, reason = "helpers of tests are test code too")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// Moves to the start of the line, and clears the line.
const REDRAW: &str = "\r\x1b[K";
const COLUMNS: usize = 80;

/// A folder in which commands run. The folder is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path =
            std::env::temp_dir().join(format!("weir-terminal-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    /// Runs `weir` on a terminal, which the program `script` provides. Returns the output.
    fn on_terminal(&self, arguments: &str) -> String {
        let command = format!("stty cols {COLUMNS} rows 24 && exec {WEIR} {arguments}");
        let mut script = Command::new("script");
        script.args(["-qec", &command, "/dev/null"]).current_dir(&self.0).env("TERM", "xterm");
        let output = script.stdin(Stdio::null()).output().expect("script (Debian: bsdutils)");
        String::from_utf8(output.stdout).expect("UTF-8").replace("\r\n", "\n")
    }

    /// Runs `weir` with both outputs in pipes. Returns stdout and stderr.
    fn in_pipes(&self, arguments: &str) -> (String, String) {
        let mut weir = Command::new(WEIR);
        let output = weir.args(arguments.split(' ')).current_dir(&self.0).output().expect("weir");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (text(output.stdout), text(output.stderr))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the lines that stay on the screen, without colours.
fn standing(raw: &str) -> Vec<String> {
    let colours = ["\x1b[32m", "\x1b[31m", "\x1b[1m", "\x1b[0m"];
    let plain = colours.iter().fold(raw.to_owned(), |text, colour| text.replace(colour, ""));
    let last = |line: &str| line.rsplit(REDRAW).next().unwrap_or_default().to_owned();
    plain.lines().map(last).collect()
}

fn width(line: &str) -> usize {
    line.chars().count()
}

/// `last` is the title of the table's last column.
fn check(name: &str, arguments: &str, last: &str) {
    let folder = Folder::new(name);
    let raw = folder.on_terminal(arguments);
    check_progress(&raw);
    let lines = standing(&raw);
    // Sentences follow after the table, and the terminal breaks long sentences itself.
    let table: Vec<&String> = lines.iter().take_while(|line| !line.is_empty()).collect();
    assert!(table.len() > 1 && table.iter().all(|line| width(line) <= COLUMNS), "{table:#?}");

    let (stdout, stderr) = folder.in_pipes(arguments);
    let title = stdout.lines().next().unwrap_or_default();
    assert!(title.ends_with(last), "{last:?} is not last in {title:?}");
    assert!(!stderr.contains(['\r', '\x1b']), "{stderr:?}");
    assert!(stderr.lines().any(is_step), "{stderr}");
}

fn check_progress(raw: &str) {
    let said: Vec<&str> = raw.split(REDRAW).skip(1).collect();
    assert!(said.iter().any(|text| is_step(text)), "{raw:?}");
    assert!(said.iter().all(|text| width(text.lines().next().unwrap_or_default()) < COLUMNS * 4));
    let left: Vec<String> = standing(raw).into_iter().filter(|line| is_step(line)).collect();
    assert!(left.is_empty(), "progress is left standing: {left:?}");
}

/// Whether a text is a line of progress with the remaining time.
fn is_step(text: &str) -> bool {
    text.contains(" left") && text.contains("about ") || text.contains(", at most 10 min each")
}

#[test]
fn bench_run() {
    let load = "--rate 500,1000 --runs 2 --duration 0.2 --cut 0";
    check("run", &format!("bench run --system direct {load}"), "lag p99 µs");
}

#[test]
fn bench_search() {
    // The column with the result of a trial has no title.
    let arguments = "bench search --system direct --trial 0.2 --low 100 --high 1000";
    check("search", arguments, "lag p99 µs");
}

#[test]
fn evaluate() {
    check("evaluate", "evaluate echo --switch emulated --quick", "n");
}

#[test]
fn reproduce() {
    let folder = Folder::new("reproduce");
    let load = "--quick --runs 1 --duration 0.3 --switch emulated";
    let raw = folder.on_terminal(&format!("reproduce basta2017 3c {load}"));
    check_progress(&raw);
    // Each table has a title line that begins with `case`.
    let lines = standing(&raw);
    let tables: Vec<&[String]> = lines
        .split(|line| line.is_empty())
        .filter(|part| part.iter().any(|line| line.starts_with("case ")))
        .collect();
    assert!(!tables.is_empty(), "{lines:#?}");
    for line in tables.concat() {
        assert!(width(&line) <= COLUMNS, "{line}");
    }
}

#[test]
fn fabric_simulate() {
    let load = "--tenants 8 --quick --intervals 0.1,5";
    check("fabric", &format!("fabric simulate fattree,4 {load}"), "moves/flow/min");
}

/// The full first column would be wider than the terminal, but the columns with numbers must be visible.
#[test]
fn report_compare() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproduce/oflops2012");
    let kept = kept.canonicalize().expect("a kept result").display().to_string();
    let raw = Folder::new("compare").on_terminal(&format!("report compare {kept} {kept} --all"));
    let lines = standing(&raw);
    for title in ["point", "metric", "first", "other", "ratio"] {
        assert!(lines.first().is_some_and(|line| line.contains(title)), "{title}: {lines:#?}");
    }
    assert!(lines.iter().all(|line| width(line) <= COLUMNS), "{lines:#?}");
}

#[test]
fn demo() {
    let folder = Folder::new("demo");
    let raw = folder.on_terminal("demo --quick --emulated --out out");
    check_progress(&raw);
    let lines = standing(&raw);
    assert!(lines.iter().all(|line| width(line) <= COLUMNS), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("Results: ")), "{lines:#?}");
}

#[test]
fn a_failure_message_replaces_the_progress_line() {
    let folder = Folder::new("failure");
    let raw = folder.on_terminal(
        "bench controller tcp:127.0.0.1:9 --test latency --switches 1 --trials 1 --json",
    );
    let lines = standing(&raw);
    let said = lines.iter().find(|line| line.contains("is a controller listening"));
    assert!(said.is_some_and(|line| line.starts_with("weir: ")), "{raw:?}");
}
