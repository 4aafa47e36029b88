//! A tenant's own network, as far as it lies on this switch.
//!
//! Slices and networks are two modes of one mapping: a tenant's [`Tenant::network`](crate::tenant::Tenant) says which
//! one it is in, and decides how its matches, ports and actions become the switch's. Everything else (virtual flow
//! tables, operations and their undoing, scheduling, statistics, roles) knows no modes.
//!
//! ```text
//!   virtual port          on the switch, coming in                      going out
//!   edge, whole           in_port                                       OUTPUT
//!   edge, shared          in_port and the source address of a host      OUTPUT, for frames to the tenant's hosts only
//!   end of a link         in_port and a tag (VLAN id)                   the tag is set, OUTPUT
//!   on another member     –                                             the tag of a tunnel is set, OUTPUT; if the port is a
//!                                                                       shared edge, for frames to these hosts only
//! ```
//! Between two ends on 1.3 the tenant's own VLAN tags travel behind the link's. On 1.0 a frame bears one tag, the link's: so
//! only untagged frames pass by a link of which an end is on 1.0.
//!
//! A packet is never sent back by the virtual port that it came in by, unless IN_PORT says so. Several virtual ports may
//! stand on one physical port; an entry that sends to such a *crowded* port is written once per port of entry, since
//! only then is it known whether the switch has to be told IN_PORT. Groups have copies for that: see
//! [`crate::v13::groups`].
//!
//! The end of a link sends by one way and may receive by others as well, at other ports of the switch: its backup, and what
//! the other end uses that has not followed yet. So IN_PORT is said to the switch only of packets that match on its own port
//! of entry. Told of others, it would send what bears the tag of one way by another, where that tag may be another tenant's.
//!
//! A port whose number is LOCAL is one like any: it is at an edge, or the end of a link.
//!
//! What the tenant configures of its ports (PORT_MOD) is held here too, and never told to the switch, whose ports may be
//! others' as well: see [`crate::switch::port_mod`].

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use fabric::embedding::{Hop, Member, PortKind, Tag, VirtualPort};
use fabric::{MacAddress, PortNumber, Tagging};
use flowspace::field::VLAN_PRESENT;
use flowspace::{Field, Key, Match};
use hashbrown::HashMap;
use openflow::text::Name;
use openflow::v10::PortConfig;
use openflow::{ErrorCode, Version, v10, v13};

/// The bit of addresses that are for many.
pub(crate) const MULTICAST: u128 = 1 << 40;

/// A tenant's virtual switch on this switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    /// The virtual switch's datapath id.
    pub datapath: u64,
    pub ports: BTreeMap<u32, VirtualPort>,
    /// Their descriptions, as the tenant is told.
    pub wires: BTreeMap<u32, Vec<u8>>,
    /// What the tenant has configured of its ports, by number: bits of `ofp_port_config`. 1.3 has some of 1.0's.
    config: BTreeMap<u32, PortConfig>,
    /// The same network with all its ports in use, if some are not: what cannot be said there cannot be said at all.
    open: Option<Box<Network>>,
    crowded: BTreeSet<u32>,
    /// By which virtual port a packet came, by the switch's port and what the packet bears.
    arrived: HashMap<(u32, Mark), u32>,
}

/// A look with which packets come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub looks: Match,
    /// The link's tag; none at the edge.
    pub tag: Option<Hop>,
}

/// What a packet bears that tells by which of several virtual ports it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Mark {
    Nothing,
    Tag(u16),
    Source(u128),
}

/// How a packet came to the virtual switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entered {
    /// By any port.
    Anywhere,
    /// By this one, by whichever of the switch's ports.
    Port(u32),
    /// By this one, and at this port of the switch.
    Way(Entrance),
    /// Out of a controller's hands.
    Nowhere,
}

impl Entered {
    /// The virtual port, if it is known.
    pub(crate) const fn port(self) -> Option<u32> {
        match self {
            Entered::Port(port) | Entered::Way(Entrance { port, .. }) => Some(port),
            Entered::Anywhere | Entered::Nowhere => None,
        }
    }
}

/// A virtual port by which packets come in, and the switch's port at which they do: the end of a link may have several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Entrance {
    pub port: u32,
    pub at: u32,
}

