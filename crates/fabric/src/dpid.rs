//! The text form of datapath ids.

use crate::text_error::TextError;
use alloc::borrow::ToOwned;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

const DPID: TextError = TextError(
    "a dpid: eight bytes as \"00:00:00:00:00:00:00:01\", or up to 16 hex digits, 0x or not",
);

/// A datapath id; prints as `00:00:00:00:00:00:00:01`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dpid(pub u64);

impl fmt::Display for Dpid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_octets(f, &self.0.to_be_bytes())
    }
}

/// Octets as hexadecimal numbers with colons between them.
pub(crate) fn write_octets(f: &mut fmt::Formatter<'_>, octets: &[u8]) -> fmt::Result {
    for (index, octet) in octets.iter().enumerate() {
        write!(f, "{}{octet:02x}", if index == 0 { "" } else { ":" })?;
    }
    Ok(())
}

impl FromStr for Dpid {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let digits = if text.contains(':') {
            let bytes: Vec<&str> = text.split(':').collect();
            if bytes.len() != 8 || bytes.iter().any(|byte| byte.len() != 2) {
                return Err(DPID);
            }
            bytes.concat()
        } else {
            text.strip_prefix("0x").unwrap_or(text).to_owned()
        };
        // The digits are checked separately, because `from_str_radix` accepts a sign.
        if digits.is_empty() || digits.len() > 16 || !digits.bytes().all(|b| b.is_ascii_hexdigit())
        {
            return Err(DPID);
        }
        u64::from_str_radix(&digits, 16).map(Dpid).map_err(|_| DPID)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn dpids_are_read_with_colons_and_as_plain_numbers() {
        for (text, dpid) in [
            ("00:00:00:00:00:00:00:01", Some(1)),
            ("fe:DC:ba:98:76:54:32:10", Some(0xfedc_ba98_7654_3210)),
            ("0000000000000010", Some(16)),
            ("0xff", Some(255)),
            ("1", Some(1)),
            ("", None),
            ("0x", None),
            ("any", None),
            ("+1", None),
            ("00:00:00:00:00:00:01", None),
            ("0:0:0:0:0:0:0:1", None),
            ("00000000000000001", None),
            ("00:00:00:00:00:00:00:0g", None),
        ] {
            assert_eq!(text.parse::<Dpid>().ok(), dpid.map(Dpid), "{text:?}");
        }
    }

    #[test]
    fn a_printed_dpid_is_read_back() {
        for dpid in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
            assert_eq!(Dpid(dpid).to_string().parse(), Ok(Dpid(dpid)));
        }
        assert_eq!(Dpid(0x1f).to_string(), "00:00:00:00:00:00:00:1f");
    }
}
