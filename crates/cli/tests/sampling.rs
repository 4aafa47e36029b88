//! Tests of `weir sampling`: plans of the solvers, errors with line and column, simulations, calibrations, and sFlow
//! samples with their collector.

#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path =
            std::env::temp_dir().join(format!("weir-sampling-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).expect("a file");
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn weir(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .arg("sampling")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("start weir");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

const SERVERS: &str = "server,capacity\na,1000\nb,1000\n";
const TRAFFIC: &str = ",a,b\na,800,0\nb,0,100\n";

/// The problem is the worked example of the solver's own tests, here in CSV files.
#[test]
fn plans_of_each_solver_from_csv_files_sample_the_same_amount() {
    let folder = Folder::new("plan");
    let (servers, traffic) = (folder.file("s.csv", SERVERS), folder.file("t.csv", TRAFFIC));
    let out = folder.0.join("out").display().to_string();
    let mut plans = Vec::new();
    for solver in ["auto", "linear", "reduced", "combinatorial"] {
        let (code, stdout, stderr) = weir(&[
            "plan",
            "--servers",
            &servers,
            "--traffic",
            &traffic,
            "--alpha",
            "1.5",
            "--beta",
            "0.5",
            "--solver",
            solver,
            "--json",
            "--out",
            &out,
        ]);
        assert_eq!(code, Some(0), "{stderr}");
        let plan: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
        let sampled = plan["sampled"].as_f64().expect("a number");
        assert!((sampled - (375.0 + 25.0 / 3.0 + 100.0)).abs() < 1e-6, "{solver}: {plan}");
        plans.push(plan["flows"].as_array().expect("flows").len());
    }
    assert_eq!(plans, [3; 4]);
    let flows = fs::read_to_string(folder.0.join("out/flows.csv")).expect("flows.csv");
    assert!(flows.starts_with("from,at,tenant,volume,rate\r\na,a,,"), "{flows}");
    assert!(folder.0.join("out/plan.json").exists() && folder.0.join("out/servers.csv").exists());
}

#[test]
fn wrong_planner_input_is_reported_with_line_column_and_exit_code() {
    let folder = Folder::new("wrong");
    let servers = folder.file("s.csv", SERVERS);
    let cases: [(&str, i32, &str); 5] = [
        (",a,b\na,1,2\nb,-3,0\n", 2, "t.csv: line 3, column \"a\": -3 is negative"),
        (",a,b\na,1,NaN\nb,3,0\n", 2, "line 2, column \"b\": NaN is not a finite number"),
        (",a,b\na,1,\nb,3,0\n", 2, "line 2, column \"b\": the value is missing"),
        ("from,to,volume\na,c,1\n", 2, "line 2, column \"volume\": there is no server \"c\""),
        (
            ",a,b\na,1200,0\nb,0,0\n",
            1,
            "server a has to forward 1200.0 packets/s, 200.0 more than its capacity",
        ),
    ];
    for (text, status, words) in cases {
        let traffic = folder.file("t.csv", text);
        let (code, stdout, stderr) = weir(&["plan", "--servers", &servers, "--traffic", &traffic]);
        assert_eq!(code, Some(status), "{text}: {stderr}");
        assert!(stderr.contains(words) && stdout.is_empty(), "{text}: {stderr}");
    }
    let (code, _, stderr) = weir(&["plan"]);
    assert!(code == Some(2) && stderr.contains("PROBLEM"), "{stderr}");
}

#[test]
fn sampling_simulate_prints_published_values_beside_simulated_values() {
    let folder = Folder::new("simulate");
    let out = folder.0.join("out").display().to_string();
    let arguments = ["simulate", "--servers", "10", "--steps", "20", "--out", &out];
    let (code, stdout, stderr) = weir(&arguments);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("published") && stdout.lines().count() == 3, "{stdout}");
    let svg = fs::read_to_string(folder.0.join("out/figures/3-10-servers.svg")).expect("a figure");
    assert!(svg.contains("gain, %"), "{svg}");
}

/// Measured values are good only on an idle machine, so the test checks only that the calibration ends and leaves no
/// lab.
#[test]
fn ovs_calibration_writes_samples_and_figures_and_leaves_no_lab() {
    let needs = lab::Requirements { switches: true, rates: false };
    let programs = [("iperf3", "iperf3"), ("tc", "iproute2")];
    let name = "ovs_calibration_writes_samples_and_figures_and_leaves_no_lab";
    if lab::testing::skip(name, needs) || lab::testing::skip_without(name, &programs) {
        return;
    }
    let folder = Folder::new("calibrate");
    let out = folder.0.join("out").display().to_string();
    let (code, stdout, stderr) = weir(&[
        "calibrate",
        "--one-in",
        "3,2,1",
        "--repetitions",
        "1",
        "--seconds",
        "1",
        "--course",
        "2",
        "--header",
        "256",
        "--batch",
        "128",
        "--length",
        "500",
        "--mechanism",
        "ovs-sflow,mirror,user-space-read,weir",
        "--out",
        &out,
    ]);
    assert!(matches!(code, Some(0 | 1)), "{stdout}{stderr}");
    let samples = fs::read_to_string(folder.0.join("out/samples.csv")).expect("samples.csv");
    // Each of the four mechanisms has five rows: three rates, a mechanism that selects no packet, and no mechanism.
    assert_eq!(samples.lines().count(), 1 + 4 * (3 + 2), "{samples}");
    let result = fs::read_to_string(folder.0.join("out/result.json")).expect("result.json");
    assert!(result.contains("\"header\": 256"), "{result}");
    let (code, _, stderr) = weir(&["calibrate", "--one-in", "1", "--mechanism", "ovs-sflow"]);
    assert!(code == Some(2) && stderr.contains("too few rates"), "{stderr}");
    let (code, _, stderr) = weir(&["calibrate", "--header", "63"]);
    assert!(code == Some(2) && stderr.contains("64..=512"), "{stderr}");
    let (code, _, stderr) = weir(&["calibrate", "--batch", "65", "--length", "1500"]);
    assert!(code == Some(2) && stderr.contains("44 frames of 1500 bytes"), "{stderr}");
    for figure in ["2a", "2b", "2b-by-cpu"] {
        let path = folder.0.join(format!("out/figures/{figure}.svg"));
        assert!(fs::read_to_string(path).expect("a figure").contains("ovs-sflow"));
    }
    let left = lab::Lab::list(&lab::StateDirectory::default()).expect("the labs");
    let left: Vec<_> = left.into_iter().filter(|lab| lab.name.starts_with("calibrate")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn ovs_calibration_of_an_existing_bridge_leaves_the_bridge_unchanged() {
    let needs = lab::Requirements { switches: true, rates: false };
    let programs = [("iperf3", "iperf3"), ("tc", "iproute2")];
    let name = "ovs_calibration_of_an_existing_bridge_leaves_the_bridge_unchanged";
    if lab::testing::skip(name, needs) || lab::testing::skip_without(name, &programs) {
        return;
    }
    let topology = lab::Topology::builtin("linear,2").expect("a topology");
    let lab = lab::LabGuard::new(lab::Lab::up(&topology, &lab::Options::default()).expect("a lab"));
    let switch = lab.open_vswitch().expect("its Open vSwitch");
    let bridges = || {
        let all = ["list-ports", "s1", "--", "list-ports", "s2", "--", "list-br"];
        switch.vsctl(all).expect("the bridges")
    };
    let interfaces = || lab.exec("s1", &["ip", "-br", "link"]).expect("ip").stdout;
    let affinity = || {
        let process = switch.switch_process().expect("ovs-vswitchd").pid;
        let status = fs::read_to_string(format!("/proc/{process}/status")).expect("its status");
        status.lines().find(|line| line.starts_with("Cpus_allowed:")).map(str::to_owned)
    };
    let before = (bridges(), interfaces(), affinity());
    let folder = switch.folder().display().to_string();
    let calibrate = |bridge| {
        let what = ["--one-in", "3,2", "--repetitions", "1", "--seconds", "0.5", "--course", "2"];
        let of = ["--mechanism", "ovs-sflow,mirror,weir", "--bridge", bridge, "--switch", &folder];
        weir(&[&["calibrate"][..], &what, &of].concat())
    };
    let (code, stdout, stderr) = calibrate("s1");
    assert!(matches!(code, Some(0 | 1)), "{stdout}{stderr}");
    assert!(stdout.contains("ovs-sflow") && stdout.contains("mirror"), "{stdout}");
    assert_eq!((bridges(), interfaces(), affinity()), before);

    // A bridge that does not exist, or that samples already, is refused and stays unchanged.
    let (code, _, stderr) = calibrate("s9");
    assert!(code == Some(3) && stderr.contains("no bridge"), "{stderr}");
    let sample = |more: &[&str]| {
        let what = ["sample", "--bridge", "s1", "--switch", &folder, "--collector", "127.0.0.1"];
        weir(&[&what[..], more].concat())
    };
    std::thread::scope(|scope| {
        let sampling = scope.spawn(|| sample(&["--one-in", "10", "--seconds", "8"]));
        let is_on = || switch.vsctl(["get", "Bridge", "s1", "sflow"]).expect("it").len() > 10;
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while !is_on() && std::time::Instant::now() < deadline {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert!(is_on(), "Open vSwitch samples");
        let (code, _, stderr) = calibrate("s1");
        assert!(code == Some(3) && stderr.contains("already"), "{stderr}");
        let (code, _, stderr) = sample(&["--one-in", "10", "--seconds", "1"]);
        assert!(code == Some(3) && stderr.contains("already"), "{stderr}");
        let (code, _, stderr) = sampling.join().expect("it ends");
        assert_eq!(code, Some(0), "{stderr}");
        assert!(!is_on(), "it no longer samples");
    });
    let (code, _, stderr) = sample(&["--one-in", "2.5"]);
    assert!(code == Some(2) && stderr.contains("--one-in"), "{stderr}");
    assert_eq!((bridges(), interfaces(), affinity()), before);
}

/// Weir's exporter sends the samples to Weir's collector.
#[test]
fn the_sflow_collector_adds_up_samples_per_agent_tenant_and_flow() {
    use agent::sflow::Origin;
    let address =
        std::net::SocketAddr::from(([127, 0, 0, 1], packet::free_port().expect("a free port")));
    let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["sampling", "collect", "--json", "--listen", &address.to_string()])
        .args(["--tenant", "red=10.1.0.0/16"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start weir");
    let mut line = String::new();
    let stderr = child.stderr.take().expect("its stderr");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stderr), &mut line).expect("a line");
    assert!(line.starts_with("listening on"), "{line}");

    let origin = Origin { agent: [192, 0, 2, 7].into(), sub_agent: 4, interface: 1 };
    let mut exporter = agent::Exporter::new(address, origin, 2.5).expect("an exporter");
    let mut frame = vec![2; 12];
    frame.extend([
        8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 9, 10, 9, 9, 9, 0, 5, 0, 53,
    ]);
    (0..200).for_each(|_| exporter.add(&frame, 96));
    exporter.flush();
    let junk = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    junk.send_to(b"nonsense", address).expect("sent");

    end_once_read(&child, &address.to_string());
    let output = child.wait_with_output().expect("its end");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["total"][0]["samples"], 200);
    assert_eq!(report["total"][0]["packets"], 500.0);
    assert_eq!(report["agents"][0]["name"], "192.0.2.7/4");
    assert_eq!(report["tenants"][0]["packets"], 500.0);
    assert_eq!(report["flows"][0]["name"], "udp 10.1.0.9:5 > 10.9.9.9:53");
    assert_eq!((&report["rejected"], &report["missing"]), (&1.into(), &0.into()));
}

/// A sampler at an interface sends sFlow over IPv6. The collector's estimate has the true number within its bounds, and
/// the collector shows the IPv6 address of the agent.
#[test]
fn root_the_packet_estimate_from_sflow_samples_is_within_its_bounds() {
    let test = "root_the_packet_estimate_from_sflow_samples_is_within_its_bounds";
    check_estimate(test, |_| (), "eth0", &["--one-in", "2.5"], "::1");
}

/// tc filters of a plan mirror packets to the interface of the sampler. The estimate has the same bounds.
#[test]
fn root_the_packet_estimate_from_tc_filters_is_within_its_bounds() {
    let folder = Folder::new("filters");
    let plan =
        r#"{"flows":[{"from":"h2","at":"h2","rate":0.4},{"from":"h1","at":"h2","rate":1.0}]}"#;
    let plan = folder.file("plan.json", plan);
    let script = |arguments: &[&str]| {
        let (code, stdout, stderr) = weir(&[&["filters"], arguments].concat());
        assert_eq!(code, Some(0), "{stderr}");
        format!("tc -batch - <<'END'\n{stdout}END")
    };
    let filters = script(&[&plan, "--server", "h2", "--interface", "eth0", "--way", "h2=to0"]);
    assert_eq!(
        filters.lines().filter(|line| line.contains("mirror dev to0")).count(),
        1,
        "{filters}"
    );
    let prepare = |network: &lab::Lab| {
        let links =
            "ip link add to0 type veth peer name at0 && ip link set to0 up && ip link set at0 up";
        for line in [links, &filters] {
            let output = network.exec("h2", &["sh", "-c", line]).expect("sh");
            assert!(output.status.success(), "{output:?}");
        }
    };
    let rate = ["--stands-for", "2.5", "--agent", "2001:db8::7"];
    check_estimate(
        "root_the_packet_estimate_from_tc_filters_is_within_its_bounds",
        prepare,
        "at0",
        &rate,
        "2001:db8::7",
    );
    assert!(script(&["--clear", "--interface", "eth0"]).contains("qdisc del dev eth0 clsact"));

    for (arguments, words) in [
        (["--server", "h2", "--interface", "eth0", "--way", "h3=to0"], "to which none leads"),
        (["--server", "h2", "--interface", "eth0", "--way", "h2=eth0"], "would be a loop"),
        (
            ["--server", "h2", "--interface", "eth0;id", "--way", "h2=to0"],
            "no name of an interface",
        ),
    ] {
        let (code, stdout, stderr) = weir(&[&["filters", &plan], &arguments[..]].concat());
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(words) && stdout.is_empty(), "{stderr}");
    }
}

/// Ends a collector after the collector has read all datagrams to its address, also on a busy machine.
fn end_once_read(collector: &std::process::Child, address: &str) {
    let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    let end = format!(":{:04X}", port.expect("a port"));
    let waits = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.get(1).is_some_and(|local| local.ends_with(&end))
            && words.get(4).is_some_and(|queues| !queues.ends_with(":00000000"))
    };
    let tables = ["/proc/net/udp", "/proc/net/udp6"];
    let read = |table| fs::read_to_string(table).expect("a table of the kernel");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while tables.iter().any(|table| read(table).lines().any(waits)) {
        assert!(std::time::Instant::now() < deadline, "the collector does not read");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let process = nix::unistd::Pid::from_raw(collector.id().cast_signed());
    nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGINT).expect("it runs");
}

/// Pings h2 20,000 times, samples at h2, and asserts that the collector's bounds for this agent include this number.
fn check_estimate(
    test: &str,
    prepare: impl Fn(&lab::Lab),
    interface: &str,
    rate: &[&str],
    agent: &str,
) {
    let needs = lab::Requirements { switches: false, rates: false };
    if lab::testing::skip(test, needs) {
        return;
    }
    const SENT: f64 = 20_000.0;
    let name = format!("c{}-{interface}", std::process::id());
    let state = lab::StateDirectory::at(std::env::temp_dir().join(format!("weir-{name}")));
    let mut topology = lab::Topology::builder();
    topology
        .host("h1")
        .expect("h1")
        .host("h2")
        .expect("h2")
        .link("h1", "h2", None)
        .expect("a link");
    let options = lab::Options {
        name: Some(name),
        state,
        static_arp: true,
        ephemeral: true,
        ..lab::Options::default()
    };
    let up = lab::Lab::up(&topology.build().expect("a topology"), &options).expect("a lab");
    let network = lab::LabGuard::new(up);
    prepare(&network);
    let collector = format!("[::1]:{}", packet::free_port().expect("a free port"));
    let namespace = network.namespace("h2").expect("its namespace");

    let spawn = |arguments: &[&str]| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .arg("sampling")
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start weir");
        // The first line says that the program is ready.
        let mut stderr = std::io::BufReader::new(child.stderr.take().expect("its stderr"));
        let mut line = String::new();
        std::io::BufRead::read_line(&mut stderr, &mut line).expect("a line");
        assert!(line.starts_with("listening") || line.starts_with("sampling"), "{line}");
        child
    };
    let collect = spawn(&["collect", "--json", "--listen", &collector]);
    let options = ["--collector", &collector, "--seconds", "9", "--json", "--sub-agent", "3"];
    let place = ["sample", interface, "--namespace", &namespace];
    let sample = spawn(&[&place, rate, &options].concat());
    let ping = ["ping", "-q", "-f", "-c", "20000", "10.0.0.2"];
    let output = network.exec("h1", &ping).expect("ping");
    assert!(output.status.success(), "{output:?}");

    let report = |child: std::process::Child| -> serde_json::Value {
        let output = child.wait_with_output().expect("its end");
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let sample = report(sample);
    assert_eq!((&sample["dropped"], &sample["lost_datagrams"]), (&0.into(), &0.into()), "{sample}");
    end_once_read(&collect, &collector);
    let collect = report(collect);
    assert_eq!(collect["agents"][0]["name"], format!("{agent}/3"), "{collect}");
    assert_eq!(collect["missing"], 0, "{collect}");
    assert_eq!(collect["total"][0]["samples"], sample["samples"], "{collect} {sample}");
    let [total, half] =
        ["packets", "packets_ci95"].map(|key| collect["total"][0][key].as_f64().expect("a number"));
    // Three times the 95 % bound, so that this fails about once in 200 million runs.
    assert!((total - SENT).abs() <= 3.0 * half && half < SENT / 10.0, "{collect}");
}

#[test]
fn figure_3_of_elbouanani2019_is_reproduced_without_privileges() {
    let folder = Folder::new("reproduce");
    let out = folder.0.join("out").display().to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["reproduce", "elbouanani2019", "3", "--out", &out])
        .output()
        .expect("start weir");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(stdout.contains("published") && stdout.contains("Gain of collaboration"), "{stdout}");
    assert!(folder.0.join("out/figures/3-20-servers.svg").exists());
}
