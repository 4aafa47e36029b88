//! Tests of two tenants' big switches on the same two physical switches and the same edge ports. Each edge port has a
//! server with guests of both tenants, and the guests of both tenants have the same addresses.

use packet::{Capture, CaptureOptions};
use serde_json::json;

use crate::shared_edges::{Addressed, Guest, addressed};
use crate::support::app::App;
use crate::support::eventually;
use crate::support::network::{Network, V10, V13, Version};
use crate::support::requirements::{Needs, needs};
use crate::support::weir::Weir;

/// Guests of each tenant: server, MAC address, IP address. The first guest is at the first switch.
const RED: [(&str, &str, &str); 3] = [
    ("h1", "02:00:00:00:01:01", "10.0.0.1"),
    ("h2", "02:00:00:00:01:02", "10.0.0.2"),
    ("h2", "02:00:00:00:01:03", "10.0.0.3"),
];
const BLUE: [(&str, &str, &str); 2] =
    [("h1", "02:00:00:00:02:01", "10.0.0.1"), ("h2", "02:00:00:00:02:02", "10.0.0.2")];

#[test]
fn ovs_big_switches_of_two_tenants_share_edge_ports_on_openflow_1_0() {
    needs!(ovs_big_switches_of_two_tenants_share_edge_ports_on_openflow_1_0: Needs::OpenVSwitch, Needs::OsKen);
    check(V10, [App::learning_switch_10(), App::learning_switch_10()], expect);
}

#[test]
fn ovs_big_switches_of_two_tenants_share_edge_ports_on_openflow_1_3() {
    needs!(ovs_big_switches_of_two_tenants_share_edge_ports_on_openflow_1_3: Needs::OpenVSwitch, Needs::OsKen);
    check(V13, [App::learning_switch_13(), App::learning_switch_13()], expect);
}

/// Flood entries name neither the guest that a packet is for nor its physical switch.
#[test]
fn ovs_big_switches_with_flood_entries_share_edge_ports_on_openflow_1_3() {
    needs!(ovs_big_switches_with_flood_entries_share_edge_ports_on_openflow_1_3: Needs::OpenVSwitch, Needs::OsKen);
    check(V13, [App::flow_installer("1.3"), App::flow_installer("1.3")], |app| {
        const FLOOD: u32 = 0xffff_fffb;
        expect(app);
        let actions = json!([{"type": "OUTPUT", "port": FLOOD}]);
        app.flow("add", 1, &json!({"priority": 5, "match": {}, "actions": actions}));
        app.barrier(2);
    });
}

fn expect(app: &mut App) {
    let seen = app.expect("switch");
    assert_eq!(seen["dpid"].as_u64(), Some(0xb16), "one switch, by its own datapath id");
}

/// A tenant with one switch on both physical switches. On each physical switch, both tenants share a port.
fn tenant(name: &str, app: &App, guests: &[(&str, &str, &str)]) -> String {
    let hosts = guests.iter().map(|(server, mac, _)| {
        let port = if *server == "h1" { 1 } else { 2 };
        format!("[[tenants.network.hosts]]\nmac = \"{mac}\"\nat = \"0xb16 port {port}\"\n")
    });
    format!(
        "[[tenants]]\nname = \"{name}\"\ncontrollers = [\"{app}\"]\n[tenants.network]\n\
         [[tenants.network.switches]]\ndpid = \"0xb16\"\non = [\"1\", \"2\"]\n\
         [[tenants.network.ports]]\nswitch = \"0xb16\"\nnumber = 1\nat = \"1 port 1\"\nshared = true\n\
         [[tenants.network.ports]]\nswitch = \"0xb16\"\nnumber = 2\nat = \"2 port 1\"\nshared = true\n{}",
        hosts.collect::<String>()
    )
}

