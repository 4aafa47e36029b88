//! The flowspaces of all tenants on one switch: who owns a packet, who sees a port, and whether packets stay inside a
//! tenant's space.
//!
//! Write entries of all tenants are ranked by priority, then by their order in the configuration. The owner of a packet
//! is the tenant of the highest entry that contains the packet. Tenants with read entries observe; read entries do not
//! change the owner.

use crate::ids::TenantIndex;
use crate::network::{at_hop, at_port, hops_received, number_of};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use fabric::embedding::{Exit, Hop, Member, PortKind, Transit, VirtualPort};
use flowspace::field::VLAN_PRESENT;
use flowspace::{Classifier, Field, Key, Match, MatchIndex, Relation, wins_everywhere};

/// The largest number of parts into which a containment check splits a region. Beyond this number the check answers
/// "no".
const PART_LIMIT: usize = 1024;

/// A set of packet headers on some switches, with a priority and a permission.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowspaceEntry {
    /// The headers, possibly with an input port.
    pub match_: Match,
    /// The priority: if entries of several tenants overlap, the entry with the highest priority owns the packets.
    pub priority: u16,
    /// The switches where the entry applies.
    pub switches: Switches,
    /// The tenant's permission for the packets.
    pub permission: Permission,
}

/// The switches on which an entry applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Switches {
    /// On each switch.
    Any,
    /// On the switches with these datapath ids.
    Only(Vec<u64>),
}

impl Switches {
    /// Whether the switch is one of these switches.
    pub fn includes(&self, dpid: u64) -> bool {
        match self {
            Switches::Any => true,
            Switches::Only(dpids) => dpids.contains(&dpid),
        }
    }
}

/// The rights of a tenant for the packets of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Observe: copies of PACKET_INs, statistics. A read entry does not change the owner.
    Read,
    /// Own: install rules, send packets.
    Write,
}

