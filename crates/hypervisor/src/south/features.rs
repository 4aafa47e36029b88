//! The contents of a FEATURES_REPLY.

use alloc::collections::BTreeMap;
use compile::PhysicalPort;

/// What the switch can do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Features {
    pub n_buffers: u32,
    /// The tables that a FLOW_MOD can name. On 1.0 a FLOW_MOD names none, so all tables are one.
    pub n_tables: u8,
    pub capabilities: u32,
    /// The actions (1.0).
    pub actions: u32,
}

/// A switch that has connected.
pub(crate) struct Connected {
    pub datapath_id: u64,
    pub features: Features,
    /// The switch's ports, by the core's numbers. On 1.3 Weir asks the switch for its ports.
    pub ports: BTreeMap<u32, PhysicalPort>,
}
