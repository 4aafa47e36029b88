//! A tenant's own network, as far as it lies on one switch: virtual ports, and where they are on the switch.
//!
//! ```text
//!   virtual port          on the switch, coming in                      going out
//!   edge, whole           in_port                                       OUTPUT
//!   edge, shared          in_port and the source address of a host      OUTPUT, for frames to the tenant's hosts only
//!   end of a link         in_port and a label (VLAN id)                 the label is put on, OUTPUT
//!   on another member     –                                             the label of a tunnel is put on, OUTPUT; if the port is
//!                                                                       a shared edge, for frames to its hosts only
//! ```
//! A packet leaves by its virtual ingress port only if the action is IN_PORT. Several virtual ports may be on one
//! physical port, a *hairpin* port. A switch sends a packet back by its physical ingress port only if the output is
//! IN_PORT, so an entry that sends to a hairpin port is written once per ingress port.
//!
//! The end of a link sends by one physical port and may receive by others as well: the port of its backup, and the port
//! that the remote end still uses. So rules have the output IN_PORT only if they match the physical ingress port.
//! Otherwise IN_PORT would send the label of one port by another port, where the label may belong to another tenant.
//!
//! LOCAL is a port like any other: at an edge, or the end of a link.
//!
//! The module also keeps the tenant's configuration of its ports (PORT_MOD). Weir does not configure the switch's own
//! ports, because they may carry packets of other tenants.

use crate::refusal::Refused;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use fabric::embedding::{Hop, Member, PortKind, Tag, VirtualPort};
use fabric::{MacAddress, Tagging};
use flowspace::field::VLAN_PRESENT;
use flowspace::{Field, Key, Match};
use hashbrown::HashMap;
use openflow::ErrorCode;
use openflow::error::v13 as code;
use openflow::v10::PortConfig;

/// The bit of broadcast and multicast addresses.
pub const MULTICAST: u128 = 1 << 40;

/// The part of a tenant's virtual switch that lies on this switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    datapath: u64,
    ports: BTreeMap<u32, VirtualPort>,
    /// The tenant's configuration of its ports: bits of `ofp_port_config`. 1.3 has some of the bits of 1.0.
    config: BTreeMap<u32, PortConfig>,
    /// The same network with all ports in use, if some ports are not in use.
    open: Option<Box<Network>>,
    /// Physical ports with several virtual ports, of which at least one receives by the physical port.
    hairpins: BTreeSet<u32>,
    /// The virtual ingress port of a packet, by the physical port and the packet's mark.
    received: HashMap<(u32, Mark), u32>,
}

/// Packets that enter by a virtual port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The match of the packets on the switch.
    pub match_: Match,
    /// The label of the packets, and the physical port; `None` at an edge port.
    pub label: Option<Hop>,
}

/// The part of a packet that identifies the virtual ingress port where several are possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Mark {
    Nothing,
    Label(u16),
    Source(u128),
}

/// The ingress of packets at the virtual switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ingress {
    /// Any port, or no port.
    Any,
    /// This virtual port, at any physical port.
    Port(u32),
    /// This virtual port, at this physical port.
    At(IngressPort),
    /// No port: a controller has sent the packets.
    Controller,
}

/// A virtual ingress port, and the physical ingress port: the end of a link may have several physical ingress ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IngressPort {
    /// The virtual port.
    pub port: u32,
    /// The physical port.
    pub at: u32,
}

/// The egress of packets for a virtual port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Egress<'a> {
    /// The physical port.
    pub port: u32,
    /// The change of packets before they leave.
    pub encapsulation: Encapsulation,
    /// The tenant's own hosts behind a port with hosts of other tenants: only the tenant's own hosts may get packets.
    pub hosts: &'a [MacAddress],
}

/// A change of packets before they leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// No change.
    None,
    /// Packets get a label. `remote`: how the remote end handles VLAN tags.
    Label {
        /// The label.
        label: Tag,
        /// The tagging at the remote end.
        remote: Tagging,
    },
}

