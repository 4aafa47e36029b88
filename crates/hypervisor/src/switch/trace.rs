//! Where a packet goes on one switch, and by which rules: for people who ask.
//!
//! What is followed is a whole frame through the rules that Weir has on the switch: Weir's own and those of the tenant whose packet
//! this is. Each rule is named with the entry of the tenant's that it stands for. What only the switch knows (which bucket of a
//! SELECT group, what a meter drops, what NORMAL does) is said and not guessed. Nothing is asked of the switch, nothing changes, and
//! the tenant is not charged: somebody else asks.
//!
//! Start reading at [`Switch::passage`]; `run` follows the packet.

mod passage;
mod run;

use super::Switch;
use crate::ids::TenantIndex;
use crate::policy::TenantId;
use alloc::boxed::Box;
use alloc::vec::Vec;
use compile::{Network, Wire};
use fabric::embedding::{Hop, PortKind, Tag};
use flowspace::field::VLAN_PRESENT;
use flowspace::{Field, Key, frame};
pub use passage::{Claim, Doubt, Output, Owner, Packet, Passage, Step, To};
use run::Run;

/// Why a packet does not come in by a tenant's port here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoEntrance {
    /// The switch is not the one that is meant, or the tenant has no part of it.
    Elsewhere,
    /// The tenant's switch is meant, but the port is not here.
    NoPort,
    /// The port is here and has no path.
    NoPath,
}

impl Switch {
    /// A packet that comes in by a port as a tenant sees the switch and the port.
    ///
    /// # Errors
    /// Why it does not come in here.
    pub fn entrance(
        &self,
        tenant: TenantId,
        datapath: u64,
        port: u32,
        frame: &[u8],
    ) -> Result<Packet, NoEntrance> {
        let served = self.tenant_of(tenant).filter(|at| self.is_served(*at));
        // What is in front of a big switch has no rules of its own.
        let at = served.filter(|_| !self.datapath.is_joined()).ok_or(NoEntrance::Elsewhere)?;
        if self.datapath_of(at) != datapath {
            return Err(NoEntrance::Elsewhere);
        }
        let mut frame = frame.to_vec();
        let Some(network) = self.tenants[at].network.as_deref() else {
            let is_there = self.map.ownership().sees_port(at, port)
                && self.datapath.ports().contains_key(&port);
            let packet = is_there.then_some(Packet { in_port: port, frame });
            return packet.ok_or(NoEntrance::NoPort);
        };
        match network.ports().get(&port).map(|port| &port.kind) {
            Some(PortKind::Edge { port, .. }) => Ok(Packet { in_port: port.get(), frame }),
            Some(PortKind::Link { .. }) => {
                let hop = network.hop_received(port).ok_or(NoEntrance::NoPath)?;
                self.put_label(&mut frame, hop.tag);
                Ok(Packet { in_port: hop.port.get(), frame })
            }
            Some(PortKind::Remote { .. }) | None => Err(NoEntrance::NoPort),
        }
    }

    /// A packet at a port of the switch itself.
    ///
    /// # Errors
    /// The switch is another, or has no such port.
    pub fn entrance_of_switch(
        &self,
        dpid: u64,
        port: u32,
        frame: &[u8],
    ) -> Result<Packet, NoEntrance> {
        if self.dpid() != dpid || self.datapath.is_joined() {
            return Err(NoEntrance::Elsewhere);
        }
        let is_there = self.datapath.ports().contains_key(&port);
        let packet = is_there.then(|| Packet { in_port: port, frame: frame.to_vec() });
        packet.ok_or(NoEntrance::NoPort)
    }

    /// What becomes of a packet.
    pub fn passage(&self, packet: &Packet) -> Passage {
        let key = Key::extract(packet.in_port, &packet.frame);
        let owner = self.owner_shown(&key);
        let tenant = match &owner {
            Owner::Tenant(tenant, _) => self.tenant_of(*tenant),
            Owner::Transit | Owner::Nobody => None,
        };
        let mut run = Run::new(self, tenant);
        match self.wire {
            Wire::V10 => run.table_v10(packet),
            Wire::V13 => run.tables_v13(packet),
        }
        let (steps, outputs, is_cut) = run.end();
        Passage { version: self.version(), owner, steps, outputs, is_cut }
    }

    fn put_label(&self, packet: &mut Vec<u8>, label: Tag) {
        if self.target().stacks_labels() {
            frame::push_vlan(packet, frame::ETH_VLAN);
            frame::set_vlan_vid(packet, label.get());
        } else {
            frame::set_vlan_vid_or_push(packet, label.get());
        }
    }

    fn owner_shown(&self, key: &Key) -> Owner {
        if self.passes_through(key) {
            return Owner::Transit;
        }
        let Some(at) = self.map.ownership().owner(key) else { return Owner::Nobody };
        let tenant = &self.tenants[at];
        let claim = match tenant.network.as_deref() {
            Some(network) => claim_by_port(network, key),
            None => self.claim_by_flowspace(at, key),
        };
        claim.map_or(Owner::Nobody, |claim| Owner::Tenant(tenant.id, claim))
    }

    fn passes_through(&self, key: &Key) -> bool {
        let Some(map) = self.map.policy().maps.get(&self.dpid()) else { return false };
        let carries = |hop: &Hop| {
            key.get(Field::InPort) == u128::from(hop.port.get())
                && key.get(Field::VlanVid) == VLAN_PRESENT | u128::from(hop.tag.get())
        };
        map.transit.iter().any(|transit| carries(&transit.from))
    }

    fn claim_by_flowspace(&self, at: TenantIndex, key: &Key) -> Option<Claim> {
        let space = self.map.ownership().space(at)?;
        let own = space.write.iter().find(|own| own.match_.matches(key))?;
        Some(Claim::Flowspace { match_: Box::new(own.match_), priority: own.priority })
    }
}

fn claim_by_port(network: &Network, key: &Key) -> Option<Claim> {
    let port = network.ingress_of(key)?;
    let (is_link, is_shared) = (network.is_link(port), network.is_shared_edge(port));
    Some(Claim::Port { datapath: network.datapath(), port, is_link, is_shared })
}
