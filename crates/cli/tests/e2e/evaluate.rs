//! Tests of `weir evaluate` on existing switches, with and without TLS. An interrupted measurement leaves the switch as
//! before.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::support::eventually;
use crate::support::folder::Folder;
use crate::support::free_port;
use crate::support::network::{Network, V10, V13};
use crate::support::pki::Pki;
use crate::support::program::Program;
use crate::support::requirements::{Needs, needs};

const ADDRESSES: [&str; 2] = ["10.0.0.1", "10.0.0.2"];
const PATIENCE: Duration = Duration::from_secs(60);
/// The exit code that a shell reports for a process that SIGINT has ended.
const INTERRUPTED: i32 = 130;

/// Starts `weir evaluate` with these arguments, and with the two hosts as data channels.
fn start(network: &Network, arguments: &[&str]) -> Program {
    let channels = [("h1", 1), ("h2", 2)]
        .map(|(host, port)| format!("--channel=eth0@{}={port}", network.namespace(host)));
    let channels: Vec<&str> = channels.iter().map(String::as_str).collect();
    let arguments = [&["evaluate"], arguments, &channels].concat();
    Program::start("weir evaluate", env!("CARGO_BIN_EXE_weir"), &arguments)
}

/// Returns the output of `tcpdump` for a file.
fn tcpdump(file: &Path) -> String {
    let output = Command::new("tcpdump").args(["-n", "-r"]).arg(file).output().expect("tcpdump");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn ovs_evaluate_leaves_a_switch_as_it_was_when_interrupted() {
    needs!(ovs_evaluate_leaves_a_switch_as_it_was_when_interrupted:
        Needs::OpenVSwitch, Needs::Program("tcpdump"));
    let network = Network::single(&ADDRESSES, V10);
    network.ofctl(&["add-flow", "s1", "priority=7,in_port=1,dl_type=0x88b5,actions=output:2"]);
    let as_found = network.flow_texts("s1");
    assert_eq!(as_found.len(), 1);
    let switch = format!("tcp:{}", network.listen("s1"));

    let folder = Folder::new();
    let trace = folder.path().join("control.pcapng");
    let file = trace.display().to_string();
    let arguments =
        ["capacity", "--switch", &switch, "--trace", &file, "--limit", "100000", "--batch", "500"];
    let mut weir = start(&network, &arguments);
    eventually("there are entries of the experiment", || network.flows("s1").len() > 600);
    weir.signal(Signal::SIGINT);
    assert_eq!(weir.wait(PATIENCE), Some(INTERRUPTED), "{}", weir.stderr.to_end());
    assert_eq!(network.flow_texts("s1"), as_found);

    // The record of the control channel is complete up to the interrupt.
    let lines = tcpdump(&trace);
    let to_switch = lines.lines().filter(|line| line.contains("> 192.0.2.2.6653")).count();
    let from_switch = lines.lines().filter(|line| line.contains("192.0.2.2.6653 >")).count();
    assert!(to_switch > 1 && from_switch > 1, "{lines}");
}

#[test]
fn ovs_evaluate_measures_over_tls_and_refuses_a_certificate_of_another_ca() {
    needs!(ovs_evaluate_measures_over_tls_and_refuses_a_certificate_of_another_ca: Needs::OpenVSwitch, Needs::Program("ovs-pki"));
    let network = Network::single(&ADDRESSES, V13);
    let pki = Pki::new();
    pki.sign("switch", "switch");
    pki.sign("weir", "controller");
    let identity = [pki.private_key("weir"), pki.certificate("weir"), pki.ca("switch")]
        .map(|path| path.display().to_string())
        .join(",");
    let address = SocketAddr::new(network.controller_host(), free_port());
    network.connect_with_tls(
        address,
        &pki.private_key("switch"),
        &pki.certificate("switch"),
        &pki.ca("controller"),
    );
    let measure = |switch: &str, tls: &str| {
        let tls = ["--switch", switch, "--tls", tls, "--openflow", "1.3", "--wait", "4"];
        let effort = ["insert", "--rules", "5", "--repetitions", "1", "--json"];
        let arguments = [&effort[..], &tls[..]].concat();
        let mut weir = start(&network, &arguments);
        let code = weir.wait(PATIENCE);
        (code, weir.stdout.to_end(), weir.stderr.to_end())
    };
    let assert_measured = |switch: &str| {
        let (code, result, talk) = measure(switch, &identity);
        assert!(matches!(code, Some(0 | 1)), "{switch}: {code:?} {talk}");
        let result: serde_json::Value = serde_json::from_str(&result).expect("a result");
        let points = result["points"].as_array().expect("points");
        let barrier =
            points.iter().find_map(|point| point["metrics"]["barrier_us"]["mean"].as_f64());
        assert!(barrier > Some(0.0), "{switch}: {result}");
    };
    // A switch with a certificate of another authority is not measured.
    let stranger = [pki.private_key("weir"), pki.certificate("weir"), pki.ca("controller")]
        .map(|path| path.display().to_string())
        .join(",");
    let assert_refused = |switch: &str| {
        let (code, _, talk) = measure(switch, &stranger);
        assert_eq!(code, Some(3), "{switch}: {talk}");
        assert!(talk.contains("control channel"), "{switch}: {talk}");
    };

    let listen = format!("listen:{address}");
    assert_measured(&listen);
    assert_refused(&listen);
    // The results are the same when the switch listens, and `weir evaluate` dials the switch.
    let dial = format!("ssl:{}", network.listen_with_tls("s1"));
    assert_measured(&dial);
    assert_refused(&dial);
}
