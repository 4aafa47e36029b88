//! Computes the switches' maps from the requests and their placement.

use super::map::{Exit, FarEnd, Hop, Member, PortKind, SwitchMap, Transit, VirtualPort};
use super::spec::{LinkSpec, PortSpec, Spec, SwitchSpec, VirtualPortId};
use super::trunk::{Carries, Lane, Trunk, TrunkId, trunks_of};
use crate::MacAddress;
use crate::network::{End, Network, Tagging};
use crate::units::{Bandwidth, Dpid, PortId, PortNumber, TenantId};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::hash::Hasher;
use siphasher::sip::SipHasher13;

/// The requests and their places.
#[derive(Clone, Copy)]
pub(super) struct Placement<'a> {
    pub(super) wanted: &'a BTreeMap<TenantId, Spec>,
    pub(super) trunks: &'a BTreeMap<TrunkId, Trunk>,
    /// The physical switches that handle only one tag.
    pub(super) single: &'a BTreeSet<Dpid>,
    /// Whether places from before a restart are held although the network has not confirmed them.
    pub(super) is_holding: bool,
}

/// The maps of all switches with at least one task.
pub(super) fn draw(placement: Placement<'_>, network: &Network) -> BTreeMap<Dpid, SwitchMap> {
    let mut maps: BTreeMap<Dpid, SwitchMap> = BTreeMap::new();
    for (&tenant, spec) in placement.wanted.iter().filter(|(_, spec)| spec.started) {
        let draw = Draw::new(placement, network, tenant, spec);
        for switch in spec.switches.iter().filter(|switch| switch.started) {
            for &here in &switch.members {
                let place = |(number, port): (u32, &Port<'_>)| {
                    (number, draw.port(switch, here, number, port))
                };
                let member = Member {
                    datapath: switch.dpid,
                    name: switch.name.clone(),
                    ports: draw.ports_of(switch.dpid).map(place).collect(),
                    shared_with: switch.members.len() > 1,
                };
                maps.entry(here).or_default().members.insert(tenant, member);
            }
        }
        for (id, trunk) in trunks_of(placement.trunks, tenant) {
            draw.trunk(&mut maps, id, trunk);
        }
    }
    for map in maps.values_mut() {
        map.transit.sort_unstable();
    }
    maps
}

/// Stopped switches, which carry no packets.
pub(super) fn stopped(spec: &Spec) -> BTreeSet<Dpid> {
    spec.switches.iter().filter(|switch| !switch.started).map(|switch| switch.dpid).collect()
}

/// Whether neither a link nor a switch at its ends is stopped.
pub(super) fn works(link: &LinkSpec, stopped: &BTreeSet<Dpid>) -> bool {
    link.started && link.ends.iter().all(|end| !stopped.contains(&end.switch))
}

struct Draw<'a> {
    placement: Placement<'a>,
    network: &'a Network,
    tenant: TenantId,
    stopped: BTreeSet<Dpid>,
    switches: BTreeMap<Dpid, &'a SwitchSpec>,
    ports: BTreeMap<VirtualPortId, Port<'a>>,
    /// The hosts at the tenant's shared ports.
    hosts: BTreeMap<VirtualPortId, Vec<MacAddress>>,
}

