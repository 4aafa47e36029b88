//! Follows packets of virtual networks through the switches' maps and the physical wires, independent of the code that
//! computes the maps.

use fabric::embedding::{
    Embedding, Exit, Hop, Member, PortKind, SwitchMap, VirtualPort, VirtualPortId,
};
use fabric::{Dpid, End, Network, PortId, PortNumber, TenantId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The place where a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arrived {
    /// At a port of a tenant's switch, as an incoming packet.
    In(TenantId, VirtualPortId),
    /// At an edge port, untagged.
    Edge(PortId),
    /// The packet is lost: a wire is down or missing, or a switch does not know the tag.
    Lost,
}

pub struct Walker<'a> {
    pub network: &'a Network,
    pub maps: &'a BTreeMap<Dpid, Arc<SwitchMap>>,
}

impl Walker<'_> {
    /// Follows a packet that a switch sends.
    ///
    /// # Panics
    /// Panics if a switch has two rules for the same packet, or if the packet loops.
    pub fn follow(&self, here: Dpid, hop: Hop) -> Arrived {
        self.arrive(here, hop).1
    }

    /// Follows a packet, and returns the last switch as well.
    ///
    /// # Panics
    /// As [`follow`](Walker::follow).
    pub fn arrive(&self, mut here: Dpid, mut hop: Hop) -> (Dpid, Arrived) {
        for _ in 0..100 {
            let lost = (here, Arrived::Lost);
            let Some(at) = self.behind(PortId::new(here, hop.port)) else { return lost };
            let Some(map) = self.maps.get(&at.dpid) else { return lost };
            let comes_in = Hop { port: at.port, tag: hop.tag };
            let mut found: Vec<Result<Exit, Arrived>> = Vec::new();
            let transits = map.transit.iter().filter(|transit| transit.from == comes_in);
            found.extend(transits.map(|transit| Ok(transit.to)));
            for (&tenant, member) in &map.members {
                for (&number, port) in &member.ports {
                    if receives_at(&port.kind, comes_in) {
                        let port = VirtualPortId { switch: member.datapath, number };
                        found.push(Err(Arrived::In(tenant, port)));
                    }
                }
            }
            assert!(found.len() < 2, "{comes_in:?} at {} is {found:?}", at.dpid);
            match found.pop() {
                None => return lost,
                Some(Err(arrived)) => return (at.dpid, arrived),
                Some(Ok(Exit::Edge(port))) => {
                    return (at.dpid, Arrived::Edge(PortId::new(at.dpid, port)));
                }
                Some(Ok(Exit::Next(next))) => (here, hop) = (at.dpid, next),
            }
        }
        panic!("a packet goes round in circles at {here}");
    }

    /// The port where a packet arrives that leaves by this port.
    fn behind(&self, port: PortId) -> Option<PortId> {
        let link = self.network.link(self.network.link_from(port).ok()?);
        match link.to {
            End::Switch { port, .. } if link.is_up() => Some(port),
            _ => None,
        }
    }
}

/// Whether packets with this label enter by the port.
fn receives_at(kind: &PortKind, hop: Hop) -> bool {
    matches!(kind, PortKind::Link { receives, .. } if receives.contains(&hop))
}

/// All ports of all members: the physical switch, the tenant, the virtual port and its description.
pub fn ports(
    embedding: &Embedding,
) -> impl Iterator<Item = (Dpid, TenantId, &Member, VirtualPortId, &VirtualPort)> {
    embedding.switch_maps().iter().flat_map(|(&dpid, map)| {
        map.members.iter().flat_map(move |(&tenant, member)| {
            member.ports.iter().map(move |(&number, port)| {
                let id = VirtualPortId { switch: member.datapath, number };
                (dpid, tenant, member, id, port)
            })
        })
    })
}

/// A physical port.
pub fn port(dpid: u64, number: u32) -> PortId {
    PortId::new(Dpid(dpid), PortNumber::new(number).unwrap())
}
