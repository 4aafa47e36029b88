//! A real network for a scenario: hosts in namespaces, bridges of a private Open vSwitch.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use lab::{
    FailMode, Lab, LabGuard, MacAddress, OpenVSwitch, Options, PingOptions, ProcessIdentity,
    Protocol, StateDirectory, Topology,
};

use super::program::{GUARDED, Program};
use super::weir::Weir;

/// OpenFlow versions that a switch may be configured to offer.
pub use lab::Protocol as Version;

pub const V10: Protocol = Protocol::OPENFLOW10;
pub const V13: Protocol = Protocol::OPENFLOW13;

pub struct Network {
    lab: LabGuard,
}

/// One flow of a switch's table.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Cookie, table, priority, match and actions as `ovs-ofctl` writes them: what makes two flows the same.
    pub text: String,
    /// Seconds since it was installed.
    pub duration: f64,
    pub packets: u64,
}

impl Network {
    /// Switch `s1` with hosts `h1`, `h2`, ... on its ports 1, 2, ..., with these addresses in one subnet.
    pub fn single(addresses: &[&str], version: Version) -> Network {
        let mut topology = Topology::builder();
        topology.switch("s1").expect("a switch");
        for (index, address) in addresses.iter().enumerate() {
            let name = format!("h{}", index + 1);
            let mac = MacAddress::from_number(u32::try_from(index + 1).expect("a small number"));
            let address: Ipv4Addr = address.parse().expect("an IPv4 address");
            topology.host_with(&name, mac, address, 8).expect("a host");
            topology.link("s1", &name, None).expect("a link");
        }
        Network::up(&topology.build().expect("a topology"), version)
    }

    /// Switches, hosts and links by name; ports are numbered in the order of the links.
    pub fn of(
        switches: &[&str],
        hosts: &[&str],
        links: &[(&str, &str)],
        version: Version,
    ) -> Network {
        let mut topology = Topology::builder();
        for switch in switches {
            topology.switch(switch).expect("a switch");
        }
        for host in hosts {
            topology.host(host).expect("a host");
        }
        for (a, b) in links {
            topology.link(a, b, None).expect("a link");
        }
        Network::up(&topology.build().expect("a topology"), version)
    }

    /// Switches in a row, one host each, as `weir lab` builds them.
    pub fn linear(switches: usize, version: Version) -> Network {
        Network::up(&Topology::builtin(&format!("linear,{switches}")).expect("a topology"), version)
    }

    /// A topology of `weir lab`.
    pub fn builtin(topology: &str, version: Version) -> Network {
        Network::up(&Topology::builtin(topology).expect("a topology"), version)
    }

    /// A private Open vSwitch for somebody else's switches, as a topology file describes it.
    pub fn of_file(path: &Path) -> Network {
        Network::up(&Topology::load(&path.display().to_string()).expect("a topology"), V13)
    }

    /// A host's MAC address, as text.
    pub fn mac(&self, host: &str) -> String {
        let hosts = self.lab.topology().hosts();
        hosts.iter().find(|it| it.name == host).expect("a host").mac.to_string()
    }

    pub fn address(&self, host: &str) -> String {
        let hosts = self.lab.topology().hosts();
        hosts.iter().find(|it| it.name == host).expect("a host").ip.to_string()
    }

    fn up(topology: &Topology, version: Version) -> Network {
        // What a killed test run left.
        Lab::down_abandoned(&StateDirectory::default()).unwrap_or_else(|error| panic!("{error}"));
        let options = Options {
            protocols: vec![version],
            datapath: lab::testing::datapath(),
            // Without a controller nothing is forwarded: what passes, a controller has allowed.
            fail_mode: Some(FailMode::Secure),
            ephemeral: true,
            ..Options::default()
        };
        let lab = Lab::up(topology, &options).unwrap_or_else(|error| panic!("{error}"));
        Network { lab: LabGuard::new(lab) }
    }

    /// Where a controller must listen for the switches to reach it.
    pub fn controller_host(&self) -> IpAddr {
        IpAddr::V4(self.lab.controller_address().expect("a lab with switches"))
    }

