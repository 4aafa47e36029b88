//! Checks of requested networks, before any path is computed.

use super::spec::{HostSpec, Part, PortSpec, Reason, Refusal, Route, Spec, Step, VirtualPortId};
use crate::network::{End, Network};
use crate::units::{Dpid, MacAddress, PortId, PortNumber, TenantId};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::IpAddr;

/// The highest port number of a virtual switch, apart from LOCAL: OpenFlow 1.0 reserves the numbers above (section
/// 5.2.1).
const HIGHEST_PORT: u32 = 0xff00;

/// The most bytes of a port name in both versions, without the final zero byte.
const LONGEST_NAME: usize = 15;

/// The most switches of a network, and the most physical switches that carry them.
const MOST_SWITCHES: usize = 4_096;

/// The most edge ports of a network: a little more than one switch can have.
const MOST_PORTS: usize = 65_536;

/// The most links of a network. Each pair of members of a big switch counts as one link, because each pair has a path
/// and tags.
const MOST_LINKS: usize = 16_384;

/// The most hosts of a network: the size of an address block with 16 host bits.
const MOST_HOSTS: usize = 65_536;

/// Addresses of hosts whose request names no address.
pub(super) type Assigned = BTreeMap<TenantId, BTreeMap<MacAddress, IpAddr>>;

/// Checks all requests. Requests that differ from `before` are also compared with the network. The result is the
/// addresses of hosts whose request names no address; a host keeps the address that it has in `given`.
pub(super) fn check(
    before: &BTreeMap<TenantId, Spec>,
    given: &Assigned,
    network: &Network,
    wanted: &BTreeMap<TenantId, Spec>,
) -> Result<Assigned, Vec<Refusal>> {
    let mut refusals = Vec::new();
    let mut assigned = Assigned::new();
    for (&tenant, spec) in wanted {
        if let Some((part, why)) = too_many(spec) {
            // A request that is too large is not checked further.
            refusals.push(Refusal { tenant, part, why });
            continue;
        }
        let mut one = Check::new(tenant, spec, &mut refusals);
        one.switches();
        one.ports(network, before.get(&tenant));
        one.links();
        let nothing = BTreeMap::new();
        let addresses = one.hosts(given.get(&tenant).unwrap_or(&nothing));
        if !addresses.is_empty() {
            assigned.insert(tenant, addresses);
        }
    }
    shared_ports(wanted, &mut refusals);
    if refusals.is_empty() { Ok(assigned) } else { Err(refusals) }
}

/// The first part of a network that is one too many.
fn too_many(spec: &Spec) -> Option<(Part, Reason)> {
    let Spec { switches, ports, links, hosts, .. } = spec;
    let (mut members, mut paths) = (0, links.len());
    for (at, switch) in switches.iter().enumerate() {
        let part = Part::Switch(switch.dpid);
        let count = switch.members.len();
        members += count;
        if at >= MOST_SWITCHES || members > MOST_SWITCHES {
            return Some((part, Reason::TooManySwitches(MOST_SWITCHES)));
        }
        paths += count * count.saturating_sub(1) / 2;
        if links.len() <= MOST_LINKS && paths > MOST_LINKS {
            return Some((part, Reason::TooManyLinks(MOST_LINKS)));
        }
    }
    let port = ports.get(MOST_PORTS).map(|port| Part::Port(port.port));
    let link = links.get(MOST_LINKS).map(|link| Part::Link(link.ends));
    let host = hosts.get(MOST_HOSTS).map(|host| Part::Host(host.mac));
    port.map(|part| (part, Reason::TooManyPorts(MOST_PORTS)))
        .or(link.map(|part| (part, Reason::TooManyLinks(MOST_LINKS))))
        .or(host.map(|part| (part, Reason::TooManyHosts(MOST_HOSTS))))
}

struct Check<'a> {
    tenant: TenantId,
    spec: &'a Spec,
    refusals: &'a mut Vec<Refusal>,
    /// The members of each switch.
    members: BTreeMap<Dpid, &'a [Dpid]>,
    /// The edge ports.
    edges: BTreeSet<VirtualPortId>,
}

