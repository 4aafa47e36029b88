//! A real network of a test: hosts in namespaces, and bridges of a private Open vSwitch.

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
    /// Cookie, table, priority, match and actions as `ovs-ofctl` writes them. Two flows with the same text are the
    /// same.
    pub text: String,
    /// Seconds since the flow was installed.
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

    /// A private Open vSwitch, as a topology file describes it, for switches that other programs make.
    pub fn of_file(path: &Path) -> Network {
        Network::up(&Topology::load(&path.display().to_string()).expect("a topology"), V13)
    }

    /// Returns a host's MAC address as text.
    pub fn mac(&self, host: &str) -> String {
        let hosts = self.lab.topology().hosts();
        hosts.iter().find(|it| it.name == host).expect("a host").mac.to_string()
    }

    pub fn address(&self, host: &str) -> String {
        let hosts = self.lab.topology().hosts();
        hosts.iter().find(|it| it.name == host).expect("a host").ip.to_string()
    }

    fn up(topology: &Topology, version: Version) -> Network {
        // Removes the labs of killed test runs.
        Lab::down_abandoned(&StateDirectory::default()).unwrap_or_else(|error| panic!("{error}"));
        let options = Options {
            protocols: vec![version],
            datapath: lab::testing::datapath(),
            // Without a controller a switch forwards nothing, so a controller has allowed each forwarded packet.
            fail_mode: Some(FailMode::Secure),
            ephemeral: true,
            ..Options::default()
        };
        let lab = Lab::up(topology, &options).unwrap_or_else(|error| panic!("{error}"));
        Network { lab: LabGuard::new(lab) }
    }

    /// The address at which a controller must listen, so that the switches reach the controller.
    pub fn controller_host(&self) -> IpAddr {
        IpAddr::V4(self.lab.controller_address().expect("a lab with switches"))
    }

    /// Starts a program at a switch or a host. The program ends when its value is dropped.
    pub fn program(&self, switch: &str, words: &[&str]) -> Program {
        let command = self.lab.command(switch, GUARDED[0]);
        let mut command = command.unwrap_or_else(|error| panic!("{error}"));
        command.args(&GUARDED[1..]).args(words);
        Program::of(words.first().copied().unwrap_or_default(), command)
    }

    /// Lets the switches listen for controllers, instead of dialling controllers. Returns the address of a switch.
    pub fn listen(&self, switch: &str) -> SocketAddr {
        self.wait_for_controllers(switch, "ptcp")
    }

    /// [`Network::listen`] over TLS, with the certificates of [`Network::connect_with_tls`].
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

    /// The name of a host's namespace.
    pub fn namespace(&self, host: &str) -> String {
        self.lab.namespace(host).unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn bridges(&self) -> Vec<String> {
        let listing = self.open_vswitch().vsctl(["list-br"]);
        let listing = listing.unwrap_or_else(|error| panic!("{error}"));
        listing.lines().map(str::to_owned).collect()
    }

    /// The process that runs all switches.
    pub fn switch_process(&self) -> ProcessIdentity {
        self.open_vswitch().switch_process().expect("Open vSwitch runs")
    }

    fn open_vswitch(&self) -> OpenVSwitch {
        self.lab.open_vswitch().expect("a lab with switches")
    }

    /// Lets the switches parse two VLAN tags. By default Open vSwitch treats all bytes after the first tag as data.
    pub fn look_through_two_tags(&self) {
        let limit = ["set", "Open_vSwitch", ".", "other_config:vlan-limit=2"];
        self.open_vswitch().vsctl(limit).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Sets the OpenFlow version of a switch.
    pub fn speak(&self, switch: &str, version: Version) {
        let version = format!("protocols={}", version.name());
        let arguments = ["set", "bridge", switch, &version];
        self.open_vswitch().vsctl(arguments).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Clears the caches of the switches, so that each packet is looked up again.
    pub fn forget_packets(&self) {
        self.open_vswitch().appctl(["revalidator/purge"]).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Starts Weir with `tenants` at an address that the switches reach, and connects the switches to Weir.
    pub fn serve(&self, tenants: &str) -> Weir {
        let weir = Weir::serve_on(self.controller_host(), tenants);
        self.connect_to(weir.openflow);
        weir
    }

    /// Connects each switch to this address. Controllers report the connection earlier than Open vSwitch, whose report
    /// is seconds old.
    pub fn connect_to(&self, address: SocketAddr) {
        self.set_controllers(&format!("tcp:{address}"));
    }

    /// [`Network::connect_to`] over TLS, with the switch's certificates.
    pub fn connect_with_tls(&self, address: SocketAddr, key: &Path, certificate: &Path, ca: &Path) {
        let paths = [key, certificate, ca].map(|path| path.display().to_string());
        let arguments = ["set-ssl", &paths[0], &paths[1], &paths[2]];
        self.open_vswitch().vsctl(arguments).unwrap_or_else(|error| panic!("{error}"));
        self.set_controllers(&format!("ssl:{address}"));
    }

    fn set_controllers(&self, target: &str) {
        for switch in self.lab.topology().switches() {
            // Out of band: the control channel does not cross the switch. The back-off is short, so that tests do not
            // wait.
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

    /// Disconnects each switch from its controllers; [`Network::connect_to`] connects the switches again.
    ///
    /// The flows stay. Open vSwitch would clear the flows of a switch without a controller, so the switch gets an
    /// address at which no controller listens.
    pub fn disconnect(&self) {
        self.set_controllers("tcp:127.0.0.1:9");
    }

    /// Deletes every flow of a switch without its controllers, as a power cycle does.
    pub fn forget_flows(&self, switch: &str) {
        self.ofctl(&["-O", "OpenFlow10,OpenFlow13", "del-flows", switch]);
    }

    /// Whether a ping gets a reply in one of a few attempts.
    pub fn pings(&self, from: &str, to: &str) -> bool {
        self.reaches(from, to, Duration::from_secs(1), 3)
    }

    /// Whether pings get no reply.
    pub fn is_silent(&self, from: &str, to: &str) -> bool {
        !self.reaches(from, to, Duration::from_millis(400), 2)
    }

    /// Whether the host with this address answers another host's ping.
    pub fn answers(&self, host: &str, address: &str) -> bool {
        self.says_yes(host, &["sh", "-c"], address)
    }

    /// [`Network::answers`] from the namespace that the words of `shell` enter.
    pub fn says_yes(&self, host: &str, shell: &[&str], address: &str) -> bool {
        let script = format!("ping -c 1 -W 1 {address} >/dev/null && echo yes || echo no");
        self.exec(host, &[shell, &[&script]].concat()).trim() == "yes"
    }

    fn reaches(&self, from: &str, to: &str, timeout: Duration, attempts: u16) -> bool {
        let options = PingOptions { timeout, attempts };
        let report = self.lab.ping(&[from, to], &options).unwrap_or_else(|error| panic!("{error}"));
        report.reaches(from, to).expect("a pair that was asked for")
    }

    /// Returns the flows of a switch, sorted by text.
    pub fn flows(&self, switch: &str) -> Vec<Flow> {
        let listing = self.ofctl(&["-O", "OpenFlow10,OpenFlow13", "dump-flows", switch]);
        let mut flows: Vec<_> =
            listing.lines().filter(|line| line.contains("actions=")).map(parse_flow).collect();
        flows.sort_by(|a, b| a.text.cmp(&b.text));
        flows
    }

    /// Returns only the texts of the flows, for comparisons.
    pub fn flow_texts(&self, switch: &str) -> Vec<String> {
        self.flows(switch).into_iter().map(|flow| flow.text).collect()
    }

    pub fn ofctl(&self, arguments: &[&str]) -> String {
        self.open_vswitch().ofctl(arguments).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Runs a program at a host or a switch. The program must succeed. Returns its output.
    pub fn exec(&self, node: &str, words: &[&str]) -> String {
        let output = self.lab.exec(node, words).unwrap_or_else(|error| panic!("{error}"));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {stderr}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Enables IPv6 on a host. Labs disable IPv6 by default.
    pub fn enable_ipv6(&self, host: &str) {
        self.exec(host, &["sh", "-c", "echo 0 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6"]);
    }

    /// Limits the entries of a switch's first table. The switch refuses more entries. `None` removes the limit.
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

    /// Sets a port of a switch down or up.
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
