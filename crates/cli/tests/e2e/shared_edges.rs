//! Tests of two tenants' hosts at one physical port of a real switch: a server has a guest of each tenant, and both
//! guests have the same address.

use std::time::Duration;

use packet::{Capture, CaptureOptions};
use serde_json::{Value, json};

use crate::support::app::App;
use crate::support::network::{Network, V10, V13, Version};
use crate::support::program::Program;
use crate::support::requirements::{Needs, needs};
use crate::support::weir::Weir;
use crate::support::{PATIENCE, eventually};

/// The MAC addresses of the server's guests.
pub const GUESTS: [&str; 2] = ["02:00:00:00:01:01", "02:00:00:00:01:02"];

#[test]
fn ovs_tenants_share_an_edge_port_on_openflow_1_0() {
    needs!(ovs_tenants_share_an_edge_port_on_openflow_1_0: Needs::OpenVSwitch, Needs::OsKen);
    check(V10, [App::learning_switch_10(), App::learning_switch_10()], |_| {}, |_| {});
}

#[test]
fn ovs_tenants_share_an_edge_port_on_openflow_1_3() {
    needs!(ovs_tenants_share_an_edge_port_on_openflow_1_3: Needs::OpenVSwitch, Needs::OsKen);
    check(V13, [App::learning_switch_13(), App::learning_switch_13()], |_| {}, |_| {});
}

/// Flood entries output each frame to all ports, also to the shared port, and never name the guest that a frame is for.
#[test]
fn ovs_tenants_with_flood_entries_share_an_edge_port_on_openflow_1_3() {
    needs!(ovs_tenants_with_flood_entries_share_an_edge_port_on_openflow_1_3: Needs::OpenVSwitch, Needs::OsKen);
    check(V13, [App::flow_installer("1.3"), App::flow_installer("1.3")], make_hubs, find_again);
}

fn make_hubs(app: &mut App) {
    make_rules(app, &[json!({"priority": 5, "match": {}, "actions": [flood()]})]);
}

/// The second of two tables clears the action set and floods, by an action list or by the action set.
#[test]
fn ovs_tenants_with_two_table_flood_entries_share_an_edge_port() {
    needs!(ovs_tenants_with_two_table_flood_entries_share_an_edge_port: Needs::OpenVSwitch, Needs::OsKen);
    let apps = [App::flow_installer("1.3"), App::flow_installer("1.3")];
    check(V13, apps, make_pipelines, find_again);
}

fn make_pipelines(app: &mut App) {
    let written = json!({"type": "WRITE_ACTIONS", "actions": [flood()]});
    let clear = json!({"type": "CLEAR_ACTIONS"});
    let rules = [
        json!({"priority": 5, "actions": [{"type": "GOTO_TABLE", "table_id": 1}]}),
        json!({"priority": 5, "table_id": 1, "actions": [clear, flood()]}),
        json!({"priority": 6, "table_id": 1, "match": {"eth_type": 0x806}, "actions": [clear, written]}),
    ];
    make_rules(app, &rules);
}

fn flood() -> Value {
    json!({"type": "OUTPUT", "port": 0xffff_fffb_u32})
}

/// Adds the same rules on both switches of a tenant.
fn make_rules(app: &mut App, rules: &[Value]) {
    for _ in 0..2 {
        app.expect("switch");
    }
    for dpid in [0xa1, 0xa2] {
        for flow in rules {
            let order =
                json!({"send": "flow", "dpid": dpid, "command": "add", "xid": 1, "flow": flow});
            app.order(&order);
        }
        app.barrier_at(dpid, 2);
    }
}

/// After a kill -9 the switch has the right rules: Weir installs none and removes none.
fn find_again(weir: &mut Weir) {
    weir.crash();
    weir.restart();
    weir.expect_log(0, &["reconciled", "dpid=00:00:00:00:00:00:00:01", "installed=0", "removed=0"]);
}

