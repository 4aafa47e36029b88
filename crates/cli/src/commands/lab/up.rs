//! Makes a network (`weir lab up`).

use super::which::{State, wait_until_forwarding};
use crate::exit::Exit;
use crate::signals;
use anyhow::{Context, bail};
use lab::Interrupted;
use lab::{Controller, Datapath, FailMode, Lab, Options, Protocol, Rate, Topology};
use std::io::Write;
use std::time::Duration;

/// Make a network, which stays until `weir lab down`
///
/// TOPOLOGY is a file (*.toml, see docs/lab.md) or one of: single,HOSTS; linear,SWITCHES or linear,SWITCHES,HOSTS;
/// tree,DEPTH,FANOUT; leafspine,LEAVES,SPINES,HOSTS; fattree,K; isolation2013. Hosts are h1, h2, ... at 10.0.0.1,
/// 10.0.0.2, ...; switches are s1, s2, ... Without a controller, switches learn addresses by themselves; where there
/// are loops, they first agree on a spanning tree, which is waited for.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir lab up single,4 --controller tcp:127.0.0.1:6653 --protocols 1.3

127.0.0.1 means this machine: the command prints the address on which a controller must listen (0.0.0.0 does, too).")]
pub struct Up {
    /// The network
    topology: String,
    /// The lab's name [default: the first free of lab1, lab2, ...]
    #[arg(long = "lab", alias = "name", value_name = "NAME")]
    name: Option<String>,
    /// The address of a controller, such as tcp:127.0.0.1:6653; may be repeated
    #[arg(long = "controller", value_name = "tcp:HOST:PORT|ssl:HOST:PORT")]
    controllers: Vec<Controller>,
    /// OpenFlow versions that the switches offer, such as 1.0,1.3 [default: Open vSwitch's]
    #[arg(long, value_name = "VERSIONS", value_delimiter = ',')]
    protocols: Vec<Protocol>,
    /// The datapath of the switches
    #[arg(long, value_name = "KIND", default_value = "netdev")]
    datapath: Kind,
    /// What switches do without their controller [default: secure with --controller, else standalone]
    #[arg(long, value_name = "MODE")]
    fail_mode: Option<Mode>,
    /// The maximum rates of queues 0, 1, ... at every port of the switches, such as 10Mbit,1Mbit
    #[arg(long, value_name = "RATES", value_delimiter = ',')]
    queues: Vec<Rate>,
    /// Give every host the hardware addresses of all other hosts, so that there is no ARP
    #[arg(long)]
    static_arp: bool,
    /// Leave IPv6 on in the hosts, which then send packets by themselves
    #[arg(long)]
    ipv6: bool,
    /// Seconds to wait until all switches have connected to their controllers
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    wait: Option<u64>,
    #[command(flatten)]
    state: State,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Mode {
    /// Drop packets that match no flow entry
    Secure,
    /// Learn addresses like an ordinary switch
    Standalone,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Kind {
    /// The userspace datapath of Open vSwitch, on any kernel
    Netdev,
    /// The kernel module openvswitch: faster, if the kernel has the module
    System,
}

impl Up {
    pub fn run(self) -> anyhow::Result<Exit> {
        let interrupt = signals::interrupt()?;
        let topology = Topology::load(&self.topology)?;
        let options = Options {
            name: self.name,
            state: self.state.directory(),
            controllers: self.controllers,
            protocols: self.protocols,
            datapath: match self.datapath {
                Kind::Netdev => Datapath::Netdev,
                Kind::System => Datapath::System,
            },
            fail_mode: self.fail_mode.map(|mode| match mode {
                Mode::Secure => FailMode::Secure,
                Mode::Standalone => FailMode::Standalone,
            }),
            queues: self.queues,
            static_arp: self.static_arp,
            ipv6: self.ipv6,
            ephemeral: false,
        };
        let made = Lab::up(&topology, &options);
        interrupt.check().or_else(|interrupted| {
            // The user has ended the wait, so the lab is removed.
            made.as_ref().ok().cloned().map_or(Ok(()), Lab::down)?;
            Err::<(), anyhow::Error>(interrupted.into())
        })?;
        let lab = made?;
        describe(&lab)?;
        match wait_until_forwarding(&lab, || interrupt.check()) {
            Ok(true) => {}
            Ok(false) => bail!("{} is up, but its switches agree on no spanning tree", lab.name()),
            Err(error) if error.is::<Interrupted>() => {
                lab.down()?;
                return Err(error);
            }
            Err(error) => return Err(error),
        }
        if let Some(seconds) = self.wait {
            let connected = lab.wait_connected(Duration::from_secs(seconds));
            connected.with_context(|| format!("{} is up, but", lab.name()))?;
            writeln!(std::io::stdout(), "the switches are connected to their controllers")?;
        }
        Ok(Exit::Success)
    }
}

fn describe(lab: &Lab) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    let topology = lab.topology();
    let (switches, hosts) = (topology.switches().len(), topology.hosts().len());
    let plural = |count: usize| if count == 1 { "" } else { "es" };
    let hosts = if hosts == 1 { "1 host".to_owned() } else { format!("{hosts} hosts") };
    writeln!(stdout, "{}: {switches} switch{}, {hosts}", lab.name(), plural(switches))?;
    if let Some(address) = lab.controller_address() {
        writeln!(stdout, "controllers on this machine must listen on {address} or 0.0.0.0")?;
    }
    Ok(())
}
