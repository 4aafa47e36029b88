//! Systems under test that this crate starts itself: a command, the addresses where the system will listen, and its
//! configuration. Otherwise the systems are black boxes.

use crate::cpus::Cpus;
use crate::flow_change;
use crate::observe::Watched;
use crate::plan::{Identity, Setup, Version};
use crate::real::{self, RealSwitches, Size, Stand};
use crate::rest;
use crate::session::Controllers;
use crate::{Error, Topology};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The longest time from the start of a system until the system listens.
const START_LIMIT: Duration = Duration::from_secs(15);
/// The time that a system may take to end after the signal.
const STOP_LIMIT: Duration = Duration::from_secs(3);

/// The system between the emulated ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum System {
    /// There is no system: the two ends are connected directly.
    Direct,
    /// HAProxy in TCP mode: the lowest cost of any system in this place.
    Haproxy {
        /// The program.
        program: PathBuf,
    },
    /// A hypervisor that is configured by a file like Weir's: the file's path is appended to the command.
    Weir {
        /// The command with its first arguments, such as `weir serve`.
        command: Vec<String>,
        /// Lines appended to the configuration, such as another table. `{links}` in these lines becomes a physical link
        /// between the two ports of each tenant.
        extra: String,
        /// The part of the network that each tenant has.
        tenancy: Tenancy,
    },
    /// A hypervisor that runs already.
    External {
        /// The name in results.
        name: String,
        /// The address that the switches dial.
        switch_address: SocketAddr,
        /// The address of the first tenant's controller, as the hypervisor expects it. The other tenants' controllers
        /// have the next ports.
        controllers: SocketAddr,
        /// The processes to observe, if the hypervisor runs on this machine.
        watched: Option<Watched>,
    },
}

/// The part of the network that each of Weir's tenants has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tenancy {
    /// A slice.
    #[default]
    Slices,
    /// The tenant's own network, at the tenant's own switch port.
    Networks,
    /// A slice, with virtual interfaces between which [`crate::Kind::FlowChange`] makes flows. The tenant gets labels.
    Labels,
    /// Nothing: the tenant gets a network through the REST interface.
    Nothing,
}

/// A system under test that is ready for [`crate::Session::open`].
#[derive(Debug)]
pub struct Target {
    /// The topology for the setup.
    pub topology: Topology,
    /// The processes to observe.
    pub pids: Vec<u32>,
    /// The address of the REST interface, if the system has a REST interface like Weir's.
    pub api: Option<SocketAddr>,
    /// The address that a hypervisor's switches dial.
    pub switch_address: Option<SocketAddr>,
    process: Option<Process>,
}