/// `begin` prepares a controller after its switch has connected.
fn check(version: Version, [mut red, mut blue]: [App; 2], begin: fn(&mut App)) {
    let links = [("s1", "h1"), ("s2", "h2"), ("s1", "s2")];
    let network = Network::of(&["s1", "s2"], &["h1", "h2"], &links, version);
    for server in ["h1", "h2"] {
        network.exec(server, &["ip", "address", "flush", "dev", "eth0", "scope", "global"]);
    }
    let configuration = format!(
        "[topology]\ndiscovery = true\n{}{}",
        tenant("red", &red, &RED),
        tenant("blue", &blue, &BLUE)
    );
    let mut weir = Weir::serve_on(network.controller_host(), &configuration);
    let guest = |(server, mac, address)| Guest::of(&network, server, mac, address);
    let (reds, blues) = (RED.map(guest), BLUE.map(guest));
    network.connect_to(weir.openflow);
    begin(&mut red);
    begin(&mut blue);
    let all_reach = || {
        eventually("red's guest reaches its others", || {
            reds[0].answers("10.0.0.2") && reds[0].answers("10.0.0.3")
        });
        eventually("red's others reach it", || reds[1..].iter().all(|it| it.answers("10.0.0.1")));
        eventually("blue's guest reaches its other", || blues[0].answers("10.0.0.2"));
        eventually("blue's other reaches it", || blues[1].answers("10.0.0.1"));
    };
    all_reach();

    // A guest's broadcasts, and its frames to another tenant's address, arrive at the other server with the MAC
    // addresses of its own tenant's guests as destinations. The test checks both directions.
    let stranger = |guest: &Guest<'_>, whose: &str| {
        guest.exec(&format!("ip neigh replace 10.0.0.9 lladdr {whose} dev eth0 nud permanent"));
        guest.exec("ping -c 2 -i 0.2 -W 1 10.0.0.9 >/dev/null || true");
    };
    for (server, from, to) in [("h2", 0, &RED[1..]), ("h1", 1, &RED[..1])] {
        let seen = seen_at(&network, server, || {
            reds[from].exec("ip neigh flush dev eth0");
            eventually("it is answered", || reds[from].answers(to[0].2));
            stranger(&reds[from], if server == "h2" { BLUE[1].1 } else { BLUE[0].1 });
        });
        let of: Vec<&Addressed> = seen.iter().filter(|it| it.from == RED[from].1).collect();
        assert!(of.iter().all(|it| to.iter().any(|(_, mac, _)| it.to == *mac)), "{seen:?}");
        for (_, mac, _) in to {
            assert!(of.iter().any(|it| it.is_arp_request && it.to == *mac), "{mac}: {seen:?}");
        }
    }

    // Blue's second guest is down, and red's second guest has the same address. Blue's first guest gets no answer.
    blues[1].exec("ip link set eth0 down");
    assert!(!blues[0].answers("10.0.0.2"), "blue is answered by somebody else");
    eventually("red's guest is still answered", || reds[0].answers("10.0.0.2"));
    blues[1].exec("ip link set eth0 up");

    // A restart keeps the entries that the controllers have installed. (On OpenFlow 1.0 the entry for link probes is
    // removed, and is added again with the first probe.)
    let held = || ["s1", "s2"].map(|switch| network.flow_texts(switch));
    let before = held();
    weir.crash();
    weir.restart();
    for dpid in ["dpid=00:00:00:00:00:00:00:01", "dpid=00:00:00:00:00:00:00:02"] {
        weir.expect_log(0, &["reconciled", dpid, "installed=0"]);
    }
    eventually("the switches hold what they held", || held() == before);
    all_reach();
    assert!(!red.has_seen("error") && !blue.has_seen("error"), "nothing is refused");
}

/// Returns the frames that arrive at a server during `meanwhile`.
fn seen_at(network: &Network, server: &str, meanwhile: impl FnOnce() + Send) -> Vec<Addressed> {
    let seen = packet::in_namespace(&network.namespace(server), || {
        let mut capture = Capture::open("eth0", &CaptureOptions::default()).expect("a capture");
        meanwhile();
        addressed(&mut capture)
    });
    seen.expect("the server's namespace")
}
