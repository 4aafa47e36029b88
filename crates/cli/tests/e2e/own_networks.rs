//! Tests of two tenants with networks of their own and the same addresses: failures of links, changes by an operator,
//! PORT_MODs and restarts.

use serde_json::{Value, json};

use crate::support::app::App;
use crate::support::network::{Network, V10, V13, Version};
use crate::support::program::Program;
use crate::support::requirements::{Needs, needs};
use crate::support::weir::{Weir, run};
use crate::support::{PATIENCE, eventually};

/// In `leafspine,2,2,2` switches 1 and 2 are leaves, switches 3 and 4 are spines, and a leaf's hosts are at its ports 1
/// and 2.
pub const TOPOLOGY: &str = "leafspine,2,2,2";

/// A tenant with a switch and a host on each leaf, and with a link that has a backup.
pub fn tenant(name: &str, app: &App, port: u32) -> String {
    format!(
        "[[tenants]]\nname = \"{name}\"\ncontrollers = [\"{app}\"]\n[tenants.network]\n\
         [[tenants.network.switches]]\ndpid = \"0xa1\"\non = \"1\"\n\
         [[tenants.network.switches]]\ndpid = \"0xa2\"\non = \"2\"\n\
         [[tenants.network.ports]]\nswitch = \"0xa1\"\nnumber = 1\nat = \"1 port {port}\"\n\
         [[tenants.network.ports]]\nswitch = \"0xa2\"\nnumber = 1\nat = \"2 port {port}\"\n\
         [[tenants.network.links]]\nbetween = [\"0xa1 port 2\", \"0xa2 port 2\"]\nbackup = \"switches\"\n"
    )
}

/// The first host of each pair gets 10.0.0.1, and the second host gets 10.0.0.2.
pub fn number(network: &Network, hosts: [[&str; 2]; 2]) {
    for [first, second] in hosts {
        for (host, address) in [(first, "10.0.0.1/24"), (second, "10.0.0.2/24")] {
            network.exec(host, &["ip", "address", "flush", "dev", "eth0", "scope", "global"]);
            network.exec(host, &["ip", "address", "add", address, "dev", "eth0"]);
        }
    }
}

#[test]
fn ovs_networks_with_same_addresses_survive_failure_and_kill_9_on_openflow_1_0() {
    needs!(ovs_networks_with_same_addresses_survive_failure_and_kill_9_on_openflow_1_0:
        Needs::OpenVSwitch, Needs::OsKen, Needs::Program("iperf3"));
    check(V10, [App::learning_switch_10(), App::learning_switch_10()]);
}

#[test]
fn ovs_networks_with_same_addresses_survive_failure_and_kill_9_on_openflow_1_3() {
    needs!(ovs_networks_with_same_addresses_survive_failure_and_kill_9_on_openflow_1_3:
        Needs::OpenVSwitch, Needs::OsKen, Needs::Program("iperf3"));
    check(V13, [App::learning_switch_13(), App::learning_switch_13()]);
}

