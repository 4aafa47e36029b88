//! Two tenants with the same addresses, each with one ordinary controller that discovers its network and learns where its
//! hosts are, while physical links fail.
//!
//! Nothing of the one reaches a host of the other: each host listens for all of it.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::own_networks::{Transfer, all_have_ways, fail_link, ports_up};
use crate::support::app::App;
use crate::support::network::{Network, V10, V13, Version};
use crate::support::program::Program;
use crate::support::requirements::{Needs, needs};
use crate::support::weir::Weir;
use crate::support::{PATIENCE, eventually};

/// What a tenant has in a scenario.
struct Tenant<'a> {
    name: &'a str,
    /// The physical switch of each of its own, which are 0xa1, 0xa2, ...; and the port of its host there, if there is one.
    switches: &'a [(u8, Option<u8>)],
    /// Its links, by the numbers of its own switches.
    links: &'a [(usize, usize)],
    /// What each link has beside its ends.
    more: &'a str,
    /// Its hosts in the lab, in the order of the switches: they are 10.0.0.1, 10.0.0.2, ...
    hosts: &'a [&'a str],
    /// What follows `10.0.0.` in an address that its host 1 alone has.
    own: u8,
}

impl Tenant<'_> {
    /// Hosts are at ports 1; a link's ends are 10 and the number of the switch at its other end.
    fn configuration(&self, app: &App) -> String {
        let name = self.name;
        let mut text = format!(
            "[[tenants]]\nname = \"{name}\"\ncontrollers = [\"{app}\"]\n[tenants.network]\n"
        );
        for (n, (on, host)) in (1..).zip(self.switches) {
            text += &format!("[[tenants.network.switches]]\ndpid = \"0xa{n}\"\non = \"{on}\"\n");
            if let Some(port) = host {
                text += &format!(
                    "[[tenants.network.ports]]\nswitch = \"0xa{n}\"\nnumber = 1\nat = \"{on} port {port}\"\n"
                );
            }
        }
        for (a, b) in self.links {
            let ends = format!("\"0xa{a} port 1{b}\", \"0xa{b} port 1{a}\"");
            text += &format!("[[tenants.network.links]]\nbetween = [{ends}]\n{}", self.more);
        }
        text
    }

    /// The same hardware and IP addresses for every tenant, and one by which it is known who has got a frame.
    fn number(&self, network: &Network) {
        for (n, host) in (1..).zip(self.hosts) {
            let mac = format!("02:00:00:00:00:0{n}");
            network.exec(host, &["ip", "link", "set", "dev", "eth0", "address", &mac]);
            network.exec(host, &["ip", "address", "flush", "dev", "eth0", "scope", "global"]);
            let address = format!("10.0.0.{n}/24");
            network.exec(host, &["ip", "address", "add", &address, "dev", "eth0"]);
        }
        let own = format!("10.0.0.{}/24", self.own);
        network.exec(self.hosts[0], &["ip", "address", "add", &own, "dev", "eth0"]);
    }

    /// Whether all its hosts reach the one that comes after them.
    fn all_reach(&self, network: &Network) -> bool {
        let next = |n: usize| format!("10.0.0.{}", 1 + (n + 1) % self.hosts.len());
        (0..).zip(self.hosts).all(|(n, host)| network.answers(host, &next(n)))
    }

    /// The links that its controller has to find, both directions of each.
    fn expect_links(&self, app: &mut App) {
        let mut found: Vec<_> =
            (0..2 * self.links.len()).map(|_| ends(&app.expect("link"))).collect();
        found.sort_unstable();
        let both = |&(a, b): &(usize, usize)| [[a, 10 + b, b, 10 + a], [b, 10 + a, a, 10 + b]];
        let mut expected: Vec<_> = self.links.iter().flat_map(both).collect();
        expected.sort_unstable();
        assert_eq!(found, expected, "{}", self.name);
    }
}

/// Number of the switch and port, at both ends.
fn ends(link: &Value) -> [usize; 4] {
    let number = |end: &str, part: usize| {
        let number = link[end][part].as_u64().expect("a number");
        usize::try_from(number).expect("a small number")
    };
    [number("from", 0) - 0xa0, number("from", 1), number("to", 0) - 0xa0, number("to", 1)]
}

