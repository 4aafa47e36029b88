//! The physical network: switches, their ports, the links between them, and the hosts at its edge.
//!
//! A wire between two ports is two [`Link`]s, one for each direction. The wire at an edge port is two links as well;
//! its remote end is the hosts. A [`LinkId`] belongs to its wire permanently, also if the wire is unplugged and plugged
//! in again. So state per link needs no notification of such changes, and a flapping wire uses no memory.
//!
//! Changes are incremental and return the links that went up or down. A refused change has no effect.

mod change;

use crate::error::Error;
use crate::index::{LinkId, SwitchIndex};
use crate::time::Duration;
use crate::units::{Bandwidth, Dpid, MacAddress, PortId, PortNumber};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use hashbrown::HashMap;

/// The known physical network.
#[derive(Clone, Debug, Default)]
pub struct Network {
    switches: Vec<Switch>,
    by_dpid: HashMap<Dpid, SwitchIndex>,
    links: Vec<Link>,
    wires: HashMap<(PortId, Option<PortId>), LinkId>,
    hosts: BTreeMap<MacAddress, PortId>,
}

/// How a switch handles several VLAN tags of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tagging {
    /// The switch can push and pop tags: OpenFlow 1.1 and later.
    #[default]
    Stacked,
    /// The switch handles one tag, and can only replace this tag: OpenFlow 1.0.
    Single,
}

/// A switch and its ports.
#[derive(Clone, Debug)]
pub struct Switch {
    dpid: Dpid,
    present: bool,
    tagging: Tagging,
    ports: BTreeMap<PortNumber, Port>,
    /// Plugged-in links to other switches that begin at this switch, up or down, by their ids.
    leaving: Vec<LinkId>,
}

#[derive(Clone, Copy, Debug)]
struct Port {
    up: bool,
    /// The link that leaves by the port.
    attached: Option<LinkId>,
}

impl Switch {
    /// The datapath id of the switch.
    pub const fn dpid(&self) -> Dpid {
        self.dpid
    }

    /// Whether the switch is connected.
    pub const fn is_present(&self) -> bool {
        self.present
    }

    /// How the switch handles VLAN tags, as last reported.
    pub const fn tagging(&self) -> Tagging {
        self.tagging
    }

    /// The ports of the switch, and whether each port is up.
    pub fn ports(&self) -> impl Iterator<Item = (PortId, bool)> + '_ {
        self.ports.iter().map(|(&port, state)| (PortId::new(self.dpid, port), state.up))
    }
}

/// One direction of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The sending end.
    pub from: End,
    /// The receiving end.
    pub to: End,
    /// The capacity.
    pub capacity: Bandwidth,
    /// The time that a bit travels.
    pub latency: Duration,
    plugged: bool,
    up: bool,
}

impl Link {
    /// Whether the link is plugged in, and its ports and switches are up.
    pub const fn is_up(&self) -> bool {
        self.up
    }

    /// The switches at both ends, if the link connects two switches.
    pub const fn switches(&self) -> Option<(SwitchIndex, SwitchIndex)> {
        match (self.from, self.to) {
            (End::Switch { index: from, .. }, End::Switch { index: to, .. }) => Some((from, to)),
            _ => None,
        }
    }
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A port of a switch.
    Switch {
        /// The switch.
        index: SwitchIndex,
        /// The port of the switch.
        port: PortId,
    },
    /// The hosts behind this edge port.
    Hosts(PortId),
}

impl Network {
    /// The switch with this datapath id.
    pub fn switch_index(&self, dpid: Dpid) -> Result<SwitchIndex, Error> {
        let index = self.by_dpid.get(&dpid).copied();
        index.filter(|&index| self.switch(index).present).ok_or(Error::UnknownSwitch(dpid))
    }

    /// The switch at this index.
    ///
    /// # Panics
    /// When the index is of another network, as indexing does.
    pub fn switch(&self, index: SwitchIndex) -> &Switch {
        &self.switches[index.index()]
    }

    /// All switches that are present.
    pub fn switches(&self) -> impl Iterator<Item = (SwitchIndex, &Switch)> {
        let all = self.switches.iter().enumerate();
        all.map(|(at, switch)| (SwitchIndex(at as u32), switch)).filter(|(_, s)| s.present)
    }

    /// The number of switches that ever existed: one more than the highest index.
    pub fn switch_slots(&self) -> usize {
        self.switches.len()
    }

    /// The link with this id; the error is for ids that come from outside.
    pub fn find_link(&self, id: LinkId) -> Result<&Link, Error> {
        self.links.get(id.index()).filter(|link| link.plugged).ok_or(Error::UnknownLink(id))
    }

    /// The link with this id.
    ///
    /// # Panics
    /// When the id is of another network, as indexing does.
    pub fn link(&self, id: LinkId) -> &Link {
        &self.links[id.index()]
    }

    /// All links that are plugged in, also those to hosts.
    pub fn links(&self) -> impl Iterator<Item = (LinkId, &Link)> {
        let all = self.links.iter().enumerate().map(|(at, link)| (LinkId(at as u32), link));
        all.filter(|(_, link)| link.plugged)
    }

    /// The number of links that ever existed: one more than the highest id.
    pub fn link_slots(&self) -> usize {
        self.links.len()
    }

    /// The link that leaves by this port, up or down.
    pub fn link_from(&self, port: PortId) -> Result<LinkId, Error> {
        self.port(port)?.attached.ok_or(Error::NothingAttached(port))
    }

    /// Links from a switch to other switches that are up.
    pub fn leaving(&self, index: SwitchIndex) -> impl Iterator<Item = (LinkId, SwitchIndex)> + '_ {
        self.switch(index).leaving.iter().filter_map(|&id| {
            let link = self.link(id);
            Some((id, link.switches().filter(|_| link.up)?.1))
        })
    }

    /// The links from the hosts behind an edge port, and to them.
    pub fn edge(&self, port: PortId) -> Result<(LinkId, LinkId), Error> {
        let out = self.link_from(port)?;
        match self.link(out).to {
            End::Hosts(_) => Ok((out.reverse(), out)),
            End::Switch { .. } => Err(Error::NotAnEdgePort(port)),
        }
    }

    /// The edge port of a host.
    pub fn host(&self, host: MacAddress) -> Result<PortId, Error> {
        self.hosts.get(&host).copied().ok_or(Error::UnknownHost(host))
    }

    /// All hosts and their edge ports, by address.
    pub fn hosts(&self) -> impl Iterator<Item = (MacAddress, PortId)> + '_ {
        self.hosts.iter().map(|(&host, &port)| (host, port))
    }

    /// Whether a port is up.
    pub fn is_port_up(&self, port: PortId) -> Result<bool, Error> {
        self.port(port).map(|port| port.up)
    }

    fn port(&self, port: PortId) -> Result<&Port, Error> {
        let switch = self.switch(self.switch_index(port.dpid)?);
        switch.ports.get(&port.port).ok_or(Error::UnknownPort(port))
    }
}
