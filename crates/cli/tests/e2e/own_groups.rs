//! Tests of a tenant's groups on a real switch, where two virtual links use one physical port: groups and action sets
//! that send from link to link, and buckets that use groups of Weir itself.

use serde_json::{Value, json};

use crate::support::app::App;
use crate::support::eventually;
use crate::support::network::{Network, V13};
use crate::support::requirements::{Needs, needs};
use crate::support::weir::Weir;

/// The tenant's first switch has links to both other switches. Its physical switch has one link, to the second physical
/// switch.
const NETWORK: &str = "
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
]
links = [
    { between = [\"0xa1 port 10\", \"0xa2 port 10\"] },
    { between = [\"0xa1 port 11\", \"0xa3 port 11\"] },
]
";

/// OFPP_FLOOD.
const FLOOD: u32 = 0xffff_fffb;

fn output(port: u32) -> Value {
    json!([{"type": "OUTPUT", "port": port}])
}

fn group(app: &mut App, xid: u32, command: &str, number: u32, type_: &str, buckets: &[Value]) {
    app.order(&json!({
        "send": "group", "dpid": 0xa1, "xid": xid,
        "command": command, "group": number, "type": type_, "buckets": buckets,
    }));
    app.barrier_at(0xa1, xid + 1);
}

#[test]
fn ovs_a_group_forwards_between_two_virtual_links_on_one_physical_port() {
    needs!(ovs_a_group_forwards_between_two_virtual_links_on_one_physical_port: Needs::OpenVSwitch, Needs::OsKen);
    let network = Network::of(
        &["s1", "s2", "s3"],
        &["h1", "h2", "h3"],
        &[("s1", "h1"), ("s2", "h2"), ("s3", "h3"), ("s1", "s2"), ("s2", "s3")],
        V13,
    );
    // A frame in a VLAN of the tenant has a second tag, the tag of a virtual link.
    network.look_through_two_tags();
    let mut red = App::flow_installer("1.3");
    let configuration = format!(
        "[topology]\ndiscovery = true\n[[tenants]]\nname = \"red\"\ncontrollers = [\"{red}\"]\n{NETWORK}"
    );
    let mut weir = network.serve(&configuration);
    for _ in 0..3 {
        red.expect("switch");
    }
    let all: Vec<Value> = [10, 11, 1].map(|port| json!({"actions": output(port)})).into();
    group(&mut red, 10, "add", 1, "ALL", &all);
    let flow = |app: &mut App, dpid: u64, match_: Value, actions: Value| {
        let flow = json!({"priority": 5, "match": match_, "actions": actions});
        app.order(&json!({"send": "flow", "dpid": dpid, "command": "add", "xid": 1, "flow": flow}));
    };
    flow(&mut red, 0xa1, json!({}), json!([{"type": "GROUP", "group_id": 1}]));
    for (dpid, link) in [(0xa2, 10), (0xa3, 11)] {
        flow(&mut red, dpid, json!({"in_port": 1}), output(link));
        flow(&mut red, dpid, json!({"in_port": link}), output(1));
    }
    for (xid, dpid) in [(20, 0xa1), (21, 0xa2), (22, 0xa3)] {
        red.barrier_at(dpid, xid);
    }
    let everybody = |network: &Network| {
        [("h2", "h3"), ("h1", "h2"), ("h3", "h1")].iter().all(|(from, to)| network.pings(from, to))
    };
    eventually("hosts reach each other over the first switch", || everybody(&network));

    // The tenant has one group, and the switch has three groups for it. The tenant's statistics show one group.
    assert_eq!(groups(&network).len(), 3);
    let mut xid = 30;
    eventually("each bucket has counted each packet", || {
        xid += 1;
        red.order(&json!({"send": "group_stats", "dpid": 0xa1, "xid": xid}));
        let reply = red.expect_reply("stats", xid);
        let counted = &reply["body"][0];
        assert_eq!(
            (&reply["body"].as_array().map(Vec::len), &counted["group"]),
            (&Some(1), &json!(1))
        );
        assert_eq!(counted["references"], 1);
        let packets = counted["packets"].as_u64().unwrap_or(0);
        // Three pings with their replies, and ARP before the pings.
        packets >= 6 && counted["buckets"] == json!([packets, packets, packets])
    });

    // Group 1 now selects group 2, which outputs only to the link to the third switch. So h2 gets no reply from h3.
    group(&mut red, 100, "add", 2, "INDIRECT", &[json!({"actions": output(11)})]);
    let chained = json!({"weight": 1, "actions": [{"type": "GROUP", "group_id": 2}]});
    group(&mut red, 102, "modify", 1, "SELECT", &[chained]);
    assert_eq!(groups(&network).len(), 6);
    eventually("there is no way back", || network.is_silent("h2", "h3"));
    let back = json!({"priority": 6, "match": {"in_port": 11}, "actions": output(10)});
    let entry = |app: &mut App, command: &str, xid: u32| {
        app.order(
            &json!({"send": "flow", "dpid": 0xa1, "command": command, "xid": xid, "flow": back}),
        );
        app.barrier_at(0xa1, xid + 1);
    };
    entry(&mut red, "add", 110);
    eventually("there is one by an entry", || network.pings("h2", "h3"));
    entry(&mut red, "delete_strict", 112);

    // A group that outputs only to a host's port has no copies on the switch. After a kill -9 the groups on the switch
    // are the same as before.
    group(&mut red, 120, "modify", 2, "INDIRECT", &[json!({"actions": output(1)})]);
    eventually("no copies are left", || groups(&network).len() == 2);
    group(&mut red, 130, "modify", 1, "ALL", &all);
    eventually("hosts reach each other again", || everybody(&network));
    let before = groups(&network);
    weir.crash();
    weir.restart();
    for _ in 0..3 {
        red.expect("switch");
    }
    red.barrier_at(0xa1, 140);
    eventually("hosts reach each other after a restart", || everybody(&network));
    eventually("groups are as they were", || groups(&network) == before);

    for (xid, number) in [(150, 1), (160, 2)] {
        group(&mut red, xid, "delete", number, "ALL", &[]);
    }
    assert_eq!(groups(&network).len(), 0);
    eventually("with the group went the entry", || network.is_silent("h1", "h2"));
    sets(&network, &mut red);
    buckets(&network, &mut red, &mut weir);
    assert!(!red.has_seen("error"));
}

/// Action sets send frames from link to link by groups. The group that table 1 writes replaces the group that table 0
/// has written.
fn sets(network: &Network, red: &mut App) {
    let write = |group: u32| json!({"type": "WRITE_ACTIONS", "actions": [{"type": "GROUP", "group_id": group}]});
    let flow = |app: &mut App, flow: Value| {
        app.order(&json!({"send": "flow", "dpid": 0xa1, "command": "add", "xid": 1, "flow": flow}));
    };
    let goto = json!({"type": "GOTO_TABLE", "table_id": 1});
    group(red, 170, "add", 4, "INDIRECT", &[json!({"actions": output(10)})]);
    group(red, 172, "add", 5, "INDIRECT", &[json!({"actions": output(11)})]);
    flow(red, json!({"priority": 5, "actions": [write(4), goto]}));
    flow(red, json!({"priority": 0, "table_id": 1}));
    flow(
        red,
        json!({"priority": 1, "table_id": 1, "match": {"in_port": 10}, "actions": [write(5)]}),
    );
    red.barrier_at(0xa1, 174);
    eventually("by the second table's group there, by the first's back", || {
        network.pings("h2", "h3")
    });
    assert!(network.is_silent("h1", "h3"), "h1 is sent nothing");
    group(red, 176, "delete", 4, "INDIRECT", &[]);
    group(red, 178, "delete", 5, "INDIRECT", &[]);
    eventually("with the groups went the entries", || network.is_silent("h2", "h3"));
}

/// Buckets output to FLOOD, and push tags of the tenant's VLANs on frames for links. Each such bucket ends in another
/// group on the switch.
fn buckets(network: &Network, red: &mut App, weir: &mut Weir) {
    let flow = |app: &mut App, dpid: u64, command: &str, flow: Value| {
        app.order(
            &json!({"send": "flow", "dpid": dpid, "command": command, "xid": 1, "flow": flow}),
        );
    };
    for table in [0, 1] {
        flow(red, 0xa1, "delete", json!({"table_id": table}));
    }
    group(red, 200, "add", 3, "ALL", &[json!({"actions": output(FLOOD)})]);
    let all = json!([{"type": "GROUP", "group_id": 3}]);
    flow(red, 0xa1, "add", json!({"priority": 5, "actions": all}));
    red.barrier_at(0xa1, 202);
    let everybody = |network: &Network| {
        [("h2", "h3"), ("h1", "h2"), ("h3", "h1")].iter().all(|(from, to)| network.pings(from, to))
    };
    eventually("hosts reach each other by FLOOD", || everybody(network));

    // The first switch sends frames to the other switches in VLANs 7 and 8, and the other switches accept no other
    // frames from their links.
    let tagged = |vlan: u32, port: u32| {
        json!({"actions": [
            {"type": "PUSH_VLAN", "ethertype": 0x8100},
            {"type": "SET_FIELD", "field": "vlan_vid", "value": 0x1000 | vlan},
            {"type": "OUTPUT", "port": port},
        ]})
    };
    let untagged = json!({"actions": [{"type": "POP_VLAN"}, {"type": "OUTPUT", "port": 1}]});
    group(red, 210, "modify", 3, "ALL", &[tagged(7, 10), tagged(8, 11), untagged]);
    for (dpid, port) in [(0xa2, 10), (0xa3, 11)] {
        flow(red, dpid, "delete", json!({"match": {"in_port": port}}));
        red.barrier_at(dpid, 212);
    }
    eventually("nothing comes in without a rule", || network.is_silent("h2", "h3"));
    for (dpid, port, vlan) in [(0xa2, 10, 7), (0xa3, 11, 8)] {
        let match_ = json!({"in_port": port, "dl_vlan": vlan});
        let actions = json!([{"type": "POP_VLAN"}, {"type": "OUTPUT", "port": 1}]);
        flow(red, dpid, "add", json!({"priority": 6, "match": match_, "actions": actions}));
        red.barrier_at(dpid, 220);
    }
    // Open vSwitch has cached actions for frames with only the link's tag, and would use these actions for frames with
    // a second tag as well.
    network.forget_packets();
    eventually("hosts reach each other in the tenant's VLANs", || everybody(network));

    let shown = groups(network);
    assert!(shown.iter().any(|it| it.contains("push_vlan") && it.contains("group:")), "{shown:?}");
    red.order(&json!({"send": "group_stats", "dpid": 0xa1, "xid": 230}));
    let reply = red.expect_reply("stats", 230);
    let counted = &reply["body"][0];
    assert_eq!((reply["body"].as_array().map(Vec::len), &counted["group"]), (Some(1), &json!(3)));
    assert_eq!(counted["references"], 1);

    weir.crash();
    weir.restart();
    for _ in 0..3 {
        red.expect("switch");
    }
    red.barrier_at(0xa1, 240);
    eventually("hosts reach each other in VLANs after a restart", || everybody(network));
    eventually("groups are as they were, exits too", || groups(network) == shown);
}

/// Returns the groups of the first switch, sorted, because the switch lists groups in any order.
fn groups(network: &Network) -> Vec<String> {
    let dump = network.ofctl(&["-O", "OpenFlow13", "dump-groups", "s1"]);
    let groups = dump.lines().filter(|line| line.contains("group_id="));
    let mut groups: Vec<String> = groups.map(str::to_owned).collect();
    groups.sort();
    groups
}