impl<'a> Check<'a> {
    fn new(tenant: TenantId, spec: &'a Spec, refusals: &'a mut Vec<Refusal>) -> Check<'a> {
        let mut members = BTreeMap::new();
        for switch in &spec.switches {
            members.entry(switch.dpid).or_insert(switch.members.as_slice());
        }
        let edges = spec.ports.iter().map(|port| port.port).collect();
        Check { tenant, spec, refusals, members, edges }
    }

    fn refuse(&mut self, part: Part, why: Reason) {
        self.refusals.push(Refusal { tenant: self.tenant, part, why });
    }

    fn switches(&mut self) {
        let mut dpids = BTreeSet::new();
        let mut physical = BTreeSet::new();
        for switch in &self.spec.switches {
            let part = Part::Switch(switch.dpid);
            if !dpids.insert(switch.dpid) {
                self.refuse(part, Reason::DuplicateSwitch);
            }
            if switch.members.is_empty() {
                self.refuse(part, Reason::NoMembers);
            }
            for &member in &switch.members {
                if !physical.insert(member) {
                    self.refuse(part, Reason::MemberTaken(member));
                }
            }
            for route in &switch.routes {
                let ends = given_ends(route);
                let inside =
                    |dpid: Option<Dpid>| dpid.is_none_or(|it| switch.members.contains(&it));
                let whole = ends.0 != ends.1 && inside(ends.0) && inside(ends.1);
                if route.is_empty() || !whole {
                    self.refuse(part, Reason::RouteElsewhere);
                }
            }
        }
    }

    fn ports(&mut self, network: &Network, before: Option<&Spec>) {
        let mut numbers = BTreeSet::new();
        let mut places = BTreeSet::new();
        let known = before.into_iter().flat_map(|before| &before.ports);
        let known: BTreeSet<_> = known.map(|port| (port.port, port.at)).collect();
        let with_hosts: BTreeSet<_> = self.spec.hosts.iter().map(|host| host.at).collect();
        for port in &self.spec.ports {
            let part = Part::Port(port.port);
            self.number(part, port.port, &mut numbers);
            if port.name.len() > LONGEST_NAME {
                self.refuse(part, Reason::LongName);
            }
            if !places.insert(port.at) {
                self.refuse(part, Reason::PortTaken(port.at, self.tenant));
            }
            let members = self.members.get(&port.port.switch);
            if members.is_some_and(|members| !members.contains(&port.at.dpid)) {
                self.refuse(part, Reason::NotAMember(port.at));
            }
            if port.shared && !with_hosts.contains(&port.port) {
                self.refuse(part, Reason::SharedByNobody);
            }
            let is_new = !known.contains(&(port.port, port.at));
            if let Some(why) = physical(network, port.at).filter(|_| is_new) {
                self.refuse(part, why);
            }
        }
        for link in &self.spec.links {
            for end in link.ends {
                self.number(Part::Link(link.ends), end, &mut numbers);
            }
        }
    }

    fn number(&mut self, part: Part, port: VirtualPortId, seen: &mut BTreeSet<VirtualPortId>) {
        if !(1..=HIGHEST_PORT).contains(&port.number) && port.number != PortNumber::LOCAL.get() {
            self.refuse(part, Reason::PortNumber);
        }
        if !self.members.contains_key(&port.switch) {
            self.refuse(part, Reason::NoSuchSwitch(port.switch));
        }
        if !seen.insert(port) {
            self.refuse(part, Reason::DuplicatePort);
        }
    }

    fn links(&mut self) {
        for link in &self.spec.links {
            if link.ends[0].switch == link.ends[1].switch {
                self.refuse(Part::Link(link.ends), Reason::SelfLink);
            }
            if let Route::Given(steps) = &link.route
                && !self.leads(steps, link.ends)
            {
                self.refuse(Part::Link(link.ends), Reason::RouteBeside);
            }
        }
    }

    /// Whether a given route may lead from one end of a link to the other. The check does not use the physical network.
    fn leads(&self, steps: &[Step], ends: [VirtualPortId; 2]) -> bool {
        let (first, last) = given_ends(steps);
        let is_on = |end: VirtualPortId, dpid: Option<Dpid>| {
            let members = self.members.get(&end.switch);
            dpid.is_none_or(|dpid| members.is_none_or(|members| members.contains(&dpid)))
        };
        let [a, b] = ends;
        first.is_some() && (is_on(a, first) && is_on(b, last) || is_on(b, first) && is_on(a, last))
    }

    fn hosts(&mut self, before: &BTreeMap<MacAddress, IpAddr>) -> BTreeMap<MacAddress, IpAddr> {
        let mut macs = BTreeSet::new();
        let mut addresses: BTreeMap<IpAddr, MacAddress> = BTreeMap::new();
        for host in &self.spec.hosts {
            let part = Part::Host(host.mac);
            if !macs.insert(host.mac) {
                self.refuse(part, Reason::DuplicateHost);
            }
            if !self.edges.contains(&host.at) {
                self.refuse(part, Reason::NoSuchPort(host.at));
            }
            for &address in &host.addresses {
                if let Some(block) = self.spec.block.filter(|block| !block.contains(address)) {
                    self.refuse(part, Reason::OutsideBlock(address, block));
                }
                if let Some(by) = addresses.insert(address, host.mac) {
                    self.refuse(part, Reason::AddressTaken(address, by));
                }
            }
        }
        self.assign(before, addresses)
    }

    /// Gives an address to each host without one: its earlier address, or the first free address.
    fn assign(
        &mut self,
        before: &BTreeMap<MacAddress, IpAddr>,
        mut taken: BTreeMap<IpAddr, MacAddress>,
    ) -> BTreeMap<MacAddress, IpAddr> {
        let mut given = BTreeMap::new();
        let Some(block) = self.spec.block else { return given };
        let asks = |host: &&HostSpec| host.addresses.is_empty();
        // Hosts that have an address keep it, whatever the order of the list.
        for host in self.spec.hosts.iter().filter(asks) {
            if let Some(&had) = before.get(&host.mac)
                && block.contains(had)
                && !taken.contains_key(&had)
            {
                taken.insert(had, host.mac);
                given.insert(host.mac, had);
            }
        }
        let mut free = block.hosts();
        for host in self.spec.hosts.iter().filter(asks) {
            if given.contains_key(&host.mac) {
                continue;
            }
            match free.find(|address| !taken.contains_key(address)) {
                Some(address) => {
                    given.insert(host.mac, address);
                }
                None => self.refuse(Part::Host(host.mac), Reason::BlockExhausted(block)),
            }
        }
        given
    }
}