/// How a packet leaves for a virtual port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WayOut<'a> {
    /// The switch's port.
    pub port: u32,
    pub wire: Wire,
    /// If the way leads to other tenants too, it is only for what is for one of these: the tenant's hosts there.
    pub hosts: &'a [MacAddress],
}

/// What is done to a packet before it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    /// Nothing.
    Plain,
    /// It is marked. `far` says what the other end can do with tags.
    Tagged { tag: Tag, far: Tagging },
}

/// Why a translation has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsaid {
    /// It depends on the port of entry, or on the switch's.
    NeedsEntry,
    /// It depends on the VLAN tag.
    NeedsVlan,
    Code(ErrorCode),
}

impl From<ErrorCode> for Unsaid {
    fn from(code: ErrorCode) -> Self {
        Unsaid::Code(code)
    }
}

impl Network {
    pub(crate) fn new(
        member: &Member,
        version: Version,
        config: BTreeMap<u32, PortConfig>,
    ) -> Network {
        let open = config.values().any(|config| config.intersects(CLOSED));
        let open = open.then(|| Box::new(Network::new(member, version, BTreeMap::new())));
        let mut stands = BTreeMap::<u32, usize>::new();
        for port in member.ports.values().filter_map(physical) {
            *stands.entry(port).or_default() += 1;
        }
        // Where nothing comes in, nothing has to go back: by a wire that only leads to other members' ports.
        let remote = |port: &&VirtualPort| matches!(port.kind, PortKind::Remote { .. });
        let entries = member.ports.values().filter(|port| !remote(port));
        let enters: BTreeSet<u32> = entries.filter_map(physical).collect();
        let crowded =
            stands.into_iter().filter(|(port, count)| *count > 1 && enters.contains(port));
        let crowded = crowded.map(|(port, _)| port);
        let mut arrived = HashMap::new();
        for (&number, port) in &member.ports {
            arrived.extend(marks(port).into_iter().map(|at| (at, number)));
        }
        let wires = member.ports.iter().map(|(&number, port)| {
            let config = config.get(&number).copied().unwrap_or_default();
            (number, wire(number, port, config, version))
        });
        Network {
            datapath: member.datapath.0,
            wires: wires.collect(),
            ports: member.ports.clone(),
            config,
            open,
            crowded: crowded.collect(),
            arrived,
        }
    }

