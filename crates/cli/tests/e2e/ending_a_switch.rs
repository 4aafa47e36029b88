//! Tests of requests of a tenant that would crash or stop Open vSwitch 3.1, and so the switch of all tenants. The
//! tenant has a slice or a network.

use serde_json::{Value, json};

use crate::support::app::App;
use crate::support::network::{Network, V13};
use crate::support::requirements::{Needs, needs};
use crate::support::weir::Weir;

/// OFPET_BAD_ACTION and OFPBAC_TOO_MANY.
const TOO_MANY: [u32; 2] = [2, 7];
/// OFPET_BAD_INSTRUCTION and OFPBIC_UNSUP_INST.
const UNSUPPORTED: [u32; 2] = [3, 1];
/// OFPET_GROUP_MOD_FAILED and OFPGMFC_OUT_OF_BUCKETS.
const OUT_OF_BUCKETS: [u32; 2] = [6, 4];
/// OFPG_ALL.
const ALL: u32 = 0xffff_fffc;

/// Two tenants on one switch: a slice at port 1, and a network at port 2.
struct Tenants {
    network: Network,
    _weir: Weir,
    apps: [(App, u64); 2],
}

impl Tenants {
    fn new() -> Tenants {
        let network = Network::single(&["10.0.0.1", "10.0.0.2"], V13);
        let (red, blue) = (App::flow_installer("1.3"), App::flow_installer("1.3"));
        let tenants = format!(
            "[[tenants]]\nname = \"red\"\ncontrollers = [\"{red}\"]\n\
             [[tenants.flowspace]]\nmatch = \"in_port=1\"\n\
             [[tenants]]\nname = \"blue\"\ncontrollers = [\"{blue}\"]\n\
             [tenants.network]\nswitches = [{{ dpid = \"0xa1\", on = \"1\" }}]\n\
             ports = [{{ switch = \"0xa1\", number = 1, at = \"1 port 2\" }}]\n"
        );
        let weir = network.serve(&tenants);
        let mut apps = [(red, 1), (blue, 0xa1)];
        apps.iter_mut().for_each(|(app, _)| drop(app.expect("switch")));
        Tenants { network, _weir: weir, apps }
    }

    /// Runs `does` for each tenant, and asserts that the switch still answers and is the same process.
    fn each(&mut self, mut does: impl FnMut(&Network, &mut App, u64)) {
        let switch = self.network.switch_process();
        for (app, dpid) in &mut self.apps {
            does(&self.network, app, *dpid);
        }
        for (app, dpid) in &mut self.apps {
            app.barrier_at(*dpid, 90);
        }
        assert_eq!(self.network.switch_process(), switch);
    }
}

#[test]
fn ovs_entries_that_name_a_group_twice_are_refused_and_do_not_crash_the_switch() {
    needs!(ovs_entries_that_name_a_group_twice_are_refused_and_do_not_crash_the_switch: Needs::OpenVSwitch, Needs::OsKen);
    // In Open vSwitch 3.1 an assertion fails when a group is deleted that one rule names twice.
    Tenants::new().each(|network, app, dpid| {
        for deleted in [7, ALL] {
            group(app, dpid, "add", 7, "ALL", &[json!([output(1)])]);
            for (xid, actions) in (10..).zip([
                json!([to_group(7), to_group(7)]),
                json!([to_group(7), write(&[to_group(7)])]),
                json!([write(&[to_group(7), to_group(7)])]),
            ]) {
                refused(app, dpid, xid, &json!({"actions": actions}), TOO_MANY);
            }
            flow(app, dpid, 20, &json!({"actions": [to_group(7)]}));
            app.barrier_at(dpid, 25);
            assert_eq!(rules_with_groups(network), 1);
            group(app, dpid, "delete", deleted, "ALL", &[]);
            app.barrier_at(dpid, 30);
            assert_eq!(rules_with_groups(network), 0);
        }
    });
}