/// The reason why a list of actions cannot be written for a whole class of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The result depends on the ingress port: the caller splits the class by ingress port.
    ByIngress,
    /// The result depends on the VLAN tag: the caller splits the class into tagged and untagged packets.
    ByVlan,
    /// The tenant's request is refused.
    Refused(Refused),
}

/// The result of writing a list.
pub type Written<T = ()> = Result<T, Stop>;

impl From<Refused> for Stop {
    fn from(refused: Refused) -> Self {
        Stop::Refused(refused)
    }
}

impl From<ErrorCode> for Stop {
    fn from(code: ErrorCode) -> Self {
        Stop::Refused(code.into())
    }
}

impl Stop {
    /// The error of a list that stops although the ingress port and the VLAN tag are known: the class cannot be split
    /// further.
    pub fn refusal(self) -> Refused {
        match self {
            Stop::Refused(refused) => refused,
            Stop::ByIngress => code::BAD_ACTION_BAD_OUT_PORT.into(),
            Stop::ByVlan => code::BAD_ACTION_BAD_ARGUMENT.into(),
        }
    }
}

impl Ingress {
    /// The virtual port, if it is known.
    pub const fn port(self) -> Option<u32> {
        match self {
            Ingress::Port(port) | Ingress::At(IngressPort { port, .. }) => Some(port),
            Ingress::Any | Ingress::Controller => None,
        }
    }
}

impl Network {
    /// The part of a virtual switch that lies on this switch, with this configuration of its ports.
    pub fn new(member: &Member, config: BTreeMap<u32, PortConfig>) -> Network {
        let open = config.values().any(|config| config.intersects(CLOSED));
        let open = open.then(|| Box::new(Network::new(member, BTreeMap::new())));
        let mut standing = BTreeMap::<u32, usize>::new();
        for port in member.ports.values().filter_map(physical) {
            *standing.entry(port).or_default() += 1;
        }
        // A wire that leads only to ports of other members receives no packets, so no packets go back by this wire.
        let receiving = member.ports.values().filter(|port| is_here(port));
        let receiving: BTreeSet<u32> = receiving.filter_map(physical).collect();
        let hairpins =
            standing.into_iter().filter(|(port, count)| *count > 1 && receiving.contains(port));
        let hairpins = hairpins.map(|(port, _)| port).collect();
        let mut received = HashMap::new();
        for (&number, port) in &member.ports {
            received.extend(marks(port).into_iter().map(|at| (at, number)));
        }
        let (datapath, ports) = (member.datapath.0, member.ports.clone());
        Network { datapath, ports, config, open, hairpins, received }
    }

    /// The virtual switch's datapath id.
    pub fn datapath(&self) -> u64 {
        self.datapath
    }

    /// All ports of the virtual switch, also those that lie on other members.
    #[inline]
    pub fn ports(&self) -> &BTreeMap<u32, VirtualPort> {
        &self.ports
    }

    /// Whether the port exists.
    #[inline]
    pub fn has_port(&self, number: u32) -> bool {
        self.ports.contains_key(&number)
    }

