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
    /// The tenants' switches that lie on it, wholly or in part. At most one per tenant.
    pub members: BTreeMap<TenantId, Member>,
    /// What only passes through, whose ever it is: at most one per `from`, in its order.
    pub transit: Vec<Transit>,
}

/// The part of a tenant's virtual switch that lies on a physical switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The datapath id that the tenant sees.
    pub datapath: Dpid,
    /// What the tenant calls it; may be empty.
    pub name: String,
    /// All ports of the virtual switch, by the number that the tenant sees, also those that lie on other members.
    pub ports: BTreeMap<u32, VirtualPort>,
    /// Whether the virtual switch lies on other physical switches as well (a big switch).
    pub shared_with: bool,
}

/// A port of a virtual switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualPort {
    /// Its own hardware address: locally administered, the same for good, another for each port of a switch.
    pub mac: [u8; 6],
    /// At most 15 bytes.
    pub name: String,
    /// Whether anything can pass. A port that is not up neither receives nor sends, whatever its kind says.
    pub up: bool,
    /// What a virtual link was promised, or what an edge port's wire can carry; `None` if neither is known.
    pub speed: Option<Bandwidth>,
    /// Where it really is.
    pub kind: PortKind,
}

/// Where a port of a virtual switch really is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// A port at the edge, where packets carry no tag of ours.
    Edge {
        /// The physical port.
        port: PortNumber,
        /// Empty: everything that comes in there is the tenant's. Otherwise only frames from these source addresses
        /// are: the port is shared with other tenants.
        hosts: Vec<MacAddress>,
    },
    /// An end of a virtual link.
    Link {
        /// Where packets go now; `None` while there is no path.
        sends: Option<Hop>,
        /// Where they may come in: by the active path and by its backup, in order.
        receives: Vec<Hop>,
        /// The other end.
        far: FarEnd,
    },
    /// A port of the same virtual switch that lies on another of its members. Packets are only sent to it.
    Remote {
        /// Where packets go; `None` while there is no path.
        sends: Option<Hop>,
        /// What the switch behind it can do with tags: the other end's, if it is the end of a link.
        tagging: Tagging,
        /// If it is an edge port that is shared with other tenants, the tenant's hosts there: what is for others must not be
        /// sent, since it leaves there without asking anybody.
        hosts: Vec<MacAddress>,
    },
}

/// The other end of a virtual link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FarEnd {
    /// The port's number there.
    pub port: u32,
    /// The physical switches that the virtual switch there lies on: the link ends on one of them, now this one, now that.
    pub on: Vec<Dpid>,
    /// What the one on which the link ends can do with tags, as far as is known.
    pub tagging: Tagging,
}

/// A port of a physical switch and the tag that a packet bears there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hop {
    /// The physical port.
    pub port: PortNumber,
    /// The tag on the wire behind it.
    pub tag: Tag,
}

/// What comes in at `from` is passed on, and nobody's rules are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transit {
    /// The port at which it comes in, and the tag that it bears.
    pub from: Hop,
    /// Where it goes. This may be the port at which it came in.
    pub to: Exit,
    /// Where it leaves the inside of a big switch by this: whose that is, and by which of its ports. `None` where it passes.
    pub leaves_by: Option<(TenantId, u32)>,
}

/// Where a packet in transit leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exit {
    /// By a link, with this tag in place of the one that it bore.
    Next(Hop),
    /// By an edge port, without a tag of ours: to a port of a big switch from another of its members.
    Edge(PortNumber),
}
