//! Tests of a switch with a full first table, which refuses Weir's entries for a tenant's packets. The operator and the
//! tenant see the affected ports as down, and as up when the table has room again. Virtual links avoid such a switch.

use serde_json::{Value, json};

use crate::own_networks::{TOPOLOGY, all_have_ways, ctl, number, path, ports_up, tenant};
use crate::support::app::App;
use crate::support::eventually;
use crate::support::network::{Network, V10, V13, Version};
use crate::support::requirements::{Needs, needs};
use crate::support::weir::Weir;

#[test]
fn ovs_ports_refused_by_a_switch_with_a_full_table_are_reported_as_down() {
    needs!(ovs_ports_refused_by_a_switch_with_a_full_table_are_reported_as_down: Needs::OpenVSwitch, Needs::OsKen);
    let network = Network::single(&["10.0.0.1", "10.0.0.2"], V13);
    let mut red = App::flow_installer("1.3");
    let port = |number: u32| {
        format!(
            "[[tenants.network.ports]]\nswitch = \"0xa1\"\nnumber = {number}\nat = \"1 port {number}\"\n"
        )
    };
    let weir = Weir::serve_on(
        network.controller_host(),
        &format!(
            "[[tenants]]\nname = \"red\"\ncontrollers = [\"{red}\"]\n[tenants.network]\n\
             [[tenants.network.switches]]\ndpid = \"0xa1\"\non = \"1\"\n{}{}",
            port(1),
            port(2)
        ),
    );
    let mark = weir.log_mark();
    network.limit_first_table("s1", Some(0));
    network.connect_to(weir.openflow);
    red.expect("switch");
    eventually("both ports are down", || ports_up(&weir) == [0] && refused(&weir) == [true, true]);
    ctl(
        &weir,
        &["show", "red"],
        0,
        "at 00:00:00:00:00:00:00:01 port 1  down (refused by the switch)",
    );
    ctl(&weir, &["show", "red"], 0, "ports 0 of 2 up");
    weir.expect_log(
        mark,
        &["refuses an entry of Weir's own", "in_port=1", "00:00:00:00:00:00:00:01"],
    );
    // Weir has sent each of the two entries twice.
    eventually("it is counted", || weir.metric("weir_switch_own_refused_total", &[]) >= 4.0);

    // When the connection ends, Weir forgets the refused entries. On the next connection Weir sends them again.
    network.disconnect();
    weir.wait_for_switches(0);
    eventually("nothing is refused", || refused(&weir) == [false, false]);
    network.limit_first_table("s1", None);
    network.connect_to(weir.openflow);
    red.expect("switch");
    eventually("both ports are up", || ports_up(&weir) == [2] && refused(&weir) == [false, false]);
    ctl(&weir, &["show", "red"], 0, "at 00:00:00:00:00:00:00:01 port 1  up");
}

/// A member of a big switch has no room for a port that is added during operation. This port is down, and the other
/// ports stay up.
#[test]
fn ovs_a_port_refused_by_a_member_of_a_big_switch_is_reported_as_down() {
    needs!(ovs_a_port_refused_by_a_member_of_a_big_switch_is_reported_as_down: Needs::OpenVSwitch, Needs::OsKen);
    const LINK_DOWN: u64 = 1;
    let links = [("s1", "h1"), ("s1", "h3"), ("s2", "h2"), ("s1", "s2")];
    let network = Network::of(&["s1", "s2"], &["h1", "h2", "h3"], &links, V13);
    let mut red = App::flow_installer("1.3");
    let weir = network.serve(&format!(
        "[topology]\ndiscovery = true\n\
             [[tenants]]\nname = \"red\"\ncontrollers = [\"{red}\"]\n[tenants.network]\n\
             [[tenants.network.switches]]\ndpid = \"0xb16\"\non = [\"1\", \"2\"]\n\
             [[tenants.network.ports]]\nswitch = \"0xb16\"\nnumber = 1\nat = \"1 port 1\"\n\
             [[tenants.network.ports]]\nswitch = \"0xb16\"\nnumber = 2\nat = \"2 port 1\"\n"
    ));
    red.expect("switch");
    eventually("it is up", || ports_up(&weir) == [2] && all_have_ways(&weir));
    red.flow(
        "add",
        1,
        &json!({"priority": 5, "match": {}, "actions": [{"type": "OUTPUT", "port": FLOOD}]}),
    );
    red.barrier(2);
    eventually("its hosts reach each other", || network.pings("h1", "h2"));

    // The tenant has no port 9. The refusal names the member that refused first.
    let nowhere = json!({"priority": 6, "match": {}, "actions": [{"type": "OUTPUT", "port": 9}]});
    red.flow("add", 3, &nowhere);
    red.expect_reply("error", 3);
    ctl(&weir, &["why", "red"], 0, "OFPBAC_BAD_OUT_PORT: Weir refused: on the member switch");
    ctl(&weir, &["why", "red"], 0, ", an action sends to port 9");

    network.limit_first_table("s1", Some(0));
    ctl(&weir, &["add", "red", "port", "0xb16 port 3", "--at", "1 port 2"], 0, "port 3: - -> up");
    eventually("it is refused", || refused(&weir) == [false, false, true]);
    ctl(&weir, &["show", "red"], 0, "port 2  down (refused by the switch)");
    ctl(&weir, &["show", "red"], 0, "ports 2 of 3 up");
    let is_down = |status: &Value| status["port"] == 3 && status["state"] == LINK_DOWN;
    red.expect_where("port_status", is_down);
    assert!(network.pings("h1", "h2") && network.is_silent("h3", "h2"));

    network.limit_first_table("s1", None);
    for words in ["stop", "start"] {
        ctl(&weir, &[words, "red", "port", "0xb16 port 3"], 0, "port 3");
    }
    eventually("it is up", || ports_up(&weir) == [3] && refused(&weir) == [false; 3]);
    red.expect_where("port_status", |status| status["port"] == 3 && !is_down(status));
    eventually("its host is reached", || network.pings("h3", "h2"));
}

