//! Tests of tenants with several controllers, and with controllers of other projects.

use serde_json::json;

use crate::slices::{by_port, forward};
use crate::support::app::{App, testcontroller};
use crate::support::network::{Network, V10, V13, Version};
use crate::support::requirements::{Needs, needs};
use crate::support::weir::Weir;

const ADDRESSES: [&str; 4] = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"];

const EQUAL: u32 = 1;
const MASTER: u32 = 2;
const SLAVE: u32 = 3;
/// OpenFlow 1.3.5 section 7.4.4: BAD_REQUEST / IS_SLAVE and ROLE_REQUEST_FAILED / STALE.
const IS_SLAVE: (u64, u64) = (1, 10);
const STALE: (u64, u64) = (11, 0);

/// Starts two controllers of red and one controller of blue. Each can install entries.
fn two_of_red_and_one_of_blue(network: &Network, version: &str) -> ([App; 3], Weir) {
    let controllers = [(); 3].map(|()| App::flow_installer(version));
    let [first, second, blue] = &controllers;
    let red = by_port("red", &format!("{first}\", \"{second}"), [1, 2]);
    let weir = network.serve(&(red + &by_port("blue", &blue.to_string(), [3, 4])));
    (controllers, weir)
}

#[test]
fn ovs_each_tenant_has_its_own_master_controller() {
    needs!(ovs_each_tenant_has_its_own_master_controller: Needs::OpenVSwitch, Needs::OsKen);
    let network = Network::single(&ADDRESSES, V13);
    let ([mut first, mut second, mut blue], _weir) = two_of_red_and_one_of_blue(&network, "1.3");
    for controller in [&mut first, &mut second, &mut blue] {
        controller.expect("switch");
        assert_eq!(ask_role(controller, 1, "NOCHANGE", 0), EQUAL);
    }

    assert_eq!(ask_role(&mut first, 2, "MASTER", 1), MASTER);
    assert_eq!(ask_role(&mut blue, 2, "MASTER", 1), MASTER, "blue's roles are not red's");
    assert_eq!(ask_role(&mut second, 2, "MASTER", 2), MASTER);
    assert_eq!(ask_role(&mut first, 3, "NOCHANGE", 0), SLAVE, "one master at a time");
    assert_eq!(ask_role(&mut blue, 3, "NOCHANGE", 0), MASTER, "per tenant");

    // A slave may read entries, and may not install entries.
    first.flow("add", 4, &forward(1, 2));
    assert_error(&mut first, 4, IS_SLAVE);
    assert_eq!(first.flows(5).len(), 0);
    second.flow("add", 4, &forward(1, 2));
    second.barrier(5);
    assert_eq!(first.flows(6).len(), 1);

    // A request for the master role with an old generation id gets an ERROR.
    first.order(&json!({"send": "role", "xid": 7, "role": "MASTER", "generation_id": 1}));
    assert_error(&mut first, 7, STALE);
}

fn ask_role(controller: &mut App, xid: u32, role: &str, generation_id: u64) -> u32 {
    controller
        .order(&json!({"send": "role", "xid": xid, "role": role, "generation_id": generation_id}));
    let reply = controller.expect_reply("role_reply", xid);
    reply["role"].as_u64().and_then(|role| u32::try_from(role).ok()).expect("a role")
}

fn assert_error(controller: &mut App, xid: u32, (kind, code): (u64, u64)) {
    let error = controller.expect_reply("error", xid);
    assert_eq!(
        (error["type"].as_u64(), error["code"].as_u64()),
        (Some(kind), Some(code)),
        "{error}"
    );
}

#[test]
fn ovs_a_packet_in_reaches_each_controller_of_its_tenant_and_no_other_tenant() {
    needs!(ovs_a_packet_in_reaches_each_controller_of_its_tenant_and_no_other_tenant: Needs::OpenVSwitch, Needs::OsKen);
    let network = Network::single(&ADDRESSES, V10);
    let ([mut first, mut second, mut blue], _weir) = two_of_red_and_one_of_blue(&network, "1.0");
    for controller in [&mut first, &mut second, &mut blue] {
        controller.expect("switch");
    }
    assert!(network.is_silent("h1", "h2"), "nobody forwards, so ARP goes to the controllers");
    for controller in [&mut first, &mut second] {
        controller.expect_where("packet_in", |packet| packet["in_port"] == 1);
    }
    blue.barrier(1);
    assert!(!blue.has_seen("packet_in"));
}

#[test]
fn ovs_testcontroller_serves_the_hosts_of_a_tenant_on_openflow_10() {
    needs!(ovs_testcontroller_serves_the_hosts_of_a_tenant_on_openflow_10:
        Needs::OpenVSwitch, Needs::OsKen, Needs::Program("ovs-testcontroller"));
    check_testcontroller(V10, App::learning_switch_10());
}

#[test]
fn ovs_testcontroller_serves_the_hosts_of_a_tenant_on_openflow_13() {
    needs!(ovs_testcontroller_serves_the_hosts_of_a_tenant_on_openflow_13:
        Needs::OpenVSwitch, Needs::OsKen, Needs::Program("ovs-testcontroller"));
    check_testcontroller(V13, App::learning_switch_13());
}

/// Red uses `ovs-testcontroller`, and blue uses os-ken. Each controller serves only the hosts of its own tenant.
fn check_testcontroller(version: Version, mut blue: App) {
    let network = Network::single(&ADDRESSES, version);
    let (_red, address) = testcontroller();
    let _weir = network.serve(
        &(by_port("red", &format!("tcp:{address}"), [1, 2])
            + &by_port("blue", &blue.to_string(), [3, 4])),
    );
    blue.expect("switch");
    assert!(network.pings("h1", "h2"), "red");
    assert!(network.pings("h3", "h4"), "blue");
    assert!(network.is_silent("h1", "h3"), "across");
}
