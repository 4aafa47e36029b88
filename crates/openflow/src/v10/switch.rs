//! The switch as a whole: FEATURES, GET/SET_CONFIG, VENDOR (specification 1.0.0, sections 5.3.1, 5.3.2, 5.5.4).

use super::port::PhyPort;
use crate::list::List;

flags! {
    /// `enum ofp_capabilities`.
    pub struct Capabilities(u32) {
        /// Flow statistics.
        FLOW_STATS = 1 << 0,
        /// Table statistics.
        TABLE_STATS = 1 << 1,
        /// Port statistics.
        PORT_STATS = 1 << 2,
        /// 802.1d spanning tree.
        STP = 1 << 3,
        /// Reserved.
        RESERVED = 1 << 4,
        /// Can reassemble IP fragments.
        IP_REASM = 1 << 5,
        /// Queue statistics.
        QUEUE_STATS = 1 << 6,
        /// Matches IP addresses in ARP packets.
        ARP_MATCH_IP = 1 << 7,
    }
}

flags! {
    /// The actions that a switch supports: bit *n* is the action of type *n*.
    pub struct SupportedActions(u32) {
        /// OUTPUT.
        OUTPUT = 1 << 0,
        /// SET_VLAN_VID.
        SET_VLAN_VID = 1 << 1,
        /// SET_VLAN_PCP.
        SET_VLAN_PCP = 1 << 2,
        /// STRIP_VLAN.
        STRIP_VLAN = 1 << 3,
        /// SET_DL_SRC.
        SET_DL_SRC = 1 << 4,
        /// SET_DL_DST.
        SET_DL_DST = 1 << 5,
        /// SET_NW_SRC.
        SET_NW_SRC = 1 << 6,
        /// SET_NW_DST.
        SET_NW_DST = 1 << 7,
        /// SET_NW_TOS.
        SET_NW_TOS = 1 << 8,
        /// SET_TP_SRC.
        SET_TP_SRC = 1 << 9,
        /// SET_TP_DST.
        SET_TP_DST = 1 << 10,
        /// ENQUEUE.
        ENQUEUE = 1 << 11,
    }
}

/// `struct ofp_switch_features`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FeaturesReply<'a> {
    /// The datapath id: 48 bits of MAC address below 16 bits that the implementer chooses.
    pub datapath_id: u64,
    /// How many packets the switch can buffer at once.
    pub n_buffers: u32,
    /// How many tables the switch has.
    pub n_tables: u8,
    /// What it can do.
    pub capabilities: Capabilities,
    /// Which actions it has.
    pub actions: SupportedActions,
    /// Its ports.
    pub ports: List<'a, PhyPort>,
}

layout!(FeaturesReply<'a>: Body { datapath_id, n_buffers, n_tables, [3], capabilities, actions, ports });

flags! {
    /// `enum ofp_config_flags`. The two low bits are one number: how IP fragments are handled.
    pub struct ConfigFlags(u16) {
        /// No special handling of fragments.
        FRAG_NORMAL = 0,
        /// Fragments are dropped.
        FRAG_DROP = 1,
        /// Fragments are reassembled.
        FRAG_REASM = 2,
        /// The bits that say so.
        FRAG_MASK = 3,
    }
}

/// `struct ofp_switch_config`: the body of GET_CONFIG_REPLY and SET_CONFIG.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SwitchConfig {
    /// How fragments are handled.
    pub flags: ConfigFlags,
    /// How many bytes of a packet that misses go to the controller.
    pub miss_send_len: u16,
}

layout!(SwitchConfig: Body { flags, miss_send_len });

/// `struct ofp_vendor_header`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vendor<'a> {
    /// The vendor: an IEEE OUI if the high byte is zero.
    pub vendor: u32,
    /// What the vendor defines.
    pub body: &'a [u8],
}

layout!(Vendor<'a>: Body { vendor, body });
