//! A tenant whose switches do nothing but NORMAL, in a ring of links: its hosts reach each other, nothing goes round, and a link
//! that fails is made up for. One of its switches has a LOCAL port, which is that of a real one.

use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::own_networks::{ctl, ports_up};
use crate::support::app::App;
use crate::support::network::{Network, V10, V13, Version};
use crate::support::program::Program;
use crate::support::requirements::{Needs, needs};
use crate::support::weir::Weir;
use crate::support::{PATIENCE, eventually, repository};

/// Each virtual link is on a physical one, whichever of them are found first. Where that fails, there is no room on others.
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
    { between = [\"0xa1 port 2\", \"0xa2 port 2\"], bandwidth = \"6Mbit\", route = [\"1 port 2\"] },
    { between = [\"0xa2 port 3\", \"0xa3 port 3\"], bandwidth = \"6Mbit\", route = [\"2 port 3\"] },
    { between = [\"0xa3 port 2\", \"0xa1 port 3\"], bandwidth = \"6Mbit\", route = [\"3 port 3\"] },
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

/// Links between neighbours in a ring of four, each on the physical one, of which it takes more than half.
const RING: &str = "
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
    { dpid = \"0xa4\", on = \"4\" },
]
ports = [
    { switch = \"0xa1\", number = 1, at = \"1 port 1\" },
    { switch = \"0xa2\", number = 1, at = \"2 port 1\" },
    { switch = \"0xa3\", number = 1, at = \"3 port 1\" },
    { switch = \"0xa4\", number = 1, at = \"4 port 1\" },
]
links = [
    { between = [\"0xa1 port 2\", \"0xa2 port 2\"], bandwidth = \"6Mbit\", route = [\"1 port 2\"] },
    { between = [\"0xa2 port 3\", \"0xa3 port 2\"], bandwidth = \"6Mbit\", route = [\"2 port 3\"] },
    { between = [\"0xa3 port 3\", \"0xa4 port 2\"], bandwidth = \"6Mbit\", route = [\"3 port 3\"] },
    { between = [\"0xa4 port 3\", \"0xa1 port 3\"], bandwidth = \"6Mbit\", route = [\"4 port 3\"] },
]
";

/// How often each of two links that are no neighbours fails and comes back, and is stopped and started.
const ROUNDS: usize = 4;
/// How many rules each switch has, so that it takes some time to follow.
const RULES: u64 = 500;

#[test]
fn ovs_repeaters_whose_links_come_and_go_on_openflow_1_0() {
    needs!(ovs_repeaters_whose_links_come_and_go_on_openflow_1_0: Needs::OpenVSwitch, Needs::OsKen);
    come_and_go(V10, "1.0");
}

#[test]
fn ovs_repeaters_whose_links_come_and_go_on_openflow_1_3() {
    needs!(ovs_repeaters_whose_links_come_and_go_on_openflow_1_3: Needs::OpenVSwitch, Needs::OsKen);
    come_and_go(V13, "1.3");
}

/// Broadcasts all the while: none goes round.
fn come_and_go(version: Version, openflow: &str) {
    let network = Network::of(
        &["s1", "s2", "s3", "s4"],
        &["h1", "h2", "h3", "h4"],
        &[
            ("s1", "h1"),
            ("s2", "h2"),
            ("s3", "h3"),
            ("s4", "h4"),
            ("s1", "s2"),
            ("s2", "s3"),
            ("s3", "s4"),
            ("s4", "s1"),
        ],
        version,
    );
    let mut red = App::flow_installer(openflow);
    let configuration = RING.replace("RED", &red.to_string());
    let weir = Weir::serve_on(network.controller_host(), &configuration);
    network.connect_to(weir.openflow);
    for _ in 0..4 {
        red.expect("switch");
    }
    eventually("all links have ways", || ports_up(&weir) == [12]);
    flow(&mut red, None, 0, &json!({}), "NORMAL");
    for port in 1..=RULES {
        let field = if version == V10 { "tp_dst" } else { "udp_dst" };
        let [ethertype, protocol] =
            if version == V10 { ["dl_type", "nw_proto"] } else { ["eth_type", "ip_proto"] };
        flow(&mut red, None, 1, &json!({ethertype: 0x800, protocol: 17, field: port}), "NORMAL");
    }
    let mut all_follow = {
        let mut xids = 10..;
        move |red: &mut App| {
            for dpid in 0xa1..=0xa4 {
                red.barrier_at(dpid, xids.next().expect("a number"));
            }
        }
    };
    all_follow(&mut red);
    let all_reached = || ["h2", "h3", "h4"].iter().all(|host| network.pings("h1", host));
    eventually("all hosts reach each other", all_reached);

    let hosts = ["h1", "h2", "h3", "h4"];
    let mut broadcasts = hosts.map(|host| Broadcasts::of(&network, host, host == "h1"));
    // How often a host got the same one, at most.
    let mut most = |what: &str| -> u64 {
        let told = broadcasts.each_mut().map(Broadcasts::tell);
        eprintln!("OpenFlow {openflow}, {what}: {}", json!(told));
        told.iter().filter_map(|it| it["most"].as_u64()).max().expect("a count")
    };
    most("before");
    let mut failing = Vec::new();
    for (switch, interface) in [("s1", "s1-eth2"), ("s3", "s3-eth3")].repeat(ROUNDS) {
        network.set_port(switch, interface, "down");
        eventually("a link has no way", || ports_up(&weir) == [10]);
        eventually("all hosts reach each other by the others", all_reached);
        // What comes back before its ends have followed might carry what they sent into it before.
        all_follow(&mut red);
        network.set_port(switch, interface, "up");
        eventually("all links have ways again", || ports_up(&weir) == [12]);
        eventually("all hosts reach each other by all links", all_reached);
        failing.push(most("a link failed and came back"));
    }
    let mut stopping = Vec::new();
    for between in [["0xa1 port 2", "0xa2 port 2"], ["0xa3 port 3", "0xa4 port 2"]].repeat(ROUNDS) {
        let [from, to] = between;
        ctl(&weir, &["stop", "red", "link", from, to], 0, "up -> down");
        eventually("all hosts reach each other by the others", all_reached);
        ctl(&weir, &["start", "red", "link", from, to], 0, "down -> up");
        eventually("all hosts reach each other by all links", all_reached);
        stopping.push(most("a link was stopped and started"));
    }
    eprintln!("OpenFlow {openflow}, copies of one at most: {failing:?}, {stopping:?}");
    // What is on its way while one link comes in another's place may come by both; what goes round comes on and on. What is
    // stopped depends on how fast this machine is.
    assert!(failing.iter().all(|most| *most <= 2), "{failing:?}");
    assert!(!red.has_seen("error"));
}

/// What a host sends to all and what it hears of that.
struct Broadcasts(Program);

impl Broadcasts {
    fn of(network: &Network, host: &str, sends: bool) -> Broadcasts {
        let script = repository().join("crates/cli/tests/e2e/support/broadcasts.py");
        let script = script.to_str().expect("a path");
        let words: &[&str] = if sends { &["send"] } else { &[] };
        let program = network.program(host, &[&["python3", script], words].concat());
        let ready = program.stdout.wait_for(0, PATIENCE, |line| (line == "ready").then_some(()));
        assert!(ready.is_some(), "{host} does not hear broadcasts");
        Broadcasts(program)
    }

    fn tell(&mut self) -> Value {
        let from = self.0.stdout.len();
        self.0.write_line("");
        let told = self.0.stdout.wait_for(from, PATIENCE, |line| serde_json::from_str(line).ok());
        told.expect("a count")
    }
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
    // What the two have heard may still be on its way to the third.
    eventually("the third hears what the two say", || heard() >= before + 20);
    let after = heard();
    assert!(after - before < 60, "{before} {after}");
    sleep(Duration::from_secs(1));
    assert!(heard() - after < 20, "{after} {}", heard());
}