/// The kind of a port of a virtual switch, without its place.
#[derive(Clone, Copy)]
enum Port<'a> {
    Edge(&'a PortSpec),
    /// A link, and whether the port is the link's first end in [`Carries::Link`].
    Link(&'a LinkSpec, bool),
}

impl<'a> Draw<'a> {
    fn new(
        placement: Placement<'a>,
        network: &'a Network,
        tenant: TenantId,
        spec: &'a Spec,
    ) -> Draw<'a> {
        let stopped = stopped(spec);
        let switches = spec.switches.iter().map(|switch| (switch.dpid, switch)).collect();
        let mut ports: BTreeMap<_, _> =
            spec.ports.iter().map(|port| (port.port, Port::Edge(port))).collect();
        for link in &spec.links {
            let first = link.ends.iter().min();
            ports.extend(link.ends.iter().map(|end| (*end, Port::Link(link, first == Some(end)))));
        }
        let mut hosts: BTreeMap<VirtualPortId, Vec<MacAddress>> = BTreeMap::new();
        for host in &spec.hosts {
            if matches!(ports.get(&host.at), Some(Port::Edge(port)) if port.shared) {
                hosts.entry(host.at).or_default().push(host.mac);
            }
        }
        hosts.values_mut().for_each(|hosts| hosts.sort_unstable());
        Draw { placement, network, tenant, stopped, switches, ports, hosts }
    }

    fn ports_of(&self, switch: Dpid) -> impl Iterator<Item = (u32, &Port<'a>)> {
        let port = |number| VirtualPortId { switch, number };
        let all = self.ports.range(port(0)..=port(u32::MAX));
        all.map(|(port, is)| (port.number, is))
    }

    /// A port as a member sees it.
    fn port(&self, switch: &SwitchSpec, here: Dpid, number: u32, port: &Port<'_>) -> VirtualPort {
        let (at, up, speed, name) = match port {
            Port::Edge(spec) => {
                let speed = self.network.edge(spec.at).ok();
                let speed = speed.map(|(_, out)| self.network.link(out).capacity);
                (Some(spec.at.dpid), self.edge_up(spec), speed, spec.name.as_str())
            }
            Port::Link(spec, first) => {
                let speed = Some(spec.bandwidth).filter(|speed| *speed > Bandwidth::ZERO);
                (self.link_end(spec, *first), self.link_up(spec), speed, "")
            }
        };
        let hosts = match port {
            Port::Edge(spec) => self.hosts.get(&spec.port).cloned().unwrap_or_default(),
            Port::Link(..) => Vec::new(),
        };
        let kind = match port {
            _ if at.is_some_and(|at| at != here) => {
                let tagging = match port {
                    Port::Edge(_) => Tagging::Stacked,
                    Port::Link(spec, first) => self.far(spec, *first).tagging,
                };
                let sends = self.inside(switch.dpid, here, at, number);
                PortKind::Remote { sends, tagging, hosts }
            }
            Port::Edge(spec) => PortKind::Edge { port: spec.at.port, hosts },
            Port::Link(spec, first) => self.link(spec, *first),
        };
        let name = match (name, number) {
            ("", number) if number == PortNumber::LOCAL.get() => String::from("local"),
            ("", number) => format!("p{number}"),
            (name, _) => String::from(name),
        };
        VirtualPort { mac: mac(self.tenant, switch.dpid, number), name, up, speed, kind }
    }

    fn edge_up(&self, port: &PortSpec) -> bool {
        port.started && edge_up(self.network, port.at, self.placement.is_holding)
    }

    fn trunk_of(&self, link: &LinkSpec) -> Option<&'a Trunk> {
        self.placement.trunks.get(&link_trunk(self.tenant, link))
    }

    fn works(&self, link: &LinkSpec) -> bool {
        works(link, &self.stopped)
    }

    fn link_up(&self, link: &LinkSpec) -> bool {
        self.works(link) && self.trunk_of(link).is_some_and(|trunk| trunk.standing().is_some())
    }

    /// The physical switch of an end of a link; `None` while the link has no place.
    fn link_end(&self, link: &LinkSpec, first: bool) -> Option<Dpid> {
        let ends = self.trunk_of(link)?.ends()?;
        Some(ends[usize::from(!first)])
    }

    fn link(&self, link: &LinkSpec, first: bool) -> PortKind {
        let (out, back) = if first { (Lane::FORTH, Lane::BACK) } else { (Lane::BACK, Lane::FORTH) };
        let trunk = self.trunk_of(link).filter(|_| self.works(link));
        let routes = trunk.into_iter().flat_map(Trunk::routes);
        let mut receives: Vec<Hop> = routes.filter_map(|route| route.arrival(back)).collect();
        receives.sort_unstable();
        let sends = trunk.and_then(Trunk::standing).and_then(|route| route.start(out));
        PortKind::Link { sends, receives, far: self.far(link, first) }
    }

    /// The remote end of a link.
    fn far(&self, link: &LinkSpec, first: bool) -> FarEnd {
        let end = sorted(link.ends)[usize::from(first)];
        let switch = self.switches.get(&end.switch);
        let on = switch.map(|switch| switch.members.clone()).unwrap_or_default();
        let at = self.link_end(link, !first).or(on.first().copied());
        let is_single = at.is_some_and(|at| self.placement.single.contains(&at));
        let tagging = if is_single { Tagging::Single } else { Tagging::Stacked };
        FarEnd { port: end.number, on, tagging }
    }

    /// The egress of a member for packets to a port of another member.
    fn inside(&self, switch: Dpid, here: Dpid, at: Option<Dpid>, number: u32) -> Option<Hop> {
        let at = at?;
        let members = [here.min(at), here.max(at)];
        let id = TrunkId { tenant: self.tenant, carries: Carries::Inside { switch, members } };
        let lane = Lane { forth: at == members[1], port: number };
        self.placement.trunks.get(&id)?.sending()?.start(lane)
    }

    /// Adds the transit along a trunk, and the egress at its end, where the label alone decides.
    fn trunk(&self, maps: &mut BTreeMap<Dpid, SwitchMap>, id: &TrunkId, trunk: &Trunk) {
        let works = match id.carries {
            Carries::Link(ends) => {
                matches!(self.ports.get(&ends[0]), Some(Port::Link(link, _)) if self.works(link))
            }
            Carries::Inside { switch, .. } => !self.stopped.contains(&switch),
        };
        if !works {
            return;
        }
        for route in trunk.routes() {
            for (dpid, transit) in route.transits() {
                maps.entry(dpid).or_default().transit.push(transit);
            }
            let Carries::Inside { switch, members } = id.carries else { continue };
            for &lane in route.tags.keys() {
                let at = members[usize::from(lane.forth)];
                let exit = self.exit(VirtualPortId { switch, number: lane.port });
                if let (Some(from), Some(to)) = (route.arrival(lane), exit) {
                    let leaves_by = Some((self.tenant, lane.port));
                    let transit = Transit { from, to, leaves_by };
                    maps.entry(at).or_default().transit.push(transit);
                }
            }
        }
    }

    /// The egress for a port of a big switch, on the member of this port.
    fn exit(&self, port: VirtualPortId) -> Option<Exit> {
        let (link, first) = match *self.ports.get(&port)? {
            Port::Edge(edge) => {
                return self.edge_up(edge).then_some(Exit::Edge(edge.at.port));
            }
            Port::Link(link, first) => (link, first),
        };
        let PortKind::Link { sends, .. } = self.link(link, first) else { return None };
        sends.map(Exit::Next)
    }
}