/// A tenant with a switch on each physical switch. The guest is at the shared port of the first switch, and a host is
/// at the second switch.
pub fn tenant(name: &str, app: &App, guest: &str, port: u32) -> String {
    format!(
        "[[tenants]]\nname = \"{name}\"\ncontrollers = [\"{app}\"]\n[tenants.network]\n\
         [[tenants.network.switches]]\ndpid = \"0xa1\"\non = \"1\"\n\
         [[tenants.network.switches]]\ndpid = \"0xa2\"\non = \"2\"\n\
         [[tenants.network.ports]]\nswitch = \"0xa1\"\nnumber = 1\nat = \"1 port 1\"\nshared = true\n\
         [[tenants.network.ports]]\nswitch = \"0xa2\"\nnumber = 1\nat = \"2 port {port}\"\n\
         [[tenants.network.links]]\nbetween = [\"0xa1 port 2\", \"0xa2 port 2\"]\n\
         [[tenants.network.hosts]]\nmac = \"{guest}\"\nat = \"0xa1 port 1\"\n"
    )
}

/// `begin` prepares a controller after its switches have connected. `end` runs before the last check.
fn check(version: Version, [mut red, mut blue]: [App; 2], begin: fn(&mut App), end: fn(&mut Weir)) {
    let network = server_and_peers(version);
    let configuration = String::from("[topology]\ndiscovery = true\n")
        + &tenant("red", &red, GUESTS[0], 1)
        + &tenant("blue", &blue, GUESTS[1], 2);
    let mut weir = Weir::serve_on(network.controller_host(), &configuration);
    let guests = GUESTS.map(|mac| Guest::new(&network, mac));
    let peers = PEERS;
    network.connect_to(weir.openflow);
    begin(&mut red);
    begin(&mut blue);
    let from_peer = |peer: &str| network.answers(peer, "10.0.0.1");
    for (guest, peer) in guests.iter().zip(peers) {
        eventually("a guest reaches its own peer", || guest.answers("10.0.0.2"));
        eventually("a peer reaches its own guest", || from_peer(peer));
    }

    // Frames of a peer, broadcasts included, arrive at the server with the MAC address of the peer's own guest as
    // destination.
    let macs = peers.map(|peer| network.mac(peer));
    let seen = packet::in_namespace(&network.namespace("h1"), || {
        let mut capture = Capture::open("eth0", &CaptureOptions::default()).expect("a capture");
        for peer in peers {
            // A host without a neighbour entry sends a broadcast.
            network.exec(peer, &["ip", "neighbour", "flush", "dev", "eth0"]);
            eventually("it is answered", || from_peer(peer));
        }
        addressed(&mut capture)
    });
    let seen = seen.expect("the server's namespace");
    for (mac, guest) in macs.iter().zip(GUESTS) {
        let of: Vec<&Addressed> = seen.iter().filter(|it| it.from == *mac).collect();
        assert!(of.iter().all(|it| it.to == guest), "{seen:?}");
        assert!(of.iter().any(|it| it.is_arp_request), "{seen:?}");
    }

    // Red's peer is down, and blue's peer has the same address. Red's guest gets no answer.
    network.exec("h2", &["ip", "link", "set", "eth0", "down"]);
    assert!(!guests[0].answers("10.0.0.2"));
    eventually("blue's guest still reaches its peer", || guests[1].answers("10.0.0.2"));
    network.exec("h2", &["ip", "link", "set", "eth0", "up"]);
    eventually("red's guest reaches its peer again", || guests[0].answers("10.0.0.2"));
    // Red's guest is down, and blue's guest has the same address. Red's peer gets no answer.
    guests[0].exec("ip link set eth0 down");
    assert!(!from_peer("h2"), "red's peer is answered by somebody else");
    eventually("blue's guest still answers its peer", || from_peer("h3"));

    // The server itself is no guest of a tenant.
    network.exec("h1", &["ip", "address", "add", "10.0.0.9/24", "dev", "eth0"]);
    assert!(!network.answers("h1", "10.0.0.2"));

    end(&mut weir);
    eventually("blue's guest reaches its peer at last", || guests[1].answers("10.0.0.2"));
}

