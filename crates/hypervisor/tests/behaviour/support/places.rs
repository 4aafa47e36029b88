//! Maps of the paths and ports of tenants' networks on the testbed's switches. The cores have to follow changes of
//! these maps.

use super::testbed::{Versions, datapath};
use fabric::embedding::{
    Exit, FarEnd, Hop, Member, PortKind, SwitchMap, Tag, Transit, VirtualPort,
};
use fabric::{Dpid, MacAddress, PortNumber, Tagging};
use hypervisor::TenantId;
use hypervisor::policy::LabelForm;
use openflow::Version;
use std::collections::BTreeMap;

/// A tenant's network, in words.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// `(physical switch, its port, virtual port)`: an edge port with a host.
    pub edges: Vec<(u64, u32, u32)>,
    /// `(physical switch, its port, virtual port, address)`: a host that shares its physical port with other tenants. A
    /// port may have several hosts.
    pub shared: Vec<(u64, u32, u32, [u8; 6])>,
    /// `(physical switch, virtual port)` at both ends of a virtual link.
    pub links: Vec<[(u64, u32); 2]>,
    /// Links that have a second path on the other side of the ring.
    pub standby: Vec<[(u64, u32); 2]>,
    /// Ends of links that send by the second path.
    pub astray: Vec<(u64, u32)>,
    /// The physical switches that are one big switch of the tenant. The big switch has the number of the first.
    pub big: Vec<u64>,
    /// Links that have no path.
    pub cut: Vec<[(u64, u32); 2]>,
    /// The form in which the tenant's controllers get link labels.
    pub labels: Option<LabelForm>,
}

impl Plan {
    /// The number of the tenant's switch on this physical switch.
    pub fn head(&self, switch: u64) -> u64 {
        if self.big.contains(&switch) { self.big[0] } else { switch }
    }

    /// The edge ports: physical switch and virtual port. A shared port is named once for each host.
    pub fn edge_ports(&self) -> impl Iterator<Item = (u64, u32)> {
        let edges = self.edges.iter().map(|edge| (edge.0, edge.2));
        edges.chain(self.shared.iter().map(|edge| (edge.0, edge.2)))
    }

    /// The edge ports and the ends of links.
    pub fn ports(&self) -> impl Iterator<Item = (u64, u32)> {
        self.edge_ports().chain(self.links.iter().flatten().copied())
    }
}

