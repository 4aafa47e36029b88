//! Tests of two tenants with networks of their own, on the same switches and with the same addresses: each host reaches
//! its own tenant's hosts, and no host of the other tenant. `own_networks` tests failures of links.
//!
//! ```text
//!   r1 b1     r2 b2     r3 b3     r4 b4           Red has a network of all four switches.
//!     s1 ─────── s2 ─────── s3 ─────── s4         Blue has two switches: their link passes through s2 and s3.
//! ```

use std::process::Command;

use serde_json::Value;

use crate::support::app::App;
use crate::support::network::{Network, V10, V13, Version};
use crate::support::requirements::{Needs, needs};

/// Ports of each switch: red's host at port 1, blue's host at port 2, and then the links to the left and to the right.
const TOPOLOGY: &str = r#"
[topology]
edge_ports = [
    "1 port 1", "1 port 2", "2 port 1", "2 port 2", "3 port 1", "3 port 2", "4 port 1", "4 port 2",
]
[[topology.links]]
between = ["1 port 3", "2 port 3"]
[[topology.links]]
between = ["2 port 4", "3 port 3"]
[[topology.links]]
between = ["3 port 4", "4 port 3"]
"#;

fn row(version: Version) -> Network {
    let switches = ["s1", "s2", "s3", "s4"];
    let hosts = switches.iter().flat_map(|switch| {
        let n = &switch[1..];
        [(format!("r{n}"), *switch), (format!("b{n}"), *switch)]
    });
    let hosts: Vec<_> = hosts.collect();
    let links: Vec<_> = hosts
        .iter()
        .map(|(host, switch)| (host.as_str(), *switch))
        .chain(switches.windows(2).map(|pair| (pair[0], pair[1])))
        .collect();
    let names: Vec<&str> = hosts.iter().map(|(host, _)| host.as_str()).collect();
    let network = Network::of(&switches, &names, &links, version);
    for n in 1..=4 {
        for host in [format!("r{n}"), format!("b{n}")] {
            // The hosts of both tenants have the same addresses.
            let interface = "eth0";
            network.exec(&host, &["ip", "address", "flush", "dev", interface]);
            let mac = format!("02:00:00:00:77:0{n}");
            network.exec(&host, &["ip", "link", "set", "dev", interface, "address", &mac]);
            for address in [format!("10.7.0.{n}/24"), own(&host, n)] {
                network.exec(&host, &["ip", "address", "add", &address, "dev", interface]);
            }
            network.enable_ipv6(&host);
            for address in [format!("fd07::{n}/64"), own_v6(&host, n)] {
                network.exec(&host, &["ip", "address", "add", &address, "dev", interface, "nodad"]);
            }
        }
    }
    network
}

/// Returns an address that only this tenant's host has. The address shows which tenant's host answers.
fn own(host: &str, n: u8) -> String {
    let last = if host.starts_with('r') { n + 40 } else { n + 80 };
    format!("10.7.0.{last}/24")
}

fn own_v6(host: &str, n: u8) -> String {
    let whose = if host.starts_with('r') { 'a' } else { 'b' };
    format!("fd07::{whose}{n}/64")
}

fn tenant(name: &str, controller: &App, network: &str) -> String {
    format!(
        "\n[[tenants]]\nname = \"{name}\"\ncontrollers = [\"{controller}\"]\n[tenants.network]\naddresses = \"10.7.0.0/24\"\n{network}"
    )
}

fn switch(dpid: &str, on: &str) -> String {
    format!("[[tenants.network.switches]]\ndpid = \"{dpid}\"\non = [\"{on}\"]\n")
}

fn edge(switch: &str, number: u8, at: &str) -> String {
    format!("[[tenants.network.ports]]\nswitch = \"{switch}\"\nnumber = {number}\nat = \"{at}\"\n")
}

fn link(a: &str, b: &str, more: &str) -> String {
    format!("[[tenants.network.links]]\nbetween = [\"{a}\", \"{b}\"]\n{more}")
}

/// Four switches in a row: each has a host at port 1, the link to the left at port 2, and the link to the right at
/// port 3.
fn red_network() -> String {
    let mut text = String::new();
    for n in 1..=4 {
        text += &switch(&format!("0xa{n}"), &n.to_string());
        text += &edge(&format!("0xa{n}"), 1, &format!("{n} port 1"));
    }
    for n in 1..=3 {
        text += &link(&format!("0xa{n} port 3"), &format!("0xa{} port 2", n + 1), "");
    }
    text
}

/// Two switches. The link between the switches passes through two physical switches where blue has no switch.
fn blue_network() -> String {
    switch("0xb1", "1")
        + &switch("0xb4", "4")
        + &edge("0xb1", 7, "1 port 2")
        + &edge("0xb4", 7, "4 port 2")
        + &link("0xb1 port 9", "0xb4 port 9", "")
}

