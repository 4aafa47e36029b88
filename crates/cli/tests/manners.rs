//! Tests of the command line of `weir`: exit statuses, error messages, help, and readers that close the pipe.

#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SUCCESS: i32 = 0;
const FINDING: i32 = 1;
const USAGE: i32 = 2;
const FAILURE: i32 = 3;

/// A file that is removed at the end of the test.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> File {
        let path = std::env::temp_dir().join(format!("weir-manners-{}-{name}", std::process::id()));
        fs::write(&path, text).expect("a file in the temporary folder");
        File(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Runs `weir`. Returns the exit status, stdout and stderr.
fn weir(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(arguments)
        .env_remove("WEIR_LOG")
        .stdin(Stdio::null())
        .output()
        .expect("start weir");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// The message of `weir ctl` names the address at which no Weir answers, or the reason why there is no address.
#[test]
fn ctl_takes_the_api_address_from_option_file_or_environment() {
    let file = |api: &str| {
        File::new(&api.replace([':', '/', '"'], "-"), &format!("[listen]\napi = {api}\n"))
    };
    let (off, gone) = (file("\"off\""), file("\"unix:/no/such/api.sock\""));
    let (tcp, wrong) = (file("\"127.0.0.1:9\""), file("7"));
    let cases: &[(&[&str], Option<&str>, i32, &str)] = &[
        (&["--api", "127.0.0.1:9"], None, FAILURE, "no answer from http://127.0.0.1:9"),
        (&[], Some("127.0.0.1:9"), FAILURE, "no answer from http://127.0.0.1:9"),
        (&[], Some("unix:/no/such.sock"), FAILURE, "no answer from unix:/no/such.sock"),
        (&[], Some("nowhere"), USAGE, "WEIR_API=nowhere"),
        // The command line has priority over the environment.
        (&["--api", "127.0.0.1:10"], Some("nowhere"), FAILURE, "http://127.0.0.1:10"),
        (&["--config", tcp.path()], Some("nowhere"), FAILURE, "http://127.0.0.1:9"),
        (&["--config", gone.path()], None, FAILURE, "unix:/no/such/api.sock"),
        (&["--config", off.path()], None, USAGE, "api is off"),
        (&["--config", wrong.path()], None, USAGE, ":2:7"),
        (&["--config", "/no/such.toml"], None, USAGE, "/no/such.toml"),
        (&["--config", tcp.path(), "--api", "127.0.0.1:9"], None, USAGE, "cannot be used with"),
    ];
    for (options, variable, status, says) in cases {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.arg("ctl").args(*options).arg("tenants").env_remove("WEIR_API");
        command.envs(variable.map(|value| ("WEIR_API", value)));
        let output = command.stdin(Stdio::null()).output().expect("start weir");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(*status), "{options:?} {variable:?}: {stderr}");
        assert!(stderr.contains(says), "{options:?} {variable:?}: {stderr}");
        assert!(output.stdout.is_empty());
    }
}

/// Asserts that `weir` exits with this status, and that stderr has all these words.
#[track_caller]
fn check(arguments: &[&str], status: i32, words: &[&str]) {
    let (code, stdout, stderr) = weir(arguments);
    assert_eq!(code, Some(status), "{arguments:?}\n{stdout}\n{stderr}");
    for word in words {
        assert!(stderr.contains(word), "{arguments:?}: no {word:?} in\n{stderr}");
    }
}

/// An address at which no program listens.
const HERE: &str = "tcp:127.0.0.1:9";

#[test]
fn wrong_arguments_are_named_with_their_range() {
    let cases: &[(&[&str], &[&str])] = &[
        (&["sreve"], &["sreve", "serve"]),
        (&["serve"], &["<CONFIG>"]),
        (&["serve", "x.toml", "--threads", "0"], &["--threads", "1..=256"]),
        (&["serve", "x.toml", "--log-format", "xml"], &["--log-format", "text", "json"]),
        (&["serve", "x.toml", "--take-over", "5a3f"], &["--take-over", "three hexadecimal digits"]),
        (&["demo", "--protocols", "1.2"], &["--protocols", "1.0", "1.3"]),
        (&["bench", "run", "--rate", "0"], &["--rate", "10000000"]),
        (&["bench", "run", "--message", "ping"], &["--message", "PACKET_IN"]),
        (&["bench", "run", "--tenants", "0"], &["--tenants", "1..=2046"]),
        (&["bench", "run", "--system", "x"], &["--system", "NAME=IP:PORT"]),
        (&["bench", "run", "--duration", "1", "--cut", "1"], &["cut", "half"]),
        (&["bench", "relay", "--switch", "br0"], &["--switch br0", "--channel"]),
        (&["bench", "run", "--channel", "eth0=1"], &["--channel", "--switch"]),
        (&["bench", "run", "--channel", "eth0"], &["--channel", "INTERFACE=PORT"]),
        (&["bench", "memory", "--switch", "openvswitch"], &["memory", "emulated"]),
        (&["bench", "hostile", "--attack", "flood"], &["--attack", "modify-all", "slow-readers"]),
        (&["bench", "memory", "--system", "fv=127.0.0.1:1"], &["memory", "--system"]),
        (&["bench", "controller", "ssl:127.0.0.1:1"], &["--switch-tls", "KEY,CERT,CA"]),
        (&["bench", "controller", HERE, "--switch-tls", "a,b,c"], &["--switch-tls", "ssl:"]),
        (&["bench", "controller", HERE, "--attack", "ssl:127.0.0.1:9"], &["--attack", "tcp:"]),
        (&["bench", "scenario", "/no/such.toml"], &["/no/such.toml", "No such file"]),
        (
            &["bench", "scenario", "x.toml", "--control", "nowhere"],
            &["--control", "127.0.0.1:PORT"],
        ),
        (&["bench", "run", "--switch-tls", "a,b"], &["--switch-tls", "KEY,CERT,CA"]),
        (
            &[
                "bench",
                "run",
                "--switch-tls",
                "Cargo.toml,Cargo.toml,Cargo.toml",
                "--system",
                "direct",
            ],
            &["both sides or none"],
        ),
        (
            &["bench", "run", "--switch-tls", "/no/k,b,c", "--system", "weir"],
            &["/no/k", "No such file"],
        ),
        (&["bench", "controller"], &["<tcp:IP:PORT>"]),
        (&["bench", "controller", HERE, "--test", "x"], &["--test", "discovery-time", "all"]),
        (&["bench", "controller", HERE, "--test", "failover"], &["--backup", "--fail"]),
        (&["bench", "controller", HERE, "--test", "proactive-path-time"], &["--northbound"]),
        (&["bench", "controller", HERE, "--test", "reprovisioning"], &["--topology", "ring,N"]),
        (&["bench", "controller", HERE, "--topology", "ring,2"], &["--topology", "3 to 1000"]),
        (&["bench", "controller", HERE, "--trials", "0"], &["--trials", "1..=1000"]),
        (&["bench", "controller", HERE, "--frame", "63"], &["--frame", "64..=1518"]),
        (&["bench", "controller", HERE, "--traffic", "0"], &["--traffic", "0.1 to 10000000"]),
        (&["bench", "controller", HERE, "--backup", HERE], &["--fail", "--restore"]),
        (&["evaluate", "echo", "--switch", "ssl:127.0.0.1:1"], &["--tls", "KEY,CERT,CA"]),
        (&["evaluate", "echo", "--switch", HERE, "--tls", "a,b,c"], &["--tls", "ssl:"]),
        (&["evaluate", "all", "--tls", "a,b,c"], &["--tls", "listen:"]),
        (&["evaluate", "echo", "--snmp", "127.0.0.1:161"], &["--snmp", "community=NAME"]),
        (&["evaluate", "echo", "--snmp", "127.0.0.1:161,user=a,auth=x:1"], &["--snmp", "sha256"]),
        (
            &["evaluate", "echo", "--switch", "emulated", "--snmp", "127.0.0.1:161,community=a"],
            &["--snmp", "emulated"],
        ),
        (&["lab", "up", "singel,3"], &["singel", "single"]),
        (&["lab", "up", "single,1", "--protocols", "1.9"], &["--protocols", "1.3"]),
        (
            &["lab", "up", "single,1", "--controller", "here"],
            &["--controller", "tcp:127.0.0.1:6653"],
        ),
        (&["lab", "up", "single,2", "--queues", "fast"], &["--queues", "10Mbit"]),
        (&["sampling", "run", "--lab", "--capacity", "0"], &["--capacity", "jitter", "1e12"]),
        (&["lab", "down", "--lab", "no-such-lab"], &["no-such-lab"]),
        (&["lab", "up", "fattree,32"], &["9472", "2000"]),
        (&["fabric", "simulate", "fatree,4"], &["fatree", "fattree"]),
        (&["fabric", "simulate", "--vnics", "0"], &["--vnics", "1..=64"]),
        (&["fabric", "simulate", "--intervals", "0"], &["--intervals", "0.1 to 86400"]),
        (&["fabric", "simulate", "fattree,4", "--vnics", "1"], &["500 tenants", "8 at most"]),
        (&["fabric", "simulate", "single,1"], &["two servers"]),
        (&["lab", "ping-all", "--timeout", "0"], &["--timeout", "0.001 to 3600"]),
        (&["report", "compare", "one"], &["<RESULTS>"]),
        (&["reproduce", "basta2016"], &["basta2016", "basta2017"]),
        (&["reproduce", "basta2017", "7"], &["7", "3a, 3b"]),
        (
            &["reproduce", "basta2017", "--external", "fv=6633"],
            &["--external", "NAME=SWITCHPORT,CONTROLLERBASE"],
        ),
        (&["reproduce", "basta2017", "--runs", "0"], &["--runs", "1..=1000"]),
    ];
    for (arguments, words) in cases {
        check(arguments, USAGE, words);
    }
}

#[test]
fn failed_commands_print_the_reason() {
    check(&["report", "compare", "/no/a", "/no/b"], FAILURE, &["/no/a"]);
    check(&["check", "/no/such.toml"], USAGE, &["/no/such.toml", "No such file"]);
    check(
        &["bench", "controller", "tcp:127.0.0.1:9", "--test", "latency", "--switches", "1"],
        FAILURE,
        &["is a controller listening on tcp:127.0.0.1:9?"],
    );
}

const APART: &str = r#"
[[tenants]]
name = "red"
controllers = ["tcp:127.0.0.1:6701"]
[[tenants.flowspace]]
match = "ip,nw_src=10.1.0.0/16"
"#;

#[test]
fn check_reports_overlapping_tenants_as_a_finding() {
    let good = File::new("good.toml", APART);
    check(&["check", good.path()], SUCCESS, &[]);

    let blue = APART.replace("red", "blue").replace("nw_src", "nw_dst").replace("6701", "6702");
    let overlapping = File::new("overlapping.toml", &format!("{APART}{blue}"));
    let (code, stdout, _) = weir(&["check", overlapping.path()]);
    assert_eq!(code, Some(FINDING));
    assert!(stdout.contains("blue") && stdout.contains("1 finding"), "{stdout}");

    let (code, stdout, _) = weir(&["check", overlapping.path(), "--json"]);
    let report: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!((code, &report["remarks"][0]["tenant"]), (Some(FINDING), &"blue".into()));
}

#[test]
fn configuration_errors_are_printed_together_with_line_numbers() {
    let bad = File::new("bad.toml", &APART.replace("match =", "mach =").replace("name =", "nme ="));
    for command in ["check", "serve"] {
        let place = |line: usize| format!("{}:{line}:", bad.path());
        check(&[command, bad.path()], USAGE, &[&place(3), &place(6), "`match`", "`name`"]);
    }
    let (code, stdout, stderr) = weir(&["check", bad.path(), "--json"]);
    let errors: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!((code, stderr.as_str()), (Some(USAGE), ""));
    let lines: Vec<_> = errors["errors"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["line"].clone())
        .collect();
    assert!(lines.contains(&3.into()) && lines.contains(&6.into()), "{errors}");
}

#[test]
fn every_command_has_help_with_an_example() {
    let commands: &[&[&str]] = &[
        &["serve"],
        &["check"],
        &["demo"],
        &["bench"],
        &["bench", "relay"],
        &["bench", "hostile"],
        &["bench", "run"],
        &["bench", "search"],
        &["bench", "controller"],
        &["bench", "scenario"],
        &["lab"],
        &["lab", "up"],
        &["lab", "down"],
        &["lab", "list"],
        &["lab", "exec"],
        &["lab", "ping-all"],
        &["lab", "iperf"],
        &["report", "compare"],
        &["reproduce"],
        &["reproduce", "basta2017"],
        &["fabric"],
        &["fabric", "simulate"],
    ];
    for command in commands {
        let (code, stdout, _) = weir(&[*command, &["--help"]].concat());
        assert_eq!(code, Some(SUCCESS), "{command:?}");
        assert!(stdout.contains("Example:\n  "), "{command:?}: {stdout}");
        for page in stdout.split([' ', '\n']).filter_map(|word| word.strip_prefix("docs/")) {
            let page = format!("docs/{}", page.trim_end_matches(['.', ',', ')', ':']));
            assert!(repository().join(&page).exists(), "{command:?} sends to {page}");
        }
    }
}

#[test]
fn a_closed_stdout_is_no_failure() {
    let good = File::new("closed.toml", APART);
    for arguments in [&["check", good.path()] as &[&str], &["--help"], &["lab", "list", "--json"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(arguments)
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .expect("start weir");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(SUCCESS), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("panic"), "{stderr}");
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
