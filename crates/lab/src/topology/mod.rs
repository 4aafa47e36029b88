//! The model of a network: switches, hosts, links. The model is pure and knows nothing of the machine.
//!
//! A [`Topology`] is always valid: it is made by [`TopologyBuilder::build`], by
//! [`Topology::builtin`] (`single,4` and the like) or by [`Topology::from_toml`]. Names and port
//! numbers are Mininet's: `h1`, `s1`, `s1-eth1`; ports count from 1 in the order of the links; a
//! host's first interface is `eth0`.

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

    /// Reads a topology file; errors carry the line and, for a misspelt key, a suggestion.
    pub fn from_toml(text: &str) -> Result<Topology> {
        file::parse(text)
    }

    /// A built-in topology, or the topology file of that name.
    ///
    /// What ends in `.toml` or contains a `/` is a file; everything else is a built-in.
    pub fn load(specification: &str) -> Result<Topology> {
        if !specification.ends_with(".toml") && !specification.contains('/') {
            return Topology::builtin(specification);
        }
        let text = std::fs::read_to_string(specification)
            .map_err(Error::io(format!("read {specification}")))?;
        Topology::from_toml(&text)
    }

    /// An empty topology to add to.
    pub fn builder() -> TopologyBuilder {
        TopologyBuilder::default()
    }
}
