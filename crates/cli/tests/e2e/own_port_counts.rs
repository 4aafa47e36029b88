//! Tests of the port counters for the ends of virtual links, on real switches. The counters are exact in packets and
//! bytes, and rise again after a lost connection.

use serde_json::{Value, json};

use crate::own_networks::{TOPOLOGY, all_have_ways, number, path, ports_up, tenant};
use crate::shared_edges::{GUESTS, Guest, PEERS, server_and_peers, tenant as shared_tenant};
use crate::support::app::App;
use crate::support::eventually;
use crate::support::network::{Network, V13};
use crate::support::requirements::{Needs, needs};
use crate::support::weir::Weir;

/// Both ends of the link have this port number.
const LINK: u64 = 2;
/// A ping's headers: Ethernet, IPv4, ICMP.
const HEADERS: u64 = 14 + 20 + 8;

/// Packets and bytes.
type Count = [u64; 2];

#[test]
fn ovs_ports_of_a_virtual_link_count_packets_of_their_tenant_only() {
    needs!(ovs_ports_of_a_virtual_link_count_packets_of_their_tenant_only: Needs::OpenVSwitch, Needs::OsKen);
    let network = Network::builtin(TOPOLOGY, V13);
    let [mut red, mut blue] = [(); 2].map(|()| App::flow_installer("1.3"));
    let configuration = format!(
        "[topology]\ndiscovery = true\n{}{}",
        tenant("red", &red, 1),
        tenant("blue", &blue, 2)
    );
    let weir = Weir::serve_on(network.controller_host(), &configuration);
    number(&network, [["h1", "h3"], ["h2", "h4"]]);
    for (a, b) in [("h1", "h3"), ("h2", "h4")] {
        // With static ARP entries, only pings use the link.
        knows(&network, a, "10.0.0.2", b);
        knows(&network, b, "10.0.0.1", a);
    }
    network.connect_to(weir.openflow);
    eventually("both networks are up", || ports_up(&weir) == [4, 4]);
    assert_eq!(path(&weir, "red"), path(&weir, "blue"), "they are to share a physical link");
    for app in [&mut red, &mut blue] {
        both_switches(app);
        for (dpid, xid) in [(0xa1, 1), (0xa2, 2)] {
            forward(app, dpid, &json!({"in_port": 1}), LINK);
            forward(app, dpid, &json!({"in_port": LINK}), 1);
            app.barrier_at(dpid, xid);
        }
    }
    let (mut red, mut blue) = (Counted::new(red), Counted::new(blue));
    red.comes_to([0, 0]);

    red.begins_with(&network, "h1");
    let mut sum = [0; 2];
    let mut ping = |host, packets, size| {
        pings(&network, host, packets, size);
        sum = [sum[0] + packets, sum[1] + packets * (HEADERS + size)];
        sum
    };
    let counts = ping("h1", 20, 100);
    red.comes_to(counts);
    blue.comes_to([0, 0]);
    blue.begins_with(&network, "h2");
    pings(&network, "h2", 7, 1000);
    blue.comes_to([7, 7 * (HEADERS + 1000)]);
    red.comes_to(counts);

    // A lost connection removes the link from its path, so the counters begin again at zero. Then the counters rise by
    // the sent pings.
    let works = || ports_up(&weir) == [4, 4] && network.answers("h1", "10.0.0.2");
    network.disconnect();
    weir.wait_for_switches(0);
    network.connect_to(weir.openflow);
    both_switches(&mut red.app);
    eventually("the links work after a lost connection", works);
    red.rises_by([5, 5 * (HEADERS + 500)], || pings(&network, "h1", 5, 500));
    assert!(!red.app.has_seen("error") && !blue.app.has_seen("error"));
}

