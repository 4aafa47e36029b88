//! Ports: their numbers, descriptions, PORT_STATUS and PORT_MOD (specification 1.3.5, sections 7.2.1, 7.3.4.3, 7.4.3).

use crate::text::Name;

open_enum! {
    /// A port number; those above `MAX` are reserved.
    pub struct PortNo(u32) {
        /// The highest number of a port.
        MAX = 0xffff_ff00,
        /// The port that the packet came in on.
        IN_PORT = 0xffff_fff8,
        /// Through the flow tables; only in PACKET_OUT.
        TABLE = 0xffff_fff9,
        /// Processed as a normal switch would.
        NORMAL = 0xffff_fffa,
        /// Flooded as a normal switch would.
        FLOOD = 0xffff_fffb,
        /// All ports but the ingress port.
        ALL = 0xffff_fffc,
        /// To the controller.
        CONTROLLER = 0xffff_fffd,
        /// The switch's own port.
        LOCAL = 0xffff_fffe,
        /// As a filter: any port.
        ANY = 0xffff_ffff,
    }
}

impl PortNo {
    /// Whether the number is not one of the reserved ones.
    pub const fn is_physical(self) -> bool {
        self.0 >= 1 && self.0 <= Self::MAX.0
    }
}

flags! {
    /// `enum ofp_port_config`.
    pub struct PortConfig(u32) {
        /// Administratively down.
        PORT_DOWN = 1 << 0,
        /// Drop all received packets.
        NO_RECV = 1 << 2,
        /// Drop packets sent to the port.
        NO_FWD = 1 << 5,
        /// Send no PACKET_IN for the port.
        NO_PACKET_IN = 1 << 6,
    }
}

flags! {
    /// `enum ofp_port_state`.
    pub struct PortState(u32) {
        /// No physical link.
        LINK_DOWN = 1 << 0,
        /// Blocked by a protocol outside OpenFlow.
        BLOCKED = 1 << 1,
        /// Live for fast failover.
        LIVE = 1 << 2,
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
        /// 40 Gb/s full duplex.
        RATE_40GB_FD = 1 << 7,
        /// 100 Gb/s full duplex.
        RATE_100GB_FD = 1 << 8,
        /// 1 Tb/s full duplex.
        RATE_1TB_FD = 1 << 9,
        /// Another rate.
        OTHER = 1 << 10,
        /// Copper.
        COPPER = 1 << 11,
        /// Fibre.
        FIBER = 1 << 12,
        /// Auto-negotiation.
        AUTONEG = 1 << 13,
        /// Pause.
        PAUSE = 1 << 14,
        /// Asymmetric pause.
        PAUSE_ASYM = 1 << 15,
    }
}

/// `struct ofp_port`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Port {
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
    /// The current rate in kb/s.
    pub curr_speed: u32,
    /// The highest rate in kb/s.
    pub max_speed: u32,
}

impl Port {
    /// The length on the wire in bytes.
    pub const LEN: usize = 64;
}

layout!(Port: Body {
    port_no, [4], hw_addr, [2], name, config, state, curr, advertised, supported, peer, curr_speed, max_speed
});

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
    pub desc: Port,
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

layout!(PortMod: Body { port_no, [4], hw_addr, [2], config, mask, advertise, [4] });