impl System {
    /// The name in results.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Direct => "direct",
            Self::Haproxy { .. } => "haproxy",
            Self::Weir { tenancy: Tenancy::Slices | Tenancy::Nothing, .. } => "weir",
            Self::Weir { tenancy: Tenancy::Networks, .. } => "weir-networks",
            Self::Weir { tenancy: Tenancy::Labels, .. } => "weir-labels",
            Self::External { name, .. } => name,
        }
    }

    /// The same system with tenants' own networks, if the system supports them.
    #[must_use]
    pub fn with_networks(mut self) -> Self {
        if let Self::Weir { tenancy, .. } = &mut self {
            *tenancy = Tenancy::Networks;
        }
        self
    }

    /// The same system with followed flows and with labels for tenants, if the system supports them.
    #[must_use]
    pub fn with_labels(mut self) -> Self {
        if let Self::Weir { tenancy, .. } = &mut self {
            *tenancy = Tenancy::Labels;
        }
        self
    }

    /// The same system with more lines in its configuration, if this crate writes the configuration.
    #[must_use]
    pub fn with_extra(mut self, lines: &str) -> Self {
        if let Self::Weir { extra, .. } = &mut self {
            extra.push_str(lines);
        }
        self
    }

    /// The tenants' controllers, which listen at the addresses that this system will dial.
    ///
    /// # Errors
    /// As [`Controllers::bind`]; [`Error::System`] if the real switches are not available.
    pub fn controllers(
        &self,
        setup: &Setup,
        switches: Option<&dyn RealSwitches>,
    ) -> Result<Controllers, Error> {
        let base = match (self, switches) {
            (Self::External { controllers, .. }, _) => *controllers,
            // Without a system in between, the switches dial the controllers.
            (Self::Direct, Some(switches)) => {
                SocketAddr::new(switches.prepare(self.size(setup)).map_err(Error::System)?.host, 0)
            }
            _ => SocketAddr::new(LOOPBACK, 0),
        };
        Controllers::bind(setup.tenants, base)
    }

    /// Starts the system for these controllers, with emulated switches or with `switches`. Files go into `dir`. The
    /// system ends when the [`Target`] is dropped.
    ///
    /// # Errors
    /// [`Error::System`] if the system does not start or does not listen in time, or if the real switches cannot be
    /// connected.
    pub fn start(
        &self,
        setup: &Setup,
        controllers: &Controllers,
        dir: &Path,
        switches: Option<&dyn RealSwitches>,
    ) -> Result<Target, Error> {
        let size = self.size(setup);
        let stand = switches.map(|switches| switches.prepare(size)).transpose();
        let stand = stand.map_err(Error::System)?;
        let host = stand.as_ref().map_or(LOOPBACK, |stand| stand.host);
        let mut setup = setup.clone();
        if let Some(Stand { ports, dpid, .. }) = stand.clone() {
            setup.topology = Topology::Interfaces { ports, switches: 1, dpid };
        }
        let setup = &setup;
        // Real switches use any CPU, and the generator then has several threads.
        let cpus = Cpus::of(setup).filter(|_| switches.is_none());
        let apart = |start: &dyn Fn() -> Result<Target, Error>| match &cpus {
            Some(cpus) => cpus.for_system(start),
            None => start(),
        };
        let mut target = match self {
            Self::Direct => {
                let (pids, topology) = (Vec::new(), Topology::Direct);
                Target { topology, pids, api: None, switch_address: None, process: None }
            }
            Self::External { switch_address, watched, .. } => {
                let topology = Topology::Shared { switch_address: *switch_address, switches: 1 };
                Target {
                    topology,
                    pids: watched.as_ref().map(Watched::processes).unwrap_or_default(),
                    api: None,
                    switch_address: Some(*switch_address),
                    process: None,
                }
            }
            Self::Haproxy { program } => apart(&|| start_haproxy(program, controllers, dir, host))?,
            Self::Weir { command, extra, tenancy } => {
                let (what, addresses) =
                    ((command.as_slice(), extra.as_str(), *tenancy), controllers.addresses());
                apart(&|| start_weir(what, setup, addresses, dir, host))?
            }
        };
        if let Some((switches, stand)) = switches.zip(stand) {
            let (emulated, version) = (&target.topology, setup.version);
            let (size, addresses) = ((size, stand), controllers.addresses());
            target.topology = real::topology(switches, size, emulated, addresses, version)?;
        }
        Ok(target)
    }

    /// The number of real switches for this system, and of their ports. A hypervisor's tenants share one switch. With
    /// all systems each tenant has its own ports: a switch takes packets of one port in batches, so packets of few
    /// ports cost a switch less.
    pub(crate) fn size(&self, setup: &Setup) -> Size {
        let each = if setup.switch.pairs { 2 } else { 1 };
        let (switches, ports) = match self {
            Self::Direct | Self::Haproxy { .. } => (setup.tenants, each),
            Self::Weir { .. } | Self::External { .. } => (1, setup.tenants * each),
        };
        Size { switches, ports, entries: setup.switch.entries }
    }

    /// The setup, with the ports that this system's tenants need.
    #[must_use]
    pub fn fit(&self, setup: &Setup) -> Setup {
        let mut setup = setup.clone();
        setup.own_ports = if setup.switch.pairs { 2 } else { 1 };
        if matches!(self, Self::Weir { tenancy: Tenancy::Networks, .. }) {
            setup.switch.ports = setup.ports().max(setup.tenants * setup.own_ports);
        }
        setup
    }
}