    /// Ports by which packets enter this switch: not the ports of other members.
    pub fn ingress_ports(&self) -> impl Iterator<Item = u32> + '_ {
        self.ports.iter().filter(|(_, port)| is_here(port)).map(|(&number, _)| number)
    }

    /// Whether packets enter this switch by the port.
    pub fn is_ingress(&self, number: u32) -> bool {
        self.ports.get(&number).is_some_and(is_here)
    }

    /// Whether packets get a label when they leave by the port.
    pub fn is_labelled(&self, number: u32) -> bool {
        let kind = self.kind(number);
        matches!(kind, Some(PortKind::Link { .. } | PortKind::Remote { .. }))
    }

    /// Whether the port is the end of a link.
    #[inline]
    pub fn is_link(&self, number: u32) -> bool {
        matches!(self.kind(number), Some(PortKind::Link { .. }))
    }

    /// The physical port of a virtual port.
    #[inline]
    pub fn physical(&self, number: u32) -> Option<u32> {
        self.ports.get(&number).and_then(physical)
    }

    /// The physical ingress ports of a virtual port, in order.
    pub fn received_at(&self, number: u32) -> impl Iterator<Item = IngressPort> + use<> {
        let ports: BTreeSet<u32> =
            self.ports.get(&number).into_iter().flat_map(receives_at).collect();
        ports.into_iter().map(move |at| IngressPort { port: number, at })
    }

    /// The ingress ports whose packets leave by their physical ingress port if they leave by this virtual port.
    pub fn hairpins(&self, number: u32) -> impl Iterator<Item = IngressPort> + '_ {
        let at = self.physical(number).filter(|at| self.hairpins.contains(at));
        let beside = at.into_iter().flat_map(|at| self.ingress_ports().map(move |port| (port, at)));
        let beside = beside.filter(|&(port, at)| self.receives(port, at));
        beside.map(|(port, at)| IngressPort { port, at })
    }

    /// The physical ports at which a virtual port receives although it sends by another physical port. A rule without
    /// ingress port that sends to this virtual port would send these packets back, because for the switch the two
    /// physical ports differ.
    pub fn received_elsewhere(&self, number: u32) -> impl Iterator<Item = IngressPort> + use<> {
        let sends = self.physical(number);
        self.received_at(number).filter(move |it| sends.is_some_and(|sends| sends != it.at))
    }

    /// The physical port of a whole edge port.
    pub fn whole_edge(&self, number: u32) -> Option<u32> {
        match self.kind(number)? {
            PortKind::Edge { port, hosts } if hosts.is_empty() => Some(port.get()),
            _ => None,
        }
    }

    /// Whether other tenants' hosts may be behind the port, on this switch or on another member.
    #[inline]
    pub fn is_shared_edge(&self, number: u32) -> bool {
        !self.hosts_behind(number).is_empty()
    }

    /// The tenant's own hosts behind a shared edge port.
    #[inline]
    pub fn hosts_behind(&self, number: u32) -> &[MacAddress] {
        match self.kind(number) {
            Some(PortKind::Edge { hosts, .. } | PortKind::Remote { hosts, .. }) => hosts,
            _ => &[],
        }
    }

    /// Shared edge ports.
    pub fn shared_edges(&self) -> impl Iterator<Item = u32> + '_ {
        self.ports.keys().copied().filter(|number| self.is_shared_edge(*number))
    }

    /// The egress for a port. The inner option is `None` if the port is down, has NO_FWD, or is the packets' ingress
    /// port. The outer option is `None` if the port does not exist.
    #[inline]
    pub fn egress(&self, number: u32, ingress: Ingress) -> Option<Option<Egress<'_>>> {
        self.ports.get(&number)?;
        if ingress.port() == Some(number) {
            return Some(None);
        }
        Some(self.egress_back(number))
    }

    /// The egress for a port, also for the ingress port.
    #[inline]
    pub fn egress_back(&self, number: u32) -> Option<Egress<'_>> {
        let closed = PortConfig::PORT_DOWN | PortConfig::NO_FWD;
        egress(self.ports.get(&number)?).filter(|_| !self.config(number).intersects(closed))
    }

    /// The tenant's configuration of a port.
    #[inline]
    pub fn config(&self, number: u32) -> PortConfig {
        self.config.get(&number).copied().unwrap_or_default()
    }

    /// The network with all ports in use, if some ports are not in use now.
    pub fn open(&self) -> Option<&Network> {
        self.open.as_deref()
    }

    /// The ports of FLOOD.
    pub fn flooded(&self) -> impl Iterator<Item = u32> + '_ {
        let flooded = |number: &u32| !self.config(*number).contains(PortConfig::NO_FLOOD);
        self.ports.keys().copied().filter(flooded)
    }

    /// Whether a port lets packets in.
    #[inline]
    pub fn admits(&self, number: u32) -> bool {
        !self.config(number).intersects(PortConfig::PORT_DOWN | PortConfig::NO_RECV)
    }

    /// Whether the port has NO_PACKET_IN: the controller gets no PACKET_IN for misses from this port.
    #[inline]
    pub fn sends_no_packet_in(&self, number: u32, is_miss: bool) -> bool {
        let is_unwanted = is_miss && self.config(number).contains(PortConfig::NO_PACKET_IN);
        is_unwanted || !self.admits(number)
    }

    /// Whether packets can leave by the port, as far as Weir knows.
    pub fn is_live(&self, number: u32) -> bool {
        self.ports.get(&number).is_some_and(|port| port.up)
            && !self.config(number).contains(PortConfig::PORT_DOWN)
            && self.physical(number).is_some()
    }

    /// Whether the output has to be IN_PORT to send by this physical port.
    #[inline]
    pub fn is_back(&self, port: u32, ingress: Ingress) -> Written<bool> {
        match ingress {
            Ingress::Any if self.hairpins.contains(&port) => Err(Stop::ByIngress),
            Ingress::Port(number) if self.receives(number, port) => Err(Stop::ByIngress),
            Ingress::Any | Ingress::Port(_) | Ingress::Controller => Ok(false),
            Ingress::At(IngressPort { at, .. }) => Ok(at == port),
        }
    }

    /// The packets that enter by a virtual port, as matches on the switch: several matches for a link with a backup and
    /// for a shared edge port.
    pub fn incoming(&self, number: u32) -> Vec<Incoming> {
        let plain = |match_| Incoming { match_, label: None };
        match self.kind(number) {
            Some(PortKind::Edge { port, hosts }) if hosts.is_empty() => {
                Vec::from([plain(at_port(port.get()))])
            }
            Some(PortKind::Edge { port, hosts }) => {
                let from = |host: &MacAddress| {
                    plain(at_port(port.get()).with(Field::DlSrc, number_of(*host)))
                };
                hosts.iter().map(from).collect()
            }
            Some(kind) => {
                let by = |hop: &Hop| Incoming { match_: at_hop(hop), label: Some(*hop) };
                hops_received(kind).iter().map(by).collect()
            }
            None => Vec::new(),
        }
    }

    /// Whether a port leads to a remote end where a frame has room for one VLAN tag.
    pub fn leads_to_single_tags(&self, number: u32) -> bool {
        match self.kind(number) {
            Some(PortKind::Link { far, .. }) => far.tagging == Tagging::Single,
            Some(PortKind::Remote { tagging, .. }) => *tagging == Tagging::Single,
            _ => false,
        }
    }

    /// The virtual ingress port of a packet that the switch shows unchanged.
    #[inline]
    pub fn ingress_of(&self, key: &Key) -> Option<u32> {
        let port = key.get(Field::InPort) as u32;
        let vid = key.get(Field::VlanVid);
        let label = (vid & VLAN_PRESENT != 0).then_some(Mark::Label((vid & 0xfff) as u16));
        let marks = [label, Some(Mark::Source(key.get(Field::DlSrc))), Some(Mark::Nothing)];
        marks.into_iter().flatten().find_map(|mark| self.received.get(&(port, mark)).copied())
    }

    /// The label of packets that enter by the end of a link at this physical port.
    #[inline]
    pub fn label_received(&self, number: u32, at: u32) -> Option<Tag> {
        let mut hops = hops_received(self.kind(number)?).iter();
        hops.find(|hop| hop.port.get() == at).map(|hop| hop.tag)
    }

    /// The physical port and the label that make a packet look like a packet that enters by the end of a link.
    pub fn hop_received(&self, number: u32) -> Option<Hop> {
        match self.kind(number)? {
            PortKind::Link { receives, sends, .. } => {
                let active = |hop: &&Hop| sends.is_some_and(|sends| sends.port == hop.port);
                receives.iter().find(active).or(receives.first()).copied()
            }
            _ => None,
        }
    }

    /// Whether packets enter a virtual port at this physical port.
    #[inline]
    fn receives(&self, number: u32, at: u32) -> bool {
        self.ports.get(&number).is_some_and(|port| receives_at(port).any(|other| other == at))
    }

    #[inline]
    fn kind(&self, number: u32) -> Option<&PortKind> {
        self.ports.get(&number).map(|port| &port.kind)
    }
}

