//! Tests of two tenants with slices of one real switch, each with its own real controller. Each tenant controls its own
//! traffic, and no traffic of the other tenant.

use std::net::Ipv4Addr;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::app::App;
use crate::support::eventually;
use crate::support::network::{Network, V10, V13, Version};
use crate::support::requirements::{Needs, needs};
use crate::support::scripted::{
    Controller, ERROR, FLOW_MOD, Message, PACKET_IN, PACKET_OUT, Switch, add_flow, frame,
    packet_out,
};
use crate::support::weir::Weir;

/// Hosts 1 and 2 are red's, and hosts 3 and 4 are blue's, with slices by port and with slices by address.
const ADDRESSES: [&str; 4] = ["10.1.0.1", "10.1.0.2", "10.2.0.1", "10.2.0.2"];

/// A tenant with the ports of its hosts as its flowspace.
pub fn by_port(name: &str, controller: &str, ports: [u16; 2]) -> String {
    let [first, second] = ports;
    format!(
        r#"
[[tenants]]
name = "{name}"
controllers = ["{controller}"]
[[tenants.flowspace]]
match = "in_port={first}"
[[tenants.flowspace]]
match = "in_port={second}"
"#
    )
}

/// A tenant with an address block as its flowspace: IP and ARP within the block.
fn by_prefix(name: &str, controller: &str, block: &str) -> String {
    format!(
        r#"
[[tenants]]
name = "{name}"
controllers = ["{controller}"]
[[tenants.flowspace]]
match = "ip,nw_src={block},nw_dst={block}"
[[tenants.flowspace]]
match = "arp,nw_src={block},nw_dst={block}"
"#
    )
}

/// Asserts that each host reaches its own tenant's hosts, and no host of the other tenant.
fn check_isolation(
    version: Version,
    mut controllers: [App; 2],
    tenants: impl Fn(&App, &App) -> String,
) {
    let network = Network::single(&ADDRESSES, version);
    let _weir = network.serve(&tenants(&controllers[0], &controllers[1]));
    for controller in &mut controllers {
        controller.expect("switch");
    }
    for (from, to) in [("h1", "h2"), ("h2", "h1"), ("h3", "h4"), ("h4", "h3")] {
        assert!(network.pings(from, to), "{from} to {to}: one tenant");
    }
    for (from, to) in [("h1", "h3"), ("h2", "h4"), ("h3", "h2"), ("h4", "h1")] {
        assert!(network.is_silent(from, to), "{from} to {to}: two tenants");
    }
    for controller in &mut controllers {
        assert!(!controller.has_seen("error"), "an ordinary learning switch is refused nothing");
    }
}

fn tenants_by_port(red: &App, blue: &App) -> String {
    by_port("red", &red.to_string(), [1, 2]) + &by_port("blue", &blue.to_string(), [3, 4])
}

fn tenants_by_prefix(red: &App, blue: &App) -> String {
    by_prefix("red", &red.to_string(), "10.1.0.0/16")
        + &by_prefix("blue", &blue.to_string(), "10.2.0.0/16")
}

#[test]
fn ovs_slices_by_port_are_isolated_on_openflow_10() {
    needs!(ovs_slices_by_port_are_isolated_on_openflow_10: Needs::OpenVSwitch, Needs::OsKen);
    check_isolation(V10, [App::learning_switch_10(), App::learning_switch_10()], tenants_by_port);
}

#[test]
fn ovs_slices_by_port_are_isolated_on_openflow_13() {
    needs!(ovs_slices_by_port_are_isolated_on_openflow_13: Needs::OpenVSwitch, Needs::OsKen);
    check_isolation(V13, [App::learning_switch_13(), App::learning_switch_13()], tenants_by_port);
}

#[test]
fn ovs_slices_by_ip_prefix_are_isolated_on_openflow_10() {
    needs!(ovs_slices_by_ip_prefix_are_isolated_on_openflow_10: Needs::OpenVSwitch, Needs::OsKen);
    check_isolation(V10, [App::learning_switch_10(), App::learning_switch_10()], tenants_by_prefix);
}

#[test]
fn ovs_slices_by_ip_prefix_are_isolated_on_openflow_13() {
    needs!(ovs_slices_by_ip_prefix_are_isolated_on_openflow_13: Needs::OpenVSwitch, Needs::OsKen);
    check_isolation(V13, [App::learning_switch_13(), App::learning_switch_13()], tenants_by_prefix);
}

/// Type and code of the ERRORs.
const NO_PERMISSION_10: (u64, u64) = (3, 2);
const BAD_OUT_PORT: (u64, u64) = (2, 4);

/// On OpenFlow 1.0 Weir limits a rule to the tenant's flowspace. A rule outside the flowspace is refused.
#[test]
fn ovs_an_entry_for_traffic_of_another_tenant_is_refused_on_openflow_10() {
    needs!(ovs_an_entry_for_traffic_of_another_tenant_is_refused_on_openflow_10: Needs::OpenVSwitch, Needs::OsKen);
    check_trespassing(V10, "1.0", |red| {
        red.flow("add", 0x0bad, &forward(3, 1));
        assert_refused(&red.expect_reply("error", 0x0bad), NO_PERMISSION_10, 0x0bad);
    });
}

