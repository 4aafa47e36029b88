//! The control experiment: the same network and the same controllers with nothing between them.
//!
//! If one of these fails, the fault is not in Weir.

use serde_json::json;

use crate::support::app::App;
use crate::support::network::{Network, V10, V13};
use crate::support::requirements::{Needs, needs};

const ADDRESSES: [&str; 2] = ["10.0.0.1", "10.0.0.2"];

#[test]
fn ovs_switch_only_learning_switch_10() {
    needs!(ovs_switch_only_learning_switch_10: Needs::OpenVSwitch, Needs::OsKen);
    let network = Network::single(&ADDRESSES, V10);
    let mut controller = App::switch_only("learning_switch_10", network.controller_host());
    network.connect_to(controller.address);
    controller.expect("switch");
    assert!(network.pings("h1", "h2"));
}

#[test]
fn ovs_switch_only_learning_switch_13() {
    needs!(ovs_switch_only_learning_switch_13: Needs::OpenVSwitch, Needs::OsKen);
    let network = Network::single(&ADDRESSES, V13);
    let mut controller = App::switch_only("learning_switch_13", network.controller_host());
    network.connect_to(controller.address);
    controller.expect("switch");
    assert!(network.pings("h1", "h2"));
}

#[test]
fn ovs_switch_only_discovery_finds_both_directions_of_each_link() {
    needs!(ovs_switch_only_discovery_finds_both_directions_of_each_link: Needs::OpenVSwitch, Needs::OsKen);
    let network = Network::linear(3, V13);
    let mut controller = App::switch_only("topology", network.controller_host());
    network.connect_to(controller.address);
    for _ in 0..4 {
        controller.expect("link");
    }
}

#[test]
fn ovs_switch_only_installer_reports_what_the_switch_refuses() {
    needs!(ovs_switch_only_installer_reports_what_the_switch_refuses: Needs::OpenVSwitch, Needs::OsKen);
    let network = Network::single(&ADDRESSES, V13);
    let mut controller = App::switch_only("flow_installer", network.controller_host());
    network.connect_to(controller.address);
    controller.expect("switch");

    controller.flow("add", 7, &json!({"priority": 9, "match": {"in_port": 1}, "actions": [{"type": "OUTPUT", "port": 2}]}));
    controller.barrier(8);
    assert_eq!(
        network.flow_texts("s1"),
        ["cookie=0x0, table=0, priority=9,in_port=1 actions=output:2"]
    );

    controller.flow("add", 9, &json!({"actions": [{"type": "GROUP", "group_id": 77}]}));
    let error = controller.expect_reply("error", 9);
    assert!(
        error["data"].as_str().is_some_and(|data| data.starts_with("040e")),
        "the FLOW_MOD itself: {error}"
    );
}
