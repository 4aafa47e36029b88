//! Tests of link labels in the forms of both OpenFlow versions, with real controllers on a real network. In the example
//! of the 2013 paper, controllers read the bandwidth that other tenants leave on each link, and choose links with
//! enough bandwidth.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::app::App;
use crate::support::folder::Folder;
use crate::support::network::{Network, V10, V13, Version};
use crate::support::program::Program;
use crate::support::requirements::{Needs, needs};
use crate::support::weir::Weir;
use crate::support::{eventually, free_port};

/// The bandwidth that each host has bought, in Mbit/s. A, C and E are at ports 1 to 3 of leaf 3, and B, D and F are at
/// ports 1 to 3 of leaf 4.
const VNICS: [(&str, &str, &str, u64); 6] = [
    ("A", "red", "3 port 1", 8),
    ("B", "red", "4 port 1", 8),
    ("C", "blue", "3 port 2", 2),
    ("D", "blue", "4 port 2", 2),
    ("E", "blue", "3 port 3", 10),
    ("F", "blue", "4 port 3", 10),
];

#[test]
fn ovs_controllers_use_labels_to_avoid_loaded_links_over_openflow_1_3() {
    needs!(ovs_controllers_use_labels_to_avoid_loaded_links_over_openflow_1_3: Needs::OpenVSwitch, Needs::OsKen);
    check(V13, "1.3", "of13");
}

#[test]
fn ovs_controllers_use_paper_labels_to_avoid_loaded_links_over_openflow_1_0() {
    needs!(ovs_controllers_use_paper_labels_to_avoid_loaded_links_over_openflow_1_0: Needs::OpenVSwitch, Needs::OsKen);
    check(V10, "1.0", "of10");
}

fn check(version: Version, name: &str, form: &str) {
    let network = Network::builtin("isolation2013", version);
    let of = |tenant: &'static str| VNICS.iter().filter(move |vnic| vnic.1 == tenant);
    let bought = |tenant: &'static str| {
        let all = of(tenant).map(|(host, _, _, mbit)| (network.mac(host), json!(mbit * 1_000)));
        Value::Object(all.collect())
    };
    let mut red = App::multipath(name, &bought("red"));
    let mut blue = App::multipath(name, &bought("blue"));
    let weir = network.serve(&config(&network, form, &[("red", &red), ("blue", &blue)]));
    for app in [&mut red, &mut blue] {
        app.expect_where("link", |event| event["links"] == 8);
    }
    eventually("everything is left to begin with", || {
        label(&weir, "blue", 3, 4) == Some(10_000_000)
    });

    // The path from A to B uses the first spine. Blue gets a new label, and red's own label does not change.
    assert!(network.pings("A", "B"));
    let path = red.expect("path");
    assert_eq!(path["hops"][1][0], 1, "{path}");
    blue.expect_where("label", |event| is_label(event, 2_000));
    assert_eq!(label(&weir, "blue", 3, 4), Some(2_000_000));
    assert_eq!(label(&weir, "red", 3, 4), Some(10_000_000));
    let mut events = Events::open(&weir, "blue");
    events.expect(&|event| event["port"] == 4 && event["label_bits_per_second"] == 2_000_000);

    // The path from E to F avoids the first spine. The flow from C to D does not fit beside blue's own flow on the
    // second spine.
    for (from, to, spine) in [("E", "F", 2), ("C", "D", 1)] {
        assert!(network.pings(from, to));
        let from = network.mac(from);
        let path = blue.expect_where("path", |event| event["source"] == from.as_str());
        assert_eq!(path["hops"][1][0], spine, "{path}");
    }

    // A link that is down has label 0. When the link is up again, its label is sent again.
    network.set_port("s1", "s1-eth2", "down");
    eventually("nothing is left of a link that is down", || label(&weir, "red", 1, 2) == Some(0));
    network.set_port("s1", "s1-eth2", "up");
    eventually("it is back", || label(&weir, "red", 1, 2).is_some_and(|left| left > 0));

    // A switch forgets the labels of its tenants when it disconnects. When the switch connects again, the tenants get
    // the labels again.
    network.disconnect();
    eventually("no link is left", || label(&weir, "blue", 3, 5) == Some(0));
    network.connect_to(weir.openflow);
    events.expect(&|event| event["port"] == 5 && event["label_bits_per_second"] == 10_000_000);
}