/// Guests of two tenants are at one physical port. The port counters of the switch count both guests together.
#[test]
fn ovs_a_shared_edge_port_counts_packets_per_tenant() {
    needs!(ovs_a_shared_edge_port_counts_packets_per_tenant: Needs::OpenVSwitch, Needs::OsKen);
    let network = server_and_peers(V13);
    let guests = GUESTS.map(|mac| Guest::new(&network, mac));
    let mut apps = [(); 2].map(|()| App::flow_installer("1.3"));
    let tenants = [("red", 1), ("blue", 2)].into_iter().zip(&apps).zip(GUESTS);
    let tenants = tenants.map(|(((name, port), app), guest)| shared_tenant(name, app, guest, port));
    let configuration =
        String::from("[topology]\ndiscovery = true\n") + &tenants.collect::<String>();
    let weir = Weir::serve_on(network.controller_host(), &configuration);
    for ((guest, mac), peer) in guests.iter().zip(GUESTS).zip(PEERS) {
        let whose = network.mac(peer);
        guest.exec(&format!("ip neigh replace 10.0.0.2 lladdr {whose} dev eth0 nud permanent"));
        let words = ["ip", "neigh", "replace", "10.0.0.1", "lladdr", mac, "dev", "eth0"];
        network.exec(peer, &[&words[..], &["nud", "permanent"]].concat());
    }
    network.connect_to(weir.openflow);
    eventually("both networks are up", || ports_up(&weir) == [4, 4]);
    for (app, guest) in apps.iter_mut().zip(GUESTS) {
        both_switches(app);
        // An entry that outputs to a shared port matches the address of the guest.
        let back = [json!({"in_port": LINK, "eth_dst": guest}), json!({"in_port": LINK})];
        for ((dpid, xid), back) in [(0xa1, 1), (0xa2, 2)].into_iter().zip(back) {
            forward(app, dpid, &json!({"in_port": 1}), LINK);
            forward(app, dpid, &back, 1);
            app.barrier_at(dpid, xid);
        }
    }
    let mut tenants = apps.map(Counted::new);
    let mut counts = [[0; 2]; 2];
    for (tenant, packets, size) in [(0, 12, 100), (1, 5, 1000), (0, 3, 1400)] {
        let said = guests[tenant].exec(&format!("ping -q -c {packets} -s {size} -i 0.05 10.0.0.2"));
        assert!(said.contains(" 0% packet loss"), "{said}");
        counts[tenant][0] += packets;
        counts[tenant][1] += packets * (HEADERS + size);
        for (tenant, count) in tenants.iter_mut().zip(counts) {
            tenant.comes_to(count);
            let expected = json!(count);
            eventually(&format!("the guest has sent {count:?}"), || {
                tenant.ask(0xa1, 1)["received"] == expected
            });
        }
    }
    assert!(tenants.iter_mut().all(|it| !it.app.has_seen("error")));
}

/// The big switch is on a leaf and both spines. It has a host, and a link to a switch on the other leaf.
#[test]
fn ovs_ports_of_a_link_at_a_big_switch_count_packets_of_its_hosts() {
    needs!(ovs_ports_of_a_link_at_a_big_switch_count_packets_of_its_hosts: Needs::OpenVSwitch, Needs::OsKen);
    let network = Network::builtin(TOPOLOGY, V13);
    let mut app = App::flow_installer("1.3");
    let tenant = tenant("red", &app, 1).replacen("on = \"1\"", "on = [\"1\", \"3\", \"4\"]", 1);
    let configuration = format!("[topology]\ndiscovery = true\n{tenant}");
    let weir = Weir::serve_on(network.controller_host(), &configuration);
    number(&network, [["h1", "h3"], ["h2", "h4"]]);
    knows(&network, "h1", "10.0.0.2", "h3");
    knows(&network, "h3", "10.0.0.1", "h1");
    network.connect_to(weir.openflow);
    eventually("the network is up", || ports_up(&weir) == [4] && all_have_ways(&weir));
    both_switches(&mut app);
    for (dpid, xid) in [(0xa1, 1), (0xa2, 2)] {
        forward(&mut app, dpid, &json!({"in_port": 1}), LINK);
        forward(&mut app, dpid, &json!({"in_port": LINK}), 1);
        app.barrier_at(dpid, xid);
    }
    let mut red = Counted::new(app);
    red.comes_to([0, 0]);
    red.begins_with(&network, "h1");
    pings(&network, "h1", 20, 100);
    red.comes_to([20, 20 * (HEADERS + 100)]);
    assert!(!red.app.has_seen("error"));
}

/// Adds an entry of priority 9.
fn forward(app: &mut App, dpid: u64, match_: &Value, to: u64) {
    let actions = json!([{"type": "OUTPUT", "port": to}]);
    let flow = json!({"priority": 9, "match": match_, "actions": actions});
    app.order(&json!({"send": "flow", "dpid": dpid, "command": "add", "flow": flow}));
}

/// A tenant's controller, and the lowest counts that the next statistics may have.
struct Counted {
    app: App,
    xid: u32,
    least: Count,
    /// The counts that each end of the link had received and sent when the counting began.
    base: [[Count; 2]; 2],
}

