//! The model of a network: switches, hosts, links. The model is pure and does not depend on the machine.
//!
//! A [`Topology`] is always valid, because only [`TopologyBuilder::build`], [`Topology::builtin`]
//! (such as `single,4`) and [`Topology::from_toml`] make topologies. Names and port numbers are
//! those of Mininet: `h1`, `s1`, `s1-eth1`. Port numbers start at 1 and follow the order of the
//! links. The first interface of a host is `eth0`.

mod build;
mod builtin;
mod fabric;
mod file;
mod model;
mod units;

pub use build::TopologyBuilder;
pub use builtin::BUILTINS;
pub use model::{Host, Link, LinkEnd, Switch, Topology};
pub use units::{MacAddress, Rate};

use crate::error::{Error, Result};

impl Topology {
    /// A built-in topology such as `single,4`; see [`BUILTINS`] for all of them.
    pub fn builtin(specification: &str) -> Result<Topology> {
        builtin::parse(specification)
    }

    /// Reads a topology file. Errors have the line and, for a misspelt key, a suggestion.
    pub fn from_toml(text: &str) -> Result<Topology> {
        file::parse(text)
    }

    /// A built-in topology, or the topology file of that name.
    ///
    /// A specification that ends in `.toml` or contains a `/` is a file. Any other specification is
    /// a built-in topology.
    pub fn load(specification: &str) -> Result<Topology> {
        if !specification.ends_with(".toml") && !specification.contains('/') {
            return Topology::builtin(specification);
        }
        let text = std::fs::read_to_string(specification)
            .map_err(Error::io(format!("read {specification}")))?;
        Topology::from_toml(&text)
    }

    /// Makes a builder with an empty topology.
    pub fn builder() -> TopologyBuilder {
        TopologyBuilder::default()
    }
}