fn start_haproxy(
    program: &Path,
    controllers: &Controllers,
    dir: &Path,
    host: IpAddr,
) -> Result<Target, Error> {
    let ports: Vec<SocketAddr> =
        controllers.addresses().iter().map(|_| free_address(host)).collect::<Result<_, _>>()?;
    let file = dir.join("haproxy.cfg");
    write(&file, &haproxy_config(&ports, controllers.addresses()))?;
    let arguments = ["-db".to_owned(), "-f".to_owned(), file.display().to_string()];
    let process = Process::spawn("haproxy", program, &arguments, dir)?;
    process.wait_listening(&ports)?;
    let pids = vec![process.id()];
    let topology = Topology::PerTenant { switch_addresses: ports };
    Ok(Target { topology, pids, api: None, switch_address: None, process: Some(process) })
}

/// Starts Weir with these tenants' controllers. Weir ends when the [`Target`] is dropped.
pub(crate) fn start_weir(
    (command, extra, tenancy): (&[String], &str, Tenancy),
    setup: &Setup,
    addresses: &[SocketAddr],
    dir: &Path,
    host: IpAddr,
) -> Result<Target, Error> {
    let (switch_address, api) = (free_address(host)?, free_address(LOOPBACK)?);
    let file = dir.join("weir.toml");
    write(&file, &weir_config(setup, switch_address, api, addresses, (extra, tenancy)))?;
    if let Some(system) = &setup.tls.system {
        for (peer, _, name) in authorities(setup) {
            // Weir refuses one authority for both sides. Here one file may contain both authorities.
            let signed = channel::issuers(&peer.certificate, &system.ca);
            write(&dir.join(name), &signed.map_err(|error| Error::System(error.to_string()))?)?;
        }
    }
    let Some((program, first)) = command.split_first() else {
        return Err(Error::System("no command was given for weir".to_owned()));
    };
    let mut arguments = first.to_vec();
    arguments.push(file.display().to_string());
    arguments.push("--state".to_owned());
    arguments.push(dir.join("state").display().to_string());
    let process = Process::spawn("weir", Path::new(program), &arguments, dir)?;
    process.wait_listening(&[switch_address])?;
    let pids = vec![process.id()];
    let switches = match setup.topology {
        Topology::Shared { switches, .. } => switches,
        _ => 1,
    };
    let topology = Topology::Shared { switch_address, switches };
    let (api, switch_address) = (Some(api), Some(switch_address));
    Ok(Target { topology, pids, api, switch_address, process: Some(process) })
}

/// One listening section per tenant, on one thread.
#[must_use]
pub fn haproxy_config(switch_addresses: &[SocketAddr], controllers: &[SocketAddr]) -> String {
    let mut text = String::from(
        "global\n  nbthread 1\n  maxconn 8192\ndefaults\n  mode tcp\n  timeout connect 5s\n  \
         timeout client 1h\n  timeout server 1h\n",
    );
    for (index, (switch, controller)) in switch_addresses.iter().zip(controllers).enumerate() {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "listen tenant{index}\n  bind {switch}\n  server controller {controller}\n"
        );
    }
    text
}

/// For each side that uses TLS: its identity, the name of its authority in Weir's configuration, and the authority's
/// file.
fn authorities(setup: &Setup) -> impl Iterator<Item = (&Identity, &'static str, &'static str)> {
    let switches = setup.tls.switches.iter().map(|it| (it, "switch_ca", "switch-ca.pem"));
    let controllers =
        setup.tls.controllers.iter().map(|it| (it, "controller_ca", "controller-ca.pem"));
    switches.chain(controllers)
}

/// The fingerprint by which Weir recognizes the certificate of a side that uses TLS.
fn fingerprint(side: &Option<Identity>) -> Option<channel::CertificateName> {
    let shown = channel::PeerCertificate::of_file(&side.as_ref()?.certificate)?;
    Some(shown.fingerprint())
}

