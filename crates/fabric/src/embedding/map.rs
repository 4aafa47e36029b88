//! The map of one physical switch: its tasks for the virtual networks on it. Maps are the result of an embedding, and
//! the only part that the hypervisor reads.
//!
//! Between two switches a packet of a virtual network carries a [`Tag`]. The tag and the ingress port determine what
//! the switch does with the packet: the packet either passes through ([`Transit`]), or has arrived at a port of a
//! tenant's switch ([`PortKind::Link`]).

use crate::error::Error;
use crate::network::Tagging;
use crate::units::{Bandwidth, Dpid, MacAddress, PortNumber, TenantId};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// A VLAN id that marks packets of a virtual link on one physical link: 1 to 4094.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(u16);

impl Tag {
    /// The lowest.
    pub const LEAST: Tag = Tag(1);
    /// The highest; 4095 is reserved (IEEE 802.1Q, table 9-2).
    pub const MOST: Tag = Tag(4094);

    /// Checks the range.
    pub const fn new(number: u16) -> Result<Tag, Error> {
        match number {
            1..=4094 => Ok(Tag(number)),
            _ => Err(Error::NotATag(number)),
        }
    }

    /// The VLAN id.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Everything about one physical switch that virtual networks need there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchMap {
    /// The tenants' switches on this physical switch, or parts of them: at most one per tenant.
    pub members: BTreeMap<TenantId, Member>,
    /// The transit of all tenants: at most one entry per `from`, ordered by `from`.
    pub transit: Vec<Transit>,
}

/// The part of a tenant's virtual switch that lies on a physical switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The datapath id that the tenant sees.
    pub datapath: Dpid,
    /// The tenant's name for the switch; may be empty.
    pub name: String,
    /// All ports of the virtual switch, by the number that the tenant sees, also those that lie on other members.
    pub ports: BTreeMap<u32, VirtualPort>,
    /// Whether the virtual switch lies on other physical switches as well (a big switch).
    pub shared_with: bool,
}

/// A port of a virtual switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualPort {
    /// The hardware address of the port: locally administered, never changed, different for each port of a switch.
    pub mac: [u8; 6],
    /// At most 15 bytes.
    pub name: String,
    /// Whether packets can pass. A port that is down neither receives nor sends packets, whatever its kind.
    pub up: bool,
    /// The bandwidth of the virtual link, or the capacity of the edge port's wire; `None` if unknown.
    pub speed: Option<Bandwidth>,
    /// The physical place of the port.
    pub kind: PortKind,
}

/// The physical place of a port of a virtual switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// An edge port, where packets have no tag of Weir's.
    Edge {
        /// The physical port.
        port: PortNumber,
        /// Empty: all frames that enter belong to the tenant. Otherwise other tenants share the port, and only frames
        /// from these source addresses belong to the tenant.
        hosts: Vec<MacAddress>,
    },
    /// An end of a virtual link.
    Link {
        /// The egress of packets now; `None` while there is no path.
        sends: Option<Hop>,
        /// The possible ingresses of packets: by the active path and by its backup, in order.
        receives: Vec<Hop>,
        /// The remote end.
        far: FarEnd,
    },
    /// A port of the same virtual switch on another member. This member only sends packets to the port.
    Remote {
        /// The egress of packets; `None` while there is no path.
        sends: Option<Hop>,
        /// The tagging of the switch behind the port: for the end of a link, the tagging of the remote end.
        tagging: Tagging,
        /// For a shared edge port, the tenant's hosts behind the port. Packets for other hosts must not be sent there,
        /// because the other member sends packets out by the label alone.
        hosts: Vec<MacAddress>,
    },
}

/// The remote end of a virtual link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FarEnd {
    /// The port number at the remote end.
    pub port: u32,
    /// The physical switches of the remote virtual switch. The link ends on one of them, and may change to another.
    pub on: Vec<Dpid>,
    /// The tagging of the switch on which the link ends, as far as known.
    pub tagging: Tagging,
}

/// A port of a physical switch and the tag of packets there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hop {
    /// The physical port.
    pub port: PortNumber,
    /// The tag on the wire behind it.
    pub tag: Tag,
}

/// Packets that enter at `from` leave at `to`, independent of all tenants' rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transit {
    /// The ingress port and the tag of the packets.
    pub from: Hop,
    /// The egress. It may be the ingress port.
    pub to: Exit,
    /// If the transit ends a tunnel of a big switch: the tenant and the port of the big switch. `None` if packets pass
    /// to another switch.
    pub leaves_by: Option<(TenantId, u32)>,
}

/// The egress of a packet in transit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exit {
    /// By a link, with this tag in place of the old one.
    Next(Hop),
    /// By an edge port, without a tag of Weir's: to a port of a big switch from another member.
    Edge(PortNumber),
}
