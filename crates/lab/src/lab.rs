//! Makes labs, opens existing labs, uses labs and removes labs.
//!
//! A lab is made in this order, one step after the other:
//!
//! ```text
//!   claim the name ─ write lab.json ─ namespaces ─ veth pairs ─ addresses ─ Open vSwitch ─ bridges ─ rates ─ write "up"
//! ```
//!
//! `lab.json` lists everything that the later steps make. So removing everything in the list is
//! correct after a stop at any step.

use std::ffi::OsStr;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::address::{ControlLink, Turn, free_control_link};
use crate::command::{program, run, run_with_input};
use crate::controller::Controller;
use crate::error::{Error, Result};
use crate::iperf::{self, IperfOptions, IperfReport};
use crate::namespace;
use crate::openvswitch::OpenVSwitch;
use crate::options::{Datapath, Options};
use crate::ping::{self, PingOptions, PingReport};
use crate::plan;
use crate::process::{self, ProcessIdentity};
use crate::requirements::Requirements;
use crate::state::{Phase, Record, StateDirectory, Summary};
use crate::topology::{Host, LinkEnd, Rate, Topology};

/// The time that the lab's processes have to end before SIGKILL.
const PATIENCE: Duration = Duration::from_secs(3);
/// The maximum number of checks while a lab is taken down, because its processes may still create objects.
const MOST_LOOKS: usize = 20;
/// The maximum wait for other labs that come up. Each lab holds the lock for much less than a
/// second.
const TURN: Duration = Duration::from_secs(30);

/// The maximum number of nodes, against typing errors. The limit is far above the capacity of one machine, and is
/// checked before anything is made.
const MOST_NODES: usize = 2_000;

/// A running lab.
///
/// Dropping the value leaves the lab up: `weir lab up` returns and the lab stays.
/// [`crate::LabGuard`] is for labs that end with their scope.
#[derive(Clone, Debug)]
pub struct Lab {
    state: StateDirectory,
    record: Record,
}

impl Lab {
    /// Makes the network and returns when every link is up and every bridge exists.
    ///
    /// If a step fails, everything that was made before is removed before the error is returned.
    pub fn up(topology: &Topology, options: &Options) -> Result<Lab> {
        let nodes = topology.switches().len() + topology.hosts().len();
        if nodes > MOST_NODES {
            return Err(Error::topology(format!(
                "{nodes} switches and hosts are more than the {MOST_NODES} that a lab can have"
            )));
        }
        let rates = topology.links().iter().any(|link| link.rate.is_some());
        let needs = Requirements { switches: !topology.switches().is_empty(), rates };
        needs.require_for(options.datapath)?;
        // The turn is held from the search for free names and addresses until they are taken, so
        // that no other lab takes them.
        let turn = Turn::wait(TURN)?;
        let mut lab = Lab::plan(topology, options)?;
        match lab.make_links(turn).and_then(|()| lab.set_up(options)) {
            Ok(()) => Ok(lab),
            Err(error) => {
                if let Err(second) = lab.remove() {
                    tracing::error!(lab = lab.name(), error = %second, "a failed lab could not be removed whole");
                }
                Err(error)
            }
        }
    }

    /// Opens the lab of that name.
    pub fn open(name: &str, state: &StateDirectory) -> Result<Lab> {
        Ok(Lab { state: state.clone(), record: state.read(name)? })
    }

    /// Lists all labs by name.
    pub fn list(state: &StateDirectory) -> Result<Vec<Summary>> {
        state.list()
    }

    /// Removes everything that the lab made: processes, namespaces with their interfaces, files.
    ///
    /// Processes inside its hosts end with the lab. Of an incomplete lab (after a crash, or after
    /// an earlier attempt) the existing parts are removed.
    pub fn down(self) -> Result<()> {
        self.remove()
    }

