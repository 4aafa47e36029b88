//! The names and units of tenants, switches, ports, hosts and bandwidth.

use crate::dpid::write_octets;
use core::fmt;

pub use crate::dpid::Dpid;

/// A tenant's number: from 1 to [`TenantId::LAST`], and stable across restarts, because it is a part of the cookies on
/// the switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(pub u16);

impl TenantId {
    /// The highest number: the next bit marks cookies of infrastructure rules.
    pub const LAST: TenantId = TenantId(0x7fff);
}

/// The number of a port by which packets can enter: 1 to 0xffffff00 (`OFPP_MAX`, OpenFlow 1.3.5 section A.2.1), or
/// [`PortNumber::LOCAL`], the switch's own network stack; prints as `2`, or as `LOCAL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortNumber(u32);

impl PortNumber {
    /// OFPP_LOCAL: the switch's own network stack, where no wire can be plugged in.
    pub const LOCAL: PortNumber = PortNumber(0xffff_fffe);

    /// Checks the range. The caller first widens numbers of OpenFlow 1.0, so that their reserved numbers are outside
    /// the range.
    pub const fn new(number: u32) -> Result<PortNumber, ReservedPort> {
        match number {
            1..=0xffff_ff00 => Ok(PortNumber(number)),
            number if number == PortNumber::LOCAL.0 => Ok(PortNumber::LOCAL),
            _ => Err(ReservedPort { number }),
        }
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for PortNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            PortNumber::LOCAL => f.write_str("LOCAL"),
            PortNumber(number) => number.fmt(f),
        }
    }
}

/// The number is not the number of a port where a wire can be plugged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservedPort {
    /// The given number.
    pub number: u32,
}

impl core::error::Error for ReservedPort {}

impl fmt::Display for ReservedPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x} is not a port number: 1 to 0xffffff00", self.number)
    }
}

/// A port of a switch; prints as `00:00:00:00:00:00:00:01 port 2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId {
    /// The switch.
    pub dpid: Dpid,
    /// The port of the switch.
    pub port: PortNumber,
}

impl PortId {
    /// This port of this switch.
    pub const fn new(dpid: Dpid, port: PortNumber) -> PortId {
        PortId { dpid, port }
    }
}

impl fmt::Display for PortId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} port {}", self.dpid, self.port)
    }
}

/// A host's hardware address: neither a group address nor all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress([u8; 6]);

impl MacAddress {
    /// Refuses addresses that no host can have.
    pub fn new(octets: [u8; 6]) -> Result<MacAddress, NotAHostAddress> {
        if octets[0] & 1 != 0 || octets == [0; 6] {
            return Err(NotAHostAddress { octets });
        }
        Ok(MacAddress(octets))
    }

    /// The six octets in the order of transmission.
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_octets(f, &self.0)
    }
}

/// The address is a group address, or all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAHostAddress {
    /// The given address.
    pub octets: [u8; 6],
}

impl core::error::Error for NotAHostAddress {}

impl fmt::Display for NotAHostAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x?} cannot be a host's hardware address", self.octets)
    }
}

/// A rate in bits per second; prints as `10Mbit`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bandwidth(u64);

impl Bandwidth {
    /// No bandwidth.
    pub const ZERO: Bandwidth = Bandwidth(0);

    /// A bandwidth in bits per second.
    pub const fn from_bits_per_second(bits: u64) -> Bandwidth {
        Bandwidth(bits)
    }

    /// A bandwidth in kilobits (1,000 bits) per second, the unit of `curr_speed` in OpenFlow 1.3; saturates.
    pub const fn from_kilobits_per_second(kilobits: u64) -> Bandwidth {
        Bandwidth(kilobits.saturating_mul(1_000))
    }

    /// A bandwidth in megabits per second; saturates.
    pub const fn from_megabits_per_second(megabits: u64) -> Bandwidth {
        Bandwidth(megabits.saturating_mul(1_000_000))
    }

    /// In bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// The bandwidth in whole kilobits per second, rounded down: a label must not promise more than the link has.
    pub const fn kilobits_per_second(self) -> u64 {
        self.0 / 1_000
    }

    /// The sum, or `None` if the sum does not fit.
    pub const fn checked_add(self, other: Bandwidth) -> Option<Bandwidth> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Bandwidth(sum)),
            None => None,
        }
    }

    /// The difference; 0 if `other` is larger.
    pub const fn saturating_sub(self, other: Bandwidth) -> Bandwidth {
        Bandwidth(self.0.saturating_sub(other.0))
    }

    /// The bandwidth times `part / whole`, rounded down; 0 if `whole` is 0.
    pub fn share(self, part: u128, whole: u128) -> Bandwidth {
        let bits = u128::from(self.0).checked_mul(part).and_then(|bits| bits.checked_div(whole));
        Bandwidth(bits.and_then(|bits| u64::try_from(bits).ok()).unwrap_or(0))
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 3] =
            [("Gbit", 1_000_000_000), ("Mbit", 1_000_000), ("kbit", 1_000)];
        let exact = UNITS.iter().find(|(_, factor)| self.0 > 0 && self.0.is_multiple_of(*factor));
        let (unit, factor) = exact.copied().unwrap_or(("bit", 1));
        write!(f, "{}{unit}", self.0 / factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn ports_mac_addresses_and_bandwidths_are_printed_in_the_usual_form() {
        let port = PortId::new(Dpid(0x1_02), PortNumber::new(7).unwrap());
        assert_eq!(port.to_string(), "00:00:00:00:00:00:01:02 port 7");
        let port = PortId::new(Dpid(1), PortNumber::new(0xffff_fffe).unwrap());
        assert_eq!(port.to_string(), "00:00:00:00:00:00:00:01 port LOCAL");
        assert_eq!(
            MacAddress::new([2, 0, 0, 0, 0, 0xab]).unwrap().to_string(),
            "02:00:00:00:00:ab"
        );
        for (bits, text) in
            [(0, "0bit"), (10_000_000, "10Mbit"), (1_500, "1500bit"), (64_000, "64kbit")]
        {
            assert_eq!(Bandwidth::from_bits_per_second(bits).to_string(), text);
        }
    }

    #[test]
    fn reserved_port_numbers_and_invalid_mac_addresses_are_refused() {
        for number in [0, 0xffff_ff01, 0xffff_fffd, u32::MAX] {
            assert_eq!(PortNumber::new(number), Err(ReservedPort { number }));
        }
        for octets in [[0; 6], [0xff; 6], [1, 0, 0x5e, 0, 0, 1]] {
            assert_eq!(MacAddress::new(octets), Err(NotAHostAddress { octets }));
        }
    }

    #[test]
    fn shares_round_down_and_never_overflow() {
        let all = Bandwidth::from_bits_per_second(10);
        for (part, whole, bits) in [(1, 3, 3), (3, 3, 10), (1, 0, 0), (u128::MAX, 1, 0)] {
            assert_eq!(all.share(part, whole).bits_per_second(), bits, "{part}/{whole}");
        }
    }
}
