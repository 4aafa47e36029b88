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
    /// Whether the network is started. A stopped network keeps its paths, tags and bandwidth.
    pub started: bool,
    /// The block of the hosts' addresses; without a block all addresses are allowed.
    pub block: Option<Block>,
    /// Its switches.
    pub switches: Vec<SwitchSpec>,
    /// The edge ports of the switches; all other ports are ends of links.
    pub ports: Vec<PortSpec>,
    /// The links between its switches.
    pub links: Vec<LinkSpec>,
    /// Its hosts.
    pub hosts: Vec<HostSpec>,
}

impl Default for Spec {
    /// A started network without parts.
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
    /// The description of the switch; may be empty.
    pub name: String,
    /// The physical switches of the virtual switch: one, or several for a big switch.
    pub members: Vec<Dpid>,
    /// Given routes between two members of a big switch. All other pairs use the shortest path.
    pub routes: Vec<Vec<Step>>,
    /// Whether it works.
    pub started: bool,
}

/// A port of a virtual switch; prints as `00:00:00:00:00:00:0a:01 port 2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtualPortId {
    /// The virtual switch.
    pub switch: Dpid,
    /// The port number: 1 to 0xff00, the range of OpenFlow 1.0, or [`PortNumber::LOCAL`].
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

/// An edge port of a virtual switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// The switch and port number that the tenant sees.
    pub port: VirtualPortId,
    /// The name of the port, at most 15 bytes; if empty, Weir makes a name from the number.
    pub name: String,
    /// The physical port.
    pub at: PortId,
    /// Whether other tenants may have ports at the same physical port. Then only packets from the tenant's hosts belong
    /// to the tenant.
    pub shared: bool,
    /// Whether it works.
    pub started: bool,
}

/// A virtual link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// The two ends of the link, which are ports by this definition alone.
    pub ends: [VirtualPortId; 2],
    /// The reserved bandwidth in each direction; may be 0.
    pub bandwidth: Bandwidth,
    /// The choice of the path.
    pub route: Route,
    /// Whether the link has a backup path, and how disjoint the backup has to be.
    pub protection: Option<Disjoint>,
    /// Whether the link returns to its first path when that path works again.
    pub reverts: bool,
    /// Whether it works.
    pub started: bool,
}

/// The choice of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// The path with the fewest physical links among paths with enough bandwidth.
    Shortest,
    /// The path with the most free bandwidth on its narrowest physical link.
    Widest,
    /// The given route, from either end. If the route fails, the shortest path replaces it until the route works again.
    Given(Vec<Step>),
}

/// A step of a given route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// To this physical switch, by the lowest link that leads there.
    Switch(Dpid),
    /// By this physical port.
    Port(PortId),
}

/// A host of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSpec {
    /// The hardware address.
    pub mac: MacAddress,
    /// The addresses of the host in the tenant's network; without one, Weir takes an address from the block.
    pub addresses: Vec<IpAddr>,
    /// The edge port of the host.
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
    /// The block of all addresses with the first `length` bits of `address`; `None` if `address` has fewer bits, or has
    /// other bits set.
    pub fn new(address: IpAddr, length: u8) -> Option<Block> {
        let (first, bits, v6) = number(address);
        if length > bits || first & low_bits(bits - length) != 0 {
            return None;
        }
        Some(Block { first, length, v6 })
    }

    /// Whether an address belongs to the block.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (number, _, v6) = number(address);
        v6 == self.v6 && number & !low_bits(self.free_bits()) == self.first
    }

    /// The addresses of the block that a host can have, in order: on IPv4 without the network address and the broadcast
    /// address (RFC 1122 section 3.2.1.3; /31 and /32 with all addresses, RFC 3021), on IPv6 without the routers'
    /// anycast address (RFC 4291 section 2.6.1).
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

/// An impossible request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Whose.
    pub tenant: TenantId,
    /// The part of the network.
    pub part: Part,
    /// The reason.
    pub why: Reason,
}

/// A part of a tenant's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A virtual switch.
    Switch(Dpid),
    /// A port of a virtual switch.
    Port(VirtualPortId),
    /// A link.
    Link([VirtualPortId; 2]),
    /// A host.
    Host(MacAddress),
}

/// The reason why a request is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Another switch of the tenant has the same datapath id.
    DuplicateSwitch,
    /// The virtual switch has no physical switch.
    NoMembers,
    /// A physical switch is named twice, or carries another virtual switch of the tenant.
    MemberTaken(Dpid),
    /// A given route does not begin and end at members of the switch.
    RouteElsewhere,
    /// The network has more virtual or physical switches than this number.
    TooManySwitches(usize),
    /// The network has more edge ports than this number.
    TooManyPorts(usize),
    /// The network has more links than this number; each pair of members of a big switch counts as one link.
    TooManyLinks(usize),
    /// The network has more hosts than this number.
    TooManyHosts(usize),
    /// The tenant has no such switch.
    NoSuchSwitch(Dpid),
    /// The number is neither 1 to 0xff00 nor LOCAL.
    PortNumber,
    /// Another port or link end of the switch has the same number.
    DuplicatePort,
    /// The name has more than 15 bytes.
    LongName,
    /// The physical port is on no physical switch of the virtual switch.
    NotAMember(PortId),
    /// The physical switch has no such port.
    NoSuchPhysicalPort(PortId),
    /// The physical port has a link to another switch.
    NotAnEdge(PortId),
    /// Another tenant, or another port of the same tenant, uses the physical port, and not both declare the port as
    /// shared.
    PortTaken(PortId, TenantId),
    /// A shared port has no hosts, so no packet that enters would belong to the tenant.
    SharedByNobody,
    /// The link joins a switch to itself.
    SelfLink,
    /// The given route of a link does not lead from one end of the link to the other.
    RouteBeside,
    /// The tenant has no such edge port.
    NoSuchPort(VirtualPortId),
    /// Another host of the tenant has the same hardware address.
    DuplicateHost,
    /// Another tenant has a host with the same hardware address at the same physical port.
    HostTaken(TenantId),
    /// The address is not in the tenant's block.
    OutsideBlock(IpAddr, Block),
    /// Another host of the tenant has the address.
    AddressTaken(IpAddr, MacAddress),
    /// Every address of the block is taken.
    BlockExhausted(Block),
    /// The part has no place on the physical network.
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
    /// The other tenant in the reason.
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
                f.write_str("a shared port needs hosts: their addresses say to which tenant a packet belongs")
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
