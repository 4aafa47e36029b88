//! Tests of reloads: a changed configuration takes effect as a whole, or not at all.

use crate::slices::by_port;
use crate::support::eventually;
use crate::support::scripted::{
    BARRIER_REPLY, BARRIER_REQUEST, Controller, ERROR, FLOW_MOD, Message, PORT_STATUS, Switch,
    add_flow,
};
use crate::support::weir::Weir;

const PORTS: &[u16] = &[1, 2, 3, 4];
/// `enum ofp_port_reason`, OpenFlow 1.0 section 5.4.3.
const ADDED: u8 = 0;
const DELETED: u8 = 1;

fn with_third_port(tenant: &str) -> String {
    format!("{tenant}[[tenants.flowspace]]\nmatch = \"in_port=3\"\n")
}

#[test]
fn sighup_reloads_the_configuration() {
    check_reload(Weir::hang_up);
}

#[test]
fn a_changed_configuration_file_is_reloaded_without_a_signal() {
    check_reload(|_| ());
}

/// Red's slice gets a third port, and then loses this port. Red's connection stays, and red gets a PORT_STATUS for each
/// change.
fn check_reload(reload: impl Fn(&Weir)) {
    let controller = Controller::listen();
    let small = by_port("red", &controller.name(), [1, 2]);
    let weir = Weir::serve(&small);
    let _switch = Switch::connect(weir.openflow, 1, PORTS);
    let red = controller.switch(0);
    red.send(&Message::new(FLOW_MOD, 1, &add_flow(3, 1, 9, 0)));
    red.expect_reply(ERROR, 1);

    weir.write_config(&with_third_port(&small));
    reload(&weir);
    let status = red.expect(PORT_STATUS);
    assert_eq!((status.body[0], status.body[8..10].to_vec()), (ADDED, vec![0, 3]));
    red.send(&Message::new(FLOW_MOD, 2, &add_flow(3, 1, 9, 0)));
    red.send(&Message::new(BARRIER_REQUEST, 3, &[]));
    red.expect_reply(BARRIER_REPLY, 3);
    assert_eq!(red.count(ERROR), 1, "what was refused is allowed now");

    weir.write_config(&small);
    reload(&weir);
    let status = red.expect(PORT_STATUS);
    assert_eq!((status.body[0], status.body[8..10].to_vec()), (DELETED, vec![0, 3]));
    red.send(&Message::new(FLOW_MOD, 4, &add_flow(3, 1, 9, 0)));
    red.expect_reply(ERROR, 4);
    assert_eq!(controller.connections(), 1, "nobody was cut off");
}

#[test]
fn adding_and_removing_a_tenant_keeps_the_connection_of_another_tenant() {
    let (red, blue) = (Controller::listen(), Controller::listen());
    let only_red = by_port("red", &red.name(), [1, 2]);
    let both = only_red.clone() + &by_port("blue", &blue.name(), [3, 4]);
    let weir = Weir::serve(&only_red);
    let _switch = Switch::connect(weir.openflow, 1, PORTS);
    let at_red = red.switch(0);

    weir.write_config(&both);
    weir.hang_up();
    let at_blue = blue.switch(0);
    weir.write_config(&only_red);
    weir.hang_up();
    assert!(at_blue.is_closed(), "blue is no tenant any more");
    assert!(at_red.answers_echo(1));
    assert_eq!(red.connections(), 1);
}

#[test]
fn an_invalid_file_is_logged_and_the_old_configuration_stays_in_force() {
    let controller = Controller::listen();
    let valid = by_port("red", &controller.name(), [1, 2]);
    let weir = Weir::serve(&valid);
    let _switch = Switch::connect(weir.openflow, 1, PORTS);
    let red = controller.switch(0);

    let mark = weir.log_mark();
    weir.write_config(
        &with_third_port(&valid)
            .replace("priority", "prio")
            .replace("match = \"in_port=2\"", "mach = 2"),
    );
    weir.hang_up();
    weir.expect_log(mark, &["unknown key `mach`", "weir.toml", "line=", "did you mean `match`?"]);
    eventually("it is counted", || {
        weir.metric("weir_reloads_total", &["result=\"refused\""]) >= 1.0
    });

    red.send(&Message::new(FLOW_MOD, 1, &add_flow(2, 1, 9, 0)));
    red.send(&Message::new(BARRIER_REQUEST, 2, &[]));
    red.expect_reply(BARRIER_REPLY, 2);
    assert_eq!(red.count(ERROR), 0, "the old configuration holds");
    red.send(&Message::new(FLOW_MOD, 3, &add_flow(3, 1, 9, 0)));
    red.expect_reply(ERROR, 3);
    assert_eq!(controller.connections(), 1);
}