/// The switches at the ends of the link, and the counters of each end.
const ENDS: [u64; 2] = [0xa1, 0xa2];
const WAYS: [&str; 2] = ["received", "sent"];

impl Counted {
    fn new(app: App) -> Counted {
        Counted { app, xid: 100, least: [0; 2], base: [[[0; 2]; 2]; 2] }
    }

    /// Sends pings until no ping is lost, and takes the counts as the base: Open vSwitch's datapath may lose the first
    /// packets of a flow on a busy machine.
    fn begins_with(&mut self, network: &Network, host: &str) {
        let is_known = || {
            let words = ["ping", "-q", "-c", "5", "-i", "0.05", "10.0.0.2"];
            network.exec(host, &words).contains(" 0% packet loss")
        };
        eventually("the datapath knows the flow", is_known);
        eventually("each end has received what the other has sent", || {
            self.base = ENDS.map(|dpid| {
                let port = self.ask(dpid, LINK);
                WAYS.map(|way| serde_json::from_value(port[way].clone()).unwrap_or_default())
            });
            let [[received, sent], [far_received, far_sent]] = self.base;
            received[0] >= 5 && received == far_sent && sent == far_received
        });
    }

    /// Asserts that both ends of the link have sent and received `count`, and that no count is lower than before or
    /// higher than `count`.
    fn comes_to(&mut self, count: Count) {
        for (dpid, base) in ENDS.into_iter().zip(self.base) {
            eventually(&format!("at both ends {count:?} have come and gone"), || {
                let port = self.ask(dpid, LINK);
                let counts = [0, 1].map(|way| {
                    let now: Option<Count> = serde_json::from_value(port[WAYS[way]].clone()).ok();
                    now.map(|now| [0, 1].map(|of| now[of].saturating_sub(base[way][of])))
                });
                for now in counts.into_iter().flatten() {
                    assert!(now[0] >= self.least[0] && now[1] >= self.least[1], "{now:?}");
                    assert!(now[0] <= count[0] && now[1] <= count[1], "{now:?}");
                }
                counts == [Some(count); 2]
            });
        }
        self.least = count;
    }

    /// Asserts that both ends receive at least `count` more during `send`, and that each end has sent the number that
    /// the other end has received.
    fn rises_by(&mut self, count: Count, send: impl FnOnce()) {
        let received = |port: &Value| serde_json::from_value::<Count>(port["received"].clone());
        let before = [0xa1, 0xa2].map(|dpid| received(&self.ask(dpid, LINK)).unwrap_or_default());
        send();
        eventually(&format!("both ends have received {count:?} more than {before:?}"), || {
            let now = [0xa1, 0xa2].map(|dpid| self.ask(dpid, LINK));
            let has_come = |(has, had): (&Value, &Count)| {
                received(has).is_ok_and(|now| (0..2).all(|of| now[of] >= had[of] + count[of]))
            };
            now.iter().zip(&before).all(has_come)
                && now[0]["sent"] == now[1]["received"]
                && now[1]["sent"] == now[0]["received"]
        });
    }

    fn ask(&mut self, dpid: u64, port: u64) -> Value {
        self.xid += 1;
        self.app.order(&json!({"send": "port_stats", "dpid": dpid, "xid": self.xid}));
        let reply = self.app.expect_reply("stats", self.xid);
        let ports = reply["body"].as_array().expect("a list of ports");
        assert_eq!(ports.len(), 2, "{reply}");
        ports.iter().find(|it| it["port"] == port).expect("the port").clone()
    }
}

/// Sends this number of pings of this size, and asserts that each ping is answered.
fn pings(network: &Network, host: &str, packets: u64, size: u64) {
    let (packets, size) = (packets.to_string(), size.to_string());
    let words = ["ping", "-q", "-c", &packets, "-s", &size, "-i", "0.05", "10.0.0.2"];
    let said = network.exec(host, &words);
    assert!(said.contains(" 0% packet loss"), "{said}");
}

fn knows(network: &Network, host: &str, address: &str, whose: &str) {
    let mac = network.mac(whose);
    let words =
        ["ip", "neigh", "replace", address, "lladdr", &mac, "dev", "eth0", "nud", "permanent"];
    network.exec(host, &words);
}

fn both_switches(app: &mut App) {
    for _ in 0..2 {
        app.expect("switch");
    }
}
