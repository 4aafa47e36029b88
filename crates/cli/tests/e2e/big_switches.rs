//! Tests of big switches: two tenants have the same addresses, and each has one virtual switch on both leaves and a
//! spine. Ordinary learning switches control the big switches, also after a failed physical link and after a restart.

use crate::support::app::App;
use crate::support::eventually;
use crate::support::network::{Network, V10, V13, Version};
use crate::support::requirements::{Needs, needs};
use crate::support::weir::Weir;

/// In `leafspine,2,2,2` switches 1 and 2 are leaves, switches 3 and 4 are spines, and a leaf's hosts are at its ports 1
/// and 2.
const TOPOLOGY: &str = "leafspine,2,2,2";

/// A tenant with one switch on both leaves and a spine, and with a port for each of its two hosts.
pub fn tenant(name: &str, app: &App, port: u32) -> String {
    format!(
        "[[tenants]]\nname = \"{name}\"\ncontrollers = [\"{app}\"]\n[tenants.network]\n\
         [[tenants.network.switches]]\ndpid = \"0xb16\"\non = [\"1\", \"2\", \"3\"]\n\
         [[tenants.network.ports]]\nswitch = \"0xb16\"\nnumber = 1\nat = \"1 port {port}\"\n\
         [[tenants.network.ports]]\nswitch = \"0xb16\"\nnumber = 2\nat = \"2 port {port}\"\n"
    )
}

#[test]
fn ovs_a_controller_sees_a_big_switch_as_a_single_switch_on_openflow_1_0() {
    needs!(ovs_a_controller_sees_a_big_switch_as_a_single_switch_on_openflow_1_0: Needs::OpenVSwitch, Needs::OsKen);
    check(V10, [App::learning_switch_10(), App::learning_switch_10()]);
}

#[test]
fn ovs_a_controller_sees_a_big_switch_as_a_single_switch_on_openflow_1_3() {
    needs!(ovs_a_controller_sees_a_big_switch_as_a_single_switch_on_openflow_1_3: Needs::OpenVSwitch, Needs::OsKen);
    check(V13, [App::learning_switch_13(), App::learning_switch_13()]);
}

fn check(version: Version, mut controllers: [App; 2]) {
    let network = Network::builtin(TOPOLOGY, version);
    let [red, blue] = &controllers;
    let configuration = format!(
        "[topology]\ndiscovery = true\n{}{}",
        tenant("red", red, 1),
        tenant("blue", blue, 2)
    );
    let mut weir = Weir::serve_on(network.controller_host(), &configuration);
    // The first hosts of both tenants have the same address, and the second hosts have the same address.
    let hosts = [["h1", "h3"], ["h2", "h4"]];
    for (tenant, pair) in hosts.iter().enumerate() {
        for (n, host) in (1..).zip(pair) {
            network.exec(host, &["ip", "address", "flush", "dev", "eth0", "scope", "global"]);
            // Each host also has an address that no host of the other tenant has.
            for address in [format!("10.0.0.{n}/8"), format!("10.0.{}.{n}/8", tenant + 1)] {
                network.exec(host, &["ip", "address", "add", &address, "dev", "eth0"]);
            }
        }
    }
    network.connect_to(weir.openflow);
    for controller in &mut controllers {
        let seen = controller.expect("switch");
        assert_eq!(seen["dpid"].as_u64(), Some(0xb16), "one switch, by its own datapath id");
    }
    let both_work = || hosts.iter().all(|[first, _]| answers(&network, first, "10.0.0.2"));
    eventually("both tenants' hosts reach their own", both_work);
    assert!(answers(&network, "h3", "10.0.1.1") && answers(&network, "h4", "10.0.2.1"));
    assert!(!answers(&network, "h1", "10.0.2.2") && !answers(&network, "h4", "10.0.1.1"));

    // A physical link inside the big switches fails, and the other spine carries all frames.
    network.set_port("s1", "s1-eth3", "down");
    eventually("both tenants' hosts reach their own over the other spine", both_work);
    network.set_port("s1", "s1-eth3", "up");

    // A restart keeps the entries that the controllers have installed.
    weir.crash();
    weir.restart();
    eventually("both tenants' hosts reach their own after a restart", both_work);
    assert!(!answers(&network, "h1", "10.0.2.2") && !answers(&network, "h4", "10.0.1.1"));
    for controller in &mut controllers {
        assert!(!controller.has_seen("error"), "an ordinary learning switch is refused nothing");
    }
}

fn answers(network: &Network, host: &str, address: &str) -> bool {
    let script = format!("ping -c 1 -W 1 {address} >/dev/null && echo yes || echo no");
    network.exec(host, &["sh", "-c", &script]).trim() == "yes"
}
