//! Tests of link discovery between real switches: links are found, are down after failures, and cannot be forged by
//! hosts.

use serde_json::Value;

use crate::support::network::{Network, V10, V13, Version};
use crate::support::requirements::{Needs, needs};
use crate::support::weir::Weir;
use crate::support::{eventually, repository};

/// The interval is short enough for a test and long enough for a busy machine: five probes may be lost.
const DISCOVERY: &str = "[topology]\ndiscovery = true\ninterval = \"200ms\"\nlifetime = \"1200ms\"\nbandwidth = \"10Mbit\"\n";

/// In `linear,3` port 1 of a switch has a host, and the links are `s1:2 - s2:2` and `s2:3 - s3:2`.
const FIRST: &str = "1.2-2.2";
const SECOND: &str = "2.3-3.2";

#[test]
fn ovs_links_are_discovered_over_openflow_1_0() {
    needs!(ovs_links_are_discovered_over_openflow_1_0: Needs::OpenVSwitch, Needs::Program("python3"));
    check(V10);
}

#[test]
fn ovs_links_are_discovered_over_openflow_1_3() {
    needs!(ovs_links_are_discovered_over_openflow_1_3: Needs::OpenVSwitch, Needs::Program("python3"));
    check(V13);
}

fn check(version: Version) {
    let network = Network::linear(3, version);
    let weir = network.serve(DISCOVERY);
    expect_links(&weir, &[FIRST, SECOND]);
    let topology = ask(&weir);
    assert_eq!(topology["switches"].as_array().map(Vec::len), Some(3), "{topology}");
    assert_eq!(topology["links"][0]["bandwidth_bits_per_second"], 10_000_000, "{topology}");

    // A port is set down, and the switch reports this.
    network.set_port("s1", "s1-eth2", "down");
    expect_links(&weir, &[SECOND]);
    network.set_port("s1", "s1-eth2", "up");
    expect_links(&weir, &[FIRST, SECOND]);

    // A port drops all received frames, and its state stays up. Weir notices that no probes arrive.
    let protocol = if version == V10 { "OpenFlow10" } else { "OpenFlow13" };
    network.ofctl(&["-O", protocol, "mod-port", "s2", "3", "no-receive"]);
    expect_links(&weir, &[FIRST]);
    network.ofctl(&["-O", protocol, "mod-port", "s2", "3", "receive"]);
    expect_links(&weir, &[FIRST, SECOND]);

    hosts_make_no_link(&network, &weir);

    // A link is down while its switches are disconnected, and up after the switches connect again.
    network.disconnect();
    expect_links(&weir, &[]);
    network.connect_to(weir.openflow);
    expect_links(&weir, &[FIRST, SECOND]);
}

/// h1 records probes, and sends each probe back, unchanged and changed. h3 sends the probes as well. Weir refuses all
/// these probes.
fn hosts_make_no_link(network: &Network, weir: &Weir) {
    let thief = repository().join("crates/cli/tests/e2e/support/probe_thief.py");
    let thief = thief.to_str().expect("a path");
    let kept = weir.folder.join("probes");
    network.exec("h1", &["python3", thief, "record", "1.5", &kept]);
    let count = std::fs::read_to_string(&kept).expect("what h1 kept").lines().count();
    assert!(count >= 2, "a host at an undeclared port sees {count} probes");
    let before = refused(weir);
    // Byte 24 is the last byte of the datapath id. With a changed byte the tag does not fit, so the probe has no owner.
    network.exec("h1", &["python3", thief, "replay", &kept, "24"]);
    network.exec("h1", &["python3", thief, "replay", &kept]);
    network.exec("h3", &["python3", thief, "replay", &kept]);
    let replayed = u64::try_from(2 * count).expect("few");
    eventually("each probe that was sent again is refused", || refused(weir) >= before + replayed);
    assert_eq!(links(weir), [FIRST, SECOND]);
}

fn ask(weir: &Weir) -> Value {
    let (status, body) = weir.get("/api/v1/topology");
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).expect("JSON")
}

fn refused(weir: &Weir) -> u64 {
    ask(weir)["refused_probes"].as_u64().expect("a number")
}

/// Links that are up, as `switch.port-switch.port`.
pub fn links(weir: &Weir) -> Vec<String> {
    let end = |end: &Value| {
        let dpid = end["dpid"].as_str().expect("a dpid");
        format!("{}.{}", dpid.trim_start_matches(['0', ':']), end["port"])
    };
    let topology = ask(weir);
    let links = topology["links"].as_array().expect("links");
    let up = links.iter().filter(|link| link["up"] == true);
    up.map(|link| format!("{}-{}", end(&link["between"][0]), end(&link["between"][1]))).collect()
}

#[track_caller]
fn expect_links(weir: &Weir, expected: &[&str]) {
    eventually(&format!("links {expected:?}; now {:?}", links(weir)), || links(weir) == expected);
}
