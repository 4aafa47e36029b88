//! Changes of the network: each change is checked completely before any part of it is made.

use super::{End, Link, Network, Port, Switch, Tagging};
use crate::error::Error;
use crate::index::{Changed, LinkId, SwitchIndex};
use crate::time::Duration;
use crate::units::{Bandwidth, Dpid, MacAddress, PortId};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The most switches, and the most links (two for each wire), including removed ones: a bound against a faulty source
/// of topology.
const MOST: usize = 1 << 20;

impl Network {
    /// Adds a switch without ports.
    pub fn add_switch(&mut self, dpid: Dpid) -> Result<SwitchIndex, Error> {
        if let Some(&index) = self.by_dpid.get(&dpid) {
            let switch = &mut self.switches[index.index()];
            if switch.present {
                return Err(Error::DuplicateSwitch(dpid));
            }
            switch.present = true;
            return Ok(index);
        }
        if self.switches.len() >= MOST {
            return Err(Error::TooMany("switches"));
        }
        let index = SwitchIndex(self.switches.len() as u32);
        let (ports, leaving) = (BTreeMap::new(), Vec::new());
        let tagging = Tagging::default();
        self.switches.push(Switch { dpid, present: true, tagging, ports, leaving });
        self.by_dpid.insert(dpid, index);
        Ok(index)
    }

    /// Removes a switch with its ports, wires and hosts.
    pub fn remove_switch(&mut self, dpid: Dpid) -> Result<Changed, Error> {
        let index = self.switch_index(dpid)?;
        let ports: Vec<PortId> = self.switch(index).ports().map(|(port, _)| port).collect();
        let mut changed = Changed::new();
        for port in ports {
            changed.extend(self.remove_port(port)?);
        }
        self.switches[index.index()].present = false;
        Ok(changed)
    }

    /// Sets how a switch handles VLAN tags; the default is stacked tags.
    pub fn set_tagging(&mut self, dpid: Dpid, tagging: Tagging) -> Result<(), Error> {
        let index = self.switch_index(dpid)?;
        self.switches[index.index()].tagging = tagging;
        Ok(())
    }

    /// Adds a port that is up, without a wire.
    pub fn add_port(&mut self, port: PortId) -> Result<(), Error> {
        let index = self.switch_index(port.dpid)?;
        let ports = &mut self.switches[index.index()].ports;
        if ports.contains_key(&port.port) {
            return Err(Error::DuplicatePort(port));
        }
        ports.insert(port.port, Port { up: true, attached: None });
        Ok(())
    }

    /// Removes a port with its wire or edge.
    pub fn remove_port(&mut self, port: PortId) -> Result<Changed, Error> {
        let changed = match self.port(port)?.attached {
            Some(_) => self.unplug(port)?,
            None => Changed::new(),
        };
        let index = self.switch_index(port.dpid)?;
        self.switches[index.index()].ports.remove(&port.port);
        Ok(changed)
    }

    /// Sets a port up or down, as in PORT_STATUS.
    pub fn set_port_up(&mut self, port: PortId, up: bool) -> Result<Changed, Error> {
        self.port(port)?;
        let attached = self.port_mut(port).and_then(|state| {
            state.up = up;
            state.attached
        });
        Ok(attached.map_or_else(Changed::new, |link| self.refresh(link)))
    }

    /// Plugs a wire into two ports, and returns the link from `a` to `b`.
    pub fn connect(
        &mut self,
        a: PortId,
        b: PortId,
        capacity: Bandwidth,
        latency: Duration,
    ) -> Result<(LinkId, Changed), Error> {
        if a == b {
            return Err(Error::SelfLink(a));
        }
        // A wire has the same id whichever end is named first.
        let (low, high) = (a.min(b), a.max(b));
        let ends = [self.free_end(low)?, self.free_end(high)?];
        let (id, changed) = self.plug((low, Some(high)), ends, capacity, latency)?;
        Ok((if a == low { id } else { id.reverse() }, changed))
    }

    /// Makes a port an edge port with possible hosts, and returns the link to these hosts.
    pub fn add_edge(
        &mut self,
        port: PortId,
        capacity: Bandwidth,
        latency: Duration,
    ) -> Result<(LinkId, Changed), Error> {
        let ends = [self.free_end(port)?, End::Hosts(port)];
        self.plug((port, None), ends, capacity, latency)
    }