    /// Removes the labs that belonged to a process that has ended, and returns their names.
    pub fn down_abandoned(state: &StateDirectory) -> Result<Vec<String>> {
        let abandoned: Vec<_> =
            state.list()?.into_iter().filter(|lab| lab.abandoned).map(|lab| lab.name).collect();
        for name in &abandoned {
            match Lab::open(name, state) {
                // Another process has removed the lab.
                Err(Error::NoSuchLab { .. }) => {}
                lab => lab?.down()?,
            }
        }
        Ok(abandoned)
    }

    /// The lab's name.
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// The topology of the lab.
    pub fn topology(&self) -> &Topology {
        &self.record.topology
    }

    /// The folder of the lab's files.
    pub fn folder(&self) -> PathBuf {
        self.state.folder(&self.record.name)
    }

    /// The address at which a controller on this machine must listen so that the switches reach it.
    ///
    /// The controller may also listen on `0.0.0.0`, but not on `127.0.0.1`, because the switches
    /// have their own namespace. The address is `None` for a lab without switches.
    pub fn controller_address(&self) -> Option<Ipv4Addr> {
        self.record.control.as_ref().map(|control| control.host)
    }

    /// The control channel's link; `None` for a lab without switches.
    pub fn control_link(&self) -> Option<&ControlLink> {
        self.record.control.as_ref()
    }

    /// The private Open vSwitch; `None` for a lab without switches.
    pub fn open_vswitch(&self) -> Option<OpenVSwitch> {
        self.record.control.as_ref().map(|_| OpenVSwitch::attach(&self.switch_folder()))
    }

    /// The named network namespace (below `/run/netns`) of a switch or host. All switches share one namespace.
    pub fn namespace(&self, node: &str) -> Result<String> {
        self.check_node(node)?;
        Ok(plan::namespace(self.name(), self.topology(), node))
    }

    /// Makes a command in the namespace of a host or of the switches. The caller adds arguments and
    /// runs the command.
    ///
    /// In the namespace of the switches, the programs of Open vSwitch find the lab's instance: `ovs-ofctl dump-flows
    /// s1`.
    pub fn command(&self, node: &str, name: impl AsRef<OsStr>) -> Result<Command> {
        let namespace = self.namespace(node)?;
        let mut command = self.program("ip");
        command
            .env_remove("LC_ALL")
            .stdin(Stdio::inherit())
            .args(["netns", "exec", &namespace])
            .arg(name);
        if let Some(switches) =
            self.open_vswitch().filter(|_| self.topology().switch(node).is_some())
        {
            switches.environment(&mut command);
        }
        Ok(command)
    }

    /// Runs a program (the first word) in the namespace of a host or of the switches, and waits for
    /// its output.
    ///
    /// The caller has to check the exit status.
    pub fn exec<S: AsRef<OsStr>>(&self, node: &str, words: &[S]) -> Result<Output> {
        let [name, arguments @ ..] = words else {
            return Err(Error::Option { option: "command", message: "there is none".to_owned() });
        };
        let mut command = self.command(node, name)?;
        command.stdin(Stdio::null()).args(arguments);
        command.output().map_err(Error::io(format!("run a program at {node}")))
    }

    /// Pings every host from every other.
    pub fn ping_all(&self, options: &PingOptions) -> Result<PingReport> {
        let hosts: Vec<&str> = self.topology().hosts().iter().map(|host| &*host.name).collect();
        self.ping(&hosts, options)
    }

    /// Pings each of these hosts from each other of them.
    pub fn ping(&self, hosts: &[&str], options: &PingOptions) -> Result<PingReport> {
        let station = |name: &&str| -> Result<ping::Station> {
            let host = self.host(name)?;
            Ok(ping::Station {
                name: host.name.clone(),
                namespace: plan::namespace(self.name(), self.topology(), name),
                address: host.ip,
            })
        };
        ping::all(&hosts.iter().map(station).collect::<Result<Vec<_>>>()?, options)
    }

    /// Measures the throughput from one host to another with `iperf3`.
    pub fn iperf(&self, from: &str, to: &str, options: &IperfOptions) -> Result<IperfReport> {
        let address = self.host(to)?.ip;
        self.host(from)?;
        iperf::measure(self.command(from, "iperf3")?, self.command(to, "iperf3")?, address, options)
    }

