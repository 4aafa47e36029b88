//! The model of a network: switches, hosts, links. The model is pure and knows nothing of the machine.
//!
//! A [`Topology`] is always valid: it is made by [`TopologyBuilder::build`], by
//! [`Topology::builtin`] (`single,4` and the like) or by [`Topology::from_toml`]. Names and port
//! numbers are Mininet's: `h1`, `s1`, `s1-eth1`; ports count from 1 in the order of the links; a
//! host's first interface is `eth0`.

mod build;
mod builtin;
mod fabric;
mod file;
mod units;

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

pub use build::TopologyBuilder;
pub(crate) use build::check_lab_name;
pub use builtin::BUILTINS;
pub use units::{MacAddress, Rate};

use crate::error::{Error, Result};

/// A valid network of switches, hosts and links.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    switches: Vec<Switch>,
    hosts: Vec<Host>,
    links: Vec<Link>,
}

/// A switch: one Open vSwitch bridge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// Such as `s1`.
    pub name: String,
    /// Datapath id, unique in the topology and never 0.
    pub dpid: u64,
}

/// A host: one network namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Such as `h1`.
    pub name: String,
    /// Hardware address of `eth0`.
    pub mac: MacAddress,
    /// Address of `eth0`.
    pub ip: Ipv4Addr,
    /// Length of the network prefix of `ip`, 1 to 32.
    pub prefix: u8,
}

/// A link: one veth pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Its two ends, in the order in which they were given.
    pub ends: [LinkEnd; 2],
    /// The rate in each direction; unlimited when `None`.
    pub rate: Option<Rate>,
}

/// One end of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkEnd {
    /// The switch or host.
    pub node: String,
    /// OpenFlow port number at a switch (from 1); index of the interface at a host (from 0).
    pub port: u16,
    /// The interface's name: `s1-eth1` at a switch, `eth0` at a host.
    pub interface: String,
}

impl Topology {
    /// A built-in topology such as `single,4`; see [`BUILTINS`] for all of them.
    pub fn builtin(specification: &str) -> Result<Topology> {
        builtin::parse(specification)
    }

    /// Reads a topology file; errors carry the line and, for a misspelt key, a suggestion.
    pub fn from_toml(text: &str) -> Result<Topology> {
        file::parse(text)
    }

    /// A built-in topology, or the topology file of that name.
    ///
    /// What ends in `.toml` or contains a `/` is a file; everything else is a built-in.
    pub fn load(specification: &str) -> Result<Topology> {
        if !specification.ends_with(".toml") && !specification.contains('/') {
            return Topology::builtin(specification);
        }
        let text = std::fs::read_to_string(specification)
            .map_err(Error::io(format!("read {specification}")))?;
        Topology::from_toml(&text)
    }

    /// An empty topology to add to.
    pub fn builder() -> TopologyBuilder {
        TopologyBuilder::default()
    }

    /// The switches, in the order in which they were added.
    pub fn switches(&self) -> &[Switch] {
        &self.switches
    }

    /// The hosts, in the order in which they were added.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The links, in the order in which they were added.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The host of that name.
    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.iter().find(|host| host.name == name)
    }

    /// The switch of that name.
    pub fn switch(&self, name: &str) -> Option<&Switch> {
        self.switches.iter().find(|switch| switch.name == name)
    }

    /// The ends of links at that node, by port number.
    pub fn ports<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a LinkEnd> {
        self.links.iter().flat_map(|link| &link.ends).filter(move |end| end.node == node)
    }

    /// The switch and port that the host's `eth0` is linked to.
    ///
    /// `None` for an unknown host and for a host that is linked to another host.
    pub fn attachment(&self, host: &str) -> Option<(&Switch, u16)> {
        self.links.iter().find_map(|link| {
            let [a, b] = &link.ends;
            let other = match (a.node == host && a.port == 0, b.node == host && b.port == 0) {
                (true, _) => b,
                (_, true) => a,
                _ => return None,
            };
            Some((self.switch(&other.node)?, other.port))
        })
    }

    /// Whether the switches and their links contain a loop, so that flooding would never end.
    pub fn has_loop(&self) -> bool {
        let mut group: Vec<usize> = (0..self.switches.len()).collect();
        let position = |name: &str| self.switches.iter().position(|switch| switch.name == name);
        for link in &self.links {
            let (Some(a), Some(b)) = (position(&link.ends[0].node), position(&link.ends[1].node))
            else {
                continue;
            };
            let (from, to) = (group[a], group[b]);
            if from == to {
                return true;
            }
            group.iter_mut().filter(|one| **one == from).for_each(|one| *one = to);
        }
        false
    }

    /// The node's name that is nearest to `name`, for error messages.
    pub(crate) fn nearest_node(&self, name: &str) -> Option<String> {
        let names =
            self.switches.iter().map(|s| &*s.name).chain(self.hosts.iter().map(|h| &*h.name));
        crate::names::nearest(name, names).map(str::to_owned)
    }
}
