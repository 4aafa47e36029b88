//! What both versions of OpenFlow say about ports in the same way.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use openflow::v10::PortConfig;
use openflow::{TooLong, Version, frame};

/// A tenant's PORT_MOD.
pub(crate) struct PortChange {
    pub number: u32,
    pub hw_addr: [u8; 6],
    pub config: PortConfig,
    pub mask: PortConfig,
    /// Whether the request has features to advertise; a virtual port has no features.
    pub advertises: bool,
}

/// A port, by the description of its switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortState {
    /// Whether the port has a link, and no controller has taken the port down.
    pub is_up: bool,
    /// The present speed in kilobits per second, by the switch's description; 0 if unknown.
    pub speed: u64,
}

/// OFPPR_ADD. The reasons have the same numbers in both versions.
const PORT_ADD: u8 = 0;

/// OFPPR_DELETE.
pub(crate) const PORT_DELETE: u8 = 1;

/// OFPPR_MODIFY.
pub(crate) const PORT_MODIFY: u8 = 2;

/// The ports that differ, by number, each with the reason for its PORT_STATUS: first removed ports, then added or
/// changed ports.
pub(crate) fn changed_ports<'a, T: PartialEq>(
    before: &'a BTreeMap<u32, T>,
    after: &'a BTreeMap<u32, T>,
) -> impl Iterator<Item = (u8, &'a T)> {
    let gone = before.iter().filter(|(number, _)| !after.contains_key(number));
    let changed = after.iter().filter_map(|(number, port)| match before.get(number) {
        None => Some((PORT_ADD, port)),
        Some(known) => (known != port).then_some((PORT_MODIFY, port)),
    });
    gone.map(|(_, port)| (PORT_DELETE, port)).chain(changed)
}

/// Appends a PORT_STATUS with a port description as the switch gave it.
pub(crate) fn write_port_status(
    version: Version,
    reason: u8,
    wire: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    const PORT_STATUS: u8 = 12;
    frame::write(version, PORT_STATUS, 0, out, |out| {
        out.extend_from_slice(&[reason, 0, 0, 0, 0, 0, 0, 0]);
        out.extend_from_slice(wire);
    })
}

/// The highest rate in a port's features, in kilobits per second. A rate has the same bit in both versions.
pub(crate) fn speed_of(features: u32) -> u64 {
    const RATES: [u64; 10] = [
        10_000,
        10_000,
        100_000,
        100_000,
        1_000_000,
        1_000_000,
        10_000_000,
        40_000_000,
        100_000_000,
        1_000_000_000,
    ];
    let held = RATES.iter().enumerate().filter(|(bit, _)| features >> bit & 1 == 1);
    held.map(|(_, rate)| *rate).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_speed_is_the_highest_rate_of_the_port_features() {
        for (features, kilobits) in
            [(0, 0), (0b1, 10_000), (0b10_1000, 1_000_000), (1 << 6, 10_000_000), (1 << 11, 0)]
        {
            assert_eq!(speed_of(features), kilobits, "{features:#b}");
        }
    }
}
