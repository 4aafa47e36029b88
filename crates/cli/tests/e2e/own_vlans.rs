//! Tests of the tenants' own VLANs between switches: two tenants use the same VLANs and addresses, also after a failed
//! link and after a restart.

use serde_json::Value;

use crate::own_networks::{TOPOLOGY, tenant};
use crate::support::app::App;
use crate::support::network::{Network, V10, V13};
use crate::support::program::Program;
use crate::support::requirements::{Needs, needs};
use crate::support::weir::Weir;
use crate::support::{PATIENCE, eventually, repository};

#[test]
fn ovs_tenants_with_the_same_vlans_are_isolated_on_openflow_1_3() {
    needs!(ovs_tenants_with_the_same_vlans_are_isolated_on_openflow_1_3: Needs::OpenVSwitch, Needs::OsKen);
    check([App::learning_switch_13(), App::learning_switch_13()]);
}

/// Leaf 1 and a spine speak OpenFlow 1.0, and leaf 2 and the other spine speak OpenFlow 1.3. The tenant has a
/// controller for each version.
#[test]
fn ovs_a_virtual_link_between_switches_of_both_versions_carries_frames() {
    needs!(ovs_a_virtual_link_between_switches_of_both_versions_carries_frames: Needs::OpenVSwitch, Needs::OsKen);
    let network = Network::builtin(TOPOLOGY, V13);
    ["s1", "s4"].iter().for_each(|switch| network.speak(switch, V10));
    let (old, new) = (App::learning_switch_10(), App::learning_switch_13());
    let also = format!("controllers = [\"{old}\", \"{new}\"]");
    let red = tenant("red", &old, 1);
    let red = red.replacen(&format!("controllers = [\"{old}\"]"), &also, 1);
    let configuration = format!("[topology]\ndiscovery = true\n{red}");
    let mut weir = Weir::serve_on(network.controller_host(), &configuration);
    let mut interfaces = Vec::new();
    for (host, last) in [("h1", 1), ("h3", 2)] {
        let address = format!("10.0.0.{last}/24");
        network.exec(host, &["ip", "address", "flush", "dev", "eth0", "scope", "global"]);
        network.exec(host, &["ip", "address", "add", &address, "dev", "eth0"]);
        interfaces.push(in_vlan(&network, host, 10, last));
    }
    network.connect_to(weir.openflow);
    let reaches = |vlan: u16| {
        let there = network.answers("h1", &format!("10.0.{vlan}.2"));
        there && network.answers("h3", &format!("10.0.{vlan}.1"))
    };
    eventually("the hosts reach each other", || reaches(0));
    assert!(!reaches(10), "a frame has one tag on 1.0, the link's");

    // The leaves exchange their versions.
    network.disconnect();
    for (switch, version) in [("s1", V13), ("s2", V10)] {
        network.speak(switch, version);
        network.forget_flows(switch);
    }
    network.connect_to(weir.openflow);
    eventually("they do the other way round", || reaches(0));
    assert!(!reaches(10), "a frame has one tag on 1.0, the link's");

    // After a restart Weir knows the version of each switch.
    weir.crash();
    weir.restart();
    eventually("the hosts reach each other after a restart", || reaches(0));
}

/// Adds an interface in a VLAN to a host: `v10` for VLAN 10.
fn in_vlan(network: &Network, host: &str, vlan: u16, last: u8) -> Program {
    let script = repository().join("crates/cli/tests/e2e/support/vlan_interface.py");
    let script = script.to_str().expect("a path");
    let (name, address) = (format!("v{vlan}"), format!("10.0.{vlan}.{last}/24"));
    let relay = network.program(host, &["python3", script, &name, &vlan.to_string()]);
    let ready = relay.stdout.wait_for(0, PATIENCE, |line| (line == "ready").then_some(()));
    assert!(ready.is_some(), "{host} has no interface in VLAN {vlan}");
    let mac = network.mac(host);
    network.exec(host, &["ip", "link", "set", &name, "address", &mac, "up"]);
    network.exec(host, &["ip", "address", "add", &address, "dev", &name]);
    relay
}