    /// Sets the queues 0, 1, ... of a switch's port, which is named by its interface, such as `s1-eth2`. Each queue has
    /// a maximum rate. The new queues replace the old queues. An empty list removes all queues.
    ///
    /// Open vSwitch implements queues with HTB. With its userspace datapath every packet leaves through queue 0. This
    /// datapath sends frames to the kernel through a packet socket, which carries no priority, so HTB does not know the
    /// class of a frame. The switch reports all queues to its controllers nevertheless.
    pub fn set_queues(&self, interface: &str, rates: &[Rate]) -> Result<()> {
        let wrong = |message| Error::Option { option: "queues", message };
        let is_port = |end: &LinkEnd| {
            end.interface == interface && self.topology().switch(&end.node).is_some()
        };
        let link = self.topology().links().iter().find(|link| link.ends.iter().any(is_port));
        let link = link.ok_or_else(|| wrong(format!("no switch has a port {interface}")))?;
        if link.rate.is_some() {
            return Err(wrong(format!("{interface} has a rate: give queues when the lab is made")));
        }
        match self.open_vswitch() {
            Some(switches) => switches.vsctl(plan::queues(interface, rates)).map(drop),
            None => Ok(()),
        }
    }

    /// Sets the controllers of every switch. The new controllers replace the old controllers.
    pub fn set_controllers(&mut self, controllers: &[Controller]) -> Result<()> {
        let (Some(switches), Some(control)) = (self.open_vswitch(), &self.record.control) else {
            return Ok(());
        };
        switches.vsctl(plan::controllers(self.topology(), controllers, control))?;
        self.record.controllers = controllers.to_vec();
        self.state.write(&self.record)
    }

    /// Sets the controllers of each of these switches. The new controllers replace the old
    /// controllers, and an empty list removes all controllers. The other switches keep their
    /// controllers.
    pub fn set_controllers_of(&self, switches: &[(&str, &[Controller])]) -> Result<()> {
        switches.iter().try_for_each(|(name, _)| match self.topology().switch(name) {
            Some(_) => Ok(()),
            None => Err(self.topology().unknown(name)),
        })?;
        let (Some(instance), Some(control)) = (self.open_vswitch(), &self.record.control) else {
            return Ok(());
        };
        instance.vsctl(plan::controllers_of(switches.iter().copied(), control)).map(drop)
    }

