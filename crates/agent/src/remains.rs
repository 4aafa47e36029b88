//! Removes the state that a killed agent leaves behind. Otherwise the kernel would keep the last ceilings of a VNIC for
//! ever, and Open vSwitch would continue to sample.
//!
//! [`Remains`] go from the agent to the process beside the agent as one line of JSON. This module does not start or
//! watch that process.

use crate::edge::{Edge, Fallback, fall_back};
use crate::error::{Error, Result};
use crate::ovsdb::Database;
use crate::shaper::Shape;
use crate::standing::{BridgeSampling, Standing};
use fabric::{Bandwidth, MacAddress};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The shapers of an agent, and the bridges that sample for the agent.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remains {
    vnics: Vec<Line>,
    bridges: Vec<Sampled>,
}

/// The result of [`Remains::end`].
#[derive(Debug)]
pub struct Ended {
    /// The number of VNICs, and the number of VNICs that have their whole bandwidth.
    pub vnics: (usize, usize),
    /// The number of bridges, and the number of bridges that no longer sample.
    pub bridges: (usize, usize),
    /// The errors of the other VNICs and bridges.
    pub errors: Vec<Error>,
}

/// A bridge that samples.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sampled {
    bridge: String,
    switch: PathBuf,
}

/// A [`Fallback`] in JSON.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Line {
    namespace: Option<String>,
    interface: String,
    bits_per_second: u64,
    destinations: Vec<[u8; 6]>,
}

impl Remains {
    /// The remains of an agent that is killed now.
    pub fn of(edge: Option<&Edge>, samplers: &Standing) -> Remains {
        let sampled = |it: &BridgeSampling| {
            let (bridge, switch) = (it.bridge.clone(), it.switch.clone());
            Sampled { bridge, switch }
        };
        let fallbacks = edge.map(Edge::fallbacks).unwrap_or_default();
        Remains {
            vnics: fallbacks.into_iter().map(Line::from).collect(),
            bridges: samplers.bridges().iter().map(sampled).collect(),
        }
    }

    /// Gives every VNIC its whole bandwidth, and ends the sampling of every bridge.
    pub fn end(self) -> Ended {
        let (vnics, bridges) = (self.vnics.len(), self.bridges.len());
        let plan: Vec<Fallback> = self.vnics.into_iter().map(Fallback::from).collect();
        let mut errors = fall_back(&plan);
        let shaped = errors.len();
        errors.extend(self.bridges.iter().filter_map(|it| it.end().err()));
        let sampling = errors.len() - shaped;
        Ended { vnics: (vnics, vnics - shaped), bridges: (bridges, bridges - sampling), errors }
    }
}

impl Sampled {
    fn end(&self) -> Result<()> {
        Database::connect(&self.switch.join("db.sock"))?.clear_sampling(&self.bridge)
    }
}

impl From<Fallback> for Line {
    fn from(Fallback { namespace, shape }: Fallback) -> Line {
        Line {
            namespace,
            interface: shape.interface,
            bits_per_second: shape.bandwidth.bits_per_second(),
            destinations: shape.destinations.iter().map(|mac| mac.octets()).collect(),
        }
    }
}

impl From<Line> for Fallback {
    fn from(line: Line) -> Fallback {
        // The agent wrote these addresses, and an agent refuses invalid addresses.
        let macs = line.destinations.into_iter().filter_map(|mac| MacAddress::new(mac).ok());
        let shape = Shape {
            interface: line.interface,
            bandwidth: Bandwidth::from_bits_per_second(line.bits_per_second),
            destinations: macs.collect(),
        };
        Fallback { namespace: line.namespace, shape }
    }
}
