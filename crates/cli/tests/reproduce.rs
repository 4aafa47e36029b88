//! Tests of `weir reproduce basta2017`: all figures, published values beside measured values, a running and an absent
//! hypervisor, and Open vSwitch. An interrupted reproduction leaves only partial results.

#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic)]

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use report::{Point, Results};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const FIGURES: [&str; 7] = ["3a", "3b", "3c", "4", "5", "6", "table1"];

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("weir-reproduce-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn command(out: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(["reproduce", "basta2017", "--out"]).arg(out).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs `weir reproduce`. Returns stdout and the results. The results may report a busy machine.
fn run(out: &Path, arguments: &[&str]) -> (String, Results) {
    let Output { status, stdout, stderr } =
        command(out, arguments).output().expect("start weir reproduce");
    let [stdout, stderr] = [stdout, stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    assert!(matches!(status.code(), Some(0 | 1 | 4)), "{status}\n{stdout}\n{stderr}");
    (stdout, Results::read(out).expect("result.json"))
}

fn of<'a>(results: &'a Results, system: &str) -> impl Iterator<Item = &'a Point> {
    results.points.iter().filter(move |point| point.system == system)
}

/// Asserts that all messages of all runs of this system have arrived.
#[track_caller]
fn check_whole(results: &Results, system: &str, cases: usize) {
    assert_eq!(of(results, system).count(), cases, "{system}");
    for point in of(results, system) {
        assert_eq!(point.mean("unanswered_percent"), Some(0.0), "{system} {}", point.label());
        assert!(point.mean("mean_us").is_some_and(|mean| mean > 0.0));
    }
}

#[track_caller]
fn check_figures(out: &Path, names: &[&str]) {
    let page = fs::read_to_string(out.join("report.html")).expect("the page");
    // Each figure is drawn for a page and for a phone.
    assert_eq!(page.matches("<svg").count(), 2 * names.len());
    for name in names {
        let svg = fs::read_to_string(out.join(format!("figures/{name}.svg"))).expect("an SVG");
        assert!(svg.contains("switch-only") || *name == "5", "{name}");
        assert!(svg.contains("weir"), "{name}");
        assert!(
            svg.contains("QUICK LOOK: 1 run of 0.300 s"),
            "{name} does not say how it was made"
        );
        let png = fs::read(out.join(format!("figures/{name}.png"))).expect("a PNG");
        assert!(png.starts_with(b"\x89PNG"), "{name}");
    }
}

#[test]
fn every_figure_is_drawn_and_published_values_are_beside_measured_values() {
    let folder = Folder::new("all");
    let arguments = ["--quick", "--runs", "1", "--duration", "0.3", "--switch", "emulated"];
    let (stdout, results) = run(&folder.0, &arguments);
    check_whole(&results, "direct", 18);
    check_whole(&results, "weir", 18);
    assert!(of(&results, "OVX, published").count() > 0);
    check_figures(&folder.0, &FIGURES);
    for words in ["Figure 3a", "Figure 6", "Table 1, row 3", "FV, published", "switch-only"] {
        assert!(stdout.contains(words), "no {words:?} in\n{stdout}");
    }
    assert_eq!(results.settings.get("switches"), Some(&"emulated".into()));
    assert_eq!(results.settings.get("quick"), Some(&true.into()));
}

/// A `weir serve` for one tenant, which is not started by `weir reproduce`.
struct Hypervisor {
    child: Child,
    switches: u16,
    controllers: u16,
}

