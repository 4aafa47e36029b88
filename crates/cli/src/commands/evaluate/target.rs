//! Finds or makes the switch under evaluation.

use crate::commands::data_port::{data_port, interface};
use anyhow::Context;
use channel::{Address, Listener, Scheme, Tls, TlsFiles};
use emulate::{Config, Fault, ServiceTime};
use evaluate::snmp::Agent;
use evaluate::testbed::Testbed;
use evaluate::{DataPort, Emulated, Gauges, Hardware, Looped, Real, RealOptions, SwitchAddress};
use lab::{FailMode, Lab, LabGuard, Protocol, Rate, Topology};
use openflow::{Version, VersionSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Which switch.
#[derive(clap::Args)]
pub struct Target {
    /// ovs: a private Open vSwitch for this run (needs root); emulated: an emulated switch in virtual time;
    /// listen:IP:PORT: a switch that connects to this address; tcp:IP:PORT or ssl:IP:PORT: a switch that listens there
    #[arg(long, value_name = "SWITCH", default_value = "ovs", value_parser = place)]
    switch: Place,
    /// An interface and the switch's port at its other end; the first channel sends, the second receives; not with ovs
    /// and emulated, which have their own
    #[arg(long = "channel", value_name = "INTERFACE[@NAMESPACE]=PORT", value_parser = data_port)]
    channels: Vec<DataPort>,
    /// Two interfaces that a cable joins without the switch, for the reference measurement
    #[arg(long = "loop", value_name = "INTERFACE[@NAMESPACE]", num_args = 2, value_parser = interface)]
    looped: Vec<DataPort>,
    /// Use TLS with the switch, by PEM files of Weir's key, Weir's certificate and the CA of the switch; with listen:
    /// and ssl:
    #[arg(long, value_name = "KEY,CERT,CA", value_parser = crate::commands::bench::values::identity)]
    tls: Option<bench::Identity>,
    /// The OpenFlow version [default: 1.0 with ovs and emulated, else the highest that the switch speaks]
    #[arg(long, value_name = "VERSION")]
    openflow: Option<OpenFlow>,
    /// The switch's name in results [default: its kind]
    #[arg(long)]
    name: Option<String>,
    /// The switch's process id, if the switch runs on this machine, to measure its CPU time
    #[arg(long)]
    pid: Option<u32>,
    /// The switch's SNMP agent: HOST:PORT,community=NAME (v2c), or HOST:PORT,user=NAME with auth=DIGEST:PASSWORD and
    /// priv=CIPHER:PASSWORD (v3); further cpu=OID, cpu-percent=OID, if=INTERFACE
    #[arg(long, value_name = "AGENT", value_parser = str::parse::<Agent>)]
    snmp: Option<Agent>,
    /// Seconds to wait for the switch, 1 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    wait: u64,
    /// Write a capture of the control channel to this file, for Wireshark and tcpdump
    #[arg(long, value_name = "FILE.pcapng")]
    trace: Option<PathBuf>,
    /// Plant a fault in the emulated switch: barrier-lies=MS, paced-statistics=ENTRIES/MS, drops-changed,
    /// ignores-queues, refuses=EVERY, no-barriers, capacity=ENTRIES, slow=MESSAGES_PER_SECOND
    #[arg(long = "fault", value_name = "FAULT", value_parser = fault)]
    faults: Vec<Planted>,
}

/// A version of OpenFlow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum OpenFlow {
    /// OpenFlow 1.0
    #[value(name = "1.0")]
    V1_0,
    /// OpenFlow 1.3
    #[value(name = "1.3")]
    V1_3,
}

impl OpenFlow {
    fn version(self) -> Version {
        match self {
            OpenFlow::V1_0 => Version::V1_0,
            OpenFlow::V1_3 => Version::V1_3,
        }
    }

    fn only(self) -> VersionSet {
        VersionSet::only(self.version())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    OpenVSwitch,
    Emulated,
    Dial(Address),
    Listen(Address),
}

/// A fault or a limit of an emulated switch.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Planted {
    Fault(Fault),
    Capacity(usize),
    Slow(u32),
}

/// The resources of a testbed. The resources must exist as long as the testbed.
pub struct Bed {
    /// Two looped interfaces.
    pub looped: Option<Box<dyn Testbed>>,
    way: Option<Way>,
    // The lab is dropped last, because threads use interfaces of the lab.
    lab: Option<LabGuard>,
}

/// The method to make the testbed.
enum Way {
    Emulated(Box<Emulated>),
    Real(Box<RealOptions>),
}

/// The rates of the queues of the receiving port: 50 and 5 Mbit/s. Only the private Open vSwitch has these queues, and
/// only during the experiment with queues.
const QUEUES: [u64; 2] = [50_000_000, 5_000_000];
const QUEUED_PORT: &str = "s1-eth2";