/// On OpenFlow 1.3 a rule matches the tenant's own metadata, which no packet of another tenant has.
#[test]
fn ovs_an_entry_for_traffic_of_another_tenant_matches_no_packet_on_openflow_13() {
    needs!(ovs_an_entry_for_traffic_of_another_tenant_matches_no_packet_on_openflow_13: Needs::OpenVSwitch, Needs::OsKen);
    check_trespassing(V13, "1.3", |red| {
        let mut rule = forward(3, 1);
        rule["priority"] = json!(65_535);
        red.flow("add", 0x0bad, &rule);
        red.barrier(0x0bac);
    });
}

/// Blue has rules for its own traffic. Red sends FLOW_MODs for blue's traffic and blue's port, which change nothing for
/// blue.
fn check_trespassing(version: Version, openflow: &str, trespass: impl Fn(&mut App)) {
    let network = Network::single(&ADDRESSES, version);
    let (mut red, mut blue) = (App::flow_installer(openflow), App::flow_installer(openflow));
    let _weir = network.serve(&tenants_by_port(&red, &blue));
    red.expect("switch");
    blue.expect("switch");
    blue.flow("add", 0x0b1e, &forward(3, 4));
    blue.flow("add", 0x0b1f, &forward(4, 3));
    blue.barrier(0x0b20);

    // Red requests blue's traffic, and an output to blue's port.
    trespass(&mut red);
    red.flow("add", 0x0bae, &forward(1, 4));
    assert_refused(&red.expect_reply("error", 0x0bae), BAD_OUT_PORT, 0x0bae);
    assert!(network.pings("h3", "h4"), "blue's traffic goes where blue sends it");
    assert!(
        red.flows(0x0baf).iter().all(|flow| flow["packets"] == 0),
        "red's rules met none of it"
    );

    // Red deletes all entries, and Weir deletes only red's entries.
    red.flow("delete", 0x0bb0, &json!({"table_id": 255}));
    red.barrier(0x0bb1);
    assert_eq!((red.flows(0x0bb2).len(), blue.flows(0x0b21).len()), (0, 2));
    assert!(network.pings("h4", "h3"));
    assert!(!blue.has_seen("error"), "blue heard of nothing");
}

/// Weir chooses the ports of FLOOD, so Weir has to keep the tenant's PORT_MODs: the switch does not report them.
#[test]
fn ovs_flood_skips_ports_with_no_flood_set_by_port_mod_on_openflow_10() {
    needs!(ovs_flood_skips_ports_with_no_flood_set_by_port_mod_on_openflow_10: Needs::OpenVSwitch, Needs::OsKen);
    let network = Network::single(&ADDRESSES, V10);
    let mut red = App::flow_installer("1.0");
    let tenant =
        by_port("red", &red.to_string(), [1, 2]) + "[[tenants.flowspace]]\nmatch = \"in_port=3\"\n";
    let _weir = network.serve(&tenant);
    red.expect("switch");
    let flood = json!({"match": {}, "actions": [{"type": "OUTPUT", "port": 0xfffb}]});
    red.flow("add", 1, &flood);
    red.barrier(2);
    assert!(network.pings("h1", "h2") && network.pings("h1", "h3"));
    let mut port_mod =
        json!({"send": "port_mod", "xid": 3, "port": 2, "set": ["NO_FLOOD"], "clear": []});
    red.order(&port_mod);
    eventually("what is flooded does not come to the port", || network.is_silent("h1", "h2"));
    assert!(network.pings("h1", "h3"));
    (port_mod["set"], port_mod["clear"]) = (json!([]), json!(["NO_FLOOD"]));
    red.order(&port_mod);
    eventually("it comes again", || !network.is_silent("h1", "h2"));
    assert!(!red.has_seen("error"));
}

/// A rule that forwards all packets from one port to another port.
pub fn forward(in_port: u32, out_port: u32) -> Value {
    json!({"priority": 9, "match": {"in_port": in_port}, "actions": [{"type": "OUTPUT", "port": out_port}]})
}

/// Asserts that the ERROR has this type and code, and that its data is the tenant's own message with the tenant's own
/// xid.
fn assert_refused(error: &Value, (kind, code): (u64, u64), xid: u32) {
    assert_eq!(
        (error["type"].as_u64(), error["code"].as_u64()),
        (Some(kind), Some(code)),
        "{error}"
    );
    let data = error["data"].as_str().unwrap_or_default();
    // A FLOW_MOD's header: version, type 0x0e, length, xid.
    assert_eq!(
        (data.get(2..4), data.get(8..16)),
        (Some("0e"), Some(format!("{xid:08x}").as_str())),
        "{error}"
    );
}

