//! Tests of switches and controllers that disconnect and connect again: the tenants' rules stay.

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use crate::slices::{by_port, forward};
use crate::support::app::App;
use crate::support::eventually;
use crate::support::network::{Network, V10, V13, Version};
use crate::support::requirements::{Needs, needs};
use crate::support::scripted::{Controller, Switch};
use crate::support::weir::Weir;

const ADDRESSES: [&str; 2] = ["10.0.0.1", "10.0.0.2"];

/// Starts one tenant with a rule in each direction, on a connected switch.
fn one_tenant(version: Version, openflow: &str) -> (Network, App, Weir) {
    let network = Network::single(&ADDRESSES, version);
    let mut red = App::flow_installer(openflow);
    let weir = network.serve(&by_port("red", &red.to_string(), [1, 2]));
    red.expect("switch");
    red.flow("add", 1, &forward(1, 2));
    red.flow("add", 2, &forward(2, 1));
    red.barrier(3);
    (network, red, weir)
}

#[test]
fn ovs_rules_stay_installed_after_a_lost_connection_on_openflow_10() {
    needs!(ovs_rules_stay_installed_after_a_lost_connection_on_openflow_10: Needs::OpenVSwitch, Needs::OsKen);
    check_cut(V10, "1.0");
}

#[test]
fn ovs_rules_stay_installed_after_a_lost_connection_on_openflow_13() {
    needs!(ovs_rules_stay_installed_after_a_lost_connection_on_openflow_13: Needs::OpenVSwitch, Needs::OsKen);
    check_cut(V13, "1.3");
}

fn check_cut(version: Version, openflow: &str) {
    let (network, mut red, weir) = one_tenant(version, openflow);
    let before = network.flows("s1");
    network.disconnect();
    red.expect("switch_left");
    network.connect_to(weir.openflow);
    red.expect("switch");
    red.barrier(4);
    for (before, after) in before.iter().zip(network.flows("s1")) {
        assert_eq!(after.text, before.text);
        assert!(after.duration > before.duration, "installed again: {}", after.text);
    }
    assert_eq!(red.flows(5).len(), 2);
}

#[test]
fn ovs_rules_lost_by_a_switch_are_installed_again_on_openflow_10() {
    needs!(ovs_rules_lost_by_a_switch_are_installed_again_on_openflow_10: Needs::OpenVSwitch, Needs::OsKen);
    check_amnesia(V10, "1.0");
}

#[test]
fn ovs_rules_lost_by_a_switch_are_installed_again_on_openflow_13() {
    needs!(ovs_rules_lost_by_a_switch_are_installed_again_on_openflow_13: Needs::OpenVSwitch, Needs::OsKen);
    check_amnesia(V13, "1.3");
}

fn check_amnesia(version: Version, openflow: &str) {
    let (network, mut red, weir) = one_tenant(version, openflow);
    let before = network.flow_texts("s1");
    network.disconnect();
    network.forget_flows("s1");
    network.connect_to(weir.openflow);
    eventually("the flows are back", || network.flow_texts("s1") == before);
    assert!(network.pings("h1", "h2"));
    red.expect("switch");
    assert_eq!(red.flows(4).len(), 2);
}

#[test]
fn ovs_weir_reconnects_to_a_controller_after_its_restart() {
    needs!(ovs_weir_reconnects_to_a_controller_after_its_restart: Needs::OpenVSwitch, Needs::OsKen);
    let network = Network::single(&ADDRESSES, V13);
    let mut red = App::learning_switch_13();
    let weir = network.serve(&by_port("red", &red.to_string(), [1, 2]));
    red.expect("switch");
    assert!(network.pings("h1", "h2"));
    red.restart();
    red.expect("switch");
    assert!(network.pings("h1", "h2"));
    drop(weir);
}

#[test]
fn a_controller_that_closes_its_connections_is_dialled_with_back_off() {
    let hostile = TcpListener::bind("127.0.0.1:0").expect("bind to a free port");
    let address = hostile.local_addr().expect("the port");
    let friendly = Controller::listen();
    let weir = Weir::serve(
        &(by_port("red", &format!("tcp:{address}"), [1, 2])
            + &by_port("blue", &friendly.name(), [3, 4])),
    );
    let _switch = Switch::connect(weir.openflow, 1, &[1, 2, 3, 4]);
    friendly.switch(0);

    hostile.set_nonblocking(true).expect("a listener that does not wait");
    let mut calls = 0;
    for _ in 0..100 {
        while hostile.accept().is_ok() {
            calls += 1;
        }
        thread::sleep(Duration::from_millis(20));
    }
    // The delay begins at 100 ms and doubles, so there are a few connections in two seconds.
    assert!((2..=12).contains(&calls), "{calls} connections in two seconds");
    assert!(friendly.switch(0).answers_echo(7), "the other tenant never noticed");
}