impl Bed {
    /// Connects the switch, once. Long work must be done before this call, because a connected switch expects answers.
    pub fn connect(&mut self) -> anyhow::Result<Box<dyn Testbed>> {
        match self.way.take().context("the switch is connected already")? {
            Way::Emulated(testbed) => Ok(testbed),
            Way::Real(options) => {
                if let (Some(lab), SwitchAddress::Listening(here)) = (&self.lab, &options.address) {
                    lab.set_controllers_of(&[("s1", &[here.address().to_string().parse()?])])?;
                }
                Ok(Box::new(Real::open(*options)?))
            }
        }
    }

    /// Makes the queues that an experiment needs at a private switch, and removes the queues for other experiments. HTB
    /// at a port would slow down every other experiment.
    pub fn prepare(&self, experiment: &str) -> anyhow::Result<()> {
        let Some(lab) = &self.lab else { return Ok(()) };
        let queues: &[u64] = if experiment == "queue" { &QUEUES } else { &[] };
        let rates = queues.iter().map(|rate| Rate::from_bits_per_second(*rate));
        lab.set_queues(QUEUED_PORT, &rates.collect::<Result<Vec<_>, _>>()?)?;
        Ok(())
    }
}

impl Target {
    pub fn open(&self) -> anyhow::Result<Bed> {
        let own = self.openflow.unwrap_or(OpenFlow::V1_0).version();
        let tls = self.tls()?;
        let (address, kind) = match self.switch {
            Place::OpenVSwitch => return self.open_vswitch(own),
            Place::Emulated => return self.emulated(own),
            Place::Dial(address) => (SwitchAddress::Dial(address), "switch"),
            Place::Listen(address) if tls.is_some() => {
                (SwitchAddress::Listen(Address::ssl(address.addr)), "switch")
            }
            Place::Listen(address) => (SwitchAddress::Listen(address), "switch"),
        };
        let process = self.pid;
        let versions = self.openflow.map_or(VersionSet::SUPPORTED, OpenFlow::only);
        let mut options = self.real(kind, address, versions, self.channels.clone(), process);
        options.tls = tls;
        let looped = match self.looped.as_slice() {
            [a, b] => {
                let looped: Box<dyn Testbed> = Box::new(Looped::open([a.clone(), b.clone()])?);
                Some(looped)
            }
            _ => None,
        };
        Ok(Bed { looped, way: Some(Way::Real(Box::new(options))), lab: None })
    }

    /// The error in the combination of the arguments, if any.
    pub fn wrong(&self) -> Option<&'static str> {
        match self.switch {
            Place::Dial(Address { scheme: Scheme::Ssl, .. }) if self.tls.is_none() => {
                Some("--switch ssl:IP:PORT needs --tls KEY,CERT,CA")
            }
            Place::Dial(Address { scheme: Scheme::Tcp, .. }) if self.tls.is_some() => {
                Some("--tls needs --switch ssl:IP:PORT or listen:IP:PORT, not tcp:")
            }
            Place::OpenVSwitch | Place::Emulated if self.tls.is_some() => {
                Some("--tls needs --switch ssl:IP:PORT or listen:IP:PORT")
            }
            Place::Emulated if self.snmp.is_some() => {
                Some("--snmp: the emulated switch has no SNMP agent")
            }
            _ => None,
        }
    }

    fn tls(&self) -> anyhow::Result<Option<Tls>> {
        let Some(bench::Identity { private_key, certificate, ca }) = self.tls.clone() else {
            return Ok(None);
        };
        Ok(Some(Tls::load(&TlsFiles { private_key, certificate, ca_certificate: ca })?))
    }

    fn real(
        &self,
        kind: &str,
        address: SwitchAddress,
        versions: VersionSet,
        ports: Vec<DataPort>,
        process: Option<u32>,
    ) -> RealOptions {
        RealOptions {
            name: self.name.clone().unwrap_or_else(|| kind.to_owned()),
            address,
            tls: None,
            versions,
            ports,
            patience: Duration::from_secs(self.wait),
            gauges: Gauges { process, snmp: self.snmp.clone() },
            trace: self.trace.clone(),
        }
    }

    fn emulated(&self, version: Version) -> anyhow::Result<Bed> {
        let mut config = Config::new(1, 3);
        let mut hardware = Hardware::default();
        for planted in &self.faults {
            match planted {
                Planted::Fault(fault) => config.faults.push(fault.clone()),
                Planted::Capacity(entries) => config.max_flows = *entries,
                Planted::Slow(per_second) => {
                    hardware.service = ServiceTime::per_second(*per_second);
                }
            }
        }
        let testbed = Emulated::new(config, hardware, version)?;
        Ok(Bed { looped: None, way: Some(Way::Emulated(Box::new(testbed))), lab: None })
    }

    /// Makes a private Open vSwitch with three hosts, whose interfaces send and receive probes, and two more hosts with
    /// a direct link.
    fn open_vswitch(&self, version: Version) -> anyhow::Result<Bed> {
        let protocol = match version {
            Version::V1_0 => Protocol::OPENFLOW10,
            _ => Protocol::OPENFLOW13,
        };
        let options = lab::Options {
            name: Some(format!("evaluate{}", std::process::id())),
            fail_mode: Some(FailMode::Secure),
            protocols: vec![protocol],
            ephemeral: true,
            ..lab::Options::default()
        };
        let lab = Lab::up(&topology()?, &options)
            .context("no private Open vSwitch; `--switch emulated` needs neither root nor it")?;
        let here = lab.controller_address().context("the lab has no control channel")?;
        let here = Address::tcp(SocketAddr::from((here, 0)));
        let listener = Listener::bind(&here, None, channel::Options::default())?;
        let lab = LabGuard::new(lab);
        let port = |host: &str, switch_port| -> anyhow::Result<DataPort> {
            let namespace = Some(lab.namespace(host)?);
            Ok(DataPort { interface: "eth0".to_owned(), namespace, switch_port })
        };
        let ports = vec![port("h1", 1)?, port("h2", 2)?, port("h3", 3)?];
        let looped = Looped::open([port("l1", 0)?, port("l2", 0)?])?;
        let process = lab.open_vswitch().and_then(|ovs| ovs.switch_process());
        let process = process.map(|process| process.pid.cast_unsigned());
        let address = SwitchAddress::Listening(listener);
        let options = self.real("Open vSwitch", address, VersionSet::only(version), ports, process);
        let way = Some(Way::Real(Box::new(options)));
        Ok(Bed { looped: Some(Box::new(looped)), way, lab: Some(lab) })
    }
}

