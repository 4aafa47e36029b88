//! What is to be run to make a topology, as text: pure, so that it can be read and tested.
//!
//! Everything goes in batches (`ip -batch`, one `ovs-vsctl` transaction, `tc -batch`), because
//! starting a program per interface is what makes large labs slow.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::address::{ControlLink, INNER, PREFIX};
use crate::options::{Controller, FailMode, Options};
use crate::topology::{LinkEnd, Topology};

/// Name of the namespace of a node; all switches share one.
pub(crate) fn namespace(lab: &str, topology: &Topology, node: &str) -> String {
    if topology.switch(node).is_some() {
        switches_namespace(lab)
    } else {
        format!("weir-{lab}.{node}")
    }
}

/// Name of the switches' namespace.
pub(crate) fn switches_namespace(lab: &str) -> String {
    // No node can be named so, and a lab's name has no dot.
    format!("weir-{lab}.switches")
}

/// Every namespace of the lab, the switches' first (if there are switches).
pub(crate) fn namespaces(lab: &str, topology: &Topology) -> Vec<String> {
    let switches = (!topology.switches().is_empty()).then(|| switches_namespace(lab));
    let hosts = topology.hosts().iter().map(|host| namespace(lab, topology, &host.name));
    switches.into_iter().chain(hosts).collect()
}

/// `ip -batch` input that makes the namespaces.
pub(crate) fn make_namespaces(namespaces: &[String]) -> String {
    namespaces.iter().fold(String::new(), |mut script, name| {
        let _ = writeln!(script, "netns add {name}");
        script
    })
}

/// `ip -batch` input for the caller's namespace: all links, still down, and the control link.
pub(crate) fn make_links(lab: &str, topology: &Topology, control: Option<&ControlLink>) -> String {
    let mut script = String::new();
    for link in topology.links() {
        let [a, b] = &link.ends;
        let side = |end: &LinkEnd| {
            let namespace = namespace(lab, topology, &end.node);
            let mac = topology.host(&end.node).filter(|_| end.port == 0).map(|host| host.mac);
            let mac = mac.map_or_else(String::new, |mac| format!(" address {mac}"));
            format!("{}{mac} netns {namespace}", end.interface)
        };
        let _ = writeln!(script, "link add name {} type veth peer name {}", side(a), side(b));
    }
    if let Some(control) = control {
        let ControlLink { interface, host, .. } = control;
        let inner = switches_namespace(lab);
        let _ =
            writeln!(script, "link add name {interface} type veth peer name {INNER} netns {inner}");
        let _ = writeln!(script, "addr add {host}/{PREFIX} dev {interface}");
        let _ = writeln!(script, "link set {interface} up");
    }
    script
}

/// `ip -batch` input inside the switches' namespace.
pub(crate) fn switch_interfaces(topology: &Topology, control: &ControlLink) -> String {
    let mut script = String::from("link set lo up\n");
    let _ = writeln!(script, "addr add {}/{PREFIX} dev {INNER}", control.switches);
    let _ = writeln!(script, "link set {INNER} up");
    for switch in topology.switches() {
        for end in topology.ports(&switch.name) {
            let _ = writeln!(script, "link set {} up", end.interface);
        }
    }
    script
}

/// `ip -batch` input inside a host's namespace.
pub(crate) fn host_interfaces(topology: &Topology, host: &crate::Host, static_arp: bool) -> String {
    let mut script = String::from("link set lo up\n");
    let _ = writeln!(script, "addr add {}/{} broadcast + dev eth0", host.ip, host.prefix);
    for end in topology.ports(&host.name) {
        let _ = writeln!(script, "link set {} up", end.interface);
    }
    if static_arp {
        for other in topology.hosts().iter().filter(|other| other.name != host.name) {
            let _ = writeln!(
                script,
                "neigh replace {} lladdr {} dev eth0 nud permanent",
                other.ip, other.mac
            );
        }
    }
    script
}

