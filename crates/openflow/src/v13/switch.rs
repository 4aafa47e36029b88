//! The switch as a whole: FEATURES, GET/SET_CONFIG, EXPERIMENTER (specification 1.3.5, sections 7.3.1, 7.3.2, 7.5.4).

flags! {
    /// `enum ofp_capabilities`.
    pub struct Capabilities(u32) {
        /// Flow statistics.
        FLOW_STATS = 1 << 0,
        /// Table statistics.
        TABLE_STATS = 1 << 1,
        /// Port statistics.
        PORT_STATS = 1 << 2,
        /// Group statistics.
        GROUP_STATS = 1 << 3,
        /// Can reassemble IP fragments.
        IP_REASM = 1 << 5,
        /// Queue statistics.
        QUEUE_STATS = 1 << 6,
        /// Blocks ports that would loop.
        PORT_BLOCKED = 1 << 8,
    }
}

/// `struct ofp_switch_features`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FeaturesReply {
    /// The datapath id: 48 bits of MAC address below 16 bits that the implementer chooses.
    pub datapath_id: u64,
    /// How many packets the switch can buffer at once.
    pub n_buffers: u32,
    /// How many tables the switch has.
    pub n_tables: u8,
    /// 0 for the main connection, else which auxiliary one this is.
    pub auxiliary_id: u8,
    /// What it can do.
    pub capabilities: Capabilities,
    /// Reserved; kept as it came.
    pub reserved: u32,
}

layout!(FeaturesReply: Body { datapath_id, n_buffers, n_tables, auxiliary_id, [2], capabilities, reserved });

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
    /// How many bytes of a packet go to the controller when no action says how many;
    /// [`CONTROLLER_NO_BUFFER`](super::CONTROLLER_NO_BUFFER) for all.
    pub miss_send_len: u16,
}

layout!(SwitchConfig: Body { flags, miss_send_len });

/// `struct ofp_experimenter_header`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Experimenter<'a> {
    /// The experimenter: an IEEE OUI if the high byte is zero.
    pub experimenter: u32,
    /// The experimenter's own message type.
    pub exp_type: u32,
    /// What the experimenter defines.
    pub body: &'a [u8],
}

layout!(Experimenter<'a>: Body { experimenter, exp_type, body });
