//! Tests of the interfaces for an operator: exit codes, error messages, `/healthz` and `/metrics`.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::slices::by_port;
use crate::support::eventually;
use crate::support::folder::Folder;
use crate::support::scripted::{
    BARRIER_REPLY, BARRIER_REQUEST, Controller, ERROR, FLOW_MOD, Message, PACKET_IN, Switch,
    add_flow, frame,
};
use crate::support::weir::{Weir, run};

const PORTS: &[u16] = &[1, 2, 3, 4];

/// Exit codes of every command.
const SUCCESS: Option<i32> = Some(0);
const FINDING: Option<i32> = Some(1);
const USAGE: Option<i32> = Some(2);

#[test]
fn metrics_count_messages_and_refusals_per_tenant() {
    let (red, blue) = (Controller::listen(), Controller::listen());
    let weir = Weir::serve(
        &(by_port("red", &red.name(), [1, 2]) + &by_port("blue", &blue.name(), [3, 4])),
    );
    let switch = Switch::connect(weir.openflow, 1, PORTS);
    let (red, _blue) = (red.switch(0), blue.switch(0));

    for _ in 0..5 {
        switch.packet_in(1, &frame(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)));
        red.expect(PACKET_IN);
    }
    red.send(&Message::new(FLOW_MOD, 1, &add_flow(1, 2, 9, 0)));
    red.send(&Message::new(FLOW_MOD, 2, &add_flow(3, 2, 9, 0)));
    red.expect_reply(ERROR, 2);
    red.send(&Message::new(BARRIER_REQUEST, 3, &[]));
    red.expect_reply(BARRIER_REPLY, 3);

    let of_red =
        |name: &str, labels: &[&str]| weir.metric(name, &[&["tenant=\"red\""], labels].concat());
    let cases = [
        ("weir_messages_total", vec!["direction=\"to_controller\"", "type=\"packet_in\""], 5.0),
        ("weir_messages_total", vec!["direction=\"from_controller\"", "type=\"flow_mod\""], 2.0),
        (
            "weir_messages_total",
            vec!["direction=\"from_controller\"", "type=\"barrier_request\""],
            1.0,
        ),
        ("weir_refused_total", vec![], 1.0),
        ("weir_controllers", vec![], 1.0),
        // Five PACKET_INs, and the replies to FEATURES_REQUEST, to the refused FLOW_MOD and to BARRIER_REQUEST.
        ("weir_added_latency_seconds_count", vec!["towards=\"north\""], 8.0),
    ];
    for (name, labels, expected) in cases {
        // Weir publishes counters a few times a second.
        eventually(&format!("{name}{labels:?} is {expected}"), || {
            (of_red(name, &labels) - expected).abs() < 0.5
        });
    }
    let of_blue = weir.metric("weir_messages_total", &["tenant=\"blue\"", "type=\"packet_in\""]);
    assert!(of_blue < 0.5, "blue got nothing: {of_blue}");
    assert_eq!(weir.get("/healthz").0, 200);
    assert_eq!(weir.get("/no/such/page").0, 404);
}

#[test]
fn sigterm_ends_weir_with_success_and_closes_connections() {
    let red = Controller::listen();
    let mut weir = Weir::serve(&by_port("red", &red.name(), [1, 2]));
    let switch = Switch::connect(weir.openflow, 1, PORTS);
    let red = red.switch(0);
    assert_eq!(weir.terminate(), SUCCESS);
    assert!(switch.peer.is_closed() && red.is_closed());
}

/// A SIGTERM at any moment of the start ends Weir, also before all signal handlers are installed.
#[test]
fn sigterm_during_the_start_ends_weir() {
    let folder = Folder::new();
    let config = folder.join("weir.toml");
    fs::write(&config, "[listen]\nopenflow = \"127.0.0.1:0\"\napi = \"off\"\n")
        .expect("a configuration");
    for milliseconds in 0..40 {
        let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["serve", &config, "--state", &folder.join("state")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("start weir");
        thread::sleep(Duration::from_millis(milliseconds));
        kill(Pid::from_raw(weir.id().cast_signed()), Signal::SIGTERM).expect("end weir");
        eventually(&format!("the end after {milliseconds} ms"), || {
            weir.try_wait().expect("its state").is_some()
        });
    }
}

#[test]
fn a_failed_start_reports_the_taken_port_or_the_configuration_error() {
    let folder = Folder::new();
    let config = folder.join("weir.toml");
    let taken = TcpListener::bind("127.0.0.1:0").expect("bind to a free port");
    let address = taken.local_addr().expect("the port").to_string();
    let cases = [
        (
            "taken port",
            format!("[listen]\nopenflow = \"{address}\"\napi = \"off\"\n"),
            vec![address.as_str()],
        ),
        (
            "unknown key",
            "[listen]\nopenflw = \"127.0.0.1:1\"\n".to_owned(),
            vec!["weir.toml:2:", "openflw", "openflow"],
        ),
        ("bad match", bad_match(), vec!["weir.toml:4:", "nw_scr", "nw_src"]),
    ];
    for (name, text, words) in cases {
        fs::write(&config, text).expect("a configuration");
        let (code, stdout, stderr) = run(&["serve", &config, "--state", &folder.join("state")]);
        assert!(!matches!(code, None | SUCCESS), "{name}: {code:?}");
        assert!(words.iter().all(|word| stderr.contains(word)), "{name}: {stderr}");
        assert_eq!(stdout, "", "{name}: stdout is for data");
    }
    let (code, _, stderr) = run(&["serve", &folder.join("nothing-here.toml")]);
    assert!(
        !matches!(code, None | SUCCESS) && stderr.contains("nothing-here.toml"),
        "{code:?}: {stderr}"
    );
}

fn bad_match() -> String {
    "[[tenants]]\nname = \"red\"\n[[tenants.flowspace]]\nmatch = \"ip,nw_scr=10.0.0.0/8\"\n"
        .to_owned()
}

#[test]
fn a_second_weir_with_the_same_state_folder_does_not_start() {
    let weir = Weir::serve("");
    let second = weir.folder.join("second.toml");
    fs::write(&second, "[listen]\nopenflow = \"127.0.0.1:0\"\napi = \"off\"\n")
        .expect("a configuration");
    let (code, _, stderr) = run(&["serve", &second, "--state", &weir.folder.join("state")]);
    assert!(!matches!(code, None | SUCCESS), "{code:?}");
    assert!(stderr.contains("state"), "{stderr}");
}

#[test]
fn check_has_different_exit_codes_for_findings_and_errors() {
    let folder = Folder::new();
    let config = folder.join("weir.toml");
    let tenant = |name: &str, port: u16, text: &str| {
        format!(
            r#"
[[tenants]]
name = "{name}"
controllers = ["tcp:127.0.0.1:{port}"]
[[tenants.flowspace]]
match = "{text}"
"#
        )
    };
    let red = tenant("red", 6701, "in_port=1");
    let apart = red.clone() + &tenant("blue", 6702, "in_port=2");
    let overlapping = red + &tenant("blue", 6702, "ip");
    for (text, expected) in [(apart, SUCCESS), (overlapping, FINDING), (bad_match(), USAGE)] {
        fs::write(&config, &text).expect("a configuration");
        let (code, stdout, stderr) = run(&["check", &config]);
        assert_eq!(code, expected, "{text}\n{stdout}\n{stderr}");
        let said = stdout + &stderr;
        let names_both = said.contains("red") && said.contains("blue");
        assert_eq!(names_both, expected == FINDING, "{text}\n{said}");
    }
}
