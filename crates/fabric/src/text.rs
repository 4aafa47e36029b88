//! The text forms of ports, bandwidths, hosts' addresses and address blocks.

use crate::dpid::Dpid;
use crate::embedding::{Block, VirtualPortId};
use crate::text_error::TextError;
use crate::units::{Bandwidth, MacAddress, PortId, PortNumber};
use core::str::FromStr;

const PORT: TextError = TextError("a dpid and a port, such as \"00:00:00:00:00:00:00:01 port 2\"");
const NUMBER: TextError = TextError("a port's number, or LOCAL");
const BANDWIDTH: TextError =
    TextError("a bandwidth with a unit: Gbit, Mbit, kbit or bit, such as \"10Mbit\"");
const HOST: TextError = TextError("a host's MAC address, such as \"02:00:00:00:00:01\"");
const BLOCK: TextError = TextError(
    "addresses with the length of their common prefix and no bit set behind it, such as \"10.0.0.0/24\"",
);

impl FromStr for PortNumber {
    type Err = TextError;

    /// A number, or `LOCAL` in upper or lower case, as in ovs-ofctl. The number of the port LOCAL is refused, because
    /// it differs between the versions.
    fn from_str(text: &str) -> Result<PortNumber, TextError> {
        if text.eq_ignore_ascii_case("LOCAL") {
            return Ok(PortNumber::LOCAL);
        }
        let number = PortNumber::new(decimal(text).ok_or(NUMBER)?).map_err(|_| NUMBER)?;
        if number == PortNumber::LOCAL { Err(NUMBER) } else { Ok(number) }
    }
}

impl FromStr for PortId {
    type Err = TextError;

    fn from_str(text: &str) -> Result<PortId, TextError> {
        let (dpid, number) = text.split_once(" port ").ok_or(PORT)?;
        let dpid: Dpid = dpid.trim().parse().map_err(|_| PORT)?;
        let port = number.trim().parse().map_err(|_| PORT)?;
        Ok(PortId::new(dpid, port))
    }
}

impl FromStr for VirtualPortId {
    type Err = TextError;

    fn from_str(text: &str) -> Result<VirtualPortId, TextError> {
        let PortId { dpid, port } = text.parse()?;
        Ok(VirtualPortId { switch: dpid, number: port.get() })
    }
}

impl FromStr for Block {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Block, TextError> {
        let (address, length) = text.split_once('/').ok_or(BLOCK)?;
        let address = address.parse().map_err(|_| BLOCK)?;
        Block::new(address, decimal(length).ok_or(BLOCK)?).ok_or(BLOCK)
    }
}

impl FromStr for Bandwidth {
    type Err = TextError;

