//! The units of a topology: hardware addresses and rates.

use std::fmt;
use std::str::FromStr;

use fabric::Bandwidth;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// A 48-bit hardware address, written `00:00:00:00:00:01`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// The address with that number: 1 is `00:00:00:00:00:01`.
    pub fn from_number(number: u32) -> MacAddress {
        let [a, b, c, d] = number.to_be_bytes();
        MacAddress([0, 0, a, b, c, d])
    }

    /// Whether a host may have the address, which is neither a group address nor all zero.
    pub fn is_host_address(self) -> bool {
        self.0[0] & 1 == 0 && self.0 != [0; 6]
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for MacAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            Error::topology(format!("{text:?} is not a hardware address such as 00:00:00:00:00:01"))
        };
        let parts: Vec<&str> = text.split(':').collect();
        let parts: [&str; 6] = parts.try_into().map_err(|_| wrong())?;
        let mut octets = [0; 6];
        for (octet, part) in octets.iter_mut().zip(parts) {
            // `from_str_radix` alone would accept a sign.
            if part.len() != 2 || !part.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(wrong());
            }
            *octet = u8::from_str_radix(part, 16).map_err(|_| wrong())?;
        }
        Ok(MacAddress(octets))
    }
}

impl TryFrom<String> for MacAddress {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<MacAddress> for String {
    fn from(mac: MacAddress) -> String {
        mac.to_string()
    }
}

/// The rate of a link, in bits per second; written `10Mbit`, `1.5Gbit`, `500kbit` or `64000bit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rate(Bandwidth);

/// The minimum and maximum rate that HTB can schedule, in bits per second.
const SLOWEST: u64 = 8_000;
const FASTEST: u64 = 400_000_000_000;

impl Rate {
    /// Makes a rate of that number of bits per second, between 8 kbit/s and 400 Gbit/s.
    pub fn from_bits_per_second(bits_per_second: u64) -> Result<Rate, Error> {
        if !(SLOWEST..=FASTEST).contains(&bits_per_second) {
            return Err(Error::topology(format!(
                "a rate of {bits_per_second} bit/s is outside 8kbit to 400Gbit"
            )));
        }
        Ok(Rate(Bandwidth::from_bits_per_second(bits_per_second)))
    }

    /// The rate in bits per second.
    pub fn bits_per_second(self) -> u64 {
        self.0.bits_per_second()
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for Rate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        // Units may have any case.
        let lower = text.trim_start().to_ascii_lowercase();
        let usual = lower.replace("gbit", "Gbit").replace("mbit", "Mbit");
        let bandwidth: Bandwidth = usual.parse().map_err(|_| {
            Error::topology(format!("{text:?} is not a rate such as 10Mbit, 1Gbit or 500kbit"))
        })?;
        Rate::from_bits_per_second(bandwidth.bits_per_second())
    }
}

impl TryFrom<String> for Rate {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Rate> for String {
    fn from(rate: Rate) -> String {
        rate.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        let cases = [
            ("10Mbit", Some(("10Mbit", 10_000_000))),
            ("1.5gbit", Some(("1500Mbit", 1_500_000_000))),
            ("500 kbit", Some(("500kbit", 500_000))),
            ("64001bit", Some(("64001bit", 64_001))),
            ("0.0085Mbit", Some(("8500bit", 8_500))),
            ("1bit", None),
            ("0Mbit", None),
            ("-1Mbit", None),
            ("1e3Mbit", None),
            ("10MB", None),
            ("Mbit", None),
            ("99999999999999999999Gbit", None),
            ("999999999999Gbit", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let rate: Option<Rate> = text.parse().ok();
            assert_eq!(rate.map(Rate::bits_per_second), expected.map(|(_, bits)| bits), "{text:?}");
            assert_eq!(
                rate.map(|rate| rate.to_string()).as_deref(),
                expected.map(|(text, _)| text),
                "{text:?}"
            );
        }
    }

    #[test]
    fn mac_addresses_are_read_and_printed() {
        let cases = [
            ("00:00:00:00:00:01", Some(MacAddress::from_number(1))),
            ("FE:dc:00:00:00:01", Some(MacAddress([0xfe, 0xdc, 0, 0, 0, 1]))),
            ("00:00:00:00:00", None),
            ("00:00:00:00:00:00:01", None),
            ("+1:00:00:00:00:01", None),
            ("0:00:00:00:00:01", None),
            ("é:00:00:00:00:01", None),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse().ok(), expected, "{text:?}");
        }
        assert_eq!(MacAddress::from_number(0x0102_0304).to_string(), "00:00:01:02:03:04");
        assert!(!MacAddress([1, 0, 0, 0, 0, 0]).is_host_address());
    }
}