/// The hosts with which the guests communicate.
pub const PEERS: [&str; 2] = ["h2", "h3"];

/// The server h1 is at port 1 of s1. Red's host h2 and blue's host h3 are at ports 1 and 2 of s2.
pub fn server_and_peers(version: Version) -> Network {
    let links = [("s1", "h1"), ("s2", "h2"), ("s2", "h3"), ("s1", "s2")];
    let network = Network::of(&["s1", "s2"], &["h1", "h2", "h3"], &links, version);
    network.exec("h1", &["ip", "address", "flush", "dev", "eth0", "scope", "global"]);
    for peer in PEERS {
        network.exec(peer, &["ip", "address", "flush", "dev", "eth0", "scope", "global"]);
        network.exec(peer, &["ip", "address", "add", "10.0.0.2/24", "dev", "eth0"]);
    }
    network
}

/// A guest of a server: an interface on top of the server's interface, in a namespace of its own.
pub struct Guest<'a> {
    network: &'a Network,
    server: &'a str,
    pid: String,
    _process: Program,
}

impl Guest<'_> {
    /// Starts a guest of h1 with its tenant's first address.
    pub fn new<'a>(network: &'a Network, mac: &str) -> Guest<'a> {
        Guest::of(network, "h1", mac, "10.0.0.1")
    }

    pub fn of<'a>(network: &'a Network, server: &'a str, mac: &str, address: &str) -> Guest<'a> {
        let script = "echo ready; exec sleep infinity";
        let process = network.program(server, &["unshare", "--net", "sh", "-c", script]);
        let ready = process.stdout.wait_for(0, PATIENCE, |line| (line == "ready").then_some(()));
        assert!(ready.is_some(), "no guest");
        let pid = process.pid().to_string();
        let link = ["ip", "link", "add", "link", "eth0", "name", "guest", "address", mac];
        let kind = ["netns", &pid, "type", "macvlan", "mode", "private"];
        network.exec(server, &[&link[..], &kind[..]].concat());
        let guest = Guest { network, server, pid, _process: process };
        // Without IPv6 the guest sends no frames by itself.
        guest.exec("echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6");
        guest.exec(&format!(
            "ip link set guest name eth0 up && ip address add {address}/24 dev eth0"
        ));
        guest
    }

    /// The words that run the following script in the guest's namespace.
    fn shell(&self) -> [&str; 6] {
        ["nsenter", "--target", &self.pid, "--net", "sh", "-c"]
    }

    pub fn exec(&self, script: &str) -> String {
        self.network.exec(self.server, &[&self.shell()[..], &[script]].concat())
    }

    /// Whether the host with this address answers the guest's ping.
    pub fn answers(&self, address: &str) -> bool {
        self.network.says_yes(self.server, &self.shell(), address)
    }
}

/// A frame that arrived at the server.
#[derive(Debug)]
pub struct Addressed {
    pub from: String,
    pub to: String,
    pub is_arp_request: bool,
}

/// Returns the frames that have arrived so far.
pub fn addressed(capture: &mut Capture) -> Vec<Addressed> {
    let mut all = Vec::new();
    while let Some(block) = capture.next_block(Duration::from_millis(200)).expect("frames") {
        for frame in block.frames() {
            let [to, from] = [0, 6].map(|at| mac(&frame.data[at..at + 6]));
            let is_arp_request = frame.data[12..14] == [0x08, 0x06] && frame.data[21] == 1;
            all.push(Addressed { from, to, is_arp_request });
        }
    }
    all
}

fn mac(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect::<Vec<_>>().join(":")
}
