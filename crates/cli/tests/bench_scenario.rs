//! Tests of `weir bench`: scenarios whose load streams change during a run, wrong scenario files, first-packet
//! measurements, rate searches and sweeps.

#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic)]

use report::Results;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const NEIGHBOUR: &str = r#"
setup.tenants = 2
load.duration_ms = 600

[[load.streams]]
tenant = 0
mix = [["packet-out", 3], ["echo", 1]]
arrivals.constant.rate = 1000

[[load.streams]]
tenant = 1
mix = [["packet-out", 1]]
arrivals.steps.steps = [[0, 500], [0.2, 2000]]
start_ms = 100
stop_ms = 500
subject = false
"#;

/// Runs `weir bench scenario` with this text as its file. Returns the exit status, stderr, and the folder of the
/// results.
fn run(name: &str, text: &str, arguments: &[&str]) -> (Option<i32>, String, PathBuf) {
    let folder = std::env::temp_dir().join(format!("weir-scenario-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("scenario.toml");
    fs::write(&file, text).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["bench", "scenario"])
        .arg(&file)
        .args(arguments)
        .arg("--out")
        .arg(folder.join("out"))
        .stdin(Stdio::null())
        .output()
        .expect("start weir bench");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned(), folder)
}

#[test]
fn a_scenario_starts_speeds_up_and_stops_the_stream_of_a_second_tenant() {
    let arguments = ["--system", "direct,weir", "--runs", "1"];
    let (status, stderr, folder) = run("neighbour", NEIGHBOUR, &arguments);
    assert!(matches!(status, Some(0 | 1 | 4)), "{stderr}");
    let results = Results::read(&folder.join("out")).expect("result.json");
    let _ = fs::remove_dir_all(folder);
    assert_eq!(results.points.len(), 2);
    for point in &results.points {
        let counts: Vec<(u64, u64)> =
            point.tenants.iter().map(|tenant| (tenant.sent, tenant.received)).collect();
        // Tenant 0 sends 600 ms at 1,000/s. Tenant 1 sends 200 ms at 500/s and 200 ms at 2,000/s.
        assert_eq!(counts, [(600, 600), (500, 500)], "{}", point.system);
        assert_eq!(point.latency.get("latency").map(|latency| latency.count), Some(600));
        let kinds: Vec<&str> = point.latency.keys().map(String::as_str).collect();
        assert!(kinds.contains(&"latency ECHO") && kinds.contains(&"latency PACKET_OUT"));
    }
}

#[test]
fn errors_of_a_scenario_file_are_reported_with_line_or_key() {
    for (name, from, to, words) in [
        ("typo", "stop_ms", "stopp_ms", ["line 15", "stopp_ms"]),
        ("kind", "\"echo\"", "\"ping\"", ["line 7", "ping"]),
        ("rate", "rate = 1000", "rate = -1", ["rate is -1", "above 0"]),
        ("tenant", "tenant = 1", "tenant = 2", ["tenant is 2", "0 to 1"]),
        (
            "topology",
            "setup.tenants = 2",
            "setup = { tenants = 2, topology = { shared = { switch_address = \"127.0.0.1:1\", switches = 1 } } }",
            ["setup.topology", "--system"],
        ),
    ] {
        let text = NEIGHBOUR.replacen(from, to, 1);
        assert_ne!(text, NEIGHBOUR, "{name}");
        let (status, stderr, folder) = run(name, &text, &[]);
        let _ = fs::remove_dir_all(folder);
        assert_eq!(status, Some(2), "{name}: {stderr}");
        for word in words {
            assert!(stderr.contains(word), "{name}: no {word:?} in {stderr}");
        }
    }
}

