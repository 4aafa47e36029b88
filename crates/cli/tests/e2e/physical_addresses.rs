//! Two tenants with the same addresses, for which between switches of OpenFlow 1.0 others stand, seen on the wire.

use serde_json::{Value, json};

use crate::big_switches;
use crate::own_networks::{TOPOLOGY, Transfer, ctl, fail_link, number, path, ports_up, tenant};
use crate::support::app::App;
use crate::support::network::{Network, V10, V13};
use crate::support::program::Program;
use crate::support::requirements::{Needs, needs};
use crate::support::weir::Weir;
use crate::support::{PATIENCE, eventually};
use crate::topology::links;

/// The tenant of the scenario without physical addresses, with these and its two hosts, each at a port of its network.
fn with_addresses(
    network: &Network,
    tenant: &str,
    physical: &str,
    hosts: [(&str, &str); 2],
) -> String {
    let keys = format!("addresses = \"10.0.0.0/24\"\nphysical_addresses = \"{physical}\"\n");
    let mut text = tenant.replacen("[tenants.network]\n", &format!("[tenants.network]\n{keys}"), 1);
    for ((host, at), last) in hosts.iter().zip(1..) {
        text += &format!(
            "[[tenants.network.hosts]]\nmac = \"{}\"\naddress = \"10.0.0.{last}\"\nat = \"{at}\"\n",
            network.mac(host)
        );
    }
    text
}

/// The same with twenty more hosts, which are never there: of so many there is no entry for each two.
fn with_many(text: String, at: &str) -> String {
    (100..120).fold(text, |text, last| {
        text + &format!(
            "[[tenants.network.hosts]]\nmac = \"02:00:00:00:01:{last:02x}\"\naddress = \"10.0.0.{last}\"\nat = \"{at}\"\n"
        )
    })
}

/// What a rule says of the addresses of packets where they leave their host.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    Destination,
    Both,
}

/// Rules that name addresses where packets leave their host, and none where they come to the other.
fn install(app: &mut App, named: Named) {
    let both = [(0xa1, "10.0.0.1", "10.0.0.2"), (0xa2, "10.0.0.2", "10.0.0.1")];
    install_on(app, named, &both);
}

/// The same on these switches, each with the addresses here and there.
fn install_on(app: &mut App, named: Named, switches: &[(u64, &str, &str)]) {
    for &(dpid, from, to) in switches {
        let mut naming = json!({"in_port": 1, "dl_type": 0x0800, "nw_dst": to});
        let mut highest = 15;
        if named == Named::Both {
            (naming["nw_src"], highest) = (json!(from), 20);
        }
        for (priority, match_, port) in [
            (highest, naming, 2),
            (10, json!({"in_port": 1, "dl_type": 0x0806}), 2),
            (5, json!({"in_port": 2}), 1),
        ] {
            let output = json!([{"type": "OUTPUT", "port": port}]);
            let flow = json!({"priority": priority, "match": match_, "actions": output});
            app.order(
                &json!({"send": "flow", "command": "add", "xid": 1, "dpid": dpid, "flow": flow}),
            );
        }
    }
    app.barrier(2);
}

/// What passes by the first physical port of a tenant's link, once the link stays where it is.
fn onlooker(network: &Network, weir: &Weir, tenant: &str) -> Program {
    eventually("all physical links are found", || links(weir).len() == 4);
    let (switch, port) = path(weir, tenant)[0];
    let interface = format!("s{switch}-eth{port}");
    let words = ["tcpdump", "-l", "-nn", "-i", &interface, "(ip or (vlan and ip))"];
    let onlooker = network.program(&format!("s{switch}"), &words);
    let ready = |line: &str| line.contains("listening on").then_some(());
    assert!(onlooker.stderr.wait_for(0, PATIENCE, ready).is_some(), "tcpdump does not listen");
    onlooker
}

