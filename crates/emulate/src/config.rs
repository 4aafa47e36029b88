//! The configuration of an emulated switch: versions, ports, sizes and planted faults.

use openflow::VersionSet;

use crate::fault::Fault;
use crate::ports::PortConfig;

/// The configuration of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Datapath id.
    pub dpid: u64,
    /// The OpenFlow versions of the switch: 1.0, 1.3 or both.
    pub versions: VersionSet,
    /// The ports of the switch.
    pub ports: Vec<PortConfig>,
    /// Number of flow tables, 1 to 254.
    pub n_tables: u8,
    /// The number of packets that the switch can buffer. With 0 the switch sends every packet
    /// whole.
    pub n_buffers: u32,
    /// The number of entries that fit in each flow table.
    pub max_flows: usize,
    /// The hardware description in DESC statistics.
    pub hardware: String,
    /// The software description in DESC statistics.
    pub software: String,
    /// The faults that are planted from the start.
    pub faults: Vec<Fault>,
}

impl Config {
    /// Makes the configuration of a switch of both versions with ports 1 to `n_ports`, 16 tables, 256 buffers and one
    /// million entries in each table.
    pub fn new(dpid: u64, n_ports: u32) -> Config {
        Config {
            dpid,
            versions: VersionSet::SUPPORTED,
            ports: (1..=n_ports).map(PortConfig::new).collect(),
            n_tables: 16,
            n_buffers: 256,
            max_flows: 1_000_000,
            hardware: "emulated switch".to_owned(),
            software: concat!("weir-emulate ", env!("CARGO_PKG_VERSION")).to_owned(),
            faults: Vec::new(),
        }
    }
}
