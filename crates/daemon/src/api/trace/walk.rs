//! Follows a packet from switch to switch.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use fabric::{Dpid, End, Network, PortId, PortNumber};
use hypervisor::trace::{Owner, Packet, To};

use crate::shard::shown::{NotPassed, Passed, Reader, Start};

/// The most switches on the path of one packet and its copies.
const HOPS: usize = 64;

/// The data to follow a packet.
pub(super) struct Walk<'a> {
    pub(super) reader: &'a Reader,
    pub(super) network: &'a Network,
    pub(super) deadline: Instant,
}

/// The path of a packet.
#[derive(Debug, Default)]
pub(super) struct Journey {
    pub(super) hops: Vec<Visited>,
    /// Whether the packet goes on after the last hop.
    pub(super) is_cut: bool,
}

/// The packet on one switch, and the continuation of each output.
#[derive(Debug)]
pub(super) struct Visited {
    pub(super) passed: Passed,
    pub(super) outputs: Vec<Onward>,
}

/// The continuation of an output by a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Onward {
    /// The path ends: the output is no port, or the port has no link.
    End,
    /// The link of the port is down.
    LinkDown,
    /// The packet goes to this hop.
    Hop(usize),
    /// The packet returns unchanged to this earlier hop: a loop.
    Loop(usize),
    /// The packet goes to a switch that is not connected.
    Gone(Dpid),
    /// The packet is not followed further.
    Cut,
}

impl Walk<'_> {
    /// Follows a packet. If `only` names a tenant, the trace ends where the packet does not belong to this tenant.
    pub(super) fn from(&self, start: Start, only: Option<&str>) -> Result<Journey, NotPassed> {
        let mut journey = Journey::default();
        // The known hops, by ingress and packet, and the queue of hops that are not visited yet.
        let mut known: BTreeMap<(u64, Packet), usize> = BTreeMap::new();
        let mut due = VecDeque::from([self.reader.passage(&start, self.deadline)?]);
        while let Some(passed) = due.pop_front() {
            let here = journey.hops.len() + due.len() + 1;
            let at = (passed.dpid, passed.packet.clone());
            known.entry(at).or_insert(journey.hops.len() + 1);
            let is_others = only.is_some_and(|only| match passed.passage.owner {
                Owner::Tenant(..) => passed.tenant.as_deref() != Some(only),
                Owner::Transit => false,
                Owner::Nobody => true,
            });
            let mut outputs = Vec::new();
            let mut next = here;
            for output in passed.passage.outputs.iter().filter(|_| !is_others) {
                let To::Port { number, is_up: true, .. } = output.to else {
                    outputs.push(Onward::End);
                    continue;
                };
                let far = match self.far(passed.dpid, number) {
                    Ok(far) => far,
                    Err(onward) => {
                        outputs.push(onward);
                        continue;
                    }
                };
                let packet = Packet { in_port: far.port.get(), frame: output.frame.clone() };
                let place = (far.dpid.0, packet.clone());
                if let Some(&hop) = known.get(&place) {
                    let is_loop = hop <= journey.hops.len() + 1;
                    outputs.push(if is_loop { Onward::Loop(hop) } else { Onward::Hop(hop) });
                    continue;
                }
                if next >= HOPS {
                    journey.is_cut = true;
                    outputs.push(Onward::Cut);
                    continue;
                }
                let Packet { in_port, frame } = packet;
                let start = Start::Switch { dpid: far.dpid.0, port: in_port, frame };
                match self.reader.passage(&start, self.deadline) {
                    Ok(passed) => {
                        next += 1;
                        known.insert(place, next);
                        outputs.push(Onward::Hop(next));
                        due.push_back(passed);
                    }
                    Err(why @ NotPassed::NoAnswer(_)) => return Err(why),
                    Err(_) => outputs.push(Onward::Gone(far.dpid)),
                }
            }
            journey.hops.push(Visited { passed, outputs });
        }
        Ok(journey)
    }

    /// The port at the other end of the link behind a port.
    fn far(&self, dpid: u64, port: u32) -> Result<PortId, Onward> {
        let port = PortNumber::new(port).map_err(|_| Onward::End)?;
        let id = self.network.link_from(PortId::new(Dpid(dpid), port)).map_err(|_| Onward::End)?;
        let link = self.network.link(id);
        match link.to {
            End::Switch { port: far, .. } if link.is_up() => Ok(far),
            End::Switch { .. } => Err(Onward::LinkDown),
            _ => Err(Onward::End),
        }
    }
}
