//! Ports: their numbers, descriptions, PORT_STATUS and PORT_MOD (specification 1.0.0, sections 5.2.1, 5.3.4, 5.4.3).

use crate::text::Name;

open_enum! {
    /// A port number; those above `MAX` are not physical ports.
    pub struct PortNo(u16) {
        /// The highest physical port.
        MAX = 0xff00,
        /// The port that the packet came in on.
        IN_PORT = 0xfff8,
        /// Through the flow table; only in PACKET_OUT.
        TABLE = 0xfff9,
        /// Processed as a normal L2/L3 switch would.
        NORMAL = 0xfffa,
        /// All ports that flood, but not the ingress port.
        FLOOD = 0xfffb,
        /// All physical ports, but not the ingress port.
        ALL = 0xfffc,
        /// To the controller.
        CONTROLLER = 0xfffd,
        /// The switch's own port.
        LOCAL = 0xfffe,
        /// No port; as a filter: any port.
        NONE = 0xffff,
    }
}

impl PortNo {
    /// Whether the number is a physical port's.
    pub const fn is_physical(self) -> bool {
        self.0 >= 1 && self.0 <= Self::MAX.0
    }
}

flags! {
    /// `enum ofp_port_config`.
    pub struct PortConfig(u32) {
        /// Administratively down.
        PORT_DOWN = 1 << 0,
        /// No 802.1D spanning tree on the port.
        NO_STP = 1 << 1,
        /// Drop all but spanning-tree packets.
        NO_RECV = 1 << 2,
        /// Drop received spanning-tree packets.
        NO_RECV_STP = 1 << 3,
        /// Not part of FLOOD.
        NO_FLOOD = 1 << 4,
        /// Drop packets sent to the port.
        NO_FWD = 1 << 5,
        /// Send no PACKET_IN for the port.
        NO_PACKET_IN = 1 << 6,
    }
}

flags! {
    /// `enum ofp_port_state`. Bits 8 and 9 are one number, the spanning-tree state.
    pub struct PortState(u32) {
        /// No physical link.
        LINK_DOWN = 1 << 0,
        /// Not learning or relaying.
        STP_LISTEN = 0 << 8,
        /// Learning but not relaying.
        STP_LEARN = 1 << 8,
        /// Learning and relaying.
        STP_FORWARD = 2 << 8,
        /// Not part of the spanning tree.
        STP_BLOCK = 3 << 8,
    }
}

flags! {
    /// `enum ofp_port_features`.
    pub struct PortFeatures(u32) {
        /// 10 Mb/s half duplex.
        RATE_10MB_HD = 1 << 0,
        /// 10 Mb/s full duplex.
        RATE_10MB_FD = 1 << 1,
        /// 100 Mb/s half duplex.
        RATE_100MB_HD = 1 << 2,
        /// 100 Mb/s full duplex.
        RATE_100MB_FD = 1 << 3,
        /// 1 Gb/s half duplex.
        RATE_1GB_HD = 1 << 4,
        /// 1 Gb/s full duplex.
        RATE_1GB_FD = 1 << 5,
        /// 10 Gb/s full duplex.
        RATE_10GB_FD = 1 << 6,
        /// Copper.
        COPPER = 1 << 7,
        /// Fibre.
        FIBER = 1 << 8,
        /// Auto-negotiation.
        AUTONEG = 1 << 9,
        /// Pause.
        PAUSE = 1 << 10,
        /// Asymmetric pause.
        PAUSE_ASYM = 1 << 11,
    }
}

/// `struct ofp_phy_port`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PhyPort {
    /// The port's number.
    pub port_no: PortNo,
    /// Its MAC address.
    pub hw_addr: [u8; 6],
    /// Its name.
    pub name: Name<16>,
    /// What the controller set.
    pub config: PortConfig,
    /// What the link is like.
    pub state: PortState,
    /// The features in use.
    pub curr: PortFeatures,
    /// The features that the port advertises.
    pub advertised: PortFeatures,
    /// The features that it supports.
    pub supported: PortFeatures,
    /// The features that its peer advertises.
    pub peer: PortFeatures,
}

impl PhyPort {
    /// The length on the wire in bytes.
    pub const LEN: usize = 48;
}

layout!(PhyPort: Body { port_no, hw_addr, name, config, state, curr, advertised, supported, peer });

open_enum! {
    /// What happened to a port.
    pub struct PortReason(u8) {
        /// It was added.
        ADD = 0,
        /// It was removed.
        DELETE = 1,
        /// An attribute changed.
        MODIFY = 2,
    }
}

/// `struct ofp_port_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PortStatus {
    /// What happened.
    pub reason: PortReason,
    /// The port as it is now, or was.
    pub desc: PhyPort,
}

layout!(PortStatus: Body { reason, [7], desc });

/// `struct ofp_port_mod`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PortMod {
    /// The port.
    pub port_no: PortNo,
    /// Its MAC address; the switch refuses another one.
    pub hw_addr: [u8; 6],
    /// The new values of the bits in `mask`.
    pub config: PortConfig,
    /// Which bits change.
    pub mask: PortConfig,
    /// The features to advertise; zero leaves them as they are.
    pub advertise: PortFeatures,
}

layout!(PortMod: Body { port_no, hw_addr, config, mask, advertise, [4] });