/// The claims of tenants on one switch.
#[derive(Default)]
pub struct Claims<'a> {
    /// The switch's datapath id.
    pub dpid: u64,
    /// The number of tenants; each index is lower.
    pub tenants: usize,
    /// Entries of slices, by tenants in the order of the configuration.
    pub flowspaces: Vec<(TenantIndex, &'a [FlowspaceEntry])>,
    /// The parts of networks on the switch.
    pub networks: Vec<(TenantIndex, &'a Member)>,
    /// The transit of networks.
    pub transit: &'a [Transit],
    /// VLAN ids that are reserved for labels.
    pub labels: Option<&'a RangeInclusive<u16>>,
}

/// The owners of packets and ports on one switch.
pub struct Ownership {
    owners: Classifier<TenantIndex>,
    readers: Classifier<TenantIndex>,
    /// The matches of networks, then the write entries of slices, in decreasing rank.
    ranked: Vec<(Match, TenantIndex)>,
    /// The number of matches of networks in `ranked`.
    above: usize,
    spaces: Vec<Space>,
    /// Edge ports of networks, where slices own no packets.
    taken: BTreeSet<u32>,
    users: PortUsers,
}

/// How many tenants may use each physical port: slices by write entries, and networks by their links.
#[derive(Default)]
struct PortUsers {
    /// Slices that may use every port.
    everywhere: usize,
    /// All others.
    at: BTreeMap<u32, usize>,
}

/// The owner of transit packets, and of packets with a label at a port where no link uses this label.
const FABRIC: TenantIndex = TenantIndex(u32::MAX);
/// Networks rank above all priorities of slices.
const NETWORKS: u32 = 1 << 16;

/// The space of one tenant on the switch.
#[derive(Debug, Default)]
pub struct Space {
    /// The tenant's write entries, in decreasing rank.
    pub write: Vec<Own>,
    /// The tenant's read entries.
    pub read: Vec<Match>,
    ports: Ports,
    write_ports: Ports,
}

/// One write entry of a tenant.
#[derive(Clone, Debug)]
pub struct Own {
    /// The headers.
    pub match_: Match,
    /// The entry's priority.
    pub priority: u16,
    /// Whether a higher ranking entry of another tenant overlaps it.
    pub contested: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
enum Ports {
    #[default]
    None,
    Only(BTreeSet<u32>),
    All,
}

impl Ports {
    fn add(&mut self, match_: &Match) {
        if match_.is_exact(Field::InPort) {
            let port = match_.get(Field::InPort).0 as u32;
            match self {
                Ports::None => *self = Ports::Only(BTreeSet::from([port])),
                Ports::Only(ports) => {
                    ports.insert(port);
                }
                Ports::All => {}
            }
        } else {
            *self = Ports::All;
        }
    }

    fn contains(&self, port: u32) -> bool {
        match self {
            Ports::None => false,
            Ports::Only(ports) => ports.contains(&port),
            Ports::All => true,
        }
    }
}

impl Ownership {
    /// Ranks the claims of all tenants.
    pub fn new(claims: &Claims<'_>) -> Ownership {
        let mut networks: Vec<(u32, Match, TenantIndex)> = Vec::new();
        let mut taken = BTreeSet::new();
        let mut owners = Classifier::new();
        let mut readers = Classifier::new();
        let mut ranked: Vec<(u16, Match, TenantIndex)> = Vec::new();
        let mut spaces: Vec<Space> = Vec::new();
        spaces.resize_with(claims.tenants, Space::default);
        for &(at, flowspace) in &claims.flowspaces {
            let space = &mut spaces[at.0 as usize];
            for entry in flowspace.iter().filter(|e| e.switches.includes(claims.dpid)) {
                space.ports.add(&entry.match_);
                match entry.permission {
                    Permission::Write => {
                        owners.insert(entry.match_, u32::from(entry.priority), at);
                        ranked.push((entry.priority, entry.match_, at));
                        space.write_ports.add(&entry.match_);
                    }
                    Permission::Read => {
                        readers.insert(entry.match_, u32::from(entry.priority), at);
                        space.read.push(entry.match_);
                    }
                }
            }
        }
        for &(at, member) in &claims.networks {
            for port in member.ports.values() {
                add_network_port(port, at, &mut networks, &mut taken);
            }
        }
        let passing = claims.transit.iter().map(|transit| at_hop(&transit.from));
        networks.extend(passing.map(|match_| (NETWORKS + 3, match_, FABRIC)));
        let reserved = claims.labels.map(reserved).unwrap_or_default();
        networks.extend(reserved.into_iter().map(|match_| (NETWORKS, match_, FABRIC)));
        networks.sort_by_key(|(rank, ..)| core::cmp::Reverse(*rank));
        for (rank, match_, at) in &networks {
            owners.insert(*match_, *rank, *at);
        }
        // The sort is stable: among equals the order of the configuration decides, as in the classifier.
        ranked.sort_by_key(|(priority, _, _)| core::cmp::Reverse(*priority));
        let above = networks.len();
        let slices = ranked.iter().map(|(_, match_, at)| (*match_, *at));
        let all: Vec<(Match, TenantIndex)> =
            networks.into_iter().map(|(_, match_, at)| (match_, at)).chain(slices).collect();
        // Without slices nothing is contested.
        let mut higher = MatchIndex::default();
        let above_slices = if ranked.is_empty() { 0 } else { above };
        for (rank, (match_, _)) in (0..).zip(all.iter().take(above_slices)) {
            higher.insert(0, match_, rank);
        }
        for (rank, (priority, match_, at)) in (above as u32..).zip(&ranked) {
            let contested = overlaps_anothers(&higher, &all, match_, *at);
            let own = Own { match_: *match_, priority: *priority, contested };
            spaces[at.0 as usize].write.push(own);
            higher.insert(0, match_, rank);
        }
        let users = PortUsers::new(&spaces, claims);
        Ownership { owners, readers, ranked: all, above, spaces, taken, users }
    }

    /// The tenant that owns a packet.
    pub fn owner(&self, key: &Key) -> Option<TenantIndex> {
        self.owners.lookup(key).map(|entry| *entry.value).filter(|owner| *owner != FABRIC)
    }

    /// Whether any tenant only observes.
    pub fn has_readers(&self) -> bool {
        !self.readers.is_empty()
    }

    /// Calls `f` with each tenant that observes the packet; possibly several times with the same one.
    pub fn for_each_reader(&self, key: &Key, mut f: impl FnMut(TenantIndex)) {
        self.readers.for_each_match(key, |entry| f(*entry.value));
    }

    /// The space of a tenant; `None` if the index is out of range.
    pub fn space(&self, tenant: TenantIndex) -> Option<&Space> {
        self.spaces.get(tenant.0 as usize)
    }

    /// The write entries of slices, in decreasing rank, with their owners.
    pub fn slices(&self) -> &[(Match, TenantIndex)] {
        self.ranked.get(self.above..).unwrap_or_default()
    }

    /// Whether the tenant sees the port at all.
    pub fn sees_port(&self, tenant: TenantIndex, port: u32) -> bool {
        !self.taken.contains(&port)
            && self.space(tenant).is_some_and(|space| space.ports.contains(port))
    }

    /// Whether the tenant may send packets out of the port.
    pub fn may_output(&self, tenant: TenantIndex, port: u32) -> bool {
        !self.taken.contains(&port)
            && self.space(tenant).is_some_and(|space| space.write_ports.contains(port))
    }

    /// Whether another tenant may have packets at the port, too: another slice with a write entry there, or the links
    /// of networks.
    pub fn others_use(&self, tenant: TenantIndex, port: u32) -> bool {
        let own = usize::from(self.may_output(tenant, port));
        self.users.everywhere + self.users.at.get(&port).copied().unwrap_or(0) > own
    }

    /// Whether the tenant may send to every port of the switch, present or future.
    pub fn may_output_everywhere(&self, tenant: TenantIndex) -> bool {
        self.taken.is_empty()
            && self.space(tenant).is_some_and(|space| space.write_ports == Ports::All)
    }

    /// Whether the tenant may change anything at all.
    pub fn may_write(&self, tenant: TenantIndex) -> bool {
        self.space(tenant).is_some_and(|space| !space.write.is_empty())
    }

    /// Whether all packets of the port are the tenant's and no other tenant sees the port: only then may the tenant
    /// configure the port.
    pub fn owns_port_whole(&self, tenant: TenantIndex, port: u32) -> bool {
        let whole = Match::exact(Field::InPort, u128::from(port));
        self.spaces
            .iter()
            .enumerate()
            .all(|(at, space)| at == tenant.0 as usize || !space.ports.contains(port))
            && self.wins_everywhere(tenant, &whole)
    }

    /// Whether every packet of the region is the tenant's.
    pub fn wins_everywhere(&self, tenant: TenantIndex, region: &Match) -> bool {
        let Some(space) = self.space(tenant) else { return false };
        if space.write.iter().any(|own| !own.contested && own.match_.contains(region)) {
            return true;
        }
        wins_everywhere(
            region,
            self.ranked.iter().map(|(match_, at)| (match_, at)),
            &tenant,
            PART_LIMIT,
        )
    }

    /// Whether the packet, entering at `in_port`, or made by the controller (`None`), is the tenant's.
    pub fn owns_packet(&self, tenant: TenantIndex, key: &Key, in_port: Option<u32>) -> bool {
        if in_port.is_some() {
            return self.owner(key) == Some(tenant);
        }
        // A packet without ingress port is the tenant's if the packet would be the tenant's at one of the tenant's
        // ports.
        match self.space(tenant).map(|space| &space.write_ports) {
            Some(Ports::Only(ports)) => ports.iter().any(|&port| {
                let mut there = *key;
                there.set(Field::InPort, u128::from(port));
                self.owner(&there) == Some(tenant)
            }),
            Some(Ports::All) => self.owner(key) == Some(tenant),
            _ => false,
        }
    }

    /// Whether a whole frame is the tenant's, for each number of VLAN tags that the switch may parse.
    pub fn owns_frame(
        &self,
        tenant: TenantIndex,
        key: &Key,
        frame: &[u8],
        in_port: Option<u32>,
    ) -> bool {
        let port = key.get(Field::InPort) as u32;
        self.owns_packet(tenant, key, in_port)
            && Key::extract_behind_one_tag(port, frame)
                .is_none_or(|key| self.owns_packet(tenant, &key, in_port))
    }
}

impl PortUsers {
    fn new(spaces: &[Space], claims: &Claims<'_>) -> PortUsers {
        let mut users = PortUsers::default();
        for space in spaces {
            match &space.write_ports {
                Ports::None => {}
                Ports::Only(ports) => ports.iter().for_each(|port| users.add(*port)),
                Ports::All => users.everywhere += 1,
            }
        }
        for port in claims.networks.iter().flat_map(|(_, member)| member.ports.values()) {
            hops_received(&port.kind).iter().for_each(|hop| users.add(hop.port.get()));
            if let PortKind::Link { sends, .. } | PortKind::Remote { sends, .. } = &port.kind {
                sends.iter().for_each(|hop| users.add(hop.port.get()));
            }
        }
        for Transit { from, to, .. } in claims.transit {
            let (Exit::Next(Hop { port, .. }) | Exit::Edge(port)) = to;
            [from.port, *port].iter().for_each(|port| users.add(port.get()));
        }
        users
    }

    fn add(&mut self, port: u32) {
        *self.at.entry(port).or_default() += 1;
    }
}

/// Adds the packets that enter at a virtual port, for the port's tenant.
fn add_network_port(
    port: &VirtualPort,
    tenant: TenantIndex,
    networks: &mut Vec<(u32, Match, TenantIndex)>,
    taken: &mut BTreeSet<u32>,
) {
    match &port.kind {
        PortKind::Edge { port, hosts } => {
            taken.insert(port.get());
            let whole = at_port(port.get());
            for host in hosts {
                networks.push((NETWORKS + 2, whole.with(Field::DlSrc, number_of(*host)), tenant));
            }
            // Frames of unknown hosts at a shared port have no owner.
            let owner = if hosts.is_empty() { tenant } else { FABRIC };
            networks.push((NETWORKS + 1, whole, owner));
        }
        kind => {
            let hops = hops_received(kind).iter();
            networks.extend(hops.map(|hop| (NETWORKS + 3, at_hop(hop), tenant)));
        }
    }
}

/// Whether a match shares packets with one of another tenant in the index, which has the places of matches in `all`.
pub(crate) fn overlaps_anothers(
    index: &MatchIndex,
    all: &[(Match, TenantIndex)],
    match_: &Match,
    tenant: TenantIndex,
) -> bool {
    let mut found = false;
    index.candidates(None, match_, Relation::Overlapping, |at| {
        found =
            all.get(at as usize).is_some_and(|(other, by)| *by != tenant && other.overlaps(match_));
        found
    });
    found
}

/// The packets with a VLAN id that is reserved for labels, in as few matches as possible.
pub fn reserved(labels: &RangeInclusive<u16>) -> Vec<Match> {
    let mut matches = Vec::new();
    let mut from = *labels.start();
    while from <= *labels.end() && from <= 0xfff {
        let aligned = 1u16 << from.trailing_zeros().min(12);
        let mut size = aligned;
        while u32::from(from) + u32::from(size) - 1 > u32::from(*labels.end()) {
            size /= 2;
        }
        let mask = VLAN_PRESENT | u128::from(0xfff & !(size - 1));
        matches.push(Match::ANY.with_masked(Field::VlanVid, VLAN_PRESENT | u128::from(from), mask));
        from += size;
    }
    matches
}

/// The match of this packet alone.
pub fn exactly(key: &Key) -> Match {
    Field::ALL.into_iter().fold(Match::ANY, |match_, field| {
        if match_.permits(field) { match_.with(field, key.get(field)) } else { match_ }
    })
}