    /// Ports by which packets come in here: not those of other members.
    pub(crate) fn entries(&self) -> impl Iterator<Item = u32> + '_ {
        self.ports.iter().filter(|(_, port)| is_entry(port)).map(|(&number, _)| number)
    }

    /// Whether packets bear a tag of the network's when they leave by the port.
    pub(crate) fn is_tagged(&self, number: u32) -> bool {
        let kind = self.ports.get(&number).map(|port| &port.kind);
        matches!(kind, Some(PortKind::Link { .. } | PortKind::Remote { .. }))
    }

    /// The switch's port that a virtual port stands on.
    pub(crate) fn physical(&self, number: u32) -> Option<u32> {
        self.ports.get(&number).and_then(physical)
    }

    /// The switch's ports at which packets come in by a virtual port, in order.
    pub(crate) fn entrances(&self, number: u32) -> impl Iterator<Item = Entrance> + use<> {
        let ports: BTreeSet<u32> = self.ports.get(&number).into_iter().flat_map(comes_at).collect();
        ports.into_iter().map(move |at| Entrance { port: number, at })
    }

    /// Those entrances where it depends on them how a packet leaves by this port.
    pub(crate) fn entrances_beside(&self, number: u32) -> impl Iterator<Item = Entrance> + '_ {
        let at = self.physical(number).filter(|at| self.crowded.contains(at));
        let beside = at.into_iter().flat_map(|at| self.entries().map(move |port| (port, at)));
        let comes =
            |port, at| self.ports.get(&port).is_some_and(|it| comes_at(it).any(|it| it == at));
        beside.filter(move |&(port, at)| comes(port, at)).map(|(port, at)| Entrance { port, at })
    }

    /// Where packets come in by a port that would leave by it elsewhere. What sends to it without knowing their port of entry
    /// sends these back, since the switch does not see that it does.
    pub(crate) fn entrances_astray(&self, number: u32) -> impl Iterator<Item = Entrance> + use<> {
        let sends = self.physical(number);
        self.entrances(number).filter(move |it| sends.is_some_and(|sends| sends != it.at))
    }

    /// The switch's port that is a virtual port's alone.
    pub(crate) fn whole_edge(&self, number: u32) -> Option<u32> {
        match &self.ports.get(&number)?.kind {
            PortKind::Edge { port, hosts } if hosts.is_empty() => Some(port.get()),
            _ => None,
        }
    }

    /// Whether other tenants may stand on the port as well, here or on another member.
    pub(crate) fn is_shared_edge(&self, number: u32) -> bool {
        !self.hosts_behind(number).is_empty()
    }

    /// The tenant's own hosts there, if they may.
    pub(crate) fn hosts_behind(&self, number: u32) -> &[MacAddress] {
        match self.ports.get(&number).map(|port| &port.kind) {
            Some(PortKind::Edge { hosts, .. } | PortKind::Remote { hosts, .. }) => hosts,
            _ => &[],
        }
    }

    /// Such ports.
    pub(crate) fn shared_edges(&self) -> impl Iterator<Item = u32> + '_ {
        self.ports.keys().copied().filter(|number| self.is_shared_edge(*number))
    }

    /// Where a packet for the virtual port goes: nowhere if the port is down, is told not to forward, or the packet came
    /// by it. `None` for the outer option is a port that there is not.
    pub(crate) fn way_out(&self, number: u32, entered: Entered) -> Option<Option<WayOut<'_>>> {
        self.ports.get(&number)?;
        if entered.port() == Some(number) {
            return Some(None);
        }
        Some(self.way_back(number))
    }

    /// Where a packet goes back to the port by which it came.
    pub(crate) fn way_back(&self, number: u32) -> Option<WayOut<'_>> {
        let closed = PortConfig::PORT_DOWN | PortConfig::NO_FWD;
        way_out(self.ports.get(&number)?).filter(|_| !self.config(number).intersects(closed))
    }

    /// What the tenant has configured of a port.
    pub(crate) fn config(&self, number: u32) -> PortConfig {
        self.config.get(&number).copied().unwrap_or_default()
    }

    /// The network with all ports in use, if it is another.
    pub(crate) fn open(&self) -> Option<&Network> {
        self.open.as_deref()
    }

    /// Ports that FLOOD means.
    pub(crate) fn flooded(&self) -> impl Iterator<Item = u32> + '_ {
        let flooded = |number: &u32| !self.config(*number).contains(PortConfig::NO_FLOOD);
        self.ports.keys().copied().filter(flooded)
    }

    /// Whether packets are let in by a port.
    pub(crate) fn admits(&self, number: u32) -> bool {
        !self.config(number).intersects(PortConfig::PORT_DOWN | PortConfig::NO_RECV)
    }

    /// Whether the controller is not to be told of a packet that has come by this port.
    pub(crate) fn keeps_back(&self, number: u32, is_miss: bool) -> bool {
        let is_unwanted = is_miss && self.config(number).contains(PortConfig::NO_PACKET_IN);
        is_unwanted || !self.admits(number)
    }

    /// Whether packets can leave by the port, as far as is known here.
    pub(crate) fn is_live(&self, number: u32) -> bool {
        self.ports.get(&number).is_some_and(|port| port.up)
            && !self.config(number).contains(PortConfig::PORT_DOWN)
            && self.physical(number).is_some()
    }

    /// Whether the switch has to be told IN_PORT to send by that port (1.3). It is, only where it is known that packets came in
    /// there: elsewhere IN_PORT would send what bears the one port's tag by the other, and there that may be another tenant's.
    pub(crate) fn is_back(&self, port: u32, entered: Entered) -> Result<bool, Unsaid> {
        let comes =
            |number| self.ports.get(&number).is_some_and(|it| comes_at(it).any(|at| at == port));
        match entered {
            Entered::Anywhere if self.crowded.contains(&port) => Err(Unsaid::NeedsEntry),
            Entered::Port(number) if comes(number) => Err(Unsaid::NeedsEntry),
            Entered::Anywhere | Entered::Port(_) | Entered::Nowhere => Ok(false),
            Entered::Way(Entrance { at, .. }) => Ok(at == port),
        }
    }

    /// What packets look like when they come in by a virtual port, where a frame bears one tag; several for a link with
    /// a backup.
    pub(crate) fn arrivals(&self, number: u32) -> Vec<Arrival> {
        let plain = |looks| Arrival { looks, tag: None };
        match self.ports.get(&number).map(|port| &port.kind) {
            Some(PortKind::Edge { port, hosts }) if hosts.is_empty() => {
                Vec::from([plain(at_port(port.get()))])
            }
            Some(PortKind::Edge { port, hosts }) => hosts
                .iter()
                .map(|host| plain(at_port(port.get()).with(Field::DlSrc, number_of(*host))))
                .collect(),
            Some(kind) => ways_in(kind)
                .iter()
                .map(|hop| Arrival { looks: at_hop(hop), tag: Some(*hop) })
                .collect(),
            None => Vec::new(),
        }
    }

    /// Whether a port leads to where a frame bears one tag.
    pub(crate) fn is_single(&self, number: u32) -> bool {
        match self.ports.get(&number).map(|port| &port.kind) {
            Some(PortKind::Link { far, .. }) => far.tagging == Tagging::Single,
            Some(PortKind::Remote { tagging, .. }) => *tagging == Tagging::Single,
            _ => false,
        }
    }

    /// The virtual port by which a packet came that the switch shows as it came.
    pub(crate) fn entry_of(&self, key: &Key) -> Option<u32> {
        let port = key.get(Field::InPort) as u32;
        let vid = key.get(Field::VlanVid);
        let tag = (vid & VLAN_PRESENT != 0).then_some(Mark::Tag((vid & 0xfff) as u16));
        let marks = [tag, Some(Mark::Source(key.get(Field::DlSrc))), Some(Mark::Nothing)];
        marks.into_iter().flatten().find_map(|mark| self.arrived.get(&(port, mark)).copied())
    }

    /// The tag with which packets come by the end of a link at this port of the switch.
    pub(crate) fn arrival_tag(&self, number: u32, at: u32) -> Option<Tag> {
        let mut hops = ways_in(&self.ports.get(&number)?.kind).iter();
        hops.find(|hop| hop.port.get() == at).map(|hop| hop.tag)
    }

    /// How a packet is to be marked that is made to look as if it came by this port.
    pub(crate) fn arrival_hop(&self, number: u32) -> Option<Hop> {
        match &self.ports.get(&number)?.kind {
            PortKind::Link { receives, sends, .. } => {
                let active = |hop: &&Hop| sends.is_some_and(|sends| sends.port == hop.port);
                receives.iter().find(active).or(receives.first()).copied()
            }
            _ => None,
        }
    }
}