/// Weir's configuration: one slice per tenant, or one network.
#[must_use]
pub fn weir_config(
    setup: &Setup,
    switch_address: SocketAddr,
    api: SocketAddr,
    controllers: &[SocketAddr],
    (extra, tenancy): (&str, Tenancy),
) -> String {
    let scheme = |side: &Option<Identity>| if side.is_some() { "ssl" } else { "tcp" };
    let (southbound, northbound) = (scheme(&setup.tls.switches), scheme(&setup.tls.controllers));
    let mut text = format!(
        "[listen]\nopenflow = \"{southbound}:{switch_address}\"\napi = \"{api}\"\napi_changes = \"loopback\"\n"
    );
    if let Some(identity) = setup.tls.system.as_ref().filter(|_| setup.tls.is_used()) {
        // TOML's literal strings need no escapes in a path.
        let _ = write!(
            text,
            "\n[tls]\nprivate_key = '{}'\ncertificate = '{}'\n",
            absolute(&identity.private_key),
            absolute(&identity.certificate)
        );
        for (_, key, file) in authorities(setup) {
            let _ = writeln!(text, "{key} = '{file}'");
        }
    }
    if let Some(certificate) = fingerprint(&setup.tls.switches) {
        let _ = write!(text, "\n[[switches]]\ndpid = \"1\"\ncertificate = \"{certificate}\"\n");
    }
    for (index, controller) in controllers.iter().enumerate() {
        let each = if index == 0 { 1 } else { setup.controllers_each };
        let all = all_controllers(*controller, each);
        let all: Vec<String> = all.map(|it| format!("\"{northbound}:{it}\"")).collect();
        let all = all.join(", ");
        let _ = write!(text, "\n[[tenants]]\nname = \"tenant{index}\"\ncontrollers = [{all}]\n");
        if let Some(certificate) = fingerprint(&setup.tls.controllers) {
            let _ = writeln!(text, "controller_certificates = [\"{certificate}\"]");
        }
        if tenancy == Tenancy::Nothing {
            continue;
        }
        if tenancy == Tenancy::Networks {
            // One virtual switch on the only physical switch. Its ports have the numbers that the generator uses.
            let (dpid, on) = (0x100 + index, setup.dpid());
            let _ = write!(
                text,
                "[[tenants.network.switches]]\ndpid = \"{dpid:#x}\"\non = \"{on:#x}\"\n"
            );
            let ports = [setup.port(index), setup.other_port(index)];
            for port in ports.into_iter().take(setup.own_ports.max(1)) {
                let _ = write!(
                    text,
                    "[[tenants.network.ports]]\nswitch = \"{dpid:#x}\"\nnumber = {port}\n\
                     at = \"{on:#x} port {port}\"\n"
                );
            }
        } else {
            let flowspace = setup.slicing.flowspace(index, setup.tenants);
            if tenancy == Tenancy::Labels {
                text.push_str(&vnics(setup, index));
            }
            let _ = write!(text, "[[tenants.flowspace]]\nmatch = \"{flowspace}\"\n");
            if setup.bound_to_switch {
                let _ = writeln!(text, "switches = [\"{:#x}\"]", setup.dpid());
            }
        }
    }
    if !extra.is_empty() {
        text.push('\n');
        text.push_str(&extra.replace("{links}", &links(setup)));
        text.push('\n');
    }
    text
}

/// A physical link between the two ports of each tenant; tenants may have the same two ports.
fn links(setup: &Setup) -> String {
    let on = setup.dpid();
    let pair = |index| (setup.port(index), setup.other_port(index));
    let pairs: BTreeSet<_> = (0..setup.tenants).map(pair).collect();
    let link = |(port, other)| {
        format!(
            "[[topology.links]]\nbetween = [\"{on:#x} port {port}\", \"{on:#x} port {other}\"]\n"
        )
    };
    pairs.into_iter().map(link).collect()
}

/// The addresses of all controllers of a tenant: the first one, and the next addresses with the same port.
pub(crate) fn all_controllers(first: SocketAddr, each: usize) -> impl Iterator<Item = SocketAddr> {
    let ip = match first.ip() {
        IpAddr::V4(ip) => u32::from(ip),
        // The controllers of a system that this crate starts have IPv4 addresses.
        IpAddr::V6(_) => u32::from(Ipv4Addr::LOCALHOST),
    };
    let next = (1..each as u32).map(move |more| Ipv4Addr::from(ip.saturating_add(more)));
    std::iter::once(first).chain(next.map(move |ip| SocketAddr::new(ip.into(), first.port())))
}

