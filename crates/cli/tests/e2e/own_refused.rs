//! A switch without room in its first table refuses the entries by which a tenant's packets would come in: the operator sees which
//! ports are down for it, and that they are up again when there is room.

use serde_json::Value;

use crate::own_networks::{ctl, ports_up};
use crate::support::app::App;
use crate::support::eventually;
use crate::support::network::{Network, V13};
use crate::support::requirements::{Needs, needs};
use crate::support::weir::Weir;

#[test]
fn ovs_a_port_that_a_full_switch_refuses_is_told() {
    needs!(ovs_a_port_that_a_full_switch_refuses_is_told: Needs::OpenVSwitch, Needs::OsKen);
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
    // Each was tried twice.
    eventually("it is counted", || weir.metric("weir_switch_own_refused_total", &[]) >= 4.0);

    // With the connection goes what was refused, and with the next one it is tried anew.
    network.disconnect();
    weir.wait_for_switches(0);
    eventually("nothing is refused", || refused(&weir) == [false, false]);
    network.limit_first_table("s1", None);
    network.connect_to(weir.openflow);
    red.expect("switch");
    eventually("both ports are up", || ports_up(&weir) == [2] && refused(&weir) == [false, false]);
    ctl(&weir, &["show", "red"], 0, "at 00:00:00:00:00:00:00:01 port 1  up");
}

fn refused(weir: &Weir) -> Vec<bool> {
    let body: Value = serde_json::from_str(&weir.get("/api/v1/networks/red").1).expect("JSON");
    let ports = body["ports"].as_array().expect("ports");
    ports.iter().map(|port| port["refused"] == true).collect()
}
