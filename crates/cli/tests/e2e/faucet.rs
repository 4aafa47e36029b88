//! Tests of Faucet as a tenant's controller: its pipeline of nine tables, its ACLs and meters, and its discovery of
//! links. Faucet's authors test Faucet against many switches.

use std::net::{IpAddr, Ipv4Addr};

use crate::support::eventually;
use crate::support::faucet::Faucet;
use crate::support::network::{Network, V13};
use crate::support::requirements::{Needs, needs};

/// h4 is in another VLAN than h1. An ACL denies h1 TCP port 5002 of h2. A meter limits IPv4 from h3.
const ONE_SWITCH: &str = "
meters:
  slow:
    meter_id: 1
    entry:
      flags: KBPS
      bands: [{type: DROP, rate: 1000000}]
acls:
  to-h2:
    - rule: {dl_type: 0x800, nw_proto: 6, tcp_dst: 5002, actions: {allow: 0}}
    - rule: {actions: {allow: 1}}
  metered:
    - rule: {dl_type: 0x800, actions: {meter: slow, allow: 1}}
    - rule: {actions: {allow: 1}}
vlans:
  office: {vid: 100}
  other: {vid: 200}
dps:
  s1:
    dp_id: 0x1
    hardware: Open vSwitch
    interfaces:
      1: {native_vlan: office, acls_in: [to-h2]}
      2: {native_vlan: office}
      3: {native_vlan: office, acls_in: [metered]}
      4: {native_vlan: other}
";
const ADDRESSES: [&str; 4] = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"];

/// Each switch has a host at its first port, and the other two switches at the next two ports.
const RING: &str = "
vlans:
  office: {vid: 100}
dps:
  s1:
    dp_id: 0x1
    hardware: Open vSwitch
    lldp_beacon: {send_interval: 1, max_per_interval: 8}
    stack: {priority: 1}
    interfaces:
      1: {native_vlan: office}
      2: {stack: {dp: s2, port: 2}}
      3: {stack: {dp: s3, port: 3}}
  s2:
    dp_id: 0x2
    hardware: Open vSwitch
    lldp_beacon: {send_interval: 1, max_per_interval: 8}
    interfaces:
      1: {native_vlan: office}
      2: {stack: {dp: s1, port: 2}}
      3: {stack: {dp: s3, port: 2}}
  s3:
    dp_id: 0x3
    hardware: Open vSwitch
    lldp_beacon: {send_interval: 1, max_per_interval: 8}
    interfaces:
      1: {native_vlan: office}
      2: {stack: {dp: s2, port: 3}}
      3: {stack: {dp: s1, port: 3}}
";

/// A tenant with these ports of each switch.
fn tenant(faucet: &Faucet, ports: &[u32]) -> String {
    let entries = ports.iter().map(|port| {
        format!("[[tenants.flowspace]]\nmatch = \"in_port={port}\"\nswitches = [\"any\"]\n")
    });
    let head =
        format!("[[tenants]]\nname = \"faucet\"\ncontrollers = [\"tcp:{}\"]\n", faucet.address);
    format!("{head}{}", entries.collect::<String>())
}

fn loopback() -> IpAddr {
    IpAddr::V4(Ipv4Addr::LOCALHOST)
}

#[test]
fn ovs_faucet_controls_a_switch_through_weir() {
    needs!(ovs_faucet_controls_a_switch_through_weir: Needs::OpenVSwitch, Needs::Faucet, Needs::Program("python3"));
    let network = Network::single(&ADDRESSES, V13);
    let faucet = Faucet::start(loopback(), ONE_SWITCH);
    let weir = network.serve(&tenant(&faucet, &[1, 2, 3, 4]));
    check_switch(&network, &faucet);
    assert_eq!(weir.logged(&["WARN"]), [""; 0]);
}

/// A control experiment without Weir.
#[test]
fn ovs_switch_only_faucet_controls_a_switch_without_weir() {
    needs!(ovs_switch_only_faucet_controls_a_switch_without_weir: Needs::OpenVSwitch, Needs::Faucet, Needs::Program("python3"));
    let network = Network::single(&ADDRESSES, V13);
    let faucet = Faucet::start(network.controller_host(), ONE_SWITCH);
    network.connect_to(faucet.address);
    check_switch(&network, &faucet);
}

fn check_switch(network: &Network, faucet: &Faucet) {
    // h2 listens at two TCP ports. Faucet's ACL is about port 5002.
    let servers =
        ["5002", "5003"].map(|port| network.program("h2", &["python3", "-m", "http.server", port]));
    eventually("Faucet has configured s1", || {
        faucet.metric("dp_status{dp_id=\"0x1\"") == Some(1.0)
    });
    eventually("h1 reaches h2", || network.pings("h1", "h2"));
    assert!(network.pings("h1", "h3") && network.pings("h3", "h2"));
    assert!(network.is_silent("h1", "h4"), "h4 is in another VLAN");
    eventually("Faucet has learned three hosts", || {
        faucet.metric("vlan_hosts_learned{dp_id=\"0x1\",dp_name=\"s1\",vlan=\"100\"}") == Some(3.0)
    });
    eventually("h1 reaches what the ACL leaves alone", || connects(network, "h1", 5003));
    assert!(!connects(network, "h1", 5002), "the ACL denies that");
    assert!(connects(network, "h3", 5002), "h3 has another ACL");
    let meters = network.ofctl(&["-O", "OpenFlow13", "meter-stats", "s1"]);
    let counted = meters.split("packet_in_count:").nth(1).and_then(|it| it.split(' ').next());
    assert!(counted.and_then(|it| it.parse().ok()) > Some(0_u64), "h3 is metered: {meters}");
    drop(servers);
}

/// Whether a host can open a connection to h2.
fn connects(network: &Network, host: &str, port: u16) -> bool {
    let script =
        format!("timeout 2 bash -c '</dev/tcp/{}/{port}' && echo yes || echo no", ADDRESSES[1]);
    network.exec(host, &["sh", "-c", &script]).trim() == "yes"
}

#[test]
fn ovs_faucet_stacks_switches_in_a_ring() {
    needs!(ovs_faucet_stacks_switches_in_a_ring: Needs::OpenVSwitch, Needs::Faucet);
    let network = ring();
    let faucet = Faucet::start(loopback(), RING);
    let _weir = network.serve(&tenant(&faucet, &[1, 2, 3]));
    check_ring(&network, &faucet);
}

fn ring() -> Network {
    let links =
        [("s1", "h1"), ("s2", "h2"), ("s3", "h3"), ("s1", "s2"), ("s2", "s3"), ("s3", "s1")];
    Network::of(&["s1", "s2", "s3"], &["h1", "h2", "h3"], &links, V13)
}

fn check_ring(network: &Network, faucet: &Faucet) {
    // In Faucet's metrics, a port of a stack has state 3 (up) after LLDP from the expected neighbour has arrived at it.
    eventually("each end of each link is up", || faucet.count("port_stack_state{", 3.0) == 6);
    for (from, to) in [("h1", "h2"), ("h1", "h3"), ("h2", "h3")] {
        eventually(&format!("{from} reaches {to}"), || network.pings(from, to));
    }
}