/// A real agent runs on the hosts' interfaces. While the agent runs, its measurements replace the bought bandwidths in
/// the labels.
#[test]
fn ovs_measurements_of_an_agent_change_the_labels_of_another_tenant() {
    needs!(ovs_measurements_of_an_agent_change_the_labels_of_another_tenant: Needs::OpenVSwitch, Needs::OsKen);
    let network = Network::builtin("isolation2013", V13);
    let folder = Folder::new();
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    write_edge(&folder, &network, listen);
    let bought = |tenant: &str| {
        let own = VNICS.iter().filter(|vnic| vnic.1 == tenant);
        let all = own.map(|(host, _, _, mbit)| (network.mac(host), json!(mbit * 1_000)));
        Value::Object(all.collect())
    };
    let mut red = App::multipath("1.3", &bought("red"));
    let mut blue = App::multipath("1.3", &bought("blue"));
    let agents = format!(
        "[agents]\nlisten = \"{listen}\"\nkey = \"{}\"\nservers = [\"server\"]\n",
        folder.join("edge.key")
    );
    let tenants = [("red", &red), ("blue", &blue)];
    let config = agents + &config(&network, "of13", &tenants);
    let weir = network.serve(&config);
    for app in [&mut red, &mut blue] {
        app.expect_where("link", |event| event["links"] == 8);
    }
    // Without measurements, red's flow counts with the bought bandwidth: 8 of 10 Mbit/s.
    assert!(network.pings("A", "B"));
    blue.expect_where("label", |event| is_label(event, 2_000));

    // An agent measures that A sends nothing.
    let edge = folder.join("edge.toml");
    let program = env!("CARGO_BIN_EXE_weir");
    let mut agent = Program::start("agent", program, &["agent", &edge]);
    blue.expect_where("label", |event| is_label(event, 10_000));
    // The label depends on the measurement of one VNIC, and the following steps need the measurements of all VNICs.
    eventually("all are measured", || weir.metric("weir_measured_vnics", &[]) > 5.5);

    // A sends about 4 Mbit/s to B, and B sends as much to A: 1,000 bytes, 500 times a second, if ping is fast enough.
    let to = network.address("B");
    let words = ["ping", "-q", "-i", "0.002", "-s", "958", &to];
    let pinging = network.program("A", &words);
    let some = |event: &Value| {
        event["dpid"] == 3
            && event["port"] == 4
            && event["left"].as_u64().is_some_and(|left| (5_000..9_000).contains(&left))
    };
    blue.expect_where("label", some);
    // Datagrams of other senders change nothing.
    let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    for length in [0, 1, 64, 1232, 4000] {
        stranger.send_to(&vec![7; length], listen).expect("send");
    }
    let garbage = &["result=\"garbage\""];
    eventually("garbage is counted", || weir.metric("weir_agent_datagrams_total", garbage) >= 5.0);
    let refused = weir.metric("weir_agent_entries_refused_total", &[]);
    assert!(refused < 0.5, "{refused} entries were not believed");
    assert_eq!(label(&weir, "red", 3, 4), Some(10_000_000), "a tenant does not see itself");

    // The agent is killed. A second later, red's flow counts with the bought bandwidth again.
    agent.kill();
    blue.expect_where("label", |event| is_label(event, 2_000));
    eventually("nothing is measured", || weir.metric("weir_measured_vnics", &[]) < 0.5);
    drop(pinging);
}