/// Waits until all of this passed by the onlooker, while the host asks for 10.0.0.2.
#[track_caller]
fn pass_by(onlooker: &Program, network: &Network, host: &str, expected: &[&str]) {
    for seen in expected {
        eventually(&format!("{seen} passes by"), || {
            let answers = network.answers(host, "10.0.0.2");
            answers && onlooker.stdout.all().iter().any(|line| line.contains(seen))
        });
    }
}

#[test]
fn ovs_physical_addresses_between_switches_of_openflow_1_0() {
    needs!(ovs_physical_addresses_between_switches_of_openflow_1_0:
        Needs::OpenVSwitch, Needs::OsKen, Needs::Program("iperf3"), Needs::Program("tcpdump"));
    let network = Network::builtin(TOPOLOGY, V10);
    let [mut red, mut blue] = [(); 2].map(|()| App::flow_installer("1.0"));
    let blocks = ["172.16.5.0/24", "172.16.6.0/24"];
    let hosts = [["h1", "h3"], ["h2", "h4"]];
    let at_each =
        |[first, last]: [&'static str; 2]| [(first, "0xa1 port 1"), (last, "0xa2 port 1")];
    let configuration = String::from("[topology]\ndiscovery = true\n")
        + &with_addresses(&network, &tenant("red", &red, 1), blocks[0], at_each(hosts[0]))
        + &with_addresses(&network, &tenant("blue", &blue, 2), blocks[1], at_each(hosts[1]));
    let mut weir = Weir::serve_on(network.controller_host(), &configuration);
    number(&network, hosts);
    network.connect_to(weir.openflow);
    eventually("both networks are up", || ports_up(&weir) == [4, 4]);
    for app in [&mut red, &mut blue] {
        app.expect("switch");
        app.expect("switch");
        install(app, Named::Destination);
    }

    // On the wire those of everybody's addresses are others that rules name: first one, then both.
    let both_work = || hosts.iter().all(|[first, _]| network.answers(first, "10.0.0.2"));
    let tenants = [("red", "h1", "172.16.5"), ("blue", "h2", "172.16.6")];
    for named in [Named::Destination, Named::Both] {
        for (app, (tenant, host, block)) in [&mut red, &mut blue].into_iter().zip(tenants) {
            install(app, named);
            let onlooker = onlooker(&network, &weir, tenant);
            let source = if named == Named::Both { block } else { "10.0.0" };
            let expected =
                [(1, 2), (2, 1)].map(|(from, to)| format!(" {source}.{from} > {block}.{to}: ICMP"));
            pass_by(&onlooker, &network, host, &expected.each_ref().map(String::as_str));
            let is_other = |line: &String| {
                line.contains(" > ") && !expected.iter().any(|it| line.contains(it))
            };
            let others: Vec<_> = onlooker.stdout.all().into_iter().filter(is_other).collect();
            assert!(others.is_empty(), "{others:?}");
        }
    }
    // The tenant's tables are as it wrote them.
    let flows: Vec<Value> = red.flows(3);
    assert!(flows.len() == 4 && !json!(flows).to_string().contains("172.16"), "{flows:?}");

    // TCP, with its checksums, goes on when the link fails.
    let transfer = Transfer::start(&network, "h1", "h3", "10.0.0.2");
    fail_link(&network, &weir, "red");
    transfer.goes_on();
    eventually("both tenants' hosts reach their own again", both_work);

    // Changed while it runs, and what cannot be is refused.
    let physical = |words: &[&'static str], status, says: &str| {
        let start = ["add", "red", "physical-addresses"];
        ctl(&weir, &[&start, words].concat(), status, says);
    };
    let entries = |block: &str| {
        ["s1", "s2"].iter().flat_map(|it| network.flow_texts(it)).any(|it| it.contains(block))
    };
    assert!(entries("172.16.5."));
    physical(&["172.16.6.0/24"], 1, "\"red\" has some of them");
    physical(&["172.16.4.0/23"], 1, "they are not as many as 10.0.0.0/24 has");
    physical(&["172.16.7.0/24"], 0, "");
    eventually("both tenants' hosts reach their own with others", both_work);
    eventually("others stand for red's addresses", || {
        entries("172.16.7.") && !entries("172.16.5.")
    });
    weir.crash();
    weir.restart();
    eventually("both tenants' hosts reach their own after all", both_work);
    assert!(entries("172.16.7."));
    let (start, none) = (["add", "red", "physical-addresses"], [].as_slice());
    ctl(&weir, &[&start, none].concat(), 0, "");
    eventually("nothing stands for red's addresses", || !entries("172.16.7."));
    eventually("both tenants' hosts reach their own with their own", both_work);
}

#[test]
fn ovs_physical_addresses_of_many_hosts_inside_a_big_switch() {
    needs!(ovs_physical_addresses_of_many_hosts_inside_a_big_switch:
        Needs::OpenVSwitch, Needs::OsKen, Needs::Program("iperf3"), Needs::Program("tcpdump"));
    let network = Network::builtin(TOPOLOGY, V10);
    let mut red = App::flow_installer("1.0");
    let hosts = [("h1", "0xb16 port 1"), ("h3", "0xb16 port 2")];
    let tenant = big_switches::tenant("red", &red, 1);
    let tenant = with_addresses(&network, &tenant, "172.16.5.0/24", hosts);
    let configuration =
        String::from("[topology]\ndiscovery = true\n") + &with_many(tenant, "0xb16 port 1");
    let weir = Weir::serve_on(network.controller_host(), &configuration);
    number(&network, [["h1", "h3"], ["h2", "h4"]]);
    network.connect_to(weir.openflow);
    red.expect("switch");
    for (from, to) in [(1, 2), (2, 1)] {
        let [source, destination] = [from, to].map(|last| format!("10.0.0.{last}"));
        for match_ in [
            json!({"dl_type": 0x0800, "nw_src": source, "nw_dst": destination}),
            json!({"dl_type": 0x0806, "nw_dst": destination}),
        ] {
            let output = json!([{"type": "OUTPUT", "port": to}]);
            let flow = json!({"priority": 10, "match": match_, "actions": output});
            let add =
                json!({"send": "flow", "command": "add", "xid": 1, "dpid": 0xb16, "flow": flow});
            red.order(&add);
        }
    }
    red.barrier(2);
    eventually("the hosts reach each other", || network.answers("h1", "10.0.0.2"));
    let onlooker = onlooker(&network, &weir, "red");
    let expected = ["172.16.5.1 > 172.16.5.2: ICMP", "172.16.5.2 > 172.16.5.1: ICMP"];
    pass_by(&onlooker, &network, "h1", &expected);
    Transfer::start(&network, "h1", "h3", "10.0.0.2").goes_on();
}

#[test]
fn ovs_physical_addresses_inside_a_big_switch_of_openflow_1_0() {
    needs!(ovs_physical_addresses_inside_a_big_switch_of_openflow_1_0:
        Needs::OpenVSwitch, Needs::OsKen, Needs::Program("tcpdump"));
    let network = Network::builtin(TOPOLOGY, V10);
    let mut red = App::flow_installer("1.0");
    let hosts = [("h1", "0xb16 port 1"), ("h3", "0xb16 port 2")];
    let tenant = big_switches::tenant("red", &red, 1);
    let configuration = String::from("[topology]\ndiscovery = true\n")
        + &with_addresses(&network, &tenant, "172.16.5.0/24", hosts);
    let mut weir = Weir::serve_on(network.controller_host(), &configuration);
    number(&network, [["h1", "h3"], ["h2", "h4"]]);
    network.connect_to(weir.openflow);
    red.expect("switch");
    for (port, address) in [(1, "10.0.0.1"), (2, "10.0.0.2")] {
        for match_ in [
            json!({"dl_type": 0x0800, "nw_dst": address}),
            json!({"dl_type": 0x0806, "nw_dst": address}),
        ] {
            let output = json!([{"type": "OUTPUT", "port": port}]);
            let flow = json!({"priority": 10, "match": match_, "actions": output});
            let add =
                json!({"send": "flow", "command": "add", "xid": 1, "dpid": 0xb16, "flow": flow});
            red.order(&add);
        }
    }
    red.barrier(2);

    // Between the physical switches the one that the rule names is another, and both hosts see their own.
    let works = || network.answers("h1", "10.0.0.2");
    eventually("the hosts reach each other", works);
    let onlooker = onlooker(&network, &weir, "red");
    let expected =
        ["10.0.0.1 > 172.16.5.2: ICMP echo request", "10.0.0.2 > 172.16.5.1: ICMP echo reply"];
    pass_by(&onlooker, &network, "h1", &expected);

    // What restores them stands on the switch over a restart.
    let restoring = || {
        let entries = network.flow_texts("s2");
        let is_one =
            |it: &&String| it.contains("nw_dst=172.16.5.") && it.contains("mod_nw_dst:10.0.0.");
        entries.iter().filter(is_one).count()
    };
    // Two hosts: as destination alone, and of each two as source and destination; out of either tunnel.
    eventually("all that restores them stands", || restoring() == 2 * (2 + 4));
    weir.crash();
    weir.restart();
    eventually("the hosts reach each other after a restart", works);
    eventually("all that restores them stands again", || restoring() == 2 * (2 + 4));
}

/// What bears two physical addresses the switches cannot give the tenant's back: Weir does, on 1.0 for the tenant's rule, and on
/// 1.3 before it.
#[test]
fn ovs_physical_addresses_of_many_hosts() {
    needs!(ovs_physical_addresses_of_many_hosts:
        Needs::OpenVSwitch, Needs::OsKen, Needs::Program("iperf3"), Needs::Program("tcpdump"));
    let network = Network::builtin(TOPOLOGY, V10);
    let (mut old, new) = (App::flow_installer("1.0"), App::learning_switch_13());
    let hosts = [("h1", "0xa1 port 1"), ("h3", "0xa2 port 1")];
    let red = with_addresses(&network, &tenant("red", &old, 1), "172.16.5.0/24", hosts);
    let also = format!("controllers = [\"{old}\", \"{new}\"]");
    let red = red.replacen(&format!("controllers = [\"{old}\"]"), &also, 1);
    let configuration =
        String::from("[topology]\ndiscovery = true\n") + &with_many(red, "0xa1 port 1");
    let weir = Weir::serve_on(network.controller_host(), &configuration);
    number(&network, [["h1", "h3"], ["h2", "h4"]]);
    network.connect_to(weir.openflow);
    eventually("the network is up", || ports_up(&weir) == [4]);
    [0; 2].iter().for_each(|_| drop(old.expect("switch")));
    install(&mut old, Named::Both);
    let on_the_wire = |expected: &[&str]| {
        let onlooker = onlooker(&network, &weir, "red");
        pass_by(&onlooker, &network, "h1", expected);
    };
    on_the_wire(&["172.16.5.1 > 172.16.5.2: ICMP", "172.16.5.2 > 172.16.5.1: ICMP"]);
    let texts = ["s1", "s2"].iter().flat_map(|switch| network.flow_texts(switch));
    let is_of_two =
        |it: &String| it.contains("nw_src=172.16.5.") && it.contains("nw_dst=172.16.5.");
    assert_eq!(texts.filter(is_of_two).count(), 0);
    // With the sums that are in its packets, TCP says whether they are whole.
    Transfer::start(&network, "h1", "h3", "10.0.0.2").goes_on();

    // The far end speaks 1.3, and floods.
    network.disconnect();
    network.speak("s2", V13);
    network.forget_flows("s2");
    network.connect_to(weir.openflow);
    eventually("the network is up again", || ports_up(&weir) == [4]);
    old.expect("switch");
    install_on(&mut old, Named::Both, &[(0xa1, "10.0.0.1", "10.0.0.2")]);
    on_the_wire(&["172.16.5.1 > 172.16.5.2: ICMP", "10.0.0.2 > 10.0.0.1: ICMP"]);
    Transfer::start(&network, "h1", "h3", "10.0.0.2").goes_on();
}