/// The configuration bits that close a port.
const CLOSED: PortConfig = PortConfig(
    PortConfig::PORT_DOWN.0 | PortConfig::NO_RECV.0 | PortConfig::NO_FWD.0 | PortConfig::NO_FLOOD.0,
);

/// The match of packets that enter at a physical port.
pub fn at_port(port: u32) -> Match {
    Match::exact(Field::InPort, u128::from(port))
}

/// The match of packets that enter at a physical port with a label.
pub fn at_hop(hop: &Hop) -> Match {
    at_port(hop.port.get()).with(Field::VlanVid, u128::from(hop.tag.get()) | VLAN_PRESENT)
}

/// A hardware address as a number.
pub fn number_of(address: MacAddress) -> u128 {
    address.octets().iter().fold(0, |number, octet| number << 8 | u128::from(*octet))
}

/// Whether a destination address is for many hosts: broadcast or multicast (IEEE 802-2014, section 8.2.2).
pub fn is_for_many(dl_dst: u128) -> bool {
    dl_dst & MULTICAST != 0
}

/// The packets of a match without a VLAN tag, if the match means any.
pub fn untagged(match_: &Match) -> Option<Match> {
    match_.intersect(&Match::exact(Field::VlanVid, 0))
}

/// The physical ports and labels by which packets of a link enter; empty for other ports.
pub fn hops_received(kind: &PortKind) -> &[Hop] {
    match kind {
        PortKind::Link { receives, .. } => receives,
        PortKind::Edge { .. } | PortKind::Remote { .. } => &[],
    }
}