/// The virtual interfaces of a tenant whose flows are followed, and the way by which the tenant gets labels. The
/// interfaces are at ports without other use.
fn vnics(setup: &Setup, index: usize) -> String {
    let form = match setup.version {
        Version::V1_0 => "of10",
        Version::V1_3 => "of13",
    };
    let mut text = format!("labels = \"{form}\"\n");
    for (address, number, sends) in flow_change::hosts(setup, index) {
        let (on, port) = (setup.dpid(), setup.last_port() + if sends { 1 } else { 2 });
        let [high, low] = (index as u16).to_be_bytes();
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "[[tenants.vnics]]\nport = \"{on:#x} port {port}\"\nmac = \"02:01:{high:02x}:{low:02x}:00:{number:02x}\"\n\
             ip = \"{}\"\nbandwidth = \"10Mbit\"\n",
            Ipv4Addr::from(address)
        );
    }
    text
}

/// Makes a path absolute, because the configuration is in another folder than the user's current folder.
fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

fn write(file: &Path, text: &str) -> Result<(), Error> {
    fs::write(file, text).map_err(Error::io(file.display().to_string()))
}

/// A free port at this host.
fn free_address(host: IpAddr) -> Result<SocketAddr, Error> {
    let port = packet::free_port().map_err(Error::io("a free port"))?;
    Ok(SocketAddr::new(host, port))
}

/// A child process that ends when this value is dropped.
#[derive(Debug)]
struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Process {
    fn spawn(
        name: &'static str,
        program: &Path,
        arguments: &[String],
        dir: &Path,
    ) -> Result<Self, Error> {
        let log = dir.join(format!("{name}.log"));
        let file = fs::File::create(&log).map_err(Error::io(log.display().to_string()))?;
        let again = file.try_clone().map_err(Error::io(log.display().to_string()))?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(again)
            .spawn()
            .map_err(|error| {
                Error::System(format!("{} does not start: {error}", program.display()))
            })?;
        Ok(Self { name, child, log })
    }

    fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until programs listen on all of these ports. The wait makes no connection, because a connection is an
    /// event for a system under test.
    fn wait_listening(&self, addresses: &[SocketAddr]) -> Result<(), Error> {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            let ports = listening_ports();
            if addresses.iter().all(|address| ports.binary_search(&address.port()).is_ok()) {
                return Ok(());
            }
            let alive = crate::observe::resident(self.id()).is_some();
            if !alive || Instant::now() > deadline {
                let said = fs::read_to_string(&self.log).unwrap_or_default();
                let said: String = said.lines().rev().take(3).collect::<Vec<_>>().join(" | ");
                let what = if alive { "does not listen in time" } else { "ended at once" };
                return Err(Error::System(format!("{} {what}: {said}", self.name)));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let terminate = rustix::process::Signal::TERM;
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id().cast_signed()) {
            let _ = rustix::process::kill_process(pid, terminate);
        }
        let deadline = Instant::now() + STOP_LIMIT;
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All TCP ports with a listening program, in rising order.
fn listening_ports() -> Vec<u16> {
    let mut ports = Vec::new();
    for file in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let text = fs::read_to_string(file).unwrap_or_default();
        ports.extend(text.lines().skip(1).filter_map(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let (local, state) = (fields.next()?, fields.nth(1)?);
            let port = u16::from_str_radix(local.rsplit(':').next()?, 16).ok()?;
            (state == "0A").then_some(port)
        }));
    }
    ports.sort_unstable();
    ports
}

/// Counts of messages to switches, from a system with Weir's metrics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Southbound {
    /// Messages that no tenant requested.
    pub(crate) own: f64,
    pub(crate) all: f64,
}

/// The largest age of Weir's metrics.
const METRICS_AGE: Duration = Duration::from_millis(300);

impl Target {
    /// The messages that the system has sent to switches so far, if the system reports them.
    pub(crate) fn southbound(&self) -> Option<Southbound> {
        let api = self.api?;
        std::thread::sleep(METRICS_AGE);
        let (_, text) = rest::text(api, "GET", "/metrics", "", Duration::from_secs(5)).ok()?;
        let sum = |name, label| rest::sum(&text, name, label);
        Some(Southbound {
            own: sum("weir_switch_own_messages_total", ""),
            all: sum("weir_switch_messages_total", "to_switch"),
        })
    }

    /// The log file of the system that this crate started.
    pub(crate) fn log(&self) -> Option<&Path> {
        self.process.as_ref().map(|process| process.log.as_path())
    }

