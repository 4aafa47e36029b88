//! Tests that `weir demo` ends well after its last step, after an interrupt at any moment, and after its reader has
//! closed the pipe.
//!
//! The switch is real where Open vSwitch is available, and emulated elsewhere. In both cases an ended demo leaves no
//! processes and no working files.

#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic)]

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The longest time that a demo may take to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// An environment variable that all child processes of the demo inherit. The test finds the child processes by this
/// variable.
const MARK: &str = "WEIR_DEMO_TEST";

struct Demo {
    child: Child,
    mark: String,
    /// The output folder, which does not exist before the demo.
    out: PathBuf,
}

impl Demo {
    fn start(name: &str, arguments: &[&str]) -> Demo {
        Demo::of(Path::new(env!("CARGO_BIN_EXE_weir")), name, arguments)
    }

    /// Starts this copy of the program.
    fn of(program: &Path, name: &str, arguments: &[&str]) -> Demo {
        let mark = format!("{name}-{}", std::process::id());
        let out = std::env::temp_dir().join(format!("weir-demo-{mark}"));
        let child = Command::new(program)
            .current_dir(program.parent().expect("a folder"))
            .args(["demo", "--quick", "--out"])
            .arg(&out)
            .args(arguments)
            .env(MARK, &mark)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start weir demo");
        Demo { child, mark, out }
    }

    /// Reads stdout up to a line that contains `words`.
    fn read_until(&mut self, words: &str) {
        let stdout = self.child.stdout.take().expect("stdout is ours");
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains(words)), "{words:?} never came");
        // A thread continues to read, because a demo with a full pipe would stop.
        std::thread::spawn(move || lines.for_each(drop));
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).expect("a running demo");
    }

    fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("wait for the demo") {
                return status;
            }
            assert!(Instant::now() < deadline, "the demo does not end");
            sleep(Duration::from_millis(20));
        }
    }

    /// Asserts that no process, namespace, lab or working file of the demo is left. `keeps_results` says whether the
    /// output folder must exist.
    fn assert_left_nothing(&self, keeps_results: bool) {
        let left = processes_with(&format!("{MARK}={}", self.mark));
        assert!(left.is_empty(), "{}: still running: {left:?}", self.mark);
        let lab = format!("demo{}", self.child.id());
        let namespaces: Vec<_> = entries("/run/netns")
            .into_iter()
            .filter(|path| path.to_string_lossy().contains(&format!("weir-{lab}.")))
            .collect();
        assert!(namespaces.is_empty(), "{}: {namespaces:?}", self.mark);
        assert!(!Path::new("/run/weir/labs").join(&lab).exists(), "{}: {lab}", self.mark);
        assert_eq!(self.out.exists(), keeps_results, "{}: {}", self.mark, self.out.display());
        assert!(!self.out.join("work").exists(), "{}: working files", self.mark);
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.out);
    }
}

fn entries(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// Returns the command lines of all processes with this variable in their environment.
fn processes_with(variable: &str) -> Vec<String> {
    let has_it = |folder: &PathBuf| {
        let environment = fs::read(folder.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|one| one == variable.as_bytes())
    };
    entries("/proc")
        .into_iter()
        .filter(has_it)
        .map(|folder| fs::read_to_string(folder.join("cmdline")).unwrap_or_default())
        .collect()
}

/// Runs the demo to the end and returns its output. All expectations must hold, and the result files must exist. The
/// demo may report that the machine was too busy to judge whether all messages arrived.
fn check_to_the_end(name: &str, arguments: &[&str]) -> String {
    check_demo(Demo::start(name, arguments))
}

fn check_demo(mut demo: Demo) -> String {
    let (mut said, mut complained) = (String::new(), String::new());
    let stdout = demo.child.stdout.as_mut().expect("stdout is ours");
    stdout.read_to_string(&mut said).expect("text");
    let stderr = demo.child.stderr.as_mut().expect("stderr is ours");
    stderr.read_to_string(&mut complained).expect("text");
    let status = demo.wait();
    assert_eq!(status.code(), Some(0), "{said}\n{complained}");
    assert!(said.contains("✓ refused: ERROR OFPBAC_BAD_OUT_PORT"), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 80), "too wide: {said}");
    assert!(!said.contains('\x1b') && !complained.contains('\r'), "plain when piped: {said}");
    assert!(
        complained.lines().any(|line| line.contains(" left)")),
        "a line per step: {complained}"
    );
    for file in ["result.json", "report.html", "metrics.csv", "demo.txt"] {
        assert!(demo.out.join(file).exists(), "{file} is missing");
    }
    assert_eq!(fs::read_to_string(demo.out.join("demo.txt")).expect("a transcript"), said);
    demo.assert_left_nothing(true);
    said
}