/// The maps of all switches, and the highest tag. Each hop of each link has a tag that no other hop at the same port of
/// the switch sends. At another port another tenant may have the same tag.
pub fn maps(plans: &[Plan], first: u16) -> (BTreeMap<u64, SwitchMap>, u16) {
    let mut maps: BTreeMap<u64, SwitchMap> = BTreeMap::new();
    let mut tags = Tags { first, next: BTreeMap::new() };
    for (at, plan) in plans.iter().enumerate() {
        let id = TenantId(at as u16 + 1);
        for &[a, b] in plan.links.iter().filter(|link| plan.cut.contains(link)) {
            for (end, far) in [(a, b), (b, a)] {
                // A link without a path has its end on all members.
                for member in far_end(plan, end).on {
                    let nowhere = no_way(far_end(plan, far));
                    put_port(&mut maps, at, plan, member.0, end.1, nowhere);
                }
            }
        }
        let mut put = |switch, number, kind| put_port(&mut maps, at, plan, switch, number, kind);
        for &(switch, port, number) in &plan.edges {
            put(switch, number, PortKind::Edge { port: port_number(port), hosts: Vec::new() });
        }
        for &(switch, port, number, _) in &plan.shared {
            let behind = plan.shared.iter().filter(|it| (it.0, it.2) == (switch, number));
            let hosts = behind.map(|it| MacAddress::new(it.3).unwrap()).collect();
            put(switch, number, PortKind::Edge { port: port_number(port), hosts });
        }
        let mut transits = Vec::new();
        for &[a, b] in plan.links.iter().filter(|link| !plan.cut.contains(link)) {
            let routes = if plan.standby.contains(&[a, b]) { &ROUTES[..] } else { &ROUTES[..1] };
            let mut way = |from, to, route| way((from, to), route, &mut tags, &mut transits);
            let both = |&route| (way(a.0, b.0, route), way(b.0, a.0, route));
            let ways: Vec<Both> = routes.iter().map(both).collect();
            let end = |of: fn(Both) -> (Hop, Hop), here: (u64, u32), far: (u64, u32)| {
                let ways = ways.iter().copied().map(of);
                let sent_by = usize::from(plan.astray.contains(&here));
                let sends = ways.clone().map(|(sends, _)| sends).nth(sent_by);
                let mut receives: Vec<Hop> = ways.map(|(_, receives)| receives).collect();
                receives.sort_unstable();
                PortKind::Link { sends, receives, far: far_end(plan, far) }
            };
            put(a.0, a.1, end(|(there, back)| (there.0, back.1), a, b));
            put(b.0, b.1, end(|(there, back)| (back.0, there.1), b, a));
        }
        // Each member of a big switch reaches each port of the other members by a tunnel of its own.
        let own: Vec<(u64, u32, PortKind)> = plan
            .big
            .iter()
            .filter_map(|&member| Some((member, maps.get(&member)?.members.get(&id)?)))
            .flat_map(|(member, it)| {
                it.ports.iter().map(move |(&number, port)| (member, number, port.kind.clone()))
            })
            .collect();
        for &member in &plan.big {
            for (owner, number, kind) in own.iter().filter(|(owner, ..)| *owner != member) {
                let to = match kind {
                    PortKind::Edge { port, .. } => Exit::Edge(*port),
                    PortKind::Link { sends: Some(hop), .. } => Exit::Next(*hop),
                    _ => continue,
                };
                let ends = (member, *owner);
                let (leaves, from) = way(ends, Route::Active, &mut tags, &mut transits);
                transits.push((*owner, Transit { from, to, leaves_by: Some((id, *number)) }));
                let sends = Some(leaves);
                let hosts = match kind {
                    PortKind::Edge { hosts, .. } => hosts.clone(),
                    _ => Vec::new(),
                };
                // `know_versions` sets the form of tags when the versions of the switches are known.
                let tagging = Tagging::default();
                let kind = PortKind::Remote { sends, tagging, hosts };
                put_port(&mut maps, at, plan, member, *number, kind);
            }
        }
        for (switch, transit) in transits {
            maps.entry(switch).or_default().transit.push(transit);
        }
    }
    let last = tags.next.into_values().max().map_or(first, |next| next - 1);
    (maps, last)
}

/// Sets the form of tags at the ends of links and tunnels, which depends on the version of the switch at the far end.
pub fn know_versions(maps: &mut BTreeMap<u64, SwitchMap>, versions: &Versions) {
    let tagging = |dpid: u64| match versions[dpid as usize - 1] {
        Version::V1_0 => Tagging::Single,
        _ => Tagging::Stacked,
    };
    let mut behind = BTreeMap::new();
    for (id, member) in maps.values_mut().flat_map(|map| &mut map.members) {
        for (number, port) in &mut member.ports {
            if let PortKind::Link { far, .. } = &mut port.kind
                && let Some(end) = far.on.first()
            {
                far.tagging = tagging(end.0);
                behind.insert((*id, member.datapath, *number), far.tagging);
            }
        }
    }
    for (id, member) in maps.values_mut().flat_map(|map| &mut map.members) {
        for (number, port) in &mut member.ports {
            if let PortKind::Remote { tagging, .. } = &mut port.kind {
                let known = behind.get(&(*id, member.datapath, *number));
                *tagging = known.copied().unwrap_or_default();
            }
        }
    }
}

