//! What an emulated switch is made of.

use openflow::VersionSet;

use crate::fault::Fault;
use crate::ports::PortConfig;

/// What a switch is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Datapath id.
    pub dpid: u64,
    /// The versions it speaks: 1.0, 1.3 or both.
    pub versions: VersionSet,
    /// Its ports.
    pub ports: Vec<PortConfig>,
    /// Number of flow tables, 1 to 254.
    pub n_tables: u8,
    /// How many packets it can keep for the controller; 0 sends every packet whole.
    pub n_buffers: u32,
    /// How many entries fit in each flow table.
    pub max_flows: usize,
    /// What DESC statistics say of its make.
    pub hardware: String,
    /// What DESC statistics say of its software.
    pub software: String,
    /// The faults planted from the start.
    pub faults: Vec<Fault>,
}

impl Config {
    /// A switch of both versions with ports 1 to `n_ports`, 16 tables, 256 buffers, a million flows.
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
