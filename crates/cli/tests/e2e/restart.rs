//! Tests of a kill -9 and a restart of Weir: no rule is lost, orphaned or installed twice.

use serde_json::{Value, json};

use crate::slices::{by_port, forward};
use crate::support::app::App;
use crate::support::eventually;
use crate::support::network::{Flow, Network, V10, V13, Version};
use crate::support::requirements::{Needs, needs};

pub const ADDRESSES: [&str; 4] = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"];
const SEND_FLOW_REMOVED: u32 = 1;
const RED_COOKIE: u64 = 0xcafe;

#[test]
fn ovs_rules_survive_kill_9_on_openflow_10() {
    needs!(ovs_rules_survive_kill_9_on_openflow_10: Needs::OpenVSwitch, Needs::OsKen);
    check_crash(V10, "1.0");
}

#[test]
fn ovs_rules_survive_kill_9_on_openflow_13() {
    needs!(ovs_rules_survive_kill_9_on_openflow_13: Needs::OpenVSwitch, Needs::OsKen);
    check_crash(V13, "1.3");
}

/// Asserts that the switch has the same rules as before, with their counters, and that none was installed again.
pub fn check_untouched(before: &[Flow], after: &[Flow]) {
    assert_eq!(texts(after), texts(before), "the same rules, no more and no fewer");
    for (before, after) in before.iter().zip(after) {
        assert!(after.duration > before.duration, "installed again: {}", after.text);
        assert!(after.packets >= before.packets, "counters lost: {}", after.text);
    }
}

/// The rules as `ovs-ofctl` writes them.
pub fn texts(flows: &[Flow]) -> Vec<String> {
    flows.iter().map(|flow| flow.text.clone()).collect()
}

fn check_crash(version: Version, openflow: &str) {
    let network = Network::single(&ADDRESSES, version);
    let (mut red, mut blue) = (App::flow_installer(openflow), App::flow_installer(openflow));
    let tenants =
        by_port("red", &red.to_string(), [1, 2]) + &by_port("blue", &blue.to_string(), [3, 4]);
    let mut weir = network.serve(&tenants);
    install_both_ways(&mut red, [1, 2]);
    install_both_ways(&mut blue, [3, 4]);
    assert!(network.pings("h1", "h2"));
    let before = network.flows("s1");

    weir.crash();
    assert!(network.pings("h3", "h4"), "the switch goes on by itself");
    weir.restart();
    red.expect("switch");
    blue.expect("switch");
    red.barrier(100);
    blue.barrier(100);

    let after = network.flows("s1");
    check_untouched(&before, &after);

    // The tenant's entry has its cookie, its priority and its packet counter.
    let mine: Vec<Value> =
        red.flows(101).into_iter().filter(|flow| flow["match"]["in_port"] == 1).collect();
    assert_eq!(mine.len(), 1, "{mine:?}");
    assert_eq!((&mine[0]["cookie"], &mine[0]["priority"]), (&json!(RED_COOKIE), &json!(9)));
    assert!(mine[0]["packets"].as_u64() > Some(0), "counted on the switch, before and after");

    // The rules still belong to the tenant: red may delete its rule, and gets one FLOW_REMOVED.
    red.flow("delete", 102, &json!({"table_id": 255, "match": {"in_port": 1}}));
    let removed = red.expect("flow_removed");
    assert_eq!((&removed["cookie"], &removed["match"]["in_port"]), (&json!(RED_COOKIE), &json!(1)));
    red.barrier(103);
    assert!(!red.has_seen("flow_removed"), "once");
    assert_eq!(red.flows(104).len(), 1);
    assert_eq!(blue.flows(104).len(), 2);
}

/// Installs two rules, for both directions between two ports. A FLOW_REMOVED follows the removal of each rule.
pub fn install_both_ways(controller: &mut App, [one, other]: [u32; 2]) {
    controller.expect("switch");
    for (xid, mut flow) in [(1, forward(one, other)), (2, forward(other, one))] {
        flow["cookie"] = json!(RED_COOKIE);
        flow["flags"] = json!(SEND_FLOW_REMOVED);
        controller.flow("add", xid, &flow);
    }
    controller.barrier(3);
}

#[test]
fn ovs_rules_of_a_tenant_removed_during_downtime_are_deleted_after_restart() {
    needs!(ovs_rules_of_a_tenant_removed_during_downtime_are_deleted_after_restart: Needs::OpenVSwitch, Needs::OsKen);
    let network = Network::single(&ADDRESSES, V13);
    let (mut red, mut blue) = (App::flow_installer("1.3"), App::flow_installer("1.3"));
    let only_red = by_port("red", &red.to_string(), [1, 2]);
    let both = only_red.clone() + &by_port("blue", &blue.to_string(), [3, 4]);
    let mut weir = network.serve(&both);
    install_both_ways(&mut red, [1, 2]);
    install_both_ways(&mut blue, [3, 4]);
    assert!(network.pings("h1", "h2") && network.pings("h3", "h4"));

    weir.crash();
    weir.write_config(&only_red);
    weir.restart();
    eventually("blue's rules are gone", || network.is_silent("h3", "h4"));
    assert!(network.pings("h1", "h2"), "red's are not");
}

#[test]
fn ovs_a_start_with_a_wrong_state_folder_deletes_no_rules() {
    needs!(ovs_a_start_with_a_wrong_state_folder_deletes_no_rules: Needs::OpenVSwitch, Needs::OsKen);
    for (version, openflow) in [(V10, "1.0"), (V13, "1.3")] {
        let network = Network::single(&ADDRESSES, version);
        let mut red = App::flow_installer(openflow);
        let tenants = by_port("red", &red.to_string(), [1, 2]);
        let mut weir = network.serve(&tenants);
        install_both_ways(&mut red, [1, 2]);
        weir.crash();

        // The path of the state folder has a spelling error.
        weir.restart_on("stat", &[]);
        red.expect("switch");
        red.barrier(100);
        assert_eq!(red.flows(101).len(), 0, "the tenant has none");
        assert!(network.pings("h1", "h2"), "and they go on");
        let line = weir.expect_log(0, &["WARN", "another installation"]);
        let (_, after) = line.split_once("installation=").expect("which it is");
        let id = after.split(' ').next().expect("three digits");
        eventually("they are counted", || weir.metric("weir_switch_others_rules", &[]) >= 2.0);
        assert!(weir.get("/api/v1/switches").1.contains("\"others_rules\":"));
        weir.crash();

        // With the right state folder Weir has all entries as before.
        weir.restart();
        red.expect("switch");
        red.barrier(102);
        assert_eq!(red.flows(103).len(), 2);
        assert!(network.pings("h1", "h2"));
        weir.crash();

        weir.restart_on("stat", &["--take-over", id]);
        red.expect("switch");
        red.barrier(104);
        // Open vSwitch's datapath forwards by its cache for a moment longer.
        eventually("the old rules are gone", || network.is_silent("h1", "h2"));
        assert_eq!(weir.logged(&["another installation"]), [""; 0]);
    }
}
