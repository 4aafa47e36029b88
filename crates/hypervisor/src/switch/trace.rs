//! The path of a packet on one switch, with the rules that it matches: for the operator.
//!
//! Weir follows a whole frame through its rules on the switch: Weir's own rules, and the rules of the tenant that owns
//! the packet. Each rule is named with the tenant's entry for which it is installed. If only the switch knows the
//! result (the bucket of a SELECT group, what a meter drops, what NORMAL does), the trace says so and does not guess.
//! Weir does not ask the switch, changes nothing, and does not charge the tenant, since the operator asks.
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

/// Why a packet does not come in by a tenant's port on this switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoEntrance {
    /// The operator means another switch, or the tenant has no part of this switch.
    Elsewhere,
    /// The tenant's switch is meant, but the port is not here.
    NoPort,
    /// The port is here and has no path.
    NoPath,
}

impl Switch {
    /// A packet that comes in by a port, by the tenant's names of the switch and the port.
    ///
    /// # Errors
    /// Why the packet does not come in here.
    pub fn entrance(
        &self,
        tenant: TenantId,
        datapath: u64,
        port: u32,
        frame: &[u8],
    ) -> Result<Packet, NoEntrance> {
        // The front of a big switch has no rules of its own.
        let served = self.served_tenant(tenant).filter(|_| !self.datapath.is_joined());
        let at = served.ok_or(NoEntrance::Elsewhere)?;
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

    /// A packet at a port of the physical switch.
    ///
    /// # Errors
    /// The operator means another switch, or the switch has no such port.
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

    /// The path of a packet.
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