    /// Whether the system that this crate started still runs.
    #[must_use]
    pub fn is_alive(&mut self) -> bool {
        self.process.as_mut().is_none_or(|process| matches!(process.child.try_wait(), Ok(None)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn the_generated_weir_configuration_has_a_slice_per_tenant() {
        let setup = Setup::new(Topology::Direct, 2);
        let text = weir_config(
            &setup,
            address(1),
            address(2),
            &[address(3), address(4)],
            ("[limits]", Tenancy::Slices),
        );
        assert_eq!(
            text,
            "[listen]\nopenflow = \"tcp:127.0.0.1:1\"\napi = \"127.0.0.1:2\"\napi_changes = \"loopback\"\n\
             \n[[tenants]]\nname = \"tenant0\"\ncontrollers = [\"tcp:127.0.0.1:3\"]\n\
             [[tenants.flowspace]]\nmatch = \"ip,nw_src=10.1.0.0/16\"\n\
             \n[[tenants]]\nname = \"tenant1\"\ncontrollers = [\"tcp:127.0.0.1:4\"]\n\
             [[tenants.flowspace]]\nmatch = \"ip,nw_src=10.2.0.0/16\"\n\n[limits]\n"
        );
    }

    /// The configuration has the numbers of a real switch: its datapath id, and two ports for each tenant whose rules
    /// forward.
    #[test]
    fn the_configuration_has_the_ports_of_a_real_switch() {
        let system = System::Weir {
            command: Vec::new(),
            extra: "{links}".to_owned(),
            tenancy: Tenancy::Networks,
        };
        let port = |switch_port| crate::DataPort {
            interface: "eth0".to_owned(),
            namespace: None,
            switch_port,
        };
        let mut setup = Setup::new(Topology::Direct, 2);
        setup.switch = setup.switch.for_kinds([crate::Kind::FlowModPacket]);
        let mut setup = system.fit(&setup);
        let size = system.size(&setup);
        assert_eq!((size.switches, size.ports), (1, 4));
        let ports = [11, 12, 15, 16].map(port).to_vec();
        setup.topology = Topology::Interfaces { ports, switches: 1, dpid: 0xab };
        assert_eq!([setup.port(0), setup.other_port(0)], [11, 12]);
        assert_eq!([setup.port(1), setup.other_port(1)], [15, 16]);
        let System::Weir { extra, tenancy, .. } = &system else { return };
        let what = (extra.as_str(), *tenancy);
        let text = weir_config(&setup, address(1), address(2), &[address(3), address(4)], what);
        for port in ["0xab port 11", "0xab port 12", "0xab port 15", "0xab port 16"] {
            // The text has the port once as a port of the tenant's network, and once as an end of a link.
            assert_eq!(text.matches(port).count(), 2, "{port}: {text}");
        }
        assert_eq!(text.matches("on = \"0xab\"").count(), 2, "{text}");
        let link = "between = [\"0xab port 15\", \"0xab port 16\"]";
        assert_eq!(text.matches(link).count(), 1, "{text}");
        // Without a hypervisor each tenant has a switch of its own, with two ports.
        let direct = System::Direct.fit(&setup);
        assert_eq!(System::Direct.size(&direct), Size { switches: 2, ports: 2, entries: 0 });
    }

    #[test]
    fn a_listening_port_is_found_without_a_connection() {
        use std::net::TcpListener;
        let listener = TcpListener::bind(address(0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listening_ports().binary_search(&port).is_ok());
        drop(listener);
        // A process that another test starts now has the socket, too, until its exec.
        let until = Instant::now() + Duration::from_secs(5);
        while listening_ports().binary_search(&port).is_ok() {
            assert!(Instant::now() < until, "port {port} is still open");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn the_error_for_a_system_that_fails_at_the_start_has_the_reason() {
        let dir = std::env::temp_dir().join(format!("weir-bench-system-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let controllers = Controllers::bind(1, address(0)).unwrap();
        let setup = Setup::new(Topology::Direct, 1);
        for (command, words) in [
            (vec!["/no/such/program"], "does not start"),
            (vec!["sh", "-c", "echo no such key >&2; exit 2"], "no such key"),
        ] {
            let command = command.into_iter().map(str::to_owned).collect();
            let system = System::Weir { command, extra: String::new(), tenancy: Tenancy::Slices };
            let error = system.start(&setup, &controllers, &dir, None).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        fs::remove_dir_all(dir).unwrap();
    }
}
