//! A tenant's request for a network, and the reasons to refuse it.

use super::trouble::Trouble;
use crate::paths::Disjoint;
use crate::units::{Bandwidth, Dpid, MacAddress, PortId, PortNumber, TenantId};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;

/// A tenant's own network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Whether it works. One that is stopped keeps its paths, tags and bandwidth.
    pub started: bool,
    /// Where its hosts' addresses come from; without, they may be any.
    pub block: Option<Block>,
    /// Its switches.
    pub switches: Vec<SwitchSpec>,
    /// Their ports at the edge; the others are the ends of links.
    pub ports: Vec<PortSpec>,
    /// The links between its switches.
    pub links: Vec<LinkSpec>,
    /// Its hosts.
    pub hosts: Vec<HostSpec>,
}

impl Default for Spec {
    /// Started, and empty.
    fn default() -> Self {
        let (switches, ports, links, hosts) = Default::default();
        Spec { started: true, block: None, switches, ports, links, hosts }
    }
}

/// A virtual switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchSpec {
    /// The datapath id that the tenant sees.
    pub dpid: Dpid,
    /// Its description; may be empty.
    pub name: String,
    /// The physical switches that it lies on: one, or several for a big switch.
    pub members: Vec<Dpid>,
    /// Ways between two members of a big switch that are not to be the shortest.
    pub routes: Vec<Vec<Step>>,
    /// Whether it works.
    pub started: bool,
}

/// A port of a virtual switch; prints as `00:00:00:00:00:00:0a:01 port 2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtualPortId {
    /// The virtual switch.
    pub switch: Dpid,
    /// Its port: 1 to 0xff00, which OpenFlow 1.0 can say as well, or [`PortNumber::LOCAL`].
    pub number: u32,
}

impl fmt::Display for VirtualPortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match PortNumber::new(self.number) {
            Ok(number) => write!(f, "{} port {number}", self.switch),
            Err(_) => write!(f, "{} port {}", self.switch, self.number),
        }
    }
}

/// A port of a virtual switch at the edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// What the tenant sees.
    pub port: VirtualPortId,
    /// Its name, at most 15 bytes; if empty, its number makes one.
    pub name: String,
    /// Where it is.
    pub at: PortId,
    /// Whether other tenants have ports there too; then only what comes from its hosts is the tenant's.
    pub shared: bool,
    /// Whether it works.
    pub started: bool,
}

/// A virtual link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// The two ports that it joins, which are there by it.
    pub ends: [VirtualPortId; 2],
    /// Set aside for it in each direction; may be nothing.
    pub bandwidth: Bandwidth,
    /// How its path is chosen.
    pub route: Route,
    /// Whether, and how far apart, a second path stands by.
    pub protection: Option<Disjoint>,
    /// Whether it goes back to its first path when that is whole again.
    pub reverts: bool,
    /// Whether it works.
    pub started: bool,
}

/// How a path is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// The fewest physical links that have room.
    Shortest,
    /// The most room on the narrowest physical link.
    Widest,
    /// This way, from either end. When it fails, the shortest takes its place until it is whole again.
    Given(Vec<Step>),
}

/// A step on a given way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// To this physical switch, by the lowest of the links there.
    Switch(Dpid),
    /// Out of this physical port.
    Port(PortId),
}

/// A host of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSpec {
    /// Its hardware address.
    pub mac: MacAddress,
    /// Its addresses in the tenant's network; if it has none, one is taken from the block.
    pub addresses: Vec<IpAddr>,
    /// The port where it is attached.
    pub at: VirtualPortId,
}

/// Addresses with a common prefix; prints as `10.0.0.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    first: u128,
    length: u8,
    v6: bool,
}

impl Block {
    /// All addresses that share the first `length` bits of this one; `None` if it has not that many, or has others set.
    pub fn new(address: IpAddr, length: u8) -> Option<Block> {
        let (first, bits, v6) = number(address);
        if length > bits || first & low_bits(bits - length) != 0 {
            return None;
        }
        Some(Block { first, length, v6 })
    }

    /// Whether an address belongs to it.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (number, _, v6) = number(address);
        v6 == self.v6 && number & !low_bits(self.free_bits()) == self.first
    }

    /// Its addresses that a host can have, in order: on IPv4 without the network's own and the broadcast address
    /// (RFC 1122 section 3.2.1.3; of /31 and /32 all, RFC 3021), on IPv6 without the routers' (RFC 4291 section 2.6.1).
    pub fn hosts(&self) -> impl Iterator<Item = IpAddr> + Clone + use<> {
        let free = self.free_bits();
        let most = low_bits(free);
        let (from, to) = match free {
            0 | 1 => (0, most),
            _ if self.v6 => (1, most),
            _ => (1, most - 1),
        };
        let Block { first, v6, .. } = *self;
        (from..=to).map(move |offset| match v6 {
            true => IpAddr::V6((first | offset).into()),
            false => IpAddr::V4(((first | offset) as u32).into()),
        })
    }

    const fn free_bits(&self) -> u8 {
        (if self.v6 { 128 } else { 32 }) - self.length
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first: IpAddr = match self.v6 {
            true => IpAddr::V6(self.first.into()),
            false => IpAddr::V4((self.first as u32).into()),
        };
        write!(f, "{first}/{}", self.length)
    }
}

fn number(address: IpAddr) -> (u128, u8, bool) {
    match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)), 32, false),
        IpAddr::V6(address) => (address.into(), 128, true),
    }
}

fn low_bits(bits: u8) -> u128 {
    match bits {
        128 => u128::MAX,
        bits => (1 << bits) - 1,
    }
}

/// Something that was wanted and cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Whose.
    pub tenant: TenantId,
    /// What it is about.
    pub part: Part,
    /// What is wrong with it.
    pub why: Reason,
}