#[test]
fn a_flow_mod_through_weir_is_measured_by_barrier_and_by_its_first_packet() {
    for version in ["1.0", "1.3"] {
        let out = std::env::temp_dir().join(format!("weir-first-{version}-{}", std::process::id()));
        let output = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["bench", "run", "--message", "flow-mod-packet,flow-mod", "--rate", "300"])
            .args(["--openflow", version, "--tenants", "3", "--runs", "1", "--duration", "0.5"])
            .args(["--system", "direct,weir", "--out"])
            .arg(&out)
            .stdin(Stdio::null())
            .output()
            .expect("start weir bench");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1 | 4)), "{stderr}");
        let results = Results::read(&out).expect("result.json");
        let _ = fs::remove_dir_all(out);
        assert_eq!(results.points.len(), 4);
        for point in &results.points {
            let place = format!("{version} {} {}", point.system, point.label());
            assert_eq!(point.mean("unanswered_percent"), Some(0.0), "{place}");
            assert_eq!(point.mean("refused_percent"), Some(0.0), "{place}");
        }
        assert!(results.settings.contains_key("first_packet_probe_every_us"));
    }
}

#[test]
fn printed_and_written_results_of_a_rate_search_and_of_a_sweep_are_equal() {
    let dir = std::env::temp_dir().join(format!("weir-search-{}", std::process::id()));
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_weir"))
            .arg("bench")
            .args(arguments)
            .args(["--json", "--out"])
            .arg(&dir)
            .stdin(Stdio::null())
            .output()
            .expect("start weir bench");
        assert!(matches!(output.status.code(), Some(0 | 1 | 4)), "{output:?}");
        let printed: Results = serde_json::from_slice(&output.stdout).expect("JSON on stdout");
        assert_eq!(printed, Results::read(&dir).expect("result.json"));
        let page = fs::read_to_string(dir.join("report.html")).expect("the page");
        let _ = fs::remove_dir_all(&dir);
        (printed, page)
    };
    let (found, _) = run(&[
        "search",
        "--system",
        "direct",
        "--message",
        "echo",
        "--low",
        "200",
        "--high",
        "400",
        "--trial",
        "0.2",
        "--loss-free",
    ]);
    let names: Vec<&String> = found.points.iter().flat_map(|point| point.metrics.keys()).collect();
    for name in ["loss_free_rate_per_s", "rate_per_s", "lag_p99_us", "passed"] {
        assert!(names.iter().any(|it| *it == name), "{name} of {names:?}");
    }
    let (_, page) = run(&[
        "run",
        "--system",
        "direct",
        "--rate",
        "500,1000",
        "--runs",
        "1",
        "--duration",
        "0.2",
    ]);
    for words in ["Median latency by rate", "99th percentile of latency by rate"] {
        assert!(page.contains(words), "{words}");
    }
    assert!(page.contains("generator_ceiling_per_s") && page.contains("lag p99"));
}

/// Sends one HTTP request, and returns the status and the body of the response.
fn request(address: &str, method: &str, path: &str, body: &str) -> (u16, serde_json::Value) {
    let stream = TcpStream::connect(address).expect("the control socket");
    let request = rest::Request::new(method, path, address).json(body);
    let answer = rest::ask(stream, &request).expect("an answer");
    let (status, text) = (answer.status, answer.text(1 << 20).expect("a body"));
    (status, serde_json::from_str(&text).expect("JSON"))
}