fn ping(network: &Network, from: &str, to: &str, attempts: u32) -> bool {
    let arguments =
        ["netns", "exec", &network.namespace(from), "ping", "-c1", "-W1", "-n", "-q", to];
    (0..attempts).any(|_| {
        Command::new("ip").args(arguments).output().is_ok_and(|output| output.status.success())
    })
}

fn check(version: Version, mut controllers: [App; 2]) {
    let network = row(version);
    let [red, blue] = &controllers;
    let config = TOPOLOGY.to_owned()
        + &tenant("red", red, &red_network())
        + &tenant("blue", blue, &blue_network());
    let _weir = network.serve(&config);
    let mut dpids: Vec<u64> =
        (0..4).map(|_| controllers[0].expect("switch")["dpid"].as_u64().expect("a dpid")).collect();
    dpids.sort_unstable();
    assert_eq!(dpids, [0xa1, 0xa2, 0xa3, 0xa4], "red's own switches");
    for _ in 0..2 {
        let seen = controllers[1].expect("switch");
        assert!(matches!(seen["dpid"].as_u64(), Some(0xb1 | 0xb4)), "{seen}");
        assert!(ports(&seen).is_none_or(|ports| ports == [7, 9]), "{seen}");
    }
    for (from, to) in
        [("r1", "10.7.0.4"), ("r4", "10.7.0.2"), ("r2", "10.7.0.3"), ("r1", "fd07::4")]
    {
        assert!(ping(&network, from, to, 4), "{from} to {to}: red's");
    }
    for (from, to) in [("b1", "10.7.0.4"), ("b4", "10.7.0.1"), ("b4", "fd07::1")] {
        assert!(ping(&network, from, to, 4), "{from} to {to}: blue's");
    }
    // Each host reaches an address that only a host of its own tenant has, so its answers are from its own tenant.
    assert!(ping(&network, "r1", "10.7.0.44", 4) && ping(&network, "b1", "10.7.0.84", 4));
    assert!(ping(&network, "r4", "fd07::a1", 4) && ping(&network, "b1", "fd07::b4", 4));
    for (from, to) in [
        ("r1", "10.7.0.84"),
        ("b1", "10.7.0.44"),
        ("b4", "10.7.0.42"),
        ("r2", "10.7.0.81"),
        ("r1", "fd07::b4"),
        ("b4", "fd07::a1"),
    ] {
        assert!(!ping(&network, from, to, 2), "{from} to {to}: another tenant's");
    }
    // Blue has no switch on s2, where host b2 is.
    assert!(!ping(&network, "b2", "10.7.0.1", 1));
    for controller in &mut controllers {
        assert!(!controller.has_seen("error"), "an ordinary learning switch is refused nothing");
    }
}

fn ports(seen: &Value) -> Option<Vec<u64>> {
    seen["ports"].as_array()?.iter().map(Value::as_u64).collect()
}

#[test]
fn ovs_networks_of_tenants_with_the_same_addresses_are_isolated_on_openflow_10() {
    needs!(ovs_networks_of_tenants_with_the_same_addresses_are_isolated_on_openflow_10:
        Needs::OpenVSwitch, Needs::OsKen);
    check(V10, [App::learning_switch_10(), App::learning_switch_10()]);
}

#[test]
fn ovs_networks_of_tenants_with_the_same_addresses_are_isolated_on_openflow_13() {
    needs!(ovs_networks_of_tenants_with_the_same_addresses_are_isolated_on_openflow_13:
        Needs::OpenVSwitch, Needs::OsKen);
    check(V13, [App::learning_switch_13(), App::learning_switch_13()]);
}

#[test]
fn ovs_discovery_by_a_tenants_controller_finds_its_virtual_links() {
    needs!(ovs_discovery_by_a_tenants_controller_finds_its_virtual_links: Needs::OpenVSwitch, Needs::OsKen);
    let network = row(V13);
    let (mut red, mut blue) = (App::topology(), App::topology());
    let config = TOPOLOGY.to_owned()
        + &tenant("red", &red, &red_network())
        + &tenant("blue", &blue, &blue_network());
    let _weir = network.serve(&config);
    let mut found: Vec<String> = (0..6)
        .map(|_| {
            let link = red.expect("link");
            format!("{}-{}", link["from"], link["to"])
        })
        .collect();
    found.sort();
    let wanted: Vec<String> = [
        "[161,3]-[162,2]",
        "[162,2]-[161,3]",
        "[162,3]-[163,2]",
        "[163,2]-[162,3]",
        "[163,3]-[164,2]",
        "[164,2]-[163,3]",
    ]
    .map(str::to_owned)
    .into();
    assert_eq!(found, wanted);
    for _ in 0..2 {
        let link = blue.expect("link");
        let ends = [&link["from"], &link["to"]].map(|end| end[0].as_u64());
        assert!(matches!(ends, [Some(0xb1), Some(0xb4)] | [Some(0xb4), Some(0xb1)]), "{link}");
    }
}
