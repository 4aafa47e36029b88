//! Reads an agent's samplers from the file that all agents share.
//!
//! ```toml
//! [[samplers]]                      # Open vSwitch's own sFlow, on a bridge
//! agent = "server1"                 # the agent that samples; not needed if there is one
//! bridge = "br0"
//! switch = "/run/openvswitch"       # where its sockets are; this when left out
//! one_in = 100                      # a whole number
//! collector = "192.0.2.9:6343"      # port 6343 if none is given
//! header = 128                      # bytes of each packet; 128 when left out
//!
//! [[samplers]]                      # Weir's own sampler, on an interface
//! agent = "server1"
//! interface = "eth1"
//! namespace = "vm-a"                # on that server; may be left out
//! one_in = 2.5
//! collector = "192.0.2.9"
//! ```

use crate::ovsdb::{LARGEST_HEADER, OvsSampling};
use crate::sflow::PORT;
use crate::standing::{BridgeSampling, OwnSampling, Sampling};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SamplerTable {
    agent: Option<String>,
    interface: Option<String>,
    namespace: Option<String>,
    bridge: Option<String>,
    switch: Option<PathBuf>,
    #[serde(deserialize_with = "one_in_of")]
    one_in: f64,
    #[serde(deserialize_with = "collector_of")]
    collector: SocketAddr,
    #[serde(default = "custom")]
    header: u32,
}

fn one_in_of<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let number = f64::deserialize(from)?;
    one_in(&number.to_string()).map_err(D::Error::custom)
}

fn collector_of<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    collector(&String::deserialize(from)?).map_err(D::Error::custom)
}

fn custom() -> u32 {
    128
}

/// The samplers of the agent `own`; `names` are all agents of the file.
pub(super) fn settle(
    tables: Vec<SamplerTable>,
    names: &[&str],
    own: &str,
) -> Result<Vec<Sampling>, String> {
    let mut samplers = Vec::new();
    // Each sampler gets its own sub-agent number at the collector.
    let mut sub_agent = 0;
    for (table, number) in tables.into_iter().zip(1..) {
        let settled = settle_one(table, names, own, sub_agent);
        let Some(sampler) = settled.map_err(|error| format!("sampler {number}: {error}"))? else {
            continue;
        };
        sub_agent += u32::from(matches!(sampler, Sampling::Interface(_)));
        samplers.push(sampler);
    }
    Ok(samplers)
}

/// `None` for a sampler of another agent.
fn settle_one(
    table: SamplerTable,
    names: &[&str],
    own: &str,
    sub_agent: u32,
) -> Result<Option<Sampling>, String> {
    let SamplerTable { one_in, collector, header, .. } = table;
    ensure((14..=1024).contains(&header), format!("14 to 1024 bytes of a packet, not {header}"))?;
    let sampler = match (table.interface, table.bridge) {
        (Some(interface), None) => {
            ensure(table.switch.is_none(), "a switch is of a bridge, and this is an interface")?;
            Sampling::Interface(OwnSampling {
                interface,
                namespace: table.namespace,
                one_in,
                stands_for: one_in,
                header,
                collector,
                agent: None,
                sub_agent,
            })
        }
        (None, Some(bridge)) => {
            ensure(
                table.namespace.is_none(),
                "a namespace is of an interface, and this is a bridge",
            )?;
            ensure(one_in.fract() == 0.0, "Open vSwitch samples one of a whole number of packets")?;
            ensure(
                header <= LARGEST_HEADER,
                format!("Open vSwitch sends at most {LARGEST_HEADER} bytes"),
            )?;
            let switch = table.switch.unwrap_or_else(|| PathBuf::from(SWITCH));
            let sampling = OvsSampling { collector, one_in: one_in as u32, header };
            Sampling::Bridge(BridgeSampling { bridge, switch, sampling })
        }
        (Some(_), Some(_)) => return Err("an interface or a bridge, not both".to_owned()),
        (None, None) => return Err("an interface or a bridge".to_owned()),
    };
    let is_own = match table.agent.as_deref() {
        Some(agent) => {
            ensure(agent == own || names.contains(&agent), format!("there is no agent {agent:?}"))?;
            agent == own
        }
        None if names.len() < 2 => true,
        None => return Err("say which agent's it is".to_owned()),
    };
    Ok(is_own.then_some(sampler))
}

fn ensure(holds: bool, why: impl Into<String>) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.into()) }
}

/// The folder of the sockets of Open vSwitch.
pub const SWITCH: &str = "/run/openvswitch";

/// Reads N of a sampling rate of one in N packets: a number such as 1000.
///
/// # Errors
/// The text is not a number within 1 to 1e9; the error states the range.
pub fn one_in(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok().filter(|number| (1.0..=1e9).contains(number));
    number.ok_or_else(|| "not a number within 1 to 1000000000".to_owned())
}

/// Reads the address of a collector; the default port is sFlow's port.
///
/// # Errors
/// The text is not an address; the error shows the two forms of an address.
pub fn collector(text: &str) -> Result<SocketAddr, String> {
    let with_port = text.parse().ok();
    let without = || Some(SocketAddr::new(text.parse().ok()?, PORT));
    with_port
        .or_else(without)
        .ok_or_else(|| "not an address such as 192.0.2.1 or 192.0.2.1:6343".to_owned())
}
