//! Builds a topology: adds switches, hosts and links one by one, and checks each.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;

use super::model::{Host, Link, LinkEnd, Switch, Topology};
use super::units::{MacAddress, Rate};
use crate::error::{Error, Result};

/// Longest name of a network interface that Linux takes (IFNAMSIZ without the final NUL).
const INTERFACE_NAME: usize = 15;

/// Reserved names, which no node may have: interfaces in the switches' namespace, and that
/// namespace itself.
const RESERVED: [&str; 3] = ["lo", "control", "switches"];

/// Builds a [`Topology`]. Every method returns an error for its own mistake.
#[derive(Clone, Debug, Default)]
pub struct TopologyBuilder {
    topology: Topology,
    /// The existing nodes, so that a network of thousands of nodes needs no search for each new
    /// node.
    nodes: HashMap<String, Node>,
    dpids: HashMap<u64, usize>,
    macs: HashMap<MacAddress, usize>,
    addresses: HashMap<Ipv4Addr, usize>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    is_switch: bool,
    links: usize,
}

impl TopologyBuilder {
    /// Adds a switch. Its datapath id is the number at the end of its name.
    pub fn switch(&mut self, name: &str) -> Result<&mut Self> {
        let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
        let dpid = digits.parse().map_err(|_| {
            Error::topology(format!("switch {name:?} does not end in a number: give its dpid"))
        })?;
        self.switch_with_dpid(name, dpid)
    }

    /// Adds a switch with that datapath id.
    pub fn switch_with_dpid(&mut self, name: &str, dpid: u64) -> Result<&mut Self> {
        self.check_name(name)?;
        if dpid == 0 {
            return Err(Error::topology(format!("switch {name:?}: dpid 0 is not a datapath id")));
        }
        if let Some(&other) = self.dpids.get(&dpid) {
            return Err(Error::topology(format!(
                "switches {:?} and {name:?} have the same dpid {dpid:016x}",
                self.topology.switches()[other].name
            )));
        }
        self.dpids.insert(dpid, self.topology.switches().len());
        self.nodes.insert(name.to_owned(), Node { is_switch: true, links: 0 });
        self.topology.add_switch(Switch { name: name.to_owned(), dpid });
        Ok(self)
    }

    /// Adds a host with the next addresses: the first has `00:00:00:00:00:01` and `10.0.0.1/8`.
    pub fn host(&mut self, name: &str) -> Result<&mut Self> {
        let (mac, ip, prefix) = self.next_addresses()?;
        self.host_with(name, mac, ip, prefix)
    }

    /// The addresses of a host without its own addresses, from its position among the hosts.
    pub(super) fn next_addresses(&self) -> Result<(MacAddress, Ipv4Addr, u8)> {
        let number = u32::try_from(self.topology.hosts().len() + 1)
            .ok()
            .filter(|number| *number < 0xff_ffff);
        let number = number.ok_or_else(|| Error::topology("too many hosts for 10.0.0.0/8"))?;
        let ip = Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 0).to_bits() + number);
        Ok((MacAddress::from_number(number), ip, 8))
    }

    /// Adds a host with those addresses.
    pub fn host_with(
        &mut self,
        name: &str,
        mac: MacAddress,
        ip: Ipv4Addr,
        prefix: u8,
    ) -> Result<&mut Self> {
        self.check_name(name)?;
        if !mac.is_host_address() {
            return Err(Error::topology(format!(
                "host {name:?}: {mac} cannot be a host's address"
            )));
        }
        if !(1..=32).contains(&prefix)
            || ip.is_unspecified()
            || ip.is_multicast()
            || ip.is_loopback()
            || ip.is_broadcast()
        {
            return Err(Error::topology(format!(
                "host {name:?}: {ip}/{prefix} cannot be a host's address"
            )));
        }
        let same = |other: usize, address: &dyn std::fmt::Display| {
            let other = &self.topology.hosts()[other].name;
            Err(Error::topology(format!(
                "hosts {other:?} and {name:?} have the same address {address}"
            )))
        };
        if let Some(&other) = self.macs.get(&mac) {
            return same(other, &mac);
        }
        if let Some(&other) = self.addresses.get(&ip) {
            return same(other, &ip);
        }
        self.macs.insert(mac, self.topology.hosts().len());
        self.addresses.insert(ip, self.topology.hosts().len());
        self.nodes.insert(name.to_owned(), Node { is_switch: false, links: 0 });
        self.topology.add_host(Host { name: name.to_owned(), mac, ip, prefix });
        Ok(self)
    }

    /// Links two nodes. Each end uses the next port of its node.
    pub fn link(&mut self, a: &str, b: &str, rate: Option<Rate>) -> Result<&mut Self> {
        if a == b {
            return Err(Error::topology(format!("a link joins {a:?} to itself")));
        }
        let ends = [self.next_end(a)?, self.next_end(b)?];
        for end in [a, b] {
            if let Some(node) = self.nodes.get_mut(end) {
                node.links += 1;
            }
        }
        self.topology.add_link(Link { ends, rate });
        Ok(self)
    }

    /// Returns the finished topology, which has at least one node and no host without a link.
    pub fn build(self) -> Result<Topology> {
        let topology = self.topology;
        if topology.switches().is_empty() && topology.hosts().is_empty() {
            return Err(Error::topology("it has neither a switch nor a host"));
        }
        let linked: HashSet<&str> =
            topology.links().iter().flat_map(|link| &link.ends).map(|end| &*end.node).collect();
        if let Some(host) = topology.hosts().iter().find(|host| !linked.contains(&*host.name)) {
            return Err(Error::topology(format!("host {:?} has no link", host.name)));
        }
        Ok(topology)
    }

    fn next_end(&self, node: &str) -> Result<LinkEnd> {
        let too_many = || Error::topology(format!("{node:?} has too many links"));
        let (port, interface) = match self.nodes.get(node) {
            Some(&Node { is_switch: true, links }) => {
                let port = u16::try_from(links + 1).ok().filter(|port| *port < 0xff00);
                let port = port.ok_or_else(too_many)?;
                (port, format!("{node}-eth{port}"))
            }
            Some(&Node { is_switch: false, links }) => {
                let port = u16::try_from(links).map_err(|_| too_many())?;
                (port, format!("eth{port}"))
            }
            None => {
                let near = self.topology.nearest_node(node);
                let hint =
                    near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
                return Err(Error::topology(format!(
                    "a link names {node:?}, which is neither a switch nor a host{hint}"
                )));
            }
        };
        if interface.len() > INTERFACE_NAME {
            return Err(Error::topology(format!(
                "the interface {interface:?} is longer than {INTERFACE_NAME} characters: give {node:?} a shorter name"
            )));
        }
        Ok(LinkEnd { node: node.to_owned(), port, interface })
    }

    fn check_name(&self, name: &str) -> Result<()> {
        let letters = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let starts = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
        if !letters || !starts || name.len() > INTERFACE_NAME {
            return Err(Error::topology(format!(
                "{name:?} is not a name: a letter, then letters, digits and _, {INTERFACE_NAME} characters at most"
            )));
        }
        if RESERVED.contains(&name) {
            return Err(Error::topology(format!("the name {name:?} is taken by the lab itself")));
        }
        if self.nodes.contains_key(name) {
            return Err(Error::topology(format!("the name {name:?} is given twice")));
        }
        Ok(())
    }
}
