//! Port descriptions: those that Weir keeps of physical ports, and those that a tenant gets of its network's ports.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use compile::{Network, PhysicalPort};
use fabric::embedding::VirtualPort;
use openflow::text::Name;
use openflow::v10::PortConfig;
use openflow::{Version, frame, v10, v13};

/// The core's number of a physical port of OpenFlow 1.0, and the description that Weir keeps.
pub(crate) fn known_v10(port: &v10::PhyPort) -> (u32, PhysicalPort) {
    let mut description = Vec::with_capacity(v10::PhyPort::LEN);
    port.write(&mut description);
    let no_flood = port.config.contains(PortConfig::NO_FLOOD);
    (flowspace::port_from_v10(port.port_no.0), PhysicalPort { description, no_flood })
}

/// The descriptions of all ports of a network, by number.
pub(crate) fn of_network(network: &Network, version: Version) -> BTreeMap<u32, Vec<u8>> {
    let ports = network.ports().keys();
    ports.filter_map(|&number| Some((number, of_port(network, version, number)?))).collect()
}

/// The description of one port.
pub(crate) fn of_port(network: &Network, version: Version, number: u32) -> Option<Vec<u8>> {
    let port = network.ports().get(&number)?;
    Some(describe(number, port, network.config(number), version))
}

fn describe(number: u32, port: &VirtualPort, config: PortConfig, version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    let kilobits = port.speed.map_or(0, |speed| speed.kilobits_per_second());
    let speed = u32::try_from(kilobits).unwrap_or(u32::MAX);
    if version == Version::V1_0 {
        let state = if port.up { v10::PortState(0) } else { v10::PortState::LINK_DOWN };
        v10::PhyPort {
            port_no: v10::PortNo(flowspace::port_to_v10(number).unwrap_or(0)),
            hw_addr: port.mac,
            name: Name::new(port.name.as_str()),
            config,
            state,
            curr: v10::PortFeatures(0),
            advertised: v10::PortFeatures(0),
            supported: v10::PortFeatures(0),
            peer: v10::PortFeatures(0),
        }
        .write(&mut out);
    } else {
        let state = match port.up {
            // Taken down, it is not live (specification section 7.2.1), though nothing is wrong with the link.
            true if config.contains(PortConfig::PORT_DOWN) => v13::PortState(0),
            true => v13::PortState::LIVE,
            false => v13::PortState::LINK_DOWN,
        };
        v13::Port {
            port_no: v13::PortNo(number),
            hw_addr: port.mac,
            name: Name::new(port.name.as_str()),
            config: v13::PortConfig(config.0),
            state,
            curr: v13::PortFeatures(0),
            advertised: v13::PortFeatures(0),
            supported: v13::PortFeatures(0),
            peer: v13::PortFeatures(0),
            curr_speed: speed,
            max_speed: speed,
        }
        .write(&mut out);
    }
    out
}

/// Appends a PORT_STATUS with a port description as the switch gave it.
pub(crate) fn write_port_status(
    version: Version,
    reason: u8,
    wire: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), openflow::TooLong> {
    const PORT_STATUS: u8 = 12;
    frame::write(version, PORT_STATUS, 0, out, |out| {
        out.extend_from_slice(&[reason, 0, 0, 0, 0, 0, 0, 0]);
        out.extend_from_slice(wire);
    })
}

pub(super) const PORT_MODIFY: u8 = 2;