/// A tenant with a network of its own uses bandwidth of physical links, which the labels of another tenant show, also
/// after the path has moved.
#[test]
fn ovs_flows_in_a_tenants_network_count_in_the_labels_of_another_tenant() {
    needs!(ovs_flows_in_a_tenants_network_count_in_the_labels_of_another_tenant: Needs::OpenVSwitch, Needs::OsKen);
    let network = Network::builtin("isolation2013", V13);
    let (red, blue) = (App::learning_switch_13(), App::learning_switch_13());
    let vnic = |host: &str| {
        let (_, _, port, mbit) = VNICS.iter().find(|vnic| vnic.0 == host).expect("a host");
        let mac = network.mac(host);
        format!(
            "[[tenants.vnics]]\nport = \"{port}\"\nmac = \"{mac}\"\nbandwidth = \"{mbit}Mbit\"\n"
        )
    };
    let config = format!(
        "[topology]\ndiscovery = true\ninterval = \"200ms\"\nbandwidth = \"10Mbit\"\n\
         edge_ports = [\"3 port 3\"]\n\
         [[tenants]]\nname = \"blue\"\ncontrollers = [\"{blue}\"]\nlabels = \"rest\"\n{}\
         [[tenants.flowspace]]\nmatch = \"dl_src={}\"\n\
         [[tenants]]\nname = \"red\"\ncontrollers = [\"{red}\"]\n{}{}[tenants.network]\n\
         [[tenants.network.switches]]\ndpid = \"0xa1\"\non = \"3\"\n\
         [[tenants.network.switches]]\ndpid = \"0xa2\"\non = \"4\"\n\
         [[tenants.network.ports]]\nswitch = \"0xa1\"\nnumber = 1\nat = \"3 port 1\"\n\
         [[tenants.network.ports]]\nswitch = \"0xa2\"\nnumber = 1\nat = \"4 port 1\"\n\
         [[tenants.network.links]]\nbetween = [\"0xa1 port 2\", \"0xa2 port 2\"]\nbackup = \"switches\"\n",
        vnic("E"),
        network.mac("E"),
        vnic("A"),
        vnic("B"),
    );
    let weir = network.serve(&config);
    // Returns the bandwidth that is left on the links to both spines, in Mbit/s.
    let left = || [4, 5].map(|port| label(&weir, "blue", 3, port).map(|left| left / 1_000_000));
    eventually("all is left", || left() == [Some(10), Some(10)]);
    eventually("A reaches B", || network.pings("A", "B"));
    let by_one = [[Some(2), Some(10)], [Some(10), Some(2)]];
    eventually("the label has red's flow", || by_one.contains(&left()));
    let (port, moved) =
        if left() == by_one[0] { (4, [Some(0), Some(2)]) } else { (5, [Some(2), Some(0)]) };
    network.set_port("s3", &format!("s3-eth{port}"), "down");
    eventually("it has moved with its path", || left() == moved);
    assert!(network.pings("A", "B"));
}

#[test]
fn ovs_ipv6_flows_count_in_the_labels_of_another_tenant() {
    needs!(ovs_ipv6_flows_count_in_the_labels_of_another_tenant: Needs::OpenVSwitch, Needs::OsKen);
    let network = Network::builtin("isolation2013", V13);
    let (mut red, blue) = (App::flow_installer("1.3"), App::learning_switch_13());
    let weir = Weir::serve_on(
        network.controller_host(),
        &config(&network, "rest", &[("red", &red), ("blue", &blue)]),
    );
    for (host, last) in [("A", 1), ("B", 2)] {
        network.enable_ipv6(host);
        let address = format!("fd00::{last}/64");
        network.exec(host, &["ip", "address", "add", &address, "dev", "eth0", "nodad"]);
    }
    network.connect_to(weir.openflow);
    let left = || [4, 5].map(|port| label(&weir, "blue", 3, port).map(|left| left / 1_000_000));
    eventually("all is left", || left() == [Some(10), Some(10)]);
    for _ in 0..4 {
        red.expect("switch");
    }
    let there = [(3, 1, 4), (1, 1, 2), (4, 4, 1)].map(|hop| ("A", hop));
    let back = [(4, 1, 4), (1, 2, 1), (3, 4, 1)].map(|hop| ("B", hop));
    for (from, (dpid, in_port, out)) in there.into_iter().chain(back) {
        let match_ = json!({"in_port": in_port, "dl_type": 0x86dd, "dl_src": network.mac(from)});
        let actions = json!([{"type": "OUTPUT", "port": out}]);
        let flow = json!({"priority": 9, "match": match_, "actions": actions});
        red.order(&json!({"send": "flow", "command": "add", "xid": 1, "dpid": dpid, "flow": flow}));
    }
    red.barrier(2);
    eventually("A reaches B by IPv6", || network.answers("A", "fd00::2"));
    assert!(network.is_silent("A", "B"), "nothing lets IPv4 through");
    eventually("the label has red's flow", || left() == [Some(2), Some(10)]);
    assert_eq!(label(&weir, "red", 3, 4), Some(10_000_000), "a tenant does not see itself");
    red.order(&json!({"send": "flow", "command": "delete", "xid": 3, "flow": {"match": {}}}));
    eventually("all is left again", || left() == [Some(10), Some(10)]);
}