/// What keeps packets from a port.
const CLOSED: PortConfig = PortConfig(
    PortConfig::PORT_DOWN.0 | PortConfig::NO_RECV.0 | PortConfig::NO_FWD.0 | PortConfig::NO_FLOOD.0,
);

/// A network's port in 16 bits: LOCAL is what it is on 1.0, above all others that a network can have.
pub(crate) fn in_16_bits(port: u32) -> Option<u16> {
    if port == PortNumber::LOCAL.get() {
        return Some(v10::PortNo::LOCAL.0);
    }
    u16::try_from(port).ok().filter(|port| *port != v10::PortNo::LOCAL.0)
}

/// The port that is so in 16 bits.
pub(crate) fn from_16_bits(port: u16) -> u32 {
    if port == v10::PortNo::LOCAL.0 { PortNumber::LOCAL.get() } else { port.into() }
}

/// Packets that come in at a port.
pub(crate) fn at_port(port: u32) -> Match {
    Match::exact(Field::InPort, u128::from(port))
}

/// Packets that come in at a port with a tag.
pub(crate) fn at_hop(hop: &Hop) -> Match {
    at_port(hop.port.get()).with(Field::VlanVid, u128::from(hop.tag.get()) | VLAN_PRESENT)
}

/// A hardware address as a number.
pub(crate) fn number_of(address: MacAddress) -> u128 {
    address.octets().iter().fold(0, |number, octet| number << 8 | u128::from(*octet))
}

/// Whether a destination address is for many: broadcast or multicast (IEEE 802-2014, section 8.2.2).
pub(crate) fn is_for_many(dl_dst: u128) -> bool {
    dl_dst & MULTICAST != 0
}

/// Whether packets come in by a port here: it is not another member's.
pub(crate) fn is_entry(port: &VirtualPort) -> bool {
    !matches!(port.kind, PortKind::Remote { .. })
}

