//! Writes the commands that make a topology as text. The functions are pure, so that the commands
//! can be read and tested.
//!
//! All commands are in batches (`ip -batch`, one `ovs-vsctl` transaction, `tc -batch`), because one program per
//! interface would make large labs slow.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::address::{ControlLink, INNER, PREFIX};
use crate::controller::Controller;
use crate::options::{FailMode, Options};
use crate::topology::{LinkEnd, Rate, Topology};

/// Name of the namespace of a node. All switches share one namespace.
pub(crate) fn namespace(lab: &str, topology: &Topology, node: &str) -> String {
    if topology.switch(node).is_some() {
        switches_namespace(lab)
    } else {
        format!("weir-{lab}.{node}")
    }
}

/// Name of the switches' namespace.
pub(crate) fn switches_namespace(lab: &str) -> String {
    // No node can have this name, and a lab's name has no dot.
    format!("weir-{lab}.switches")
}

/// Every namespace of the lab. The first is the namespace of the switches, if there are switches.
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

/// `tc -batch` inputs, by namespace, that set the rates of links at both ends.
///
/// If Open vSwitch has queues, Open vSwitch must also set the rate ([`queues`]), because a port has
/// one root queueing discipline.
pub(crate) fn rates(lab: &str, topology: &Topology, queued: bool) -> BTreeMap<String, String> {
    let mut scripts: BTreeMap<String, String> = BTreeMap::new();
    for link in topology.links() {
        let Some(rate) = link.rate.map(|rate| rate.bits_per_second()) else { continue };
        // The burst is two frames, or the bytes of one millisecond. With a smaller burst the link
        // does not reach its rate at the timer's resolution. A larger burst would exceed the rate.
        let burst = (rate / 8 / 1000).max(2 * 1600);
        let is_ours = |end: &&LinkEnd| !queued || topology.switch(&end.node).is_none();
        for end in link.ends.iter().filter(is_ours) {
            let script = scripts.entry(namespace(lab, topology, &end.node)).or_default();
            let device = &end.interface;
            let _ = writeln!(script, "qdisc replace dev {device} root handle 1: htb default 1");
            let _ = writeln!(
                script,
                "class replace dev {device} parent 1: classid 1:1 htb rate {rate}bit ceil {rate}bit burst {burst} cburst {burst}"
            );
            if topology.switch(&end.node).is_some() {
                let _ = writeln!(
                    script,
                    "qdisc replace dev {device} parent 1:1 bfifo limit {}",
                    switch_queue(rate)
                );
            }
        }
    }
    scripts
}

/// The queue of a switch's port in bytes: 25 ms of the rate, within bounds.
///
/// ovs-vswitchd sends on all ports through one socket. The bytes in all queues count against that socket's buffer
/// (212,992 bytes with the kernel's overhead). With the kernel's default of a thousand frames, the queue of one port
/// would block all other ports.
fn switch_queue(bits_per_second: u64) -> u64 {
    (bits_per_second / 8 / 40).clamp(20 * 1514, 40 * 1514)
}

