//! Tests of barriers, and of the statistics of each tenant.

use std::time::Duration;

use serde_json::json;

use crate::slices::{by_port, forward};
use crate::support::app::App;
use crate::support::eventually;
use crate::support::network::{Network, V10, V13, Version};
use crate::support::requirements::{Needs, needs};
use crate::support::scripted::{
    BARRIER_REPLY, BARRIER_REQUEST, Controller, FLOW_MOD, Message, STATS_REPLY, STATS_REQUEST,
    Switch, add_flow,
};
use crate::support::weir::Weir;

const ADDRESSES: [&str; 4] = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"];

/// How long the test waits for a message that must not arrive.
const A_WHILE: Duration = Duration::from_millis(300);

#[test]
fn a_barrier_reply_waits_for_the_switch() {
    let controller = Controller::listen();
    let weir = Weir::serve(&by_port("red", &controller.name(), [1, 2]));
    let switch = Switch::connect(weir.openflow, 1, &[1, 2]);
    let red = controller.switch(0);
    weir.wait_for_switches(1);

    switch.peer.hold(BARRIER_REQUEST);
    red.send(&Message::new(FLOW_MOD, 5, &add_flow(1, 2, 9, 0)));
    red.send(&Message::new(BARRIER_REQUEST, 6, &[]));
    let asked = switch.peer.expect(BARRIER_REQUEST);
    assert!(red.hears_no(BARRIER_REPLY, A_WHILE), "the switch has not said that it is done");

    switch.peer.send(&Message::new(BARRIER_REPLY, asked.xid, &[]));
    // Weir may send barriers of its own before the tenant's barrier. The tenant's barrier is answered with the last of
    // these.
    eventually("the tenant's barrier is answered", || {
        if let Some(more) = switch.peer.poll(BARRIER_REQUEST, Duration::ZERO) {
            switch.peer.send(&Message::new(BARRIER_REPLY, more.xid, &[]));
        }
        red.has_reply(BARRIER_REPLY, 6)
    });
}

#[test]
fn a_barrier_is_answered_while_another_tenant_sends_many_flow_mods() {
    let (red, blue) = (Controller::listen(), Controller::listen());
    let weir = Weir::serve(
        &(by_port("red", &red.name(), [1, 2]) + &by_port("blue", &blue.name(), [3, 4])),
    );
    let _switch = Switch::connect(weir.openflow, 1, &[1, 2, 3, 4]);
    let (red, blue) = (red.switch(0), blue.switch(0));
    for xid in 0..500 {
        red.send(&Message::new(FLOW_MOD, xid, &add_flow(1, 2, 9, u64::from(xid))));
    }
    blue.send(&Message::new(BARRIER_REQUEST, 6, &[]));
    blue.expect_reply(BARRIER_REPLY, 6);
}

#[test]
fn flow_statistics_without_entries_get_an_empty_reply() {
    const FLOW: u16 = 1;
    let controller = Controller::listen();
    let weir = Weir::serve(&by_port("red", &controller.name(), [1, 2]));
    let _switch = Switch::connect(weir.openflow, 1, &[1, 2]);
    let red = controller.switch(0);
    let mut body = FLOW.to_be_bytes().to_vec();
    body.extend([0, 0]);
    body.extend(0x003f_ffffu32.to_be_bytes()); // every flow
    body.resize(4 + 40, 0);
    body.extend([0xff, 0, 0xff, 0xff]); // of every table, with any output port
    red.send(&Message::new(STATS_REQUEST, 9, &body));
    assert_eq!(red.expect_reply(STATS_REPLY, 9).body, [0, 1, 0, 0]);
}

#[test]
fn ovs_flow_statistics_are_per_tenant_on_openflow_10() {
    needs!(ovs_flow_statistics_are_per_tenant_on_openflow_10: Needs::OpenVSwitch, Needs::OsKen);
    check_statistics(V10, "1.0");
}

#[test]
fn ovs_flow_statistics_are_per_tenant_on_openflow_13() {
    needs!(ovs_flow_statistics_are_per_tenant_on_openflow_13: Needs::OpenVSwitch, Needs::OsKen);
    check_statistics(V13, "1.3");
}

/// Both tenants use the same cookie, priority and xids. Each tenant sees only its own entries.
fn check_statistics(version: Version, openflow: &str) {
    const COOKIE: u64 = 0x1234;
    let network = Network::single(&ADDRESSES, version);
    let (mut red, mut blue) = (App::flow_installer(openflow), App::flow_installer(openflow));
    let _weir = network.serve(
        &(by_port("red", &red.to_string(), [1, 2]) + &by_port("blue", &blue.to_string(), [3, 4])),
    );
    for (controller, ports) in [(&mut red, [1, 2]), (&mut blue, [3, 4])] {
        controller.expect("switch");
        for (xid, mut flow) in [(1, forward(ports[0], ports[1])), (2, forward(ports[1], ports[0]))]
        {
            flow["cookie"] = json!(COOKIE);
            controller.flow("add", xid, &flow);
        }
        controller.barrier(3);
    }
    assert!(network.pings("h1", "h2"));

    for (controller, ports, has_traffic) in [(&mut red, [1, 2], true), (&mut blue, [3, 4], false)] {
        let mut flows = controller.flows(4);
        flows.sort_by_key(|flow| flow["match"]["in_port"].as_u64());
        assert_eq!(flows.len(), 2, "{flows:?}");
        for (flow, port) in flows.iter().zip(ports) {
            assert_eq!(
                (&flow["match"]["in_port"], &flow["cookie"]),
                (&json!(port), &json!(COOKIE))
            );
            assert_eq!(flow["priority"], 9);
            assert_eq!(flow["packets"].as_u64() > Some(0), has_traffic, "{flow}");
        }
    }

    // A DELETE that matches everything deletes only the tenant's own entries.
    red.flow("delete", 5, &json!({"table_id": 255, "match": {}}));
    red.barrier(6);
    assert_eq!((red.flows(7).len(), blue.flows(7).len()), (0, 2));
}
