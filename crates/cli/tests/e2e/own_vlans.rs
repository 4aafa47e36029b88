//! VLANs of the tenants' own, between switches: two tenants with the same VLANs and addresses, through a failure and a
//! restart.

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

/// Leaf 1 speaks 1.0, leaf 2 speaks 1.3, and so do the spines; the tenant has a controller for each version.
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

    // The ends change places: what each speaks is what the other has to follow.
    network.disconnect();
    for (switch, version) in [("s1", V13), ("s2", V10)] {
        network.speak(switch, version);
        network.forget_flows(switch);
    }
    network.connect_to(weir.openflow);
    eventually("they do the other way round", || reaches(0));
    assert!(!reaches(10), "a frame has one tag on 1.0, the link's");

    // A restart knows which is which.
    weir.crash();
    weir.restart();
    eventually("the hosts reach each other after a restart", || reaches(0));
}

/// A host's interface in a VLAN, `v10` in VLAN 10.
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
    // A tenant's first host and its second have the same addresses in both, in VLAN 10 and without a tag.
    let mut interfaces = Vec::new();
    for (host, last) in [("h1", 1), ("h3", 2), ("h2", 1), ("h4", 2)] {
        let address = format!("10.0.0.{last}/24");
        network.exec(host, &["ip", "address", "flush", "dev", "eth0", "scope", "global"]);
        network.exec(host, &["ip", "address", "add", &address, "dev", "eth0"]);
        interfaces.push(in_vlan(&network, host, 10, last));
    }
    // Red has one more; what blue's only member of VLAN 20 hears there, it hears from red.
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
    // Red's answers are red's: blue's second host is away.
    network.exec("h4", &["ip", "link", "set", "v10", "down"]);
    assert!(!reaches("h2", 10));
    eventually("red's hosts still reach each other", || reaches("h1", 10));
    network.exec("h4", &["ip", "link", "set", "v10", "up"]);
    network.exec("h4", &["ip", "address", "replace", "10.0.10.2/24", "dev", "v10"]);

    // The physical link that red's is on fails.
    let before = path(&weir);
    let (switch, port) = before[0].clone();
    network.set_port(&format!("s{switch}"), &format!("s{switch}-eth{port}"), "down");
    eventually("red's link is on its backup", || path(&weir).first() != before.first());
    eventually("both tenants' hosts reach their own in VLAN 10 again", || both_work(10));

    // A restart keeps them.
    let networks = weir.get("/api/v1/networks").1;
    weir.crash();
    weir.restart();
    eventually("the networks are as before", || weir.get("/api/v1/networks").1 == networks);
    eventually("both tenants' hosts reach their own after all", || both_work(10) && both_work(0));
    assert!(!reaches("h2", 20));
}

/// A physical link on a path, by the switch and the port that it leaves by.
type Wire = (String, String);

/// Where red's link is.
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