fn check(version: Version, [red, blue]: [App; 2]) {
    let network = Network::builtin(TOPOLOGY, version);
    let discovery = "[topology]\ndiscovery = true\n";
    let configuration =
        format!("{discovery}{}{}", tenant("red", &red, 1), tenant("blue", &blue, 2));
    let mut weir = Weir::serve_on(network.controller_host(), &configuration);
    // The first hosts of both tenants have the same address, and the second hosts have the same address.
    let hosts = [["h1", "h3"], ["h2", "h4"]];
    number(&network, hosts);
    network.connect_to(weir.openflow);
    eventually("both networks are up", || ports_up(&weir) == [4, 4]);
    let both_work = || hosts.iter().all(|[first, _]| network.answers(first, "10.0.0.2"));
    eventually("both tenants' hosts reach their own", both_work);
    // Blue's second host is down. Red's first host still gets answers, so the answers are from red's second host.
    network.exec("h4", &["ip", "link", "set", "eth0", "down"]);
    assert!(network.answers("h1", "10.0.0.2") && !network.answers("h2", "10.0.0.2"));
    network.exec("h4", &["ip", "link", "set", "eth0", "up"]);
    network.exec("h4", &["ip", "address", "replace", "10.0.0.2/24", "dev", "eth0"]);

    // The physical link of red's virtual link fails during a transfer, and the virtual link moves to its backup.
    let transfer = Transfer::start(&network, "h1", "h3", "10.0.0.2");
    fail_link(&network, &weir, "red");
    eventually("both tenants' hosts reach their own again", both_work);
    assert_eq!(ports_up(&weir), [4, 4]);
    transfer.goes_on();

    // The operator stops red's link. The ports of the link are down, and only red's hosts lose their connection.
    ctl(
        &weir,
        &["stop", "red", "link", "0xa1 port 2", "0xa2 port 2"],
        0,
        "0a:1 port 2: up -> down",
    );
    assert_eq!(ports_up(&weir), [2, 4]);
    eventually("red's first host is cut off", || !network.answers("h1", "10.0.0.2"));
    eventually("blue's is not", || network.answers("h2", "10.0.0.2"));
    ctl(
        &weir,
        &["add", "red", "link", "0xa1 port 2", "0xa9 port 2"],
        1,
        "the tenant has no switch",
    );
    assert_eq!(ports_up(&weir), [2, 4]);

    // A restart keeps the operator's change, paths and tags.
    let maps = weir.get("/api/v1/networks").1;
    weir.crash();
    weir.restart();
    eventually("the networks are as before", || weir.get("/api/v1/networks").1 == maps);
    ctl(&weir, &["start", "red", "link", "0xa1 port 2", "0xa2 port 2"], 0, "port 2: down -> up");
    eventually("both tenants' hosts reach their own after all", both_work);
}

#[test]
fn ovs_a_virtual_link_moves_to_a_shorter_path_found_later_on_openflow_1_0() {
    needs!(ovs_a_virtual_link_moves_to_a_shorter_path_found_later_on_openflow_1_0:
        Needs::OpenVSwitch, Needs::OsKen, Needs::Program("iperf3"));
    check_detour(V10, &App::learning_switch_10());
}

#[test]
fn ovs_a_virtual_link_moves_to_a_shorter_path_found_later_on_openflow_1_3() {
    needs!(ovs_a_virtual_link_moves_to_a_shorter_path_found_later_on_openflow_1_3:
        Needs::OpenVSwitch, Needs::OsKen, Needs::Program("iperf3"));
    check_detour(V13, &App::learning_switch_13());
}

/// Weir finds the shorter path while the tenant's network already uses the longer path. The link moves to the shorter
/// path, and a transfer between the tenant's hosts continues.
fn check_detour(version: Version, app: &App) {
    let wires = [("s1", "h1"), ("s2", "h2"), ("s1", "s3"), ("s3", "s2"), ("s1", "s2")];
    let network = Network::of(&["s1", "s2", "s3"], &["h1", "h2"], &wires, version);
    network.set_port("s1", "s1-eth3", "down");
    let configuration = format!("[topology]\ndiscovery = true\n{}", tenant("red", app, 1));
    let weir = Weir::serve_on(network.controller_host(), &configuration);
    number(&network, [["h1", "h2"]; 2]);
    network.connect_to(weir.openflow);
    eventually("red's hosts reach each other", || network.answers("h1", "10.0.0.2"));
    assert_eq!(path(&weir, "red"), [(1, 2), (3, 2)]);

    let transfer = Transfer::start(&network, "h1", "h2", "10.0.0.2");
    network.set_port("s1", "s1-eth3", "up");
    eventually("red's link goes the short way", || path(&weir, "red") == [(1, 3)]);
    assert_eq!(ports_up(&weir), [4]);
    transfer.goes_on();
    assert!(network.answers("h1", "10.0.0.2"));
}

#[test]
fn ovs_a_port_set_down_by_port_mod_stays_down_after_kill_9_on_openflow_1_0() {
    needs!(ovs_a_port_set_down_by_port_mod_stays_down_after_kill_9_on_openflow_1_0: Needs::OpenVSwitch, Needs::OsKen);
    check_port(V10, "1.0");
}