    /// A fraction is read exactly; the result is rounded down to whole bits per second.
    fn from_str(text: &str) -> Result<Bandwidth, TextError> {
        const UNITS: [(&str, u64); 4] =
            [("Gbit", 1_000_000_000), ("Mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)];
        let found =
            UNITS.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
        let (number, factor) = found.ok_or(BANDWIDTH)?;
        let (whole, fraction) =
            number.trim_end().split_once('.').unwrap_or((number.trim_end(), "0"));
        let whole: u64 = decimal(whole).ok_or(BANDWIDTH)?;
        let digits = u32::try_from(fraction.len()).ok().filter(|digits| *digits <= 9);
        let scale = 10_u64.pow(digits.ok_or(BANDWIDTH)?);
        let fraction: u64 = decimal(fraction).ok_or(BANDWIDTH)?;
        let part = u128::from(fraction) * u128::from(factor) / u128::from(scale);
        let bits = whole.checked_mul(factor).and_then(|bits| bits.checked_add(part as u64));
        bits.map(Bandwidth::from_bits_per_second).ok_or(BANDWIDTH)
    }
}

impl FromStr for MacAddress {
    type Err = TextError;

    fn from_str(text: &str) -> Result<MacAddress, TextError> {
        let mut octets = [0; 6];
        let mut parts = text.split(':');
        for octet in &mut octets {
            let part = parts.next().filter(|part| {
                part.len() == 2 && part.bytes().all(|digit| digit.is_ascii_hexdigit())
            });
            *octet = u8::from_str_radix(part.ok_or(HOST)?, 16).map_err(|_| HOST)?;
        }
        if parts.next().is_some() {
            return Err(HOST);
        }
        MacAddress::new(octets).map_err(|_| HOST)
    }
}

/// The digits are checked first, because `parse` accepts a sign.
fn decimal<T: FromStr>(text: &str) -> Option<T> {
    let is_number = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn bandwidths() {
        for (text, bits) in [
            ("10Mbit", Some(10_000_000)),
            ("1.5Gbit", Some(1_500_000_000)),
            ("0.5kbit", Some(500)),
            ("7bit", Some(7)),
            ("64 kbit", Some(64_000)),
            ("10", None),
            ("Mbit", None),
            ("-1Mbit", None),
            ("+1Mbit", None),
            ("1.Mbit", None),
            ("1.0000000000Mbit", None),
            ("10mbit", None),
            ("99999999999999Gbit", None),
        ] {
            let read = text.parse::<Bandwidth>().ok();
            assert_eq!(read, bits.map(Bandwidth::from_bits_per_second), "{text}");
        }
    }

    #[test]
    fn address_blocks_are_read_back_and_list_their_host_addresses() {
        for (text, first, how_many) in [
            ("10.0.0.0/24", "10.0.0.1", 254),
            ("10.0.0.4/30", "10.0.0.5", 2),
            ("10.0.0.4/31", "10.0.0.4", 2),
            ("10.0.0.4/32", "10.0.0.4", 1),
            ("fd00::/120", "fd00::1", 255),
        ] {
            let block: Block = text.parse().unwrap();
            assert_eq!(block.to_string(), text);
            let mut hosts = block.hosts();
            assert!(hosts.clone().all(|address| block.contains(address)));
            assert_eq!((hosts.clone().count(), hosts.next()), (how_many, first.parse().ok()));
        }
        for text in ["", "10.0.0.0", "10.0.0.1/24", "10.0.0.0/33", "fd00::/129", "10.0.0.0/-1"] {
            assert_eq!(text.parse::<Block>(), Err(BLOCK), "{text:?}");
        }
        let all: Block = "::/0".parse().unwrap();
        assert!(
            all.contains("fd00::1".parse().unwrap()) && !all.contains("10.0.0.1".parse().unwrap())
        );
    }

    #[test]
    fn port_ids_and_mac_addresses_are_read_back_and_wrong_text_is_refused() {
        let port: PortId = "0x1f port 7".parse().unwrap();
        assert_eq!(port.to_string().parse(), Ok(port));
        for text in ["1 port LOCAL", "1 port local", "1 port Local "] {
            let port: PortId = text.parse().unwrap();
            assert_eq!(port.port, PortNumber::LOCAL, "{text:?}");
            assert_eq!(port.to_string(), "00:00:00:00:00:00:00:01 port LOCAL");
            assert_eq!(port.to_string().parse::<VirtualPortId>().unwrap().number, 0xffff_fffe);
        }
        for text in [
            "",
            "1",
            "1 port",
            "1 port 0",
            "1 port LOCALE",
            "1 port 4294967294",
            "1 port 4294967295",
            "1 port -1",
            "port 1",
            "1:2 port 1",
        ] {
            assert_eq!(text.parse::<PortId>(), Err(PORT), "{text:?}");
        }
        let host: MacAddress = "02:00:00:00:0A:0b".parse().unwrap();
        assert_eq!(host.to_string().parse(), Ok(host));
        for text in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:00:01",
            "01:00:00:00:00:01",
            "2:0:0:0:0:1",
            "+2:00:00:00:00:01",
        ] {
            assert_eq!(text.parse::<MacAddress>(), Err(HOST), "{text:?}");
        }
    }
}