/// Whether packets enter this switch by a port: the port does not belong to another member.
pub fn is_here(port: &VirtualPort) -> bool {
    !matches!(port.kind, PortKind::Remote { .. })
}

/// The physical ingress ports of a virtual port; a port can occur several times.
fn receives_at(port: &VirtualPort) -> impl Iterator<Item = u32> + '_ {
    let edge = match &port.kind {
        PortKind::Edge { port, .. } => Some(port.get()),
        PortKind::Link { .. } | PortKind::Remote { .. } => None,
    };
    edge.into_iter().chain(hops_received(&port.kind).iter().map(|hop| hop.port.get()))
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
            let mark = |hop: &Hop| (hop.port.get(), Mark::Label(hop.tag.get()));
            hops_received(kind).iter().map(mark).collect()
        }
    }
}

fn egress(port: &VirtualPort) -> Option<Egress<'_>> {
    if !port.up {
        return None;
    }
    let labelled = |hop: &Hop, remote, hosts| Egress {
        port: hop.port.get(),
        encapsulation: Encapsulation::Label { label: hop.tag, remote },
        hosts,
    };
    match &port.kind {
        PortKind::Edge { port, hosts } => {
            Some(Egress { port: port.get(), encapsulation: Encapsulation::None, hosts })
        }
        PortKind::Link { sends, far, .. } => {
            sends.as_ref().map(|hop| labelled(hop, far.tagging, &[]))
        }
        PortKind::Remote { sends, tagging, hosts } => {
            sends.as_ref().map(|hop| labelled(hop, *tagging, hosts))
        }
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