/// The reason why a physical port cannot be an edge port, as far as the network is known.
fn physical(network: &Network, at: PortId) -> Option<Reason> {
    network.switch_index(at.dpid).ok()?;
    if network.is_port_up(at).is_err() {
        return Some(Reason::NoSuchPhysicalPort(at));
    }
    let link = network.link(network.link_from(at).ok()?);
    matches!(link.to, End::Switch { .. }).then_some(Reason::NotAnEdge(at))
}

/// The switches where a given route begins and ends, if the route names them.
pub(super) fn given_ends(route: &[Step]) -> (Option<Dpid>, Option<Dpid>) {
    let first = route.first().map(|step| match step {
        Step::Switch(dpid) => *dpid,
        Step::Port(port) => port.dpid,
    });
    let last = match route.last() {
        Some(Step::Switch(dpid)) => Some(*dpid),
        // The network alone knows the switch behind a port.
        _ => None,
    };
    (first, last)
}

/// Checks physical ports with several tenants, or with several ports of one tenant.
fn shared_ports(wanted: &BTreeMap<TenantId, Spec>, refusals: &mut Vec<Refusal>) {
    let mut at: BTreeMap<PortId, Vec<(TenantId, &PortSpec)>> = BTreeMap::new();
    for (&tenant, spec) in wanted {
        for port in &spec.ports {
            at.entry(port.at).or_default().push((tenant, port));
        }
    }
    at.retain(|_, ports| ports.len() > 1);
    let sharing = at.values().flatten().map(|(tenant, _)| *tenant).collect();
    let hosts = hosts_by_port(wanted, &sharing);
    for (place, ports) in &at {
        let Some((&(other, first), further)) = ports.split_first() else { continue };
        for &(tenant, port) in further.iter().filter(|(tenant, _)| *tenant != other) {
            if !(port.shared && first.shared) {
                let (part, why) = (Part::Port(port.port), Reason::PortTaken(*place, other));
                refusals.push(Refusal { tenant, part, why });
            }
        }
        if ports.iter().all(|(_, port)| port.shared) {
            shared_hosts(&hosts, ports, refusals);
        }
    }
}

type HostsByPort = BTreeMap<(TenantId, VirtualPortId), Vec<MacAddress>>;

/// The hosts of these tenants.
fn hosts_by_port(wanted: &BTreeMap<TenantId, Spec>, tenants: &BTreeSet<TenantId>) -> HostsByPort {
    let mut all = HostsByPort::new();
    for (&tenant, spec) in wanted.iter().filter(|(tenant, _)| tenants.contains(tenant)) {
        for host in &spec.hosts {
            all.entry((tenant, host.at)).or_default().push(host.mac);
        }
    }
    all
}

/// Checks for hosts with the same address at a shared port.
fn shared_hosts(hosts: &HostsByPort, ports: &[(TenantId, &PortSpec)], refusals: &mut Vec<Refusal>) {
    let mut seen: BTreeMap<MacAddress, TenantId> = BTreeMap::new();
    for &(tenant, port) in ports {
        for &mac in hosts.get(&(tenant, port.port)).into_iter().flatten() {
            let by = *seen.entry(mac).or_insert(tenant);
            if by != tenant {
                let (part, why) = (Part::Host(mac), Reason::HostTaken(by));
                refusals.push(Refusal { tenant, part, why });
            }
        }
    }
}