/// Removes the path of a tenant's link, so that the port is down.
pub fn cut(map: &mut SwitchMap, tenant: TenantId, port: u32) {
    let port = map.members.get_mut(&tenant).unwrap().ports.get_mut(&port).unwrap();
    port.up = false;
    port.kind = no_way(FarEnd::default());
}

fn no_way(far: FarEnd) -> PortKind {
    PortKind::Link { sends: None, receives: Vec::new(), far }
}

fn far_end(plan: &Plan, (switch, port): (u64, u32)) -> FarEnd {
    let on = if plan.big.contains(&switch) { plan.big.clone() } else { vec![switch] };
    let on = on.into_iter().map(Dpid).collect();
    FarEnd { port, on, ..FarEnd::default() }
}

fn put_port(
    maps: &mut BTreeMap<u64, SwitchMap>,
    at: usize,
    plan: &Plan,
    switch: u64,
    number: u32,
    kind: PortKind,
) {
    let map = maps.entry(switch).or_default();
    let member = map.members.entry(TenantId(at as u16 + 1)).or_insert_with(|| Member {
        datapath: Dpid(datapath(at, plan.head(switch))),
        name: String::new(),
        ports: BTreeMap::new(),
        shared_with: plan.big.contains(&switch),
    });
    let mac = hw_addr(plan, at, switch, number);
    let name = format!("v{number}");
    let link = plan.links.iter().find(|link| {
        link.iter().any(|end| (plan.head(end.0), end.1) == (plan.head(switch), number))
    });
    let up = link.is_none_or(|link| !plan.cut.contains(link));
    let port = VirtualPort { mac, name, up, speed: None, kind };
    member.ports.insert(number, port);
}

/// A virtual port's own address.
pub fn hw_addr(plan: &Plan, tenant: usize, switch: u64, number: u32) -> [u8; 6] {
    let [.., high, low] = number.to_be_bytes();
    [2, tenant as u8, plan.head(switch) as u8, 0, high, low]
}

/// The paths of a link in both directions, each with its first and its last hop.
type Both = ((Hop, Hop), (Hop, Hop));

/// The direction of a path in the ring of switches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Route {
    /// The path does not use the wire between the first and the last switch.
    Active,
    Standby,
}

const ROUTES: [Route; 2] = [Route::Active, Route::Standby];

/// The next free tag of each port of each switch.
struct Tags {
    first: u16,
    next: BTreeMap<(u64, u32), u16>,
}

impl Tags {
    fn take(&mut self, from: (u64, u32)) -> Tag {
        let next = self.next.entry(from).or_insert(self.first);
        *next += 1;
        Tag::new(*next - 1).unwrap()
    }
}

/// Makes a path between two switches, with transits in between. Gives the first hop as it leaves and the last hop as it
/// arrives.
fn way(
    (from, to): (u64, u64),
    route: Route,
    tags: &mut Tags,
    transits: &mut Vec<(u64, Transit)>,
) -> (Hop, Hop) {
    let (mut at, mut first, mut arrived) = (from, None, None);
    while at != to {
        let (out, neighbour, into) = match (at, (from < to) == (route == Route::Active)) {
            (1, true) => (5, 2, 5),
            (2, true) => (6, 3, 5),
            (_, true) => (6, 1, 6),
            (1, false) => (6, 3, 6),
            (2, false) => (5, 1, 5),
            (_, false) => (5, 2, 6),
        };
        let tag = tags.take((at, out));
        let leaves = Hop { port: port_number(out), tag };
        match arrived {
            None => first = Some(leaves),
            Some(from) => {
                transits.push((at, Transit { from, to: Exit::Next(leaves), leaves_by: None }));
            }
        }
        arrived = Some(Hop { port: port_number(into), tag });
        at = neighbour;
    }
    (first.unwrap(), arrived.unwrap())
}

fn port_number(number: u32) -> PortNumber {
    PortNumber::new(number).unwrap()
}