#[test]
fn ovs_a_recirculated_packet_does_not_crash_the_switch() {
    needs!(ovs_a_recirculated_packet_does_not_crash_the_switch: Needs::OpenVSwitch, Needs::OsKen);
    // In Open vSwitch 3.1 an assertion fails when a packet is recirculated whose action set is longer than the list of
    // remaining actions.
    Tenants::new().each(|network, app, dpid| {
        group(app, dpid, "add", 1, "SELECT", &[json!([output(1)]), json!([output(1)])]);
        group(app, dpid, "add", 2, "ALL", &[json!([output(1)])]);
        let goto = json!({"type": "GOTO_TABLE", "table_id": 1});
        flow(app, dpid, 10, &json!({"actions": [write(&[to_group(2)]), goto]}));
        refused(app, dpid, 11, &json!({"table_id": 1, "actions": [to_group(1)]}), UNSUPPORTED);
        flow(app, dpid, 12, &json!({"table_id": 1, "actions": [to_group(2)]}));
        app.barrier_at(dpid, 13);
        assert!(rules_with_groups(network) >= 2);
        frame_comes(network, dpid);
    });
}

#[test]
fn ovs_a_chain_of_groups_is_limited_and_does_not_stop_the_switch() {
    needs!(ovs_a_chain_of_groups_is_limited_and_does_not_stop_the_switch: Needs::OpenVSwitch, Needs::OsKen);
    // Each group doubles the number of buckets for a packet. No bucket outputs the packet, so no limit on outputs
    // applies.
    Tenants::new().each(|network, app, dpid| {
        group(app, dpid, "add", 1, "ALL", &[json!([])]);
        for number in 2..=40 {
            let before = json!([to_group(number - 1)]);
            group(app, dpid, "add", number, "ALL", &[before.clone(), before]);
            if number == 12 {
                let error = app.expect_reply("error", number);
                assert_eq!([&error["type"], &error["code"]], OUT_OF_BUCKETS);
                break;
            }
        }
        flow(app, dpid, 50, &json!({"actions": [to_group(11)]}));
        app.barrier_at(dpid, 51);
        assert!(rules_with_groups(network) >= 1);
        frame_comes(network, dpid);
    });
}

fn rules_with_groups(network: &Network) -> usize {
    let rules = network.ofctl(&["-O", "OpenFlow13", "dump-flows", "s1"]);
    rules.lines().filter(|rule| rule.contains("group:")).count()
}

/// The tenant's host pings an address that no host has.
fn frame_comes(network: &Network, dpid: u64) {
    let host = if dpid == 1 { "h1" } else { "h2" };
    assert!(!network.answers(host, "10.0.0.9"));
}

fn output(port: u32) -> Value {
    json!({"type": "OUTPUT", "port": port})
}

fn to_group(number: u32) -> Value {
    json!({"type": "GROUP", "group_id": number})
}

fn write(actions: &[Value]) -> Value {
    json!({"type": "WRITE_ACTIONS", "actions": actions})
}

/// The number of the group is also the xid.
fn group(app: &mut App, dpid: u64, command: &str, number: u32, type_: &str, buckets: &[Value]) {
    let weight = u32::from(type_ == "SELECT");
    let bucket = |actions: &Value| json!({"actions": actions, "weight": weight});
    let buckets: Vec<Value> = buckets.iter().map(bucket).collect();
    app.order(&json!({
        "send": "group", "dpid": dpid, "xid": number,
        "command": command, "group": number, "type": type_, "buckets": buckets,
    }));
}

fn flow(app: &mut App, dpid: u64, xid: u32, flow: &Value) {
    app.order(&json!({"send": "flow", "dpid": dpid, "command": "add", "xid": xid, "flow": flow}));
}

fn refused(app: &mut App, dpid: u64, xid: u32, entry: &Value, expected: [u32; 2]) {
    flow(app, dpid, xid, entry);
    let error = app.expect_reply("error", xid);
    assert_eq!([&error["type"], &error["code"]], expected, "{entry}");
}