/// Whether a physical port exists, is up, and is not the end of a physical link. While places from before a restart are
/// held, an unknown port counts as up. Otherwise Weir would delete the port's rules on a switch that returns.
fn edge_up(network: &Network, at: PortId, is_holding: bool) -> bool {
    let link = network.link_from(at).map(|link| network.link(link).to);
    network.is_port_up(at).unwrap_or(is_holding) && !matches!(link, Ok(End::Switch { .. }))
}

pub(super) fn sorted(ends: [VirtualPortId; 2]) -> [VirtualPortId; 2] {
    let [a, b] = ends;
    [a.min(b), a.max(b)]
}

pub(super) fn link_trunk(tenant: TenantId, link: &LinkSpec) -> TrunkId {
    TrunkId { tenant, carries: Carries::Link(sorted(link.ends)) }
}

/// The hardware address of a virtual port: a hash of the switch in 30 bits, then the port number of 1.0.
fn mac(tenant: TenantId, switch: Dpid, number: u32) -> [u8; 6] {
    // The key need not be secret; it must never change.
    let mut hash = SipHasher13::new_with_keys(0x7765_6972, 0x706f_7274);
    hash.write_u16(tenant.0.to_le());
    hash.write_u64(switch.0.to_le());
    let [a, b, c, d, ..] = hash.finish().to_le_bytes();
    let [.., high, low] = number.to_be_bytes();
    // A locally administered unicast address (IEEE 802-2014 section 8.2).
    [a & 0xfc | 0x02, b, c, d, high, low]
}
