//! The types of switches, hosts, links and topologies, with their queries.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use super::units::{MacAddress, Rate};
use crate::error::Error;

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
    /// The name, such as `s1`.
    pub name: String,
    /// Datapath id, unique in the topology and never 0.
    pub dpid: u64,
}

/// A host: one network namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The name, such as `h1`.
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
    /// The two ends of the link, in the given order.
    pub ends: [LinkEnd; 2],
    /// The rate in each direction. `None` means unlimited.
    pub rate: Option<Rate>,
}

/// One end of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkEnd {
    /// The name of the switch or host.
    pub node: String,
    /// OpenFlow port number at a switch (from 1); index of the interface at a host (from 0).
    pub port: u16,
    /// The interface's name: `s1-eth1` at a switch, `eth0` at a host.
    pub interface: String,
}

impl Topology {
    pub(super) fn add_switch(&mut self, switch: Switch) {
        self.switches.push(switch);
    }

    pub(super) fn add_host(&mut self, host: Host) {
        self.hosts.push(host);
    }

    pub(super) fn add_link(&mut self, link: Link) {
        self.links.push(link);
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

    /// Whether the switches and their links contain a loop, in which flooding would never end.
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

    /// The node name most similar to `name`, for error messages.
    pub(crate) fn nearest_node(&self, name: &str) -> Option<String> {
        let names =
            self.switches.iter().map(|s| &*s.name).chain(self.hosts.iter().map(|h| &*h.name));
        crate::names::nearest(name, names).map(str::to_owned)
    }

    /// The error for the unknown node `name`, with a suggestion.
    pub(crate) fn unknown(&self, name: &str) -> Error {
        Error::NoSuchNode { name: name.to_owned(), suggestion: self.nearest_node(name) }
    }
}