/// A copy of the program in a folder without os-ken uses other controllers.
#[test]
fn the_demo_succeeds_without_os_ken() {
    let folder = std::env::temp_dir().join(format!("weir-alone-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let program = folder.join("weir");
    fs::copy(env!("CARGO_BIN_EXE_weir"), &program).expect("a copy");
    for version in ["1.0", "1.3"] {
        let name = format!("without-os-ken-{version}");
        let said = check_demo(Demo::of(&program, &name, &["--emulated", "--protocols", version]));
        // The Python of the system may have os-ken.
        let has_os_ken = said.contains("its controller: os-ken");
        assert_eq!(said.contains("red's have to go first"), version == "1.0" && !has_os_ken);
    }
    fs::remove_dir_all(&folder).expect("it goes");
}

#[test]
fn the_demo_succeeds_on_openflow_10() {
    check_to_the_end("to-the-end-10", &["--emulated", "--protocols", "1.0"]);
}

#[test]
fn the_demo_succeeds_on_openflow_13() {
    check_to_the_end("to-the-end-13", &["--emulated", "--protocols", "1.3"]);
}

/// The test of README.md runs the demo on OpenFlow 1.0.
#[test]
fn ovs_the_demo_succeeds_on_openflow_13() {
    let needs = lab::Requirements { switches: true, rates: false };
    if lab::testing::skip("ovs_the_demo_succeeds_on_openflow_13", needs) {
        return;
    }
    check_to_the_end("ovs-to-the-end-13", &["--protocols", "1.3"]);
}

/// Interrupts the demo after a line of its output. With an empty `after` the interrupt is before the first line, while
/// the demo makes namespaces.
fn check_interrupted(name: &str, signal: Signal, after: &str) {
    let mut demo = Demo::start(name, &[]);
    if after.is_empty() {
        sleep(Duration::from_millis(300));
    } else {
        demo.read_until(after);
    }
    demo.signal(signal);
    let status = demo.wait();
    assert_eq!(status.code(), Some(130), "{name}");
    demo.assert_left_nothing(false);
}

#[test]
fn a_demo_interrupted_during_setup_leaves_no_processes_or_files() {
    check_interrupted("interrupt-at-start", Signal::SIGINT, "");
}

#[test]
fn a_demo_interrupted_during_pings_leaves_no_processes_or_files() {
    check_interrupted("interrupt-pings", Signal::SIGINT, "Hosts of one tenant");
}

#[test]
fn a_demo_terminated_during_measurement_leaves_no_processes_or_files() {
    check_interrupted("terminate-measuring", Signal::SIGTERM, "message     rate/s");
}

/// A killed demo cannot clean up, but the kernel ends the processes that the demo has started.
#[test]
fn a_killed_demo_leaves_no_running_processes() {
    let mut demo = Demo::start("killed", &["--emulated"]);
    demo.read_until("");
    let mark = format!("{MARK}={}", demo.mark);
    let deadline = Instant::now() + PATIENCE;
    while processes_with(&mark).len() < 2 {
        assert!(Instant::now() < deadline, "it does not start anything");
    }
    demo.signal(Signal::SIGKILL);
    demo.wait();
    while !processes_with(&mark).is_empty() {
        assert!(Instant::now() < deadline, "still running: {:?}", processes_with(&mark));
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_demo_succeeds_after_the_reader_of_stdout_closes() {
    let mut demo = Demo::start("reader-away", &[]);
    let stdout = demo.child.stdout.take().expect("stdout is ours");
    let mut first = String::new();
    BufReader::new(stdout).read_line(&mut first).expect("a line");
    let status = demo.wait();
    assert_eq!(status.code(), Some(0));
    demo.assert_left_nothing(false);
}

#[test]
fn a_demo_output_folder_that_cannot_be_made_is_refused_by_name() {
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["demo", "--emulated", "--out", "/proc/no/such"])
        .output()
        .expect("start weir demo");
    let said = String::from_utf8_lossy(&output.stderr);
    // The folder is refused before any measurement.
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("'/proc/no/such' for '--out <DIR>'"), "{said}");
}
