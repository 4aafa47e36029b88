//! Tests of the same network and the same controllers without Weir, as a control experiment.
//!
//! If one of these tests fails, the fault is not in Weir.

use std::net::Ipv4Addr;

use serde_json::json;

use crate::support::app::{App, testcontroller};
use crate::support::network::{Network, V10, V13};
use crate::support::requirements::{Needs, needs};
use crate::support::scripted::{
    BARRIER_REPLY, BARRIER_REQUEST, Controller, FLOW_MOD, Message, PACKET_IN, PACKET_OUT,
    SET_CONFIG, Switch, add_flow, frame, packet_out,
};

const ADDRESSES: [&str; 2] = ["10.0.0.1", "10.0.0.2"];

#[test]
fn ovs_switch_only_learning_switch_connects_hosts_on_openflow_10() {
    needs!(ovs_switch_only_learning_switch_connects_hosts_on_openflow_10: Needs::OpenVSwitch, Needs::OsKen);
    let network = Network::single(&ADDRESSES, V10);
    let mut controller = App::switch_only("learning_switch_10", network.controller_host());
    network.connect_to(controller.address);
    controller.expect("switch");
    assert!(network.pings("h1", "h2"));
}

#[test]
fn ovs_switch_only_learning_switch_connects_hosts_on_openflow_13() {
    needs!(ovs_switch_only_learning_switch_connects_hosts_on_openflow_13: Needs::OpenVSwitch, Needs::OsKen);
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
fn ovs_switch_only_flow_installer_reports_errors_of_the_switch() {
    needs!(ovs_switch_only_flow_installer_reports_errors_of_the_switch: Needs::OpenVSwitch, Needs::OsKen);
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

#[test]
fn a_scripted_switch_works_with_a_real_controller() {
    needs!(a_scripted_switch_works_with_a_real_controller: Needs::Program("ovs-testcontroller"));
    let (_controller, address) = testcontroller();
    let switch = Switch::connect(address, 1, &[1, 2]);
    switch.peer.expect(SET_CONFIG);
    switch.packet_in(1, &frame(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)));
    switch.peer.expect(PACKET_OUT);
}

#[test]
fn ovs_a_scripted_controller_works_with_a_real_switch() {
    needs!(ovs_a_scripted_controller_works_with_a_real_switch: Needs::OpenVSwitch);
    let network = Network::single(&ADDRESSES, V10);
    let controller = Controller::listen_on(network.controller_host());
    network.connect_to(controller.address);
    let switch = controller.switch(0);
    switch.send(&Message::new(FLOW_MOD, 1, &add_flow(2, 1, 9, 0xc0)));
    switch.send(&Message::new(BARRIER_REQUEST, 2, &[]));
    switch.expect_reply(BARRIER_REPLY, 2);
    assert_eq!(
        network.flow_texts("s1"),
        ["cookie=0xc0, table=0, priority=9,in_port=2 actions=output:1"]
    );

    // Host 1 sends an ARP request for host 2. Host 2 gets the request only by a PACKET_OUT of the controller.
    assert!(network.is_silent("h1", "h2"));
    let request = switch.expect(PACKET_IN);
    assert_eq!(request.body[6..8], [0, 1], "from port 1");
    switch.send(&Message::new(PACKET_OUT, 3, &packet_out(1, 2, &request.body[10..])));
    assert!(switch.answers_echo(4));
}
