//! A tenant whose switches do nothing but NORMAL, in a ring of links: its hosts reach each other, nothing goes round, and a link
//! that fails is made up for. One of its switches has a LOCAL port, which is that of a real one.

use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::own_networks::ports_up;
use crate::support::app::App;
use crate::support::eventually;
use crate::support::network::{Network, V10, V13, Version};
use crate::support::requirements::{Needs, needs};
use crate::support::weir::Weir;

/// Of two virtual links only one finds room on a physical one: where that fails, there is no other way.
const NETWORK: &str = "
[topology]
discovery = true
bandwidth = \"10Mbit\"
[[tenants]]
name = \"red\"
controllers = [\"RED\"]
[tenants.network]
switches = [
    { dpid = \"0xa1\", on = \"1\" },
    { dpid = \"0xa2\", on = \"2\" },
    { dpid = \"0xa3\", on = \"3\" },
]
ports = [
    { switch = \"0xa1\", number = 1, at = \"1 port 1\" },
    { switch = \"0xa2\", number = 1, at = \"2 port 1\" },
    { switch = \"0xa3\", number = 1, at = \"3 port 1\" },
    { switch = \"0xa1\", number = \"LOCAL\", at = \"1 port LOCAL\" },
]
links = [
    { between = [\"0xa1 port 2\", \"0xa2 port 2\"], bandwidth = \"6Mbit\" },
    { between = [\"0xa2 port 3\", \"0xa3 port 3\"], bandwidth = \"6Mbit\" },
    { between = [\"0xa3 port 2\", \"0xa1 port 3\"], bandwidth = \"6Mbit\" },
]
";

/// The address of the first switch's own network stack.
const LOCAL: &str = "192.0.2.9";
const HOSTS: [&str; 3] = ["h1", "h2", "h3"];

#[test]
fn ovs_repeaters_in_a_ring_on_openflow_1_0() {
    needs!(ovs_repeaters_in_a_ring_on_openflow_1_0: Needs::OpenVSwitch, Needs::OsKen);
    check(V10, "1.0", 0xfffe);
}

#[test]
fn ovs_repeaters_in_a_ring_on_openflow_1_3() {
    needs!(ovs_repeaters_in_a_ring_on_openflow_1_3: Needs::OpenVSwitch, Needs::OsKen);
    check(V13, "1.3", 0xffff_fffe);
}

fn check(version: Version, openflow: &str, local: u64) {
    let network = Network::of(
        &["s1", "s2", "s3"],
        &HOSTS,
        &[("s1", "h1"), ("s2", "h2"), ("s3", "h3"), ("s1", "s2"), ("s2", "s3"), ("s3", "s1")],
        version,
    );
    let mut red = App::flow_installer(openflow);
    let configuration = NETWORK.replace("RED", &red.to_string());
    let mut weir = Weir::serve_on(network.controller_host(), &configuration);
    network.connect_to(weir.openflow);
    for _ in HOSTS {
        red.expect("switch");
    }
    eventually("all links have ways", || ports_up(&weir) == [9]);
    flow(&mut red, None, 0, &json!({}), "NORMAL");
    for (xid, dpid) in [(10, 0xa1), (11, 0xa2), (12, 0xa3)] {
        red.barrier_at(dpid, xid);
    }
    eventually("all hosts reach each other", || everybody(&network));
    nothing_goes_round(&network);

    // The real switch's own port comes up, and is the tenant's.
    network.set_port("s1", "s1", "up");
    red.expect_where("port_status", |told| told["port"] == local && told["dpid"] == 0xa1);
    assert_eq!(ports_up(&weir), [10]);
    // By other interfaces its address is not to be had.
    let strict = "echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore";
    network.exec("s1", &["sh", "-c", strict]);
    network.exec("s1", &["ip", "address", "add", &format!("{LOCAL}/24"), "dev", "s1"]);
    for (host, number) in HOSTS.iter().zip(1..) {
        let address = format!("192.0.2.{number}/24");
        network.exec(host, &["ip", "address", "add", &address, "dev", "eth0"]);
    }
    eventually("hosts reach LOCAL", || HOSTS.iter().all(|host| network.answers(host, LOCAL)));

    // A link of the tree fails: the one outside takes its place.
    network.set_port("s1", "s1-eth2", "down");
    eventually("a link has no way", || ports_up(&weir) == [8]);
    eventually("all hosts reach each other by the others", || everybody(&network));
    nothing_goes_round(&network);
    weir.crash();
    weir.restart();
    for _ in HOSTS {
        red.expect("switch");
    }
    eventually("all hosts reach each other after a restart", || everybody(&network));
    network.set_port("s1", "s1-eth2", "up");
    eventually("all links have ways again", || ports_up(&weir) == [10]);
    eventually("all hosts reach each other by all links", || everybody(&network));
    nothing_goes_round(&network);

    // LOCAL by name, there and back, for one host only.
    flow(&mut red, Some(0xa1), 5, &json!({"in_port": 1}), "LOCAL");
    flow(&mut red, Some(0xa1), 5, &json!({"in_port": local}), "1");
    red.barrier_at(0xa1, 20);
    eventually("the first host reaches LOCAL", || network.answers("h1", LOCAL));
    eventually("the others are not answered", || !network.answers("h3", LOCAL));
    assert!(!red.has_seen("error"));
}

fn flow(app: &mut App, dpid: Option<u64>, priority: u16, match_: &Value, port: &str) {
    let port = port.parse::<u32>().map_or(json!(port), |number| json!(number));
    let actions = json!([{"type": "OUTPUT", "port": port}]);
    let flow = json!({"priority": priority, "match": match_, "actions": actions});
    app.order(&json!({"send": "flow", "dpid": dpid, "command": "add", "xid": 1, "flow": flow}));
}

fn everybody(network: &Network) -> bool {
    let pairs = [("h1", "h2"), ("h2", "h3"), ("h3", "h1"), ("h2", "h1")];
    pairs.iter().all(|(from, to)| network.pings(from, to))
}

/// What two hosts say to each other the third hears, and hears once; then it hears little. A frame that went round would
/// come again and again, thousands of times in a second.
fn nothing_goes_round(network: &Network) {
    let heard = || -> u64 {
        let counter = "/sys/class/net/eth0/statistics/rx_packets";
        network.exec("h3", &["cat", counter]).trim().parse().expect("a counter")
    };
    let before = heard();
    network.exec("h1", &["ping", "-c", "10", "-i", "0.1", &network.address("h2")]);
    let after = heard();
    assert!((20..60).contains(&(after - before)), "{before} {after}");
    sleep(Duration::from_secs(1));
    assert!(heard() - after < 20, "{after} {}", heard());
}