fn check([red, blue]: [App; 2]) {
    let network = Network::builtin(TOPOLOGY, V13);
    let configuration = String::from("[topology]\ndiscovery = true\n")
        + &tenant("red", &red, 1)
        + &tenant("blue", &blue, 2);
    let mut weir = Weir::serve_on(network.controller_host(), &configuration);
    // The first hosts of both tenants have the same addresses, in VLAN 10 and without a tag. The second hosts do as
    // well.
    let mut interfaces = Vec::new();
    for (host, last) in [("h1", 1), ("h3", 2), ("h2", 1), ("h4", 2)] {
        let address = format!("10.0.0.{last}/24");
        network.exec(host, &["ip", "address", "flush", "dev", "eth0", "scope", "global"]);
        network.exec(host, &["ip", "address", "add", &address, "dev", "eth0"]);
        interfaces.push(in_vlan(&network, host, 10, last));
    }
    // Red has two hosts in VLAN 20, and blue has one. An answer to blue's host would be from red's host.
    for (host, last) in [("h1", 1), ("h3", 2), ("h2", 1)] {
        interfaces.push(in_vlan(&network, host, 20, last));
    }
    network.connect_to(weir.openflow);
    let reaches = |host: &str, vlan: u16| network.answers(host, &format!("10.0.{vlan}.2"));
    let both_work = |vlan| ["h1", "h2"].iter().all(|host| reaches(host, vlan));
    eventually("both tenants' hosts reach their own without a tag", || both_work(0));
    eventually("both tenants' hosts reach their own in VLAN 10", || both_work(10));
    eventually("red's hosts reach each other in VLAN 20", || reaches("h1", 20));
    assert!(!reaches("h2", 20));
    // Blue's second host is down in VLAN 10. Red's first host still gets answers, so the answers are from red's second
    // host.
    network.exec("h4", &["ip", "link", "set", "v10", "down"]);
    assert!(!reaches("h2", 10));
    eventually("red's hosts still reach each other", || reaches("h1", 10));
    network.exec("h4", &["ip", "link", "set", "v10", "up"]);
    network.exec("h4", &["ip", "address", "replace", "10.0.10.2/24", "dev", "v10"]);

    // The physical link of red's virtual link fails.
    let before = path(&weir);
    let (switch, port) = before[0].clone();
    network.set_port(&format!("s{switch}"), &format!("s{switch}-eth{port}"), "down");
    eventually("red's link is on its backup", || path(&weir).first() != before.first());
    eventually("both tenants' hosts reach their own in VLAN 10 again", || both_work(10));

    // A restart keeps the networks.
    let networks = weir.get("/api/v1/networks").1;
    weir.crash();
    weir.restart();
    eventually("the networks are as before", || weir.get("/api/v1/networks").1 == networks);
    eventually("both tenants' hosts reach their own after all", || both_work(10) && both_work(0));
    assert!(!reaches("h2", 20));
}

/// A physical link of a path, by the switch and the port that send to the link.
type Wire = (String, String);

/// Returns the physical links of red's virtual link.
fn path(weir: &Weir) -> Vec<Wire> {
    let (status, body) = weir.get("/api/v1/networks/red");
    assert_eq!(status, 200, "{body}");
    let network: Value = serde_json::from_str(&body).expect("JSON");
    let wires = network["paths"][0]["path"].as_array().expect("a path");
    let wire = |wire: &Value| {
        let (dpid, port) = wire["from"].as_str()?.split_once(" port ")?;
        let dpid = u64::from_str_radix(&dpid.replace(':', ""), 16).ok()?;
        Some((dpid.to_string(), port.to_owned()))
    };
    wires.iter().map(|it| wire(it).expect("a port")).collect()
}
