//! The errors of changes of the network, of paths, and of placements.

use crate::index::LinkId;
use crate::units::{Bandwidth, Dpid, MacAddress, PortId};
use core::fmt;

/// The reason for a refusal. A refused call changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The number is no VLAN id that can mark packets.
    NotATag(u16),
    /// The switch exists already.
    DuplicateSwitch(Dpid),
    /// The switch does not exist.
    UnknownSwitch(Dpid),
    /// The port exists already.
    DuplicatePort(PortId),
    /// The switch has no such port.
    UnknownPort(PortId),
    /// A link joins the port to itself.
    SelfLink(PortId),
    /// The port has a link, or is an edge port, already.
    PortInUse(PortId),
    /// Neither a link nor an edge begins at this port.
    NothingAttached(PortId),
    /// The port is not an edge port, so no host can be there.
    NotAnEdgePort(PortId),
    /// The link has no capacity.
    NoCapacity,
    /// The host is at another port.
    DuplicateHost(MacAddress, PortId),
    /// The host does not exist.
    UnknownHost(MacAddress),
    /// The number of switches or wires exceeds the bound.
    TooMany(&'static str),
    /// The link does not exist, or is unplugged at present.
    UnknownLink(LinkId),
    /// The links do not follow one another, or end elsewhere.
    BrokenPath(LinkId),
    /// A link appears twice.
    RepeatedLink(LinkId),
    /// There is no path.
    NoPath,
    /// There are paths, but the widest path has only this bandwidth left.
    NoBandwidth(Bandwidth),
    /// There is a path, but no second path that is disjoint from it.
    NoBackup,
    /// The flow, virtual interface or reservation with this number exists already.
    DuplicateId(u64),
    /// No flow, virtual interface or reservation has this number.
    UnknownId(u64),
    /// The total load of a link does not fit into 64 bits.
    Overflow,
    /// The capacity at this place of the list is negative or no number.
    ImpossibleCapacity(usize),
    /// The flow at this place of the list has an impossible weight, demand or link.
    ImpossibleDemand(usize),
}

impl core::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Error::NotATag(number) => write!(f, "{number} is not a VLAN id: 1 to 4094"),
            Error::DuplicateSwitch(dpid) => write!(f, "switch {dpid} is there already"),
            Error::UnknownSwitch(dpid) => write!(f, "there is no switch {dpid}"),
            Error::DuplicatePort(port) => write!(f, "{port} is there already"),
            Error::UnknownPort(port) => write!(f, "there is no {port}"),
            Error::SelfLink(port) => write!(f, "a link joins {port} to itself"),
            Error::PortInUse(port) => write!(f, "{port} has a link or hosts already"),
            Error::NothingAttached(port) => write!(f, "nothing is attached to {port}"),
            Error::NotAnEdgePort(port) => write!(f, "{port} is not an edge port"),
            Error::NoCapacity => f.write_str("a link needs a capacity above 0"),
            Error::DuplicateHost(host, port) => write!(f, "host {host} is at {port} already"),
            Error::UnknownHost(host) => write!(f, "there is no host {host}"),
            Error::TooMany(what) => write!(f, "too many {what}"),
            Error::UnknownLink(link) => write!(f, "there is no link {link}"),
            Error::BrokenPath(link) => write!(f, "the path does not hold together at link {link}"),
            Error::RepeatedLink(link) => write!(f, "link {link} is on the path twice"),
            Error::NoPath => f.write_str("there is no path"),
            Error::NoBandwidth(left) => write!(f, "the widest path has only {left} left"),
            Error::NoBackup => f.write_str("there is no second path disjoint from the first"),
            Error::DuplicateId(id) => write!(f, "number {id} is taken"),
            Error::UnknownId(id) => write!(f, "there is no number {id}"),
            Error::Overflow => f.write_str("the bandwidths on a link do not fit into 64 bits"),
            Error::ImpossibleCapacity(place) => write!(f, "capacity {place} is not an amount"),
            Error::ImpossibleDemand(place) => {
                write!(f, "flow {place} has a weight, wish or link that cannot be")
            }
        }
    }
}