/// Writes the configuration file of the agents, for one server, and the key file.
fn write_edge(folder: &Folder, network: &Network, hypervisor: SocketAddr) {
    let mut text = format!(
        "key = \"edge.key\"\n[[agents]]\nname = \"server\"\naddress = \"127.0.0.1:{}\"\n\
         [hypervisor]\nname = \"weir\"\naddress = \"{hypervisor}\"\n",
        free_port()
    );
    for (host, tenant, _, mbit) in VNICS {
        text += &format!(
            "[[vnics]]\nname = \"{host}\"\nmac = \"{}\"\nbandwidth = \"{mbit}Mbit\"\n\
             tenant = \"{tenant}\"\nnamespace = \"{}\"\n",
            network.mac(host),
            network.namespace(host)
        );
    }
    fs::write(folder.path().join("edge.toml"), text).expect("the agents' file");
    let key = folder.path().join("edge.key");
    fs::write(&key, "00112233445566778899aabbccddeeff\n").expect("a key");
    fs::set_permissions(key, fs::Permissions::from_mode(0o600)).expect("its mode");
}

fn is_label(event: &Value, left: u64) -> bool {
    event["dpid"] == 3 && event["port"] == 4 && event["left"] == left
}

fn config(network: &Network, form: &str, tenants: &[(&str, &App)]) -> String {
    let mut text = "[topology]\ndiscovery = true\ninterval = \"200ms\"\nlifetime = \"1200ms\"\n\
                    bandwidth = \"10Mbit\"\n"
        .to_owned();
    let edges: Vec<String> = VNICS.iter().map(|vnic| format!("\"{}\"", vnic.2)).collect();
    text += &format!("edge_ports = [{}]\n", edges.join(", "));
    for (tenant, app) in tenants {
        text += &format!(
            "[[tenants]]\nname = \"{tenant}\"\ncontrollers = [\"{app}\"]\nlabels = \"{form}\"\n"
        );
        for (host, _, port, mbit) in VNICS.iter().filter(|vnic| vnic.1 == *tenant) {
            let mac = network.mac(host);
            text += &format!(
                "[[tenants.flowspace]]\nmatch = \"dl_src={mac}\"\n\
                 [[tenants.vnics]]\nport = \"{port}\"\nmac = \"{mac}\"\nbandwidth = \"{mbit}Mbit\"\n"
            );
        }
    }
    text
}

/// Returns the last label of a tenant for the link at a port, in bit/s.
fn label(weir: &Weir, tenant: &str, dpid: u64, port: u64) -> Option<u64> {
    let (status, body) = weir.get(&format!("/api/v1/tenants/{tenant}/labels"));
    assert_eq!(status, 200, "{body}");
    let body: Value = serde_json::from_str(&body).expect("JSON");
    let labels = body["labels"].as_array().expect("labels");
    let wanted = format!("00:00:00:00:00:00:00:{dpid:02}");
    let found = labels.iter().find(|it| it["dpid"] == wanted.as_str() && it["port"] == port);
    found?["label_bits_per_second"].as_u64()
}

/// A client of the server-sent events.
struct Events(BufReader<TcpStream>);

impl Events {
    fn open(weir: &Weir, tenant: &str) -> Events {
        let mut stream = TcpStream::connect(weir.api).expect("connect");
        stream.set_read_timeout(Some(crate::support::PATIENCE)).expect("a timeout");
        let path = format!("/api/v1/tenants/{tenant}/labels/events");
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n\r\n",
            weir.api
        )
        .expect("ask");
        Events(BufReader::new(stream))
    }

    /// Reads events until a label of switch 3 satisfies `wanted`.
    fn expect(&mut self, wanted: &dyn Fn(&Value) -> bool) {
        loop {
            let mut line = String::new();
            let read = self.0.read_line(&mut line).expect("the label never came");
            assert!(read > 0, "the stream ended");
            let Some(data) = line.strip_prefix("data: ") else { continue };
            let event: Value = serde_json::from_str(data).expect("JSON");
            let at_leaf = event["dpid"].as_str().is_some_and(|dpid| dpid.ends_with(":03"));
            if at_leaf && wanted(&event) {
                return;
            }
        }
    }
}