impl Hypervisor {
    fn start(folder: &Path) -> Hypervisor {
        let [switches, controllers, api] = [(); 3].map(|()| free_port());
        let config = format!(
            "[listen]\nopenflow = \"127.0.0.1:{switches}\"\napi = \"127.0.0.1:{api}\"\n\
             [reconnect]\nmin = \"50ms\"\nmax = \"100ms\"\n\
             [[tenants]]\nname = \"one\"\ncontrollers = [\"tcp:127.0.0.1:{controllers}\"]\n\
             [[tenants.flowspace]]\nmatch = \"ip,nw_src=10.1.0.0/16\"\n"
        );
        let file = folder.join("weir.toml");
        fs::write(&file, config).expect("a configuration");
        let child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .arg("serve")
            .arg(file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("start weir serve");
        let hypervisor = Hypervisor { child, switches, controllers };
        let address = SocketAddr::from(([127, 0, 0, 1], switches));
        wait_for("it listens", || std::net::TcpStream::connect(address).is_ok());
        hypervisor
    }
}

impl Drop for Hypervisor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    packet::free_port().expect("a free port")
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_running_hypervisor_is_measured_and_an_absent_hypervisor_is_a_finding() {
    let folder = Folder::new("external");
    let other = Hypervisor::start(&folder.0);
    let pid = other.child.id();
    let there = format!("other={},{}/{pid}", other.switches, other.controllers);
    let absent = format!("absent={},{}", free_port(), free_port());
    let out = folder.0.join("out");
    let arguments = ["3a", "--runs", "2", "--duration", "0.3", "--switch", "emulated"];
    let externals = ["--external", &there, "--external", &absent];
    let (stdout, results) = run(&out, &[&arguments[..], &externals].concat());
    check_whole(&results, "other", 1);
    assert!(of(&results, "other").all(|point| point.mean("cpu_percent").is_some()));
    check_whole(&results, "weir", 1);
    let finding = results.findings.iter().find(|finding| finding.code == "not-measured");
    let finding = finding.unwrap_or_else(|| panic!("{:?}", results.findings));
    assert!(
        finding.text.starts_with("absent") && finding.text.contains("refused"),
        "{}",
        finding.text
    );
    assert!(stdout.contains("not-measured: absent"), "{stdout}");
    let svg = fs::read_to_string(out.join("figures/3a.svg")).expect("an SVG");
    assert!(svg.contains(">other<"));
}

fn labs() -> Vec<String> {
    let labs = lab::Lab::list(&lab::StateDirectory::default()).unwrap_or_default();
    labs.into_iter().map(|lab| lab.name).collect()
}

#[test]
fn ovs_reproduce_uses_open_vswitch_when_available() {
    let needed = lab::Requirements { switches: true, rates: false };
    if lab::testing::skip("ovs_reproduce_uses_open_vswitch_when_available", needed) {
        return;
    }
    let folder = Folder::new("real");
    let mut child =
        command(&folder.0, &["3c", "table1", "--quick", "--runs", "1", "--duration", "0.3"])
            .spawn()
            .expect("start weir reproduce");
    let ours = format!("bench{}-", child.id());
    let mut text = String::new();
    let stdout = child.stdout.take().expect("stdout is ours");
    let stderr = child.stderr.take().expect("stderr is ours");
    std::thread::spawn(move || BufReader::new(stderr).lines().for_each(drop));
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        text += &line;
    }
    assert!(matches!(child.wait().expect("its end").code(), Some(0 | 1 | 4)), "{text}");
    let results = Results::read(&folder.0).expect("result.json");
    let switch = results.settings.get("switches").map(ToString::to_string).unwrap_or_default();
    assert!(switch.contains("Open vSwitch"), "{switch}");
    for system in ["direct", "weir"] {
        assert_eq!(of(&results, system).count(), 4 + 4, "{system}");
        for point in of(&results, system) {
            // A switch drops the PACKET_INs for which it has no time. On a busy machine the switch may drop all
            // PACKET_INs.
            let may_lose = point.parameters.get("message") == Some(&"PACKET_IN".into());
            let least = if may_lose { 100.0 } else { 99.0 };
            let loss = point.mean("unanswered_percent");
            assert!(loss.is_some_and(|loss| loss <= least), "{system} {}: {loss:?}", point.label());
        }
    }
    let has_arrived = |system| of(&results, system).any(|point| point.mean("mean_us").is_some());
    assert!(has_arrived("direct") && has_arrived("weir"));
    let not_measured = results.findings.iter().any(|finding| finding.code == "not-measured");
    assert!(!not_measured, "{:?}", results.findings);
    check_figures(&folder.0, &["3c", "table1"]);
    assert!(!labs().iter().any(|name| name.starts_with(&ours)), "a lab is left");
}

/// Earlier results of FlowVisor and Weir are beside the measured results, and each line is judged.
#[test]
fn ovs_figure_4_is_compared_with_earlier_measurements() {
    let needed = lab::Requirements { switches: true, rates: false };
    if lab::testing::skip("ovs_figure_4_is_compared_with_earlier_measurements", needed) {
        return;
    }
    let folder = Folder::new("earlier");
    let arguments = ["--quick", "--runs", "1", "--duration", "0.3", "--switch", "openvswitch"];
    let (stdout, _) = run(&folder.0, &[&["4"][..], &arguments].concat());
    for words in [
        "Figure 4 beside earlier measurements",
        "FlowVisor 1.4, earlier",
        "slices at ca33974",
        "210 / 23 %",
        "AGG, 2 tenants: slices' p50 over switch-only's, ms",
        "ND, 20 tenants: networks' p50 over switch-only's, ms",
    ] {
        assert!(stdout.contains(words), "no {words:?} in\n{stdout}");
    }
}

#[test]
fn ovs_an_interrupted_reproduction_leaves_only_partial_results() {
    let needed = lab::Requirements { switches: true, rates: false };
    if lab::testing::skip("ovs_an_interrupted_reproduction_leaves_only_partial_results", needed) {
        return;
    }
    let folder = Folder::new("interrupted");
    let out = folder.0.join("out");
    let mut child = command(&out, &["table1"]).spawn().expect("start weir reproduce");
    let (ours, pid) = (format!("bench{}-", child.id()), child.id());
    let work = std::env::temp_dir().join(format!("weir-bench-{pid}"));
    let stderr = child.stderr.take().expect("stderr is ours");
    let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("weir message=PACKET_IN")), "it measures");
    std::thread::spawn(move || lines.for_each(drop));
    wait_for("a lab is up", || labs().iter().any(|name| name.starts_with(&ours)));
    kill(Pid::from_raw(pid.cast_signed()), Signal::SIGINT).expect("a running measurement");
    let status = child.wait().expect("its end");
    assert_eq!(status.code(), Some(130));
    assert!(!labs().iter().any(|name| name.starts_with(&ours)), "a lab is left");
    assert!(!work.exists(), "files are left");
    let results = Results::read(&out).expect("what was measured until then");
    assert!(results.is_partial() && of(&results, "direct").count() > 0);
}