#[test]
fn ovs_a_virtual_link_avoids_a_switch_with_a_full_table_on_openflow_1_0() {
    needs!(ovs_a_virtual_link_avoids_a_switch_with_a_full_table_on_openflow_1_0: Needs::OpenVSwitch, Needs::OsKen);
    check_around(V10, App::learning_switch_10());
}

#[test]
fn ovs_a_virtual_link_avoids_a_switch_with_a_full_table_on_openflow_1_3() {
    needs!(ovs_a_virtual_link_avoids_a_switch_with_a_full_table_on_openflow_1_3: Needs::OpenVSwitch, Needs::OsKen);
    check_around(V13, App::learning_switch_13());
}

/// A spine has no room for a virtual link. The link uses the other spine. If the other spine is full as well, the link
/// is down, and `weir ctl show` prints the reason.
fn check_around(version: Version, red: App) {
    const LINK: [&str; 2] = ["0xa1 port 2", "0xa2 port 2"];
    let network = Network::builtin(TOPOLOGY, version);
    let configuration = format!("[topology]\ndiscovery = true\n{}", tenant("red", &red, 1));
    let weir = Weir::serve_on(network.controller_host(), &configuration);
    number(&network, [["h1", "h3"], ["h2", "h4"]]);
    network.connect_to(weir.openflow);
    eventually("it is up", || ports_up(&weir) == [4] && network.answers("h1", "10.0.0.2"));
    let change = |verb: &str, says: &str| {
        ctl(&weir, &[&[verb, "red", "link"][..], &LINK].concat(), 0, says);
    };
    let spine = || path(&weir, "red").get(1).map(|&(switch, _)| format!("s{switch}"));
    change("remove", "link");
    change("add", "link");
    let first = spine().expect("a spine");
    change("remove", "link");
    network.limit_first_table(&first, Some(0));
    let mark = weir.log_mark();
    change("add", "link");
    weir.expect_log(mark, &["does not let all virtual links pass"]);
    eventually("it goes another way", || spine().is_some_and(|spine| spine != first));
    assert_eq!(ports_up(&weir), [4]);
    eventually("its hosts reach each other", || network.answers("h1", "10.0.0.2"));

    let second = spine().expect("a spine");
    change("remove", "link");
    network.limit_first_table(&second, Some(0));
    change("add", "link");
    eventually("no way is left", || spine().is_none() && ports_up(&weir) == [2]);
    ctl(&weir, &["show", "red"], 0, "refuses its entries, and no other way is left");

    // The table has room again. Weir tries again when a link of this switch is up again.
    network.limit_first_table(&first, None);
    let port = format!("{first}-eth1");
    network.set_port(&first, &port, "down");
    eventually("it is seen", || weir.get("/api/v1/topology").1.contains("\"up\":false"));
    network.set_port(&first, &port, "up");
    eventually("it is up", || spine() == Some(first.clone()) && ports_up(&weir) == [4]);
    eventually("its hosts reach each other", || network.answers("h1", "10.0.0.2"));
}

const FLOOD: u32 = 0xffff_fffb;

fn refused(weir: &Weir) -> Vec<bool> {
    let body: Value = serde_json::from_str(&weir.get("/api/v1/networks/red").1).expect("JSON");
    let ports = body["ports"].as_array().expect("ports");
    ports.iter().map(|port| port["refused"] == true).collect()
}