/// A part of a tenant's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A virtual switch.
    Switch(Dpid),
    /// A port of one.
    Port(VirtualPortId),
    /// A link.
    Link([VirtualPortId; 2]),
    /// A host.
    Host(MacAddress),
}

/// Why something cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Another of the tenant's switches has that datapath id.
    DuplicateSwitch,
    /// The virtual switch lies nowhere.
    NoMembers,
    /// A physical switch is named twice, or another virtual switch of the tenant lies on it.
    MemberTaken(Dpid),
    /// A given way does not begin and end at members of the switch.
    RouteElsewhere,
    /// The network has more than so many switches, or lies on more.
    TooManySwitches(usize),
    /// The network has more than so many ports at the edge.
    TooManyPorts(usize),
    /// The network has more than so many links, each two members of a big switch counted for one.
    TooManyLinks(usize),
    /// The network has more than so many hosts.
    TooManyHosts(usize),
    /// The tenant has no such switch.
    NoSuchSwitch(Dpid),
    /// The number is neither one of 1 to 0xff00 nor LOCAL.
    PortNumber,
    /// Another port or link end of the switch has that number.
    DuplicatePort,
    /// The name has more than 15 bytes.
    LongName,
    /// The physical port is not on a physical switch of the virtual one.
    NotAMember(PortId),
    /// The physical switch has no such port.
    NoSuchPhysicalPort(PortId),
    /// A link to another switch is there.
    NotAnEdge(PortId),
    /// Another tenant, or another port of this one, has the physical port, and not both said that it is shared.
    PortTaken(PortId, TenantId),
    /// A shared port needs hosts, or nothing that comes in would be the tenant's.
    SharedByNobody,
    /// The link joins a switch to itself.
    SelfLink,
    /// The way that is given for a link does not lead from one of its ends to the other.
    RouteBeside,
    /// The tenant has no such port at the edge.
    NoSuchPort(VirtualPortId),
    /// The tenant has another host of that hardware address.
    DuplicateHost,
    /// Another tenant has a host of that hardware address at the same physical port.
    HostTaken(TenantId),
    /// The address is not in the tenant's block.
    OutsideBlock(IpAddr, Block),
    /// Another host of the tenant has the address.
    AddressTaken(IpAddr, MacAddress),
    /// Every address of the block is taken.
    BlockExhausted(Block),
    /// It finds no place on the physical network.
    Unroutable(Trouble),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.part, self.why)
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Switch(dpid) => write!(f, "switch {dpid}"),
            Part::Port(port) => write!(f, "{port}"),
            Part::Link([a, b]) => write!(f, "link {a} - {b}"),
            Part::Host(mac) => write!(f, "host {mac}"),
        }
    }
}

impl Reason {
    /// The other tenant that it is about.
    pub const fn by(&self) -> Option<TenantId> {
        match *self {
            Reason::PortTaken(_, by) | Reason::HostTaken(by) => Some(by),
            _ => None,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Reason::DuplicateSwitch => f.write_str("the tenant has another switch of that dpid"),
            Reason::NoMembers => f.write_str("it lies on no physical switch"),
            Reason::MemberTaken(dpid) => {
                write!(
                    f,
                    "physical switch {dpid} carries another of the tenant's switches, or is named twice"
                )
            }
            Reason::RouteElsewhere => {
                f.write_str("a given way has to lead from one of its physical switches to another")
            }
            Reason::TooManySwitches(most) => {
                write!(f, "a network has at most {most} switches, on as many physical ones")
            }
            Reason::TooManyPorts(most) => {
                write!(f, "a network has at most {most} ports at the edge")
            }
            Reason::TooManyLinks(most) => write!(
                f,
                "a network has at most {most} links, of which each two members of a big switch count for one"
            ),
            Reason::TooManyHosts(most) => write!(f, "a network has at most {most} hosts"),
            Reason::NoSuchSwitch(dpid) => write!(f, "the tenant has no switch {dpid}"),
            Reason::PortNumber => {
                f.write_str("a port's number is one of 1 to 65280 (0xff00), or LOCAL")
            }
            Reason::DuplicatePort => f.write_str("the switch has another port of that number"),
            Reason::LongName => f.write_str("a port's name has at most 15 bytes"),
            Reason::NotAMember(port) => {
                write!(f, "{port} is not on a physical switch of this virtual one")
            }
            Reason::NoSuchPhysicalPort(port) => write!(f, "there is no {port}"),
            Reason::NotAnEdge(port) => write!(f, "a link to another switch is at {port}"),
            Reason::PortTaken(port, by) => {
                write!(f, "{port} is taken by tenant {}; both have to say that it is shared", by.0)
            }
            Reason::SharedByNobody => {
                f.write_str("a shared port needs hosts: by them its packets are told apart")
            }
            Reason::SelfLink => f.write_str("it joins a switch to itself"),
            Reason::RouteBeside => f.write_str(
                "its route has to lead from a physical switch of one of its ends to one of the other's",
            ),
            Reason::NoSuchPort(port) => write!(f, "the tenant has no {port} at the edge"),
            Reason::DuplicateHost => f.write_str("the tenant has another host of that address"),
            Reason::HostTaken(by) => {
                write!(f, "tenant {} has a host of that address at the same physical port", by.0)
            }
            Reason::OutsideBlock(address, block) => write!(f, "{address} is not in {block}"),
            Reason::AddressTaken(address, by) => write!(f, "{address} is taken by host {by}"),
            Reason::BlockExhausted(block) => write!(f, "all addresses of {block} are taken"),
            Reason::Unroutable(trouble) => trouble.fmt(f),
        }
    }
}