    /// A program among the switches, which lives no longer than its value.
    pub fn program(&self, switch: &str, words: &[&str]) -> Program {
        let command = self.lab.command(switch, GUARDED[0]);
        let mut command = command.unwrap_or_else(|error| panic!("{error}"));
        command.args(&GUARDED[1..]).args(words);
        Program::of(words.first().copied().unwrap_or_default(), command)
    }

    /// Has switches wait for controllers, in place of those that they had, and says where.
    pub fn listen(&self, switch: &str) -> SocketAddr {
        self.wait_for_controllers(switch, "ptcp")
    }

    /// The same over TLS, with the certificates of [`Network::connect_with_tls`].
    pub fn listen_with_tls(&self, switch: &str) -> SocketAddr {
        self.wait_for_controllers(switch, "pssl")
    }

    fn wait_for_controllers(&self, switch: &str, method: &str) -> SocketAddr {
        let host = self.lab.control_link().expect("a lab with switches").switches;
        let address = SocketAddr::from((host, super::free_port()));
        self.set_controllers(&format!("{method}:{}:{host}", address.port()));
        super::eventually(&format!("{switch} listens"), || TcpStream::connect(address).is_ok());
        address
    }

    /// The namespace of a host.
    pub fn namespace(&self, host: &str) -> String {
        self.lab.namespace(host).unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn bridges(&self) -> Vec<String> {
        let listing = self.open_vswitch().vsctl(["list-br"]);
        let listing = listing.unwrap_or_else(|error| panic!("{error}"));
        listing.lines().map(str::to_owned).collect()
    }

    /// The process that is all switches.
    pub fn switch_process(&self) -> ProcessIdentity {
        self.open_vswitch().switch_process().expect("Open vSwitch runs")
    }

    fn open_vswitch(&self) -> OpenVSwitch {
        self.lab.open_vswitch().expect("a lab with switches")
    }

    /// Has the switches look through two VLAN tags: by itself Open vSwitch takes what is behind the first for data.
    pub fn look_through_two_tags(&self) {
        let limit = ["set", "Open_vSwitch", ".", "other_config:vlan-limit=2"];
        self.open_vswitch().vsctl(limit).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Has a switch speak this version.
    pub fn speak(&self, switch: &str, version: Version) {
        let version = format!("protocols={}", version.name());
        let arguments = ["set", "bridge", switch, &version];
        self.open_vswitch().vsctl(arguments).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Has the switches look up each packet again, as if they had forwarded none like it.
    pub fn forget_packets(&self) {
        self.open_vswitch().appctl(["revalidator/purge"]).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Serves `tenants` where this network's switches can dial, has them dial there, and returns once it serves.
    pub fn serve(&self, tenants: &str) -> Weir {
        let weir = Weir::serve_on(self.controller_host(), tenants);
        self.connect_to(weir.openflow);
        weir
    }

    /// Points every switch there. Controllers say when it has come: Open vSwitch's own word for it is seconds old.
    pub fn connect_to(&self, address: SocketAddr) {
        self.set_controllers(&format!("tcp:{address}"));
    }

    /// The same over TLS, with the switch's certificates.
    pub fn connect_with_tls(&self, address: SocketAddr, key: &Path, certificate: &Path, ca: &Path) {
        let paths = [key, certificate, ca].map(|path| path.display().to_string());
        let arguments = ["set-ssl", &paths[0], &paths[1], &paths[2]];
        self.open_vswitch().vsctl(arguments).unwrap_or_else(|error| panic!("{error}"));
        self.set_controllers(&format!("ssl:{address}"));
    }

    fn set_controllers(&self, target: &str) {
        for switch in self.lab.topology().switches() {
            // Out of band: the control channel does not cross the switch. No back-off: tests do not wait.
            let arguments = [
                "set-controller",
                &switch.name,
                target,
                "--",
                "set",
                "controller",
                &switch.name,
                "connection-mode=out-of-band",
                "max-backoff=1000",
            ];
            self.open_vswitch().vsctl(arguments).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    /// Cuts the control channel of every switch; [`Network::connect_to`] mends it.
    ///
    /// The flows stay: Open vSwitch would clear them if it had no controller at all, so it gets one that is not there.
    pub fn disconnect(&self) {
        self.set_controllers("tcp:127.0.0.1:9");
    }

    /// Takes every flow from a switch behind its controllers' back, as a power cycle does.
    pub fn forget_flows(&self, switch: &str) {
        self.ofctl(&["-O", "OpenFlow10,OpenFlow13", "del-flows", switch]);
    }

    /// Whether a ping gets there and back, at one of a few attempts.
    pub fn pings(&self, from: &str, to: &str) -> bool {
        self.reaches(from, to, Duration::from_secs(1), 3)
    }

    /// Whether pings that nothing should answer stay unanswered.
    pub fn is_silent(&self, from: &str, to: &str) -> bool {
        !self.reaches(from, to, Duration::from_millis(400), 2)
    }

    /// Whether the host with that address answers another host's ping.
    pub fn answers(&self, host: &str, address: &str) -> bool {
        self.says_yes(host, &["sh", "-c"], address)
    }

    /// The same from within what these words before a script enter.
    pub fn says_yes(&self, host: &str, shell: &[&str], address: &str) -> bool {
        let script = format!("ping -c 1 -W 1 {address} >/dev/null && echo yes || echo no");
        self.exec(host, &[shell, &[&script]].concat()).trim() == "yes"
    }

    fn reaches(&self, from: &str, to: &str, timeout: Duration, attempts: u16) -> bool {
        let options = PingOptions { timeout, attempts };
        let report = self.lab.ping(&[from, to], &options).unwrap_or_else(|error| panic!("{error}"));
        report.reaches(from, to).expect("a pair that was asked for")
    }

    /// The flows of a switch, by text.
    pub fn flows(&self, switch: &str) -> Vec<Flow> {
        let listing = self.ofctl(&["-O", "OpenFlow10,OpenFlow13", "dump-flows", switch]);
        let mut flows: Vec<_> =
            listing.lines().filter(|line| line.contains("actions=")).map(parse_flow).collect();
        flows.sort_by(|a, b| a.text.cmp(&b.text));
        flows
    }

    /// The flows' texts alone: what a comparison of two moments looks at.
    pub fn flow_texts(&self, switch: &str) -> Vec<String> {
        self.flows(switch).into_iter().map(|flow| flow.text).collect()
    }

    pub fn ofctl(&self, arguments: &[&str]) -> String {
        self.open_vswitch().ofctl(arguments).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Runs a program at a host or a switch, which must succeed; what it printed.
    pub fn exec(&self, node: &str, words: &[&str]) -> String {
        let output = self.lab.exec(node, words).unwrap_or_else(|error| panic!("{error}"));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {stderr}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Lets a host have IPv6, which labs have not of their own accord.
    pub fn enable_ipv6(&self, host: &str) {
        self.exec(host, &["sh", "-c", "echo 0 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6"]);
    }

    /// Lets the first table of a switch hold so many entries at most; more are refused.
    pub fn limit_first_table(&self, switch: &str, limit: Option<u32>) {
        let cleared = ["clear", "bridge", switch, "flow_tables"].map(str::to_owned).to_vec();
        let arguments = limit.map_or(cleared, |limit| {
            let limit = format!("flow_limit={limit}");
            let table = ["--id=@t", "create", "Flow_Table", &limit, "overflow_policy=refuse"];
            let all = [&table[..], &["--", "set", "bridge", switch, "flow_tables:0=@t"]].concat();
            all.into_iter().map(str::to_owned).collect()
        });
        self.open_vswitch().vsctl(arguments).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Takes a host's port down or up at the switch.
    pub fn set_port(&self, switch: &str, interface: &str, state: &str) {
        let output =
            self.lab.exec(switch, &["ip", "link", "set", interface, state]).expect("run ip");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// ` cookie=0x0, duration=3.1s, table=0, n_packets=2, n_bytes=84, priority=10,in_port=1 actions=output:2`
fn parse_flow(line: &str) -> Flow {
    let mut kept = Vec::new();
    let mut flow = Flow { text: String::new(), duration: 0.0, packets: 0 };
    for part in line.trim().split(", ") {
        match part.split_once('=') {
            Some(("duration", value)) => {
                flow.duration = value.trim_end_matches('s').parse().expect("seconds")
            }
            Some(("n_packets", value)) => flow.packets = value.parse().expect("a number"),
            Some(("n_bytes" | "idle_age" | "hard_age", _)) => {}
            _ => kept.push(part),
        }
    }
    flow.text = kept.join(", ");
    flow
}