fn topology() -> lab::Result<Topology> {
    let mut builder = Topology::builder();
    builder.switch("s1")?;
    for host in ["h1", "h2", "h3"] {
        builder.host(host)?.link(host, "s1", None)?;
    }
    builder.host("l1")?.host("l2")?.link("l1", "l2", None)?;
    builder.build()
}

fn place(text: &str) -> Result<Place, String> {
    let address = |text: &str| text.parse::<Address>().map_err(|error| error.to_string());
    match text {
        "ovs" => Ok(Place::OpenVSwitch),
        "emulated" => Ok(Place::Emulated),
        _ => match text.split_once(':') {
            Some(("listen", rest)) => Ok(Place::Listen(address(&format!("tcp:{rest}"))?)),
            Some(("tcp" | "ssl", _)) => Ok(Place::Dial(address(text)?)),
            _ => Err("not ovs, emulated, listen:IP:PORT, tcp:IP:PORT or ssl:IP:PORT".to_owned()),
        },
    }
}

fn fault(text: &str) -> Result<Planted, String> {
    const MILLISECOND: u64 = 1_000_000;
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let number = |value: &str| {
        let number: Option<u32> = value.parse().ok().filter(|number| *number > 0);
        number.ok_or_else(|| format!("{text}: {value:?} is not a number above 0"))
    };
    Ok(match name {
        "barrier-lies" => {
            let by = u64::from(number(value)?) * MILLISECOND;
            Planted::Fault(Fault::BarrierLies { by })
        }
        "paced-statistics" => {
            let (entries, pause) =
                value.split_once('/').ok_or_else(|| format!("{text}: not ENTRIES/MS"))?;
            Planted::Fault(Fault::PaceStatistics {
                entries: number(entries)? as usize,
                interval: u64::from(number(pause)?) * MILLISECOND,
            })
        }
        "ignores-queues" => Planted::Fault(Fault::IgnoreQueues),
        "drops-changed" => Planted::Fault(Fault::DropChangedPackets),
        "refuses" => Planted::Fault(Fault::RefuseFlowMods { every: number(value)? }),
        // BARRIER_REQUEST is 18 in 1.0. In 1.3 the number 18 is MULTIPART_REQUEST, which then gets no answer either.
        "no-barriers" => Planted::Fault(Fault::NeverAnswers { message_type: 18 }),
        "capacity" => Planted::Capacity(number(value)? as usize),
        "slow" => Planted::Slow(number(value)?),
        _ => return Err(format!("{name}: no such fault")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switch_addresses_are_parsed_or_refused() {
        for text in
            ["ovs", "emulated", "listen:0.0.0.0:6653", "tcp:127.0.0.1:6653", "ssl:127.0.0.1:6653"]
        {
            assert!(place(text).is_ok(), "{text}");
        }
        for text in ["", "listen:", "udp:127.0.0.1:1", "tcp:host"] {
            assert!(place(text).is_err(), "{text}");
        }
    }

    #[test]
    fn faults() {
        for text in ["barrier-lies=50", "paced-statistics=10/5", "drops-changed", "capacity=100"] {
            assert!(fault(text).is_ok(), "{text}");
        }
        for text in ["barrier-lies", "barrier-lies=-1", "paced-statistics=10", "lies=1", "slow=0"] {
            assert!(fault(text).is_err(), "{text}");
        }
    }
}