struct Scene {
    network: Network,
    weir: Weir,
    apps: [App; 2],
    /// What comes to each host of the addresses that only one host has; of the other tenant's the last number.
    onlookers: Vec<(Program, u8)>,
}

impl Scene {
    fn new(topology: &str, version: Version, tenants: &[Tenant<'_>; 2]) -> Scene {
        let network = Network::builtin(topology, version);
        let mut apps = [App::shortest_path(), App::shortest_path()];
        let mut configuration = "[topology]\ndiscovery = true\n".to_owned();
        for (tenant, app) in tenants.iter().zip(&apps) {
            tenant.number(&network);
            configuration += &tenant.configuration(app);
        }
        let mut onlookers = Vec::new();
        for (tenant, other) in [(&tenants[0], &tenants[1]), (&tenants[1], &tenants[0])] {
            let numbers = [tenant.own, other.own];
            let here = tenant.hosts.iter();
            onlookers.extend(here.map(|host| (onlooker(&network, host, numbers), other.own)));
        }
        let weir = network.serve(&configuration);
        eventually("both networks have ways", || all_have_ways(&weir));
        for (tenant, app) in tenants.iter().zip(&mut apps) {
            tenant.expect_links(app);
        }
        for tenant in tenants {
            eventually("all hosts reach their own", || tenant.all_reach(&network));
        }
        Scene { network, weir, apps, onlookers }
    }

    /// A tenant's hosts ask for what the other's alone have: nobody answers. Who has, has answered its own.
    fn is_apart(&self, tenants: &[Tenant<'_>; 2]) {
        for (here, other) in [(0, 1), (1, 0)] {
            let own = |of: usize| format!("10.0.0.{}", tenants[of].own);
            let [_, asking, ..] = tenants[here].hosts else { panic!("two hosts") };
            assert!(self.network.answers(asking, &own(here)));
            assert!(!self.network.answers(asking, &own(other)));
        }
    }

    /// Hosts have heard of the address that one of their own has alone, and not of the other tenant's; nobody was refused.
    fn nothing_has_come_across(mut self) {
        let mut own = 0;
        for (onlooker, other) in &mut self.onlookers {
            onlooker.signal(Signal::SIGINT);
            assert_eq!(onlooker.wait(PATIENCE), Some(0), "tcpdump ends");
            let heard = onlooker.stdout.to_end();
            let (across, at_home): (Vec<_>, Vec<_>) = heard
                .lines()
                .filter(|line| !line.is_empty())
                .partition(|line| line.contains(&format!(" 10.0.0.{other} ")));
            assert!(across.is_empty(), "of another tenant: {across:#?}");
            own += at_home.len();
        }
        assert!(own > 0, "onlookers hear nothing at all");
        for app in &mut self.apps {
            assert!(!app.has_seen("error"));
        }
    }
}

/// Listens at a host for frames from hosts that have these addresses.
fn onlooker(network: &Network, host: &str, numbers: [u8; 2]) -> Program {
    let from = numbers.map(|it| format!("ip src 10.0.0.{it} or arp src 10.0.0.{it}")).join(" or ");
    let words = ["tcpdump", "-l", "-nn", "-Q", "in", "-i", "eth0", &from];
    let onlooker = network.program(host, &words);
    let ready = |line: &str| line.contains("listening on").then_some(());
    assert!(onlooker.stderr.wait_for(0, PATIENCE, ready).is_some(), "tcpdump does not listen");
    onlooker
}

#[test]
fn ovs_a_failed_physical_link_is_hidden_from_tenant_discovery_on_openflow_1_0() {
    needs!(ovs_a_failed_physical_link_is_hidden_from_tenant_discovery_on_openflow_1_0:
        Needs::OpenVSwitch, Needs::OsKen, Needs::Program("iperf3"), Needs::Program("tcpdump"));
    check_leaves_and_spines(V10);
}

#[test]
fn ovs_a_failed_physical_link_is_hidden_from_tenant_discovery_on_openflow_1_3() {
    needs!(ovs_a_failed_physical_link_is_hidden_from_tenant_discovery_on_openflow_1_3:
        Needs::OpenVSwitch, Needs::OsKen, Needs::Program("iperf3"), Needs::Program("tcpdump"));
    check_leaves_and_spines(V13);
}

/// A ring of three switches each, one on each leaf. Each of its links has two spines to go by.
fn check_leaves_and_spines(version: Version) {
    let ring = [(1, 2), (2, 3), (1, 3)];
    let more = "backup = \"switches\"\n";
    let tenants = [
        Tenant {
            name: "red",
            switches: &[(1, Some(1)), (2, Some(1)), (3, Some(1))],
            links: &ring,
            more,
            hosts: &["h1", "h3", "h5"],
            own: 41,
        },
        Tenant {
            name: "blue",
            switches: &[(1, Some(2)), (2, Some(2)), (3, Some(2))],
            links: &ring,
            more,
            hosts: &["h2", "h4", "h6"],
            own: 81,
        },
    ];
    let mut scene = Scene::new("leafspine,3,2,2", version, &tenants);
    scene.is_apart(&tenants);
    let Scene { network, weir, .. } = &scene;
    // One at a time: what two would take of each other here is the machine's.
    let transfer = Transfer::start(network, "h1", "h3", "10.0.0.2");
    fail_link(network, weir, "red");
    assert_eq!(ports_up(weir), [9, 9]);
    transfer.goes_on();
    Transfer::start(network, "h2", "h4", "10.0.0.2").goes_on();
    for tenant in &tenants {
        assert!(tenant.all_reach(network), "{}", tenant.name);
    }
    scene.is_apart(&tenants);
    for app in &mut scene.apps {
        assert!(!app.has_seen("link_left"), "a tenant feels that a physical link has failed");
    }
    scene.nothing_has_come_across();
}

#[test]
fn ovs_tenant_discovery_loses_links_without_a_remaining_path_on_openflow_1_0() {
    needs!(ovs_tenant_discovery_loses_links_without_a_remaining_path_on_openflow_1_0:
        Needs::OpenVSwitch, Needs::OsKen, Needs::Program("iperf3"), Needs::Program("tcpdump"));
    check_row(V10);
}

#[test]
fn ovs_tenant_discovery_loses_links_without_a_remaining_path_on_openflow_1_3() {
    needs!(ovs_tenant_discovery_loses_links_without_a_remaining_path_on_openflow_1_3:
        Needs::OpenVSwitch, Needs::OsKen, Needs::Program("iperf3"), Needs::Program("tcpdump"));
    check_row(V13);
}

/// Four switches in a row, and on it a network of three switches, and one of two whose link passes through the others.
fn check_row(version: Version) {
    let tenants = [
        Tenant {
            name: "red",
            switches: &[(1, Some(1)), (2, None), (3, Some(1))],
            links: &[(1, 2), (2, 3)],
            more: "",
            hosts: &["h1", "h3"],
            own: 41,
        },
        Tenant {
            name: "blue",
            switches: &[(2, Some(1)), (4, Some(1))],
            links: &[(1, 2)],
            more: "",
            hosts: &["h2", "h4"],
            own: 81,
        },
    ];
    let mut scene = Scene::new("linear,4", version, &tenants);
    scene.is_apart(&tenants);
    Transfer::start(&scene.network, "h1", "h3", "10.0.0.2").goes_on();

    // The wire between s2 and s3 carries a link of each; red's other one goes on.
    let lost = [[2, 13, 3, 12], [1, 12, 2, 11]];
    scene.network.set_port("s2", "s2-eth3", "down");
    for (app, lost) in scene.apps.iter_mut().zip(lost) {
        app.expect_where("link_left", |left| ends(left) == lost);
    }
    assert_eq!(ports_up(&scene.weir), [4, 2]);
    for host in ["h1", "h2"] {
        assert!(!scene.network.answers(host, "10.0.0.2"));
    }

    scene.network.set_port("s2", "s2-eth3", "up");
    for (app, found) in scene.apps.iter_mut().zip(lost) {
        app.expect_where("link", |link| ends(link) == found);
    }
    for tenant in &tenants {
        eventually("all hosts reach their own again", || tenant.all_reach(&scene.network));
    }
    scene.is_apart(&tenants);
    scene.nothing_has_come_across();
}