    /// Waits until every switch is connected to all its controllers.
    pub fn wait_connected(&self, patience: Duration) -> Result<()> {
        let Some(switches) = self.open_vswitch() else { return Ok(()) };
        let deadline = Instant::now() + patience;
        // ovs-vswitchd reports connections every five seconds, and at once when the interval
        // changes.
        for interval in (5000..6000).cycle() {
            let refresh = format!("other_config:stats-update-interval={interval}");
            switches.vsctl(["set", "Open_vSwitch", ".", &refresh])?;
            let states =
                switches.vsctl(["--columns=is_connected", "--bare", "find", "Controller"])?;
            let mut states = states.split_whitespace().peekable();
            if states.peek().is_some() && states.all(|state| state == "true") {
                return Ok(());
            }
            if Instant::now() >= deadline {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let controllers: Vec<_> = self.record.controllers.iter().map(ToString::to_string).collect();
        let mut what = format!("the switches' connection to {}", controllers.join(", "));
        if let Some(here) = self.controller_address() {
            what += &format!(" (a controller on this machine must listen on {here} or 0.0.0.0)");
        }
        Err(Error::Timeout { what, after: patience })
    }

    /// Whether the standalone switches of a network with loops have agreed on a spanning tree. The switches forward
    /// nothing before. Returns true if the switches run no spanning tree.
    pub fn is_forwarding(&self) -> Result<bool> {
        match self.open_vswitch().filter(|_| self.topology().has_loop()) {
            Some(switches) => Ok(plan::has_settled(&switches.appctl(["rstp/show"])?)),
            None => Ok(true),
        }
    }

    fn plan(topology: &Topology, options: &Options) -> Result<Lab> {
        let owner = if options.ephemeral { ProcessIdentity::own() } else { None };
        let is_free = |name: &str| {
            // Labs of other state directories can have namespaces with this name.
            plan::namespaces(name, topology).iter().all(|name| !namespace::path(name).exists())
        };
        let record = options.state.claim(options.name.as_deref(), is_free, |name| Record {
            version: Record::VERSION,
            name: name.to_owned(),
            phase: Phase::Starting,
            created: Record::now(),
            owner,
            controllers: options.controllers.clone(),
            topology: topology.clone(),
            namespaces: Vec::new(),
            control: None,
            processes: Vec::new(),
        })?;
        Ok(Lab { state: options.state.clone(), record })
    }

    fn set_up(&mut self, options: &Options) -> Result<()> {
        self.set_up_switch_namespace()?;
        self.set_up_hosts(options)?;
        if let Some(control) = self.record.control.clone() {
            let namespace = plan::switches_namespace(self.name());
            let switches = OpenVSwitch::start(&self.switch_folder(), &namespace)?;
            self.record.processes = switches.processes();
            self.state.write(&self.record)?;
            let mut transaction = plan::bridges(self.topology(), options);
            if !options.controllers.is_empty() {
                transaction.extend(plan::controllers(
                    self.topology(),
                    &options.controllers,
                    &control,
                ));
            }
            switches.vsctl(transaction)?;
        }
        // Rates are set after the bridges are made, because ovs-vswitchd resets the queueing
        // discipline of a port that it adds.
        for (namespace, script) in
            plan::rates(self.name(), self.topology(), !options.queues.is_empty())
        {
            namespace::inside(&namespace, || {
                run_with_input(self.program("tc").args(["-batch", "-"]), &script)
            })?;
        }
        self.record.phase = Phase::Up;
        self.state.write(&self.record)
    }

    /// Makes namespaces and interfaces.
    fn make_links(&mut self, turn: Turn) -> Result<()> {
        let namespaces = plan::namespaces(self.name(), self.topology());
        if let Some(taken) = namespaces.iter().find(|name| namespace::path(name).exists()) {
            return Err(Error::Occupied(format!("the network namespace {taken}")));
        }
        // From here on this lab must remove the namespaces.
        self.record.namespaces = namespaces;
        if !self.topology().switches().is_empty() {
            self.record.control = Some(free_control_link(&turn)?);
        }
        self.state.write(&self.record)?;
        self.ip_batch(&plan::make_namespaces(&self.record.namespaces))?;
        self.ip_batch(&plan::make_links(self.name(), self.topology(), self.record.control.as_ref()))
    }

    fn set_up_switch_namespace(&self) -> Result<()> {
        let Some(control) = &self.record.control else { return Ok(()) };
        namespace::inside(&plan::switches_namespace(self.name()), || {
            // With IPv6 the kernel itself would send multicast listener reports out of every port.
            disable_ipv6()?;
            self.ip_batch(&plan::switch_interfaces(self.topology(), control))
        })
    }

    fn set_up_hosts(&self, options: &Options) -> Result<()> {
        self.topology().hosts().iter().try_for_each(|host| {
            namespace::inside(&plan::namespace(self.name(), self.topology(), &host.name), || {
                if !options.ipv6 {
                    disable_ipv6()?;
                }
                // The userspace datapath forwards frames without changes, so a checksum that was
                // left to the hardware would stay wrong.
                let ends = self.topology().ports(&host.name);
                for end in ends.filter(|_| options.datapath == Datapath::Netdev) {
                    run(self.program("ethtool").args(["-K", &end.interface, "tx", "off"]))?;
                }
                self.ip_batch(&plan::host_interfaces(self.topology(), host, options.static_arp))
            })
        })
    }

    pub(crate) fn remove(&self) -> Result<()> {
        // Without this lock, another lab could take a name that becomes free, and the next check would take down that
        // lab.
        let _turn = Turn::wait(TURN)?;
        // The lab is checked more than once, because a program that a killed lab process started
        // may still create objects. A check of a large lab, or on a busy machine, can take a long
        // time.
        let start = Instant::now();
        let mut looks = 0..MOST_LOOKS;
        while self.remove_what_is_there()? {
            if looks.next().is_none() {
                let what = format!("the removal of lab {}", self.name());
                return Err(Error::Timeout { what, after: start.elapsed() });
            }
        }
        self.state.release(self.name())
    }

    /// Removes the existing parts of the lab. Returns whether there was a part to remove.
    fn remove_what_is_there(&self) -> Result<bool> {
        let processes = self.processes();
        process::end(&processes, PATIENCE)?;
        let link = match &self.record.control {
            Some(control) => self.remove_control_link(control)?,
            None => false,
        };
        let is_there = |name: &&String| namespace::path(name).exists();
        let present: Vec<_> = self.record.namespaces.iter().filter(is_there).collect();
        let script: String = present.iter().map(|name| format!("netns delete {name}\n")).collect();
        match self.ip_batch(&script) {
            // Another process may be taking down the same lab.
            Err(error) if present.iter().any(is_there) => Err(error),
            _ => Ok(!processes.is_empty() || link || !present.is_empty()),
        }
    }

    /// Every process of the lab: its Open vSwitch, its tools, and the programs that were started at
    /// its hosts.
    fn processes(&self) -> Vec<ProcessIdentity> {
        let lives_in_lab = namespace::membership(&self.record.namespaces);
        let folder = self.folder();
        let mut processes =
            process::find(|pid| lives_in_lab(pid) || process::is_marked(pid, &folder));
        let recorded = self.record.processes.iter().copied().filter(|process| process.is_alive());
        processes.extend(recorded.chain(OpenVSwitch::attach(&self.switch_folder()).processes()));
        processes.sort_by_key(|process| process.pid);
        processes.dedup();
        processes
    }

    /// Removes the control link if its other end is in this lab's namespace. Otherwise the link
    /// belongs to another lab, which came up when this lab was partly removed, and has the same
    /// name and addresses.
    fn remove_control_link(&self, control: &ControlLink) -> Result<bool> {
        let list = ["-oneline", "link", "show", "dev", &control.interface];
        let Ok(listing) = run(self.program("ip").args(list)) else { return Ok(false) };
        let namespace = plan::switches_namespace(self.name());
        let mut words = listing.split_whitespace().skip_while(|word| *word != "link-netns");
        let ours = words.nth(1) == Some(&namespace);
        if ours {
            run(self.program("ip").args(["link", "delete", &control.interface]))?;
        }
        Ok(ours)
    }

    fn host(&self, name: &str) -> Result<&Host> {
        self.topology().host(name).ok_or_else(|| self.topology().unknown(name))
    }

    fn check_node(&self, name: &str) -> Result<()> {
        if self.topology().switch(name).is_some() { Ok(()) } else { self.host(name).map(drop) }
    }

    /// Makes a command of the lab itself, with a mark, so that the program can be found after a
    /// crash.
    fn program(&self, name: &str) -> Command {
        let mut command = program(name);
        command.env(process::MARK, self.folder());
        command
    }

    /// Runs `ip -batch` with the whole script, in the calling thread's namespace.
    fn ip_batch(&self, script: &str) -> Result<()> {
        if script.is_empty() {
            return Ok(());
        }
        run_with_input(self.program("ip").args(["-force", "-batch", "-"]), script).map(drop)
    }

    fn switch_folder(&self) -> PathBuf {
        self.folder().join("openvswitch")
    }
}

/// Turns IPv6 off in the calling thread's namespace. Does nothing on a kernel without IPv6.
fn disable_ipv6() -> Result<()> {
    for scope in ["all", "default"] {
        let path = PathBuf::from(format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6"));
        if path.exists() {
            std::fs::write(&path, "1").map_err(Error::path("write", &path))?;
        }
    }
    Ok(())
}