/// Arguments of the one `ovs-vsctl` transaction that makes every bridge and port.
pub(crate) fn bridges(topology: &Topology, options: &Options) -> Vec<String> {
    let mut arguments = Transaction::default();
    let rated = topology.links().iter().any(|link| link.rate.is_some());
    let queued = !options.queues.is_empty();
    if rated && !queued {
        // Without this QoS, ovs-vswitchd removes every queueing discipline that it did not make
        // itself.
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
        let kind = format!("datapath_type={}", options.datapath.name());
        arguments.command(["set", "Bridge", name, &kind]);
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
    for link in topology.links() {
        for end in link.ends.iter().filter(|end| topology.switch(&end.node).is_some()) {
            if queued {
                arguments.queues(&end.interface, &options.queues, link.rate);
            } else if link.rate.is_some() {
                arguments.command(["set", "Port", &end.interface, "qos=@ours"]);
            }
        }
    }
    arguments.arguments
}

/// Arguments of the `ovs-vsctl` transaction that replaces the queues of a port. An empty list of rates removes the
/// queues.
pub(crate) fn queues(interface: &str, rates: &[Rate]) -> Vec<String> {
    let mut arguments = Transaction::default();
    if rates.is_empty() {
        arguments.command(["clear", "Port", interface, "qos"]);
    } else {
        arguments.queues(interface, rates, None);
    }
    arguments.arguments
}

/// The rate of a port without another limit, in bits per second, because HTB needs a rate.
const UNBOUNDED: u64 = 40_000_000_000;

/// Arguments of the `ovs-vsctl` transaction that sets the controllers of every bridge.
pub(crate) fn controllers(
    topology: &Topology,
    controllers: &[Controller],
    here: &ControlLink,
) -> Vec<String> {
    let every = topology.switches().iter().map(|switch| (switch.name.as_str(), controllers));
    controllers_of(every, here)
}

/// Arguments of the `ovs-vsctl` transaction that sets the controllers of each of these bridges.
pub(crate) fn controllers_of<'a>(
    switches: impl IntoIterator<Item = (&'a str, &'a [Controller])>,
    here: &ControlLink,
) -> Vec<String> {
    let mut arguments = Transaction::default();
    for (switch, controllers) in switches {
        let mut rows = Vec::new();
        for (index, controller) in controllers.iter().enumerate() {
            let id = format!("@{switch}_{index}");
            let target = format!("target=\"{}\"", controller.target(here));
            arguments.command([&*format!("--id={id}"), "create", "Controller", &target]);
            // A lab's controllers often start and stop, so switches reconnect at least every
            // second, not every eight seconds.
            arguments
                .extend(["connection_mode=out-of-band".to_owned(), "max_backoff=1000".to_owned()]);
            rows.push(id);
        }
        arguments.command(["set", "Bridge", switch, &format!("controller=[{}]", rows.join(","))]);
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

    /// Makes one HTB class for each queue, below the HTB class of the port.
    fn queues(&mut self, interface: &str, rates: &[Rate], link: Option<Rate>) {
        let mut ids = Vec::new();
        for (number, rate) in rates.iter().enumerate() {
            let id = format!("@{interface}_{number}");
            let most = format!("other_config:max-rate={}", rate.bits_per_second());
            self.command([&*format!("--id={id}"), "create", "Queue", &most]);
            ids.push(format!("{number}={id}"));
        }
        let qos = format!("@{interface}_qos");
        let most = link.map_or(UNBOUNDED, Rate::bits_per_second);
        let most = format!("other_config:max-rate={most}");
        let queues = format!("queues={}", ids.join(","));
        self.command([&*format!("--id={qos}"), "create", "QoS", "type=linux-htb", &most, &queues]);
        self.command(["set", "Port", interface, &format!("qos={qos}")]);
    }

    fn extend<const N: usize>(&mut self, words: [String; N]) {
        self.arguments.extend(words);
    }
}

/// Whether every root and designated port forwards, in the output of `ovs-appctl rstp/show` for all switches. A port is
/// `Disabled` until the switch detects its link. No port stays `Disabled`.
pub(crate) fn has_settled(output: &str) -> bool {
    output.lines().all(|line| {
        let mut words = line.split_whitespace().skip(1);
        match words.next() {
            Some("Root" | "Designated") => words.next() == Some("Forwarding"),
            Some("Disabled") => false,
            _ => true,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: [[u8; 4]; 2] = [[198, 18, 0, 1], [198, 18, 0, 2]];

    fn here() -> ControlLink {
        ControlLink {
            interface: "weir-ctl0".to_owned(),
            host: HERE[0].into(),
            switches: HERE[1].into(),
        }
    }

    fn one_switch(rate: &str) -> Topology {
        let mut builder = Topology::builder();
        builder.switch("s1").unwrap().host("h1").unwrap();
        builder.link("h1", "s1", rate.parse().ok()).unwrap();
        builder.build().unwrap()
    }

    /// The words of the transaction, one command per line.
    fn lines(arguments: &[String]) -> Vec<String> {
        arguments.split(|word| word == "--").skip(1).map(|words| words.join(" ")).collect()
    }

    #[test]
    fn namespaces_links_and_addresses_give_the_expected_ip_commands() {
        let topology = one_switch("");
        assert_eq!(namespaces("x", &topology), ["weir-x.switches", "weir-x.h1"]);
        assert_eq!(
            make_links("x", &topology, Some(&here())),
            "link add name eth0 address 00:00:00:00:00:01 netns weir-x.h1 type veth peer name s1-eth1 netns weir-x.switches\n\
             link add name weir-ctl0 type veth peer name control netns weir-x.switches\n\
             addr add 198.18.0.1/30 dev weir-ctl0\n\
             link set weir-ctl0 up\n"
        );
        assert_eq!(
            switch_interfaces(&topology, &here()),
            "link set lo up\naddr add 198.18.0.2/30 dev control\nlink set control up\nlink set s1-eth1 up\n"
        );
        assert_eq!(
            host_interfaces(&topology, &topology.hosts()[0], true),
            "link set lo up\naddr add 10.0.0.1/8 broadcast + dev eth0\nlink set eth0 up\n"
        );
        let pair = Topology::builtin("single,2").unwrap();
        assert!(
            host_interfaces(&pair, &pair.hosts()[0], true).ends_with(
                "neigh replace 10.0.0.2 lladdr 00:00:00:00:00:02 dev eth0 nud permanent\n"
            )
        );
    }

    #[test]
    fn link_rates_are_set_at_both_ends() {
        let cases = [
            ("10Mbit", "rate 10000000bit", "burst 3200", "bfifo limit 31250\n"),
            ("1Gbit", "rate 1000000000bit", "burst 125000", "bfifo limit 60560\n"),
        ];
        for (rate, expected_rate, expected_burst, expected_queue) in cases {
            let scripts = rates("x", &one_switch(rate), false);
            let namespaces: Vec<_> = scripts.keys().map(String::as_str).collect();
            assert_eq!(namespaces, ["weir-x.h1", "weir-x.switches"]);
            for script in scripts.values() {
                assert!(
                    script.contains(expected_rate) && script.contains(expected_burst),
                    "{script}"
                );
            }
            // The queue of a switch's port is short. The queue of a host is the kernel's default.
            assert!(scripts["weir-x.switches"].contains(expected_queue), "{scripts:?}");
            assert!(!scripts["weir-x.h1"].contains("bfifo"), "{scripts:?}");
        }
        assert!(rates("x", &one_switch(""), false).is_empty());
    }

    #[test]
    fn the_fail_mode_and_spanning_tree_of_bridges_follow_the_options() {
        let controlled = || vec!["tcp:127.0.0.1:6653".parse().unwrap()];
        let ring = Topology::builtin("leafspine,2,2,1").unwrap();
        let line = one_switch("");
        let none = Options::default;
        let cases = [
            (&line, none(), "fail_mode=standalone", false),
            (&line, Options { controllers: controlled(), ..none() }, "fail_mode=secure", false),
            (
                &line,
                Options { fail_mode: Some(FailMode::Secure), ..none() },
                "fail_mode=secure",
                false,
            ),
            (&ring, none(), "fail_mode=standalone", true),
            (&ring, Options { controllers: controlled(), ..none() }, "fail_mode=secure", false),
            (
                &ring,
                Options { fail_mode: Some(FailMode::Secure), ..none() },
                "fail_mode=secure",
                false,
            ),
        ];
        for (topology, options, fail_mode, spanning_tree) in cases {
            let words = bridges(topology, &options);
            let count = |wanted: &str| words.iter().filter(|word| *word == wanted).count();
            let switches = topology.switches().len();
            assert_eq!(count(fail_mode), switches, "{words:?}");
            assert_eq!(
                count("rstp_enable=true"),
                if spanning_tree { switches } else { 0 },
                "{words:?}"
            );
        }
    }

    #[test]
    fn port_queues_are_created_with_their_rates() {
        let rates = ["10Mbit", "1Mbit"].map(|rate| rate.parse().unwrap());
        let options = Options { queues: rates.to_vec(), ..Options::default() };
        let expected = |most: u64| {
            [
                "--id=@s1-eth1_0 create Queue other_config:max-rate=10000000".to_owned(),
                "--id=@s1-eth1_1 create Queue other_config:max-rate=1000000".to_owned(),
                format!(
                    "--id=@s1-eth1_qos create QoS type=linux-htb other_config:max-rate={most} queues=0=@s1-eth1_0,1=@s1-eth1_1"
                ),
                "set Port s1-eth1 qos=@s1-eth1_qos".to_owned(),
            ]
        };
        // With a rate, Open vSwitch sets the rate at the switch's end, and `tc` sets the rate at
        // the host's end.
        let topology = one_switch("20Mbit");
        assert_eq!(lines(&bridges(&topology, &options))[4..], expected(20_000_000));
        assert_eq!(rates_of(&topology, true), ["weir-x.h1"]);
        assert_eq!(rates_of(&topology, false), ["weir-x.h1", "weir-x.switches"]);
        assert_eq!(lines(&queues("s1-eth1", &rates)), expected(UNBOUNDED));
        assert_eq!(lines(&queues("s1-eth1", &[])), ["clear Port s1-eth1 qos"]);
    }

    fn rates_of(topology: &Topology, queued: bool) -> Vec<String> {
        rates("x", topology, queued).into_keys().collect()
    }

    #[test]
    fn bridges_and_controllers_give_the_expected_ovs_vsctl_commands() {
        let options =
            Options { protocols: vec![crate::Protocol::OPENFLOW13], ..Options::default() };
        assert_eq!(
            lines(&bridges(&one_switch("10Mbit"), &options)),
            [
                "--id=@ours create QoS type=linux-noop",
                "add-br s1",
                "set Bridge s1 datapath_type=netdev other_config:datapath-id=0000000000000001 \
                 other_config:disable-in-band=true fail_mode=standalone protocols=OpenFlow13",
                "add-port s1 s1-eth1",
                "set Interface s1-eth1 ofport_request=1",
                "set Port s1-eth1 qos=@ours",
            ]
        );
        let options = Options { datapath: crate::Datapath::System, ..Options::default() };
        let kernels = lines(&bridges(&one_switch(""), &options));
        assert!(kernels[1].starts_with("set Bridge s1 datapath_type=system "), "{kernels:?}");
        let two = ["tcp:localhost:6653", "ssl:192.0.2.1:6654"].map(|one| one.parse().unwrap());
        assert_eq!(
            lines(&controllers(&one_switch(""), &two, &here())),
            [
                "--id=@s1_0 create Controller target=\"tcp:198.18.0.1:6653\" connection_mode=out-of-band max_backoff=1000",
                "--id=@s1_1 create Controller target=\"ssl:192.0.2.1:6654\" connection_mode=out-of-band max_backoff=1000",
                "set Bridge s1 controller=[@s1_0,@s1_1]",
            ]
        );
        assert_eq!(
            lines(&controllers(&one_switch(""), &[], &here())),
            ["set Bridge s1 controller=[]"]
        );
    }

    #[test]
    fn a_spanning_tree_has_settled_when_root_and_designated_ports_forward() {
        let output = |first: &str, second: &str| {
            format!(
                "---- s4 ----\nRoot ID:\n  stp-priority    32768\n  stp-system-id   12:df:da:83:4e:40\n  root-port       s4-eth1\n\n\
                 Interface  Role       State      Cost     Pri.Nbr \n  ---------- ---------- ---------- -------- -------\n  \
                 s4-eth1    {first} 2000     128.1\n  s4-eth2    {second} 2000     128.2\n"
            )
        };
        for (first, second, expected) in [
            ("Root       Forwarding", "Alternate  Discarding", true),
            ("Root       Forwarding", "Designated Forwarding", true),
            ("Root       Forwarding", "Disabled   Discarding", false),
            ("Designated Discarding", "Designated Forwarding", false),
            ("Root       Learning  ", "Alternate  Discarding", false),
        ] {
            assert_eq!(has_settled(&output(first, second)), expected, "{first} {second}");
        }
        assert!(has_settled(""));
    }
}