/// Both tenants have the same port. Only the VLAN tag distinguishes their frames, as on a trunk.
#[test]
fn slices_by_vlan_on_one_port_are_isolated() {
    let tenant = |name: &str, controller: &Controller, vlan: u16| {
        format!(
            r#"
[[tenants]]
name = "{name}"
controllers = ["{}"]
[[tenants.flowspace]]
match = "dl_vlan={vlan}"
"#,
            controller.name()
        )
    };
    let (red, blue) = (Controller::listen(), Controller::listen());
    let weir = Weir::serve(&(tenant("red", &red, 10) + &tenant("blue", &blue, 20)));
    let switch = Switch::connect(weir.openflow, 1, &[1, 2]);
    let (red, blue) = (red.switch(0), blue.switch(0));

    let plain = frame(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    let tagged = |vlan: u8| [&plain[..12], &[0x81, 0, 0, vlan], &plain[12..]].concat();
    // The third frame has no owner, and the fourth frame is red's. Red's second PACKET_IN shows that the third frame
    // was dropped.
    for frame in [tagged(10), tagged(20), plain.clone(), tagged(10)] {
        switch.packet_in(1, &frame);
    }
    for _ in 0..2 {
        assert_eq!(red.expect(PACKET_IN).body[10..], tagged(10));
    }
    assert_eq!(blue.expect(PACKET_IN).body[10..], tagged(20));

    // A PACKET_OUT with the tag of another tenant is refused.
    blue.send(&Message::new(PACKET_OUT, 7, &packet_out(1, 2, &tagged(10))));
    blue.expect_reply(ERROR, 7);
    blue.send(&Message::new(PACKET_OUT, 8, &packet_out(1, 2, &tagged(20))));
    assert!(switch.peer.expect(PACKET_OUT).body.ends_with(&tagged(20)));
    // Weir limits a rule for all packets to the tenant's tag.
    blue.send(&Message::new(FLOW_MOD, 9, &add_flow(1, 2, 5, 0)));
    let rule = switch.peer.expect(FLOW_MOD);
    assert_eq!(rule.body[18..20], [0, 20], "dl_vlan of the match");
    assert_eq!((red.count(PACKET_IN), blue.count(PACKET_IN)), (2, 1));
}

#[test]
fn ovs_a_tenant_sees_only_its_own_ports() {
    needs!(ovs_a_tenant_sees_only_its_own_ports: Needs::OpenVSwitch, Needs::OsKen);
    let network = Network::single(&ADDRESSES, V13);
    let (mut red, mut blue) = (App::flow_installer("1.3"), App::flow_installer("1.3"));
    let _weir = network.serve(&tenants_by_port(&red, &blue));
    for (controller, own) in [(&mut red, [1, 2]), (&mut blue, [3, 4])] {
        controller.expect("switch");
        for (xid, request) in [(21, "port_desc"), (22, "port_stats")] {
            controller.order(&json!({"send": request, "xid": xid}));
            let body = controller.expect_reply("stats", xid)["body"].clone();
            let number = |port: &Value| port.as_u64().or(port["port"].as_u64()).expect("a number");
            let mut ports: Vec<u64> =
                body.as_array().expect("a list of ports").iter().map(number).collect();
            ports.sort_unstable();
            assert_eq!(ports, own, "{request}");
        }
    }

    // A port is set down. Its owner gets a PORT_STATUS, and the other tenant gets none.
    network.set_port("s1", "s1-eth3", "down");
    assert_eq!(blue.expect("port_status")["port"], 3);
    red.barrier(23);
    assert!(!red.has_seen("port_status"));
}

#[test]
fn ovs_discovery_by_a_tenant_finds_only_links_between_its_switches() {
    needs!(ovs_discovery_by_a_tenant_finds_only_links_between_its_switches: Needs::OpenVSwitch, Needs::OsKen);
    let network = Network::linear(3, V13);
    let (mut red, mut blue) = (App::topology(), App::topology());
    // Red has the switches s1 and s2, and blue has s3. The switches are in a row: s1–s2–s3.
    let tenant = |name: &str, controller: &App, switches: &str| {
        format!(
            r#"
[[tenants]]
name = "{name}"
controllers = ["{controller}"]
[[tenants.flowspace]]
match = ""
switches = {switches}
"#
        )
    };
    let _weir = network.serve(
        &(tenant("red", &red, r#"["00:00:00:00:00:00:00:01", "00:00:00:00:00:00:00:02"]"#)
            + &tenant("blue", &blue, r#"["00:00:00:00:00:00:00:03"]"#)),
    );
    let ends = |link: Value| {
        let mut ends = [link["from"][0].as_u64(), link["to"][0].as_u64()];
        ends.sort_unstable();
        ends
    };
    blue.expect("switch");
    for _ in 0..2 {
        assert_eq!(ends(red.expect("link")), [Some(1), Some(2)]);
    }
    // os-ken sends one more round of probes, in which the link between s2 and s3 could be found.
    thread::sleep(Duration::from_secs(1));
    assert!(!red.has_seen("link"), "half of it is not red's");
    assert!(!blue.has_seen("link"), "and half of it is not blue's");
}