/// The switch's ports at which packets come in by a virtual port; some several times.
fn comes_at(port: &VirtualPort) -> impl Iterator<Item = u32> + '_ {
    let edge = match &port.kind {
        PortKind::Edge { port, .. } => Some(port.get()),
        PortKind::Link { .. } | PortKind::Remote { .. } => None,
    };
    edge.into_iter().chain(ways_in(&port.kind).iter().map(|hop| hop.port.get()))
}

/// How packets come by a link; not at all by other ports.
pub(crate) fn ways_in(kind: &PortKind) -> &[Hop] {
    match kind {
        PortKind::Link { receives, .. } => receives,
        PortKind::Edge { .. } | PortKind::Remote { .. } => &[],
    }
}

/// The packets of a match without a VLAN tag, if it means any: these alone pass by links where a frame bears one tag.
pub(crate) fn untagged(match_: &Match) -> Option<Match> {
    match_.intersect(&Match::exact(Field::VlanVid, 0))
}

fn marks(port: &VirtualPort) -> Vec<(u32, Mark)> {
    match &port.kind {
        PortKind::Edge { port, hosts } if hosts.is_empty() => {
            Vec::from([(port.get(), Mark::Nothing)])
        }
        PortKind::Edge { port, hosts } => {
            hosts.iter().map(|host| (port.get(), Mark::Source(number_of(*host)))).collect()
        }
        kind => {
            let mark = |hop: &Hop| (hop.port.get(), Mark::Tag(hop.tag.get()));
            ways_in(kind).iter().map(mark).collect()
        }
    }
}

fn way_out(port: &VirtualPort) -> Option<WayOut<'_>> {
    if !port.up {
        return None;
    }
    match &port.kind {
        PortKind::Edge { port, hosts } => {
            Some(WayOut { port: port.get(), wire: Wire::Plain, hosts })
        }
        PortKind::Link { sends, far, .. } => sends.map(|hop| WayOut {
            port: hop.port.get(),
            wire: Wire::Tagged { tag: hop.tag, far: far.tagging },
            hosts: &[],
        }),
        &PortKind::Remote { sends, tagging: far, ref hosts } => sends.map(|hop| WayOut {
            port: hop.port.get(),
            wire: Wire::Tagged { tag: hop.tag, far },
            hosts,
        }),
    }
}

fn physical(port: &VirtualPort) -> Option<u32> {
    match &port.kind {
        PortKind::Edge { port, .. } => Some(port.get()),
        PortKind::Link { sends, .. } | PortKind::Remote { sends, .. } => {
            sends.map(|hop| hop.port.get())
        }
    }
}

/// A port's description on the wire.
fn wire(number: u32, port: &VirtualPort, config: PortConfig, version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    let kilobits = port.speed.map_or(0, |speed| speed.kilobits_per_second());
    let speed = u32::try_from(kilobits).unwrap_or(u32::MAX);
    if version == Version::V1_0 {
        let state = if port.up { v10::PortState(0) } else { v10::PortState::LINK_DOWN };
        v10::PhyPort {
            port_no: v10::PortNo(flowspace::port_to_v10(number).unwrap_or(0)),
            hw_addr: port.mac,
            name: Name::new(port.name.as_str()),
            config,
            state,
            curr: v10::PortFeatures(0),
            advertised: v10::PortFeatures(0),
            supported: v10::PortFeatures(0),
            peer: v10::PortFeatures(0),
        }
        .write(&mut out);
    } else {
        let state = match port.up {
            // Taken down, it is not live (specification section 7.2.1), though nothing is wrong with the link.
            true if config.contains(PortConfig::PORT_DOWN) => v13::PortState(0),
            true => v13::PortState::LIVE,
            false => v13::PortState::LINK_DOWN,
        };
        v13::Port {
            port_no: v13::PortNo(number),
            hw_addr: port.mac,
            name: Name::new(port.name.as_str()),
            config: v13::PortConfig(config.0),
            state,
            curr: v13::PortFeatures(0),
            advertised: v13::PortFeatures(0),
            supported: v13::PortFeatures(0),
            peer: v13::PortFeatures(0),
            curr_speed: speed,
            max_speed: speed,
        }
        .write(&mut out);
    }
    out
}