    /// Unplugs the wire of a port, or removes its edge with the hosts.
    pub fn unplug(&mut self, port: PortId) -> Result<Changed, Error> {
        let id = self.link_from(port)?;
        if let End::Hosts(_) = self.link(id).to {
            self.hosts.retain(|_, at| *at != port);
        }
        for link in [id, id.reverse()] {
            self.links[link.index()].plugged = false;
            let Link { from, .. } = *self.link(link);
            if let End::Switch { index, port } = from {
                self.switches[index.index()].leaving.retain(|other| *other != link);
                if let Some(state) = self.port_mut(port) {
                    state.attached = None;
                }
            }
        }
        Ok(self.refresh(id))
    }

    /// Changes the capacity of both directions of a wire.
    pub fn set_capacity(&mut self, port: PortId, capacity: Bandwidth) -> Result<LinkId, Error> {
        let id = self.link_from(port)?;
        if capacity == Bandwidth::ZERO {
            return Err(Error::NoCapacity);
        }
        for link in [id, id.reverse()] {
            self.links[link.index()].capacity = capacity;
        }
        Ok(id)
    }

    /// Puts a host behind an edge port.
    pub fn add_host(&mut self, host: MacAddress, port: PortId) -> Result<(), Error> {
        self.edge(port)?;
        if let Some(&at) = self.hosts.get(&host) {
            return Err(Error::DuplicateHost(host, at));
        }
        self.hosts.insert(host, port);
        Ok(())
    }

    fn plug(
        &mut self,
        wire: (PortId, Option<PortId>),
        ends: [End; 2],
        capacity: Bandwidth,
        latency: Duration,
    ) -> Result<(LinkId, Changed), Error> {
        if capacity == Bandwidth::ZERO {
            return Err(Error::NoCapacity);
        }
        let id = match self.wires.get(&wire) {
            Some(&id) => id,
            None if self.links.len() + 2 > MOST => return Err(Error::TooMany("wires")),
            None => {
                let id = LinkId(self.links.len() as u32);
                for (from, to) in [(ends[0], ends[1]), (ends[1], ends[0])] {
                    let (plugged, up) = (false, false);
                    self.links.push(Link { from, to, capacity, latency, plugged, up });
                }
                self.wires.insert(wire, id);
                id
            }
        };
        let joins_switches = matches!(ends[1], End::Switch { .. });
        for (link, from) in [(id, ends[0]), (id.reverse(), ends[1])] {
            let slot = &mut self.links[link.index()];
            (slot.capacity, slot.latency, slot.plugged) = (capacity, latency, true);
            if let End::Switch { index, port } = from {
                if let Some(state) = self.port_mut(port) {
                    state.attached = Some(link);
                }
                if joins_switches {
                    let leaving = &mut self.switches[index.index()].leaving;
                    // The links are ordered, so that results do not depend on the order of plugging in.
                    leaving.insert(leaving.partition_point(|other| *other < link), link);
                }
            }
        }
        Ok((id, self.refresh(id)))
    }

    /// The end of a new wire at this port, if it is free.
    fn free_end(&self, port: PortId) -> Result<End, Error> {
        match self.port(port)?.attached {
            Some(_) => Err(Error::PortInUse(port)),
            None => Ok(End::Switch { index: self.switch_index(port.dpid)?, port }),
        }
    }

    /// Computes again whether a wire is up, and returns its links that have changed.
    fn refresh(&mut self, id: LinkId) -> Changed {
        let link = *self.link(id);
        let is_up = |end: End| match end {
            End::Switch { port, .. } => self.port(port).is_ok_and(|port| port.up),
            End::Hosts(_) => true,
        };
        let up = link.plugged && is_up(link.from) && is_up(link.to);
        if up == link.up {
            return Changed::new();
        }
        let both = [id.min(id.reverse()), id.max(id.reverse())];
        for link in both {
            self.links[link.index()].up = up;
        }
        both.to_vec()
    }

    fn port_mut(&mut self, port: PortId) -> Option<&mut Port> {
        let index = *self.by_dpid.get(&port.dpid)?;
        self.switches[index.index()].ports.get_mut(&port.port)
    }
}

#[cfg(test)]
mod tests;
