//! Tests of two tenants with the same addresses. Each tenant has an ordinary controller that discovers its network and
//! learns its hosts, while physical links fail.
//!
//! A program at each host captures frames: no frame of the other tenant may arrive.

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::own_networks::{Transfer, all_have_ways, fail_link, ports_up};
use crate::support::app::App;
use crate::support::network::{Network, V10, V13, Version};
use crate::support::program::Program;
use crate::support::requirements::{Needs, needs};
use crate::support::weir::Weir;
use crate::support::{PATIENCE, eventually};

/// The switches, links and hosts of a tenant.
struct Tenant<'a> {
    name: &'a str,
    /// For each virtual switch (0xa1, 0xa2, ...): its physical switch, and the physical port of its host, if it has a
    /// host.
    switches: &'a [(u8, Option<u8>)],
    /// The virtual links, by the numbers of the tenant's switches.
    links: &'a [(usize, usize)],
    /// More keys of each link in the configuration.
    more: &'a str,
    /// The hosts in the lab, in the order of the switches. Their addresses are 10.0.0.1, 10.0.0.2, ...
    hosts: &'a [&'a str],
    /// The last number of the address `10.0.0.x` that only the tenant's first host has.
    own: u8,
}

impl Tenant<'_> {
    /// A host is at port 1. The end of a link is at port 10 plus the number of the switch at the other end.
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

    /// Gives the hosts the same MAC and IP addresses as the hosts of the other tenant, and the first host an address
    /// that no other host has. The captures use the latter address.
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

    /// Whether each host of the tenant reaches the next host.
    fn all_reach(&self, network: &Network) -> bool {
        let next = |n: usize| format!("10.0.0.{}", 1 + (n + 1) % self.hosts.len());
        (0..).zip(self.hosts).all(|(n, host)| network.answers(host, &next(n)))
    }

    /// Asserts that the controller finds both directions of each link.
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

/// Returns the numbers of the switch and the port at both ends.
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
    /// For each host, a program that captures frames from the addresses that only one host has, and the last number of
    /// the other tenant's address.
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

    /// Asserts that a host gets an answer from the address that only its own tenant has, and no answer from the address
    /// that only the other tenant has.
    fn is_apart(&self, tenants: &[Tenant<'_>; 2]) {
        for (here, other) in [(0, 1), (1, 0)] {
            let own = |of: usize| format!("10.0.0.{}", tenants[of].own);
            let [_, asking, ..] = tenants[here].hosts else { panic!("two hosts") };
            assert!(self.network.answers(asking, &own(here)));
            assert!(!self.network.answers(asking, &own(other)));
        }
    }

    /// Asserts that hosts got frames from the address that only their own tenant has, and no frames from the other
    /// tenant's, and that no controller got an ERROR.
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

/// Starts `tcpdump` at a host, for frames from these addresses.
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

/// Each tenant has a ring of three switches, one on each leaf. Each virtual link can use two spines.
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
    // The transfers run one after the other, because two transfers would share the CPUs of the machine.
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

/// In a row of four physical switches, red has a network of three switches, and blue has a network of two switches.
/// Blue's link passes through a physical switch where blue has no switch.
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

    // The physical link between s2 and s3 carries a virtual link of each tenant. Red's other link stays up.
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