/// `tc -batch` inputs, by namespace, that give links their rate at both ends.
pub(crate) fn rates(lab: &str, topology: &Topology) -> BTreeMap<String, String> {
    let mut scripts: BTreeMap<String, String> = BTreeMap::new();
    for link in topology.links() {
        let Some(rate) = link.rate.map(|rate| rate.bits_per_second()) else { continue };
        // Two frames, or what passes in a millisecond: less starves the link at the timer's
        // resolution, more lets bursts through that the rate would forbid.
        let burst = (rate / 8 / 1000).max(2 * 1600);
        for end in &link.ends {
            let script = scripts.entry(namespace(lab, topology, &end.node)).or_default();
            let device = &end.interface;
            let _ = writeln!(script, "qdisc replace dev {device} root handle 1: htb default 1");
            let _ = writeln!(
                script,
                "class replace dev {device} parent 1: classid 1:1 htb rate {rate}bit ceil {rate}bit burst {burst} cburst {burst}"
            );
        }
    }
    scripts
}

/// Arguments of the one `ovs-vsctl` transaction that makes every bridge and port.
pub(crate) fn bridges(topology: &Topology, options: &Options) -> Vec<String> {
    let mut arguments = Transaction::default();
    let rated = topology.links().iter().any(|link| link.rate.is_some());
    if rated {
        // Without it ovs-vswitchd removes every queueing discipline that it did not make itself.
        arguments.command(["--id=@ours", "create", "QoS", "type=linux-noop"]);
    }
    let fail_mode = match options.fail_mode {
        Some(FailMode::Secure) => "secure",
        Some(FailMode::Standalone) => "standalone",
        None if options.controllers.is_empty() => "standalone",
        None => "secure",
    };
    let spanning_tree =
        fail_mode == "standalone" && options.controllers.is_empty() && topology.has_loop();
    for switch in topology.switches() {
        let name = &switch.name;
        arguments.command(["add-br", name]);
        arguments.command(["set", "Bridge", name, "datapath_type=netdev"]);
        arguments.extend([
            format!("other_config:datapath-id={:016x}", switch.dpid),
            "other_config:disable-in-band=true".to_owned(),
            format!("fail_mode={fail_mode}"),
        ]);
        if !options.protocols.is_empty() {
            let names: Vec<_> = options.protocols.iter().map(|one| one.name()).collect();
            arguments.extend([format!("protocols={}", names.join(","))]);
        }
        if spanning_tree {
            arguments.extend(["rstp_enable=true".to_owned()]);
        }
        for end in topology.ports(name) {
            arguments.command(["add-port", name, &end.interface]);
            arguments.command([
                "set",
                "Interface",
                &end.interface,
                &format!("ofport_request={}", end.port),
            ]);
        }
    }
    for end in
        topology.links().iter().filter(|link| link.rate.is_some()).flat_map(|link| &link.ends)
    {
        if topology.switch(&end.node).is_some() {
            arguments.command(["set", "Port", &end.interface, "qos=@ours"]);
        }
    }
    arguments.arguments
}

/// Arguments of the `ovs-vsctl` transaction that points every bridge at these controllers.
pub(crate) fn controllers(
    topology: &Topology,
    controllers: &[Controller],
    here: &ControlLink,
) -> Vec<String> {
    let mut arguments = Transaction::default();
    for switch in topology.switches() {
        let mut rows = Vec::new();
        for (index, controller) in controllers.iter().enumerate() {
            let id = format!("@{}_{index}", switch.name);
            let target = format!("target=\"{}\"", controller.target(here));
            arguments.command([&*format!("--id={id}"), "create", "Controller", &target]);
            // A lab's controllers come and go: look for them every second, not every eight.
            arguments
                .extend(["connection_mode=out-of-band".to_owned(), "max_backoff=1000".to_owned()]);
            rows.push(id);
        }
        arguments.command([
            "set",
            "Bridge",
            &switch.name,
            &format!("controller=[{}]", rows.join(",")),
        ]);
    }
    arguments.arguments
}

#[derive(Default)]
struct Transaction {
    arguments: Vec<String>,
}

impl Transaction {
    fn command<const N: usize>(&mut self, words: [&str; N]) {
        self.arguments.push("--".to_owned());
        self.arguments.extend(words.map(str::to_owned));
    }

    fn extend<const N: usize>(&mut self, words: [String; N]) {
        self.arguments.extend(words);
    }
}