/// During a run, REST requests add a stream of tenant 1, replace this stream by a stream with another rate and message
/// type, and stop the stream of tenant 0.
#[test]
fn streams_are_added_replaced_and_stopped_by_rest_during_a_run() {
    let folder = std::env::temp_dir().join(format!("weir-control-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("scenario.toml");
    let scenario = "setup.tenants = 2\nload.duration_ms = 6000\n[[load.streams]]\ntenant = 0\n\
                    mix = [[\"echo\", 1]]\narrivals.constant.rate = 1000\n";
    fs::write(&file, scenario).expect("a file");
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["bench", "scenario", "--system", "direct", "--runs", "1", "--cut", "0"])
        .args(["--control", "127.0.0.1:0"])
        .arg(&file)
        .arg("--out")
        .arg(folder.join("out"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start weir bench");
    let mut lines = BufReader::new(weir.stderr.take().expect("stderr")).lines();
    let address = lines
        .by_ref()
        .map_while(Result::ok)
        .find_map(|line| Some(line.strip_prefix("changes: http://")?.split('/').next()?.to_owned()))
        .expect("where to ask");
    // Before the run begins, the status is 409, and the body has an error text.
    let state = loop {
        match request(&address, "GET", "/streams", "") {
            (200, state) => break state,
            (status, answer) => assert_eq!((status, answer["error"].is_string()), (409, true)),
        }
    };
    assert_eq!(state["streams"].as_array().map(Vec::len), Some(1));

    let neighbour = |rate: u32, kind: &str| {
        format!(
            r#"{{"tenant": 1, "mix": [["{kind}", 1]], "arrivals": {{"constant": {{"rate": {rate}}}}}, "subject": false}}"#
        )
    };
    let (status, added) = request(&address, "POST", "/streams", &neighbour(500, "packet-out"));
    assert_eq!((status, &added["stream"]), (201, &1.into()), "{added}");
    let (status, replaced) = request(&address, "PUT", "/streams/1", &neighbour(2000, "barrier"));
    assert_eq!((status, &replaced["stream"]), (200, &2.into()), "{replaced}");
    let (status, stopped) = request(&address, "DELETE", "/streams/0", "");
    assert_eq!(status, 200, "{stopped}");
    for (method, path, body, status, words) in [
        ("DELETE", "/streams/9", String::new(), 400, "there are 3"),
        ("POST", "/streams", neighbour(0, "echo"), 400, "rate"),
        ("POST", "/streams", neighbour(1, "ping"), 400, "ping"),
        ("POST", "/streams", neighbour(1, "echo").replace("1,", "7,"), 400, "tenant"),
        ("GET", "/elsewhere", String::new(), 404, "/streams"),
    ] {
        let (found, answer) = request(&address, method, path, &body);
        assert_eq!(found, status, "{answer}");
        assert!(answer["error"].as_str().is_some_and(|error| error.contains(words)), "{answer}");
    }
    assert!(matches!(weir.wait().expect("weir bench").code(), Some(0 | 1 | 4)));
    let results = Results::read(&folder.join("out")).expect("result.json");
    let _ = fs::remove_dir_all(folder);
    let ms = |answer: &serde_json::Value, name: &str| answer[name].as_u64().expect("a time");
    let (came, changed, went) =
        (ms(&added, "start_ms"), ms(&replaced, "start_ms"), ms(&stopped, "stop_ms"));
    let sent: Vec<u64> = results.points[0].tenants.iter().map(|tenant| tenant.sent).collect();
    // Tenant 0 sends at 1,000/s until its stream is stopped. Tenant 1 sends at 500/s until its stream is replaced, and
    // at 2,000/s until the end.
    let expected = [went, (changed - came) / 2 + 2 * (6000 - changed)];
    for (sent, expected) in sent.iter().zip(expected) {
        assert!(sent.abs_diff(expected) <= 2, "{sent} and not {expected}");
    }
    let received: Vec<u64> = results.points[0].tenants.iter().map(|it| it.received).collect();
    assert_eq!(received, sent);
    let changes = results.settings.get("changes").map(ToString::to_string).unwrap_or_default();
    assert_eq!(changes.matches("at ").count(), 3, "{changes}");
}

#[test]
fn arrival_times_of_a_trace_are_read_from_a_file() {
    let times = std::env::temp_dir().join(format!("weir-times-{}.txt", std::process::id()));
    fs::write(&times, "# seconds\n12.0\n12.001\n12.0015\n12.25\n").expect("a file");
    let scenario = format!(
        "load.duration_ms = 500\n[[load.streams]]\ntenant = 0\nmix = [[\"echo\", 1]]\n\
         arrivals.trace.file = \"{}\"\n",
        times.display()
    );
    let scenario = format!("setup.tenants = 1\n{scenario}");
    let (status, stderr, folder) = run("trace", &scenario, &["--system", "direct", "--runs", "1"]);
    assert!(matches!(status, Some(0 | 1 | 4)), "{stderr}");
    let results = Results::read(&folder.join("out")).expect("result.json");
    assert_eq!(results.points[0].tenants[0].sent, 4);
    fs::write(&times, "one\n").expect("a file");
    let (status, stderr, again) = run("no-trace", &scenario, &["--system", "direct"]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("line 1") && stderr.contains("weir-times"), "{stderr}");
    for path in [folder, again] {
        let _ = fs::remove_dir_all(path);
    }
    let _ = fs::remove_file(times);
}