#[test]
fn ovs_a_port_set_down_by_port_mod_stays_down_after_kill_9_on_openflow_1_3() {
    needs!(ovs_a_port_set_down_by_port_mod_stays_down_after_kill_9_on_openflow_1_3: Needs::OpenVSwitch, Needs::OsKen);
    check_port(V13, "1.3");
}

/// Red sets NO_FWD and then PORT_DOWN on its port. The port stays down after a kill -9, blue's hosts still reach each
/// other, and another PORT_MOD sets the port up again.
fn check_port(version: Version, openflow: &str) {
    let network = Network::single(&["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"], version);
    let [mut red, mut beside, mut blue] = [(); 3].map(|()| App::flow_installer(openflow));
    let own = |name: &str, apps: &str, ports: [u32; 2]| {
        let port = |number: usize| {
            let at = ports[number - 1];
            format!(
                "[[tenants.network.ports]]\nswitch = \"0xa1\"\nnumber = {number}\nat = \"1 port {at}\"\n"
            )
        };
        let (first, second) = (port(1), port(2));
        format!(
            "[[tenants]]\nname = \"{name}\"\ncontrollers = [{apps}]\n[tenants.network]\n\
             [[tenants.network.switches]]\ndpid = \"0xa1\"\non = \"1\"\n{first}{second}"
        )
    };
    let configuration = own("red", &format!("\"{red}\", \"{beside}\""), [1, 2])
        + &own("blue", &format!("\"{blue}\""), [3, 4]);
    let mut weir = network.serve(&configuration);
    for app in [&mut red, &mut blue] {
        app.expect("switch");
        for (from, to) in [(1, 2), (2, 1)] {
            let output = json!([{"type": "OUTPUT", "port": to}]);
            app.flow("add", 1, &json!({"match": {"in_port": from}, "actions": output}));
        }
        app.barrier(2);
    }
    beside.expect("switch");
    assert!(network.pings("h1", "h2") && network.pings("h3", "h4"));

    let mod_port = |app: &mut App, xid: u32, bits: &Value| {
        let mut order = json!({"send": "port_mod", "xid": xid, "port": 2});
        order.as_object_mut().expect("an object").extend(bits.as_object().expect("bits").clone());
        app.order(&order);
        app.barrier(xid + 1);
    };
    for (xid, bits, config) in [
        (10, json!({"set": ["NO_FWD"]}), 0x20),
        (20, json!({"set": ["PORT_DOWN"], "clear": ["NO_FWD"]}), 1),
    ] {
        mod_port(&mut red, xid, &bits);
        gets_config(&mut beside, config);
        // The switch may answer a barrier some milliseconds before its forwarding has changed.
        eventually("nothing gets through red's port and back", || {
            network.is_silent("h1", "h2") && network.is_silent("h2", "h1")
        });
        assert!(network.pings("h3", "h4"));
    }
    let ports = network.ofctl(&["-O", "OpenFlow10,OpenFlow13", "dump-ports-desc", "s1"]);
    let real = ports.lines().skip_while(|line| !line.trim_start().starts_with("2(")).nth(1);
    assert_eq!(
        real.map(str::trim).map(|it| it.split_whitespace().last()),
        Some(Some("0")),
        "{ports}"
    );

    weir.crash();
    weir.restart();
    for app in [&mut red, &mut beside, &mut blue] {
        app.expect("switch");
    }
    red.barrier(30);
    assert!(network.is_silent("h1", "h2") && network.is_silent("h2", "h1"));
    assert!(network.pings("h3", "h4"));
    mod_port(&mut red, 40, &json!({"clear": ["PORT_DOWN"]}));
    gets_config(&mut beside, 0);
    eventually("red's port works again", || network.pings("h1", "h2"));
    assert!(!red.has_seen("error"));
}

/// Asserts that the tenant's other controller gets the new configuration of the port.
fn gets_config(beside: &mut App, config: u32) {
    beside.expect_where("port_status", |status| status["port"] == 2 && status["config"] == config);
}

/// A TCP transfer from one host to another, for some seconds.
pub struct Transfer {
    client: Program,
    _server: Program,
}

impl Transfer {
    /// Starts a transfer, and returns after its first megabyte.
    pub fn start(network: &Network, from: &str, to: &str, address: &str) -> Transfer {
        let server = network.program(to, &["iperf3", "-s", "-1"]);
        eventually("iperf3 listens", || network.exec(to, &["ss", "-ltn"]).contains(":5201"));
        let sent = || -> u64 {
            let counter = "/sys/class/net/eth0/statistics/tx_bytes";
            network.exec(from, &["cat", counter]).trim().parse().expect("a counter")
        };
        let before = sent();
        let client = network.program(from, &["iperf3", "-c", address, "-t", "6", "-J"]);
        eventually("iperf3 sends", || sent() > before + 1_000_000);
        Transfer { client, _server: server }
    }

    /// Asserts that the transfer ends well, and that some bytes were transferred in the last four seconds. On a busy
    /// machine a round trip can take 0.25 s, so TCP waits for about two seconds before it sends a packet again that was
    /// lost three times.
    pub fn goes_on(mut self) {
        assert_eq!(self.client.wait(PATIENCE), Some(0));
        let said = self.client.stdout.to_end();
        let said: Value = serde_json::from_str(&said).expect("JSON");
        let intervals = said["intervals"].as_array().expect("intervals");
        let bytes = |it: &Value| it["sum"]["bytes"].as_u64();
        let last: u64 = intervals.iter().rev().take(4).filter_map(bytes).sum();
        assert!(last > 0, "{said}");
        assert!(said["end"]["sum_received"]["bytes"].as_u64() > Some(1_000_000), "{said}");
    }
}

/// Asserts that `weir ctl` exits with this status and prints this text.
pub fn ctl(weir: &Weir, words: &[&str], status: i32, says: &str) {
    let api = weir.api.to_string();
    let (code, stdout, stderr) = run(&[&["ctl", "--api", &api], words].concat());
    let said = format!("{stdout}{stderr}");
    assert_eq!(code, Some(status), "{said}");
    let says = says.replace("0a:1", "00:00:00:00:00:00:00:a1");
    assert!(said.contains(&says), "{said}");
}

fn networks(weir: &Weir) -> Vec<Value> {
    let (status, body) = weir.get("/api/v1/networks");
    assert_eq!(status, 200, "{body}");
    let body: Value = serde_json::from_str(&body).expect("JSON");
    body["networks"].as_array().expect("networks").clone()
}

/// Returns the number of ports that are up in each network.
pub fn ports_up(weir: &Weir) -> Vec<usize> {
    let up = |network: &Value| {
        let ports = network["ports"].as_array().expect("ports");
        ports.iter().filter(|port| port["up"] == true).count()
    };
    networks(weir).iter().map(up).collect()
}

/// Whether each link, and the inside of each big switch, has a path.
pub fn all_have_ways(weir: &Weir) -> bool {
    let has_way = |path: &Value| path["path"].as_array().is_some_and(|path| !path.is_empty());
    let paths = networks(weir).into_iter().filter_map(|it| it["paths"].as_array().cloned());
    paths.flatten().all(|path| has_way(&path))
}

/// Sets the first physical link of a tenant's virtual link down, and waits until the virtual link is on its backup.
pub fn fail_link(network: &Network, weir: &Weir, tenant: &str) {
    let before = path(weir, tenant);
    let (switch, port) = before[0];
    network.set_port(&format!("s{switch}"), &format!("s{switch}-eth{port}"), "down");
    eventually("the tenant's link is on its backup", || {
        let now = path(weir, tenant);
        !now.is_empty() && now != before
    });
}

/// Returns the physical ports by which a tenant's virtual link leaves switches: switch and port number.
pub fn path(weir: &Weir, tenant: &str) -> Vec<(u64, u64)> {
    let networks = networks(weir);
    let network = networks.iter().find(|it| it["tenant"] == tenant).expect("the network");
    let wires = network["paths"][0]["path"].as_array().expect("a path");
    let from = |wire: &Value| -> Option<(u64, u64)> {
        let (dpid, port) = wire["from"].as_str()?.split_once(" port ")?;
        Some((u64::from_str_radix(&dpid.replace(':', ""), 16).ok()?, port.parse().ok()?))
    };
    wires.iter().map(|wire| from(wire).expect("a port")).collect()
}
