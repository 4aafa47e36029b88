//! What entries of table 0 have counted for the ports of tenants' networks (1.3). When and whom to ask is in
//! [`crate::switch::counts`].
//!
//! Counts are the tenant's: of a packet that bears a link's tag, the tag's four bytes are left out.

use crate::cookie::{Cookie, Installation};
use crate::network::{from_16_bits, in_16_bits};
use crate::policy::TenantId;
use flowspace::{Field, Match};

/// Bytes of a link's tag.
const TAG: u64 = 4;

/// Packets, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes, without a link's tag.
    pub bytes: u64,
}

impl Count {
    /// Both together.
    pub fn plus(self, other: Count) -> Count {
        Count {
            packets: self.packets.saturating_add(other.packets),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    /// As an entry of table 0 with this match counts it.
    pub(crate) fn by_entry(match_: &Match, packets: u64, bytes: u64) -> Count {
        let (_, tagged) = match_.get(Field::VlanVid);
        let tags = if tagged != 0 { packets.saturating_mul(TAG) } else { 0 };
        Count { packets, bytes: bytes.saturating_sub(tags) }
    }
}

/// For whose port an entry of table 0 counts what comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Counted {
    pub tenant: TenantId,
    pub port: u32,
}

impl Counted {
    /// By a port of a network; `None` for one by which table 0 cannot tell packets apart either.
    pub(crate) fn new(tenant: TenantId, port: u32) -> Option<Counted> {
        in_16_bits(port).filter(|port| *port != 0)?;
        Some(Counted { tenant, port })
    }

    /// The cookie of an entry that counts it.
    pub(crate) fn to_cookie(self) -> Cookie {
        let number = u32::from(self.tenant.0) << 16 | in_16_bits(self.port).map_or(0, u32::from);
        Cookie { tenant: Cookie::OWN, number }
    }

    pub(crate) fn from_cookie(cookie: Cookie) -> Option<Counted> {
        if !cookie.is_own() {
            return None;
        }
        let (tenant, port) = ((cookie.number >> 16) as u16, cookie.number as u16);
        Counted::new(TenantId(tenant), from_16_bits(port))
    }

    /// Cookies of all entries that count for a tenant's ports, and the bits by which they are known.
    pub(crate) fn cookies(tenant: TenantId, by: Installation) -> (u64, u64) {
        let number = u32::from(tenant.0) << 16;
        (Cookie { tenant: Cookie::OWN, number }.to_wire(by), !u64::from(u16::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::at_port;
    use flowspace::field::VLAN_PRESENT;

    #[test]
    fn the_tag_is_not_the_tenants() {
        let tagged = at_port(5).with(Field::VlanVid, 2000 | VLAN_PRESENT);
        let count = Count { packets: 3, bytes: 3 * 60 };
        assert_eq!(Count::by_entry(&tagged, 3, 3 * 64), count);
        assert_eq!(Count::by_entry(&at_port(5), 3, 3 * 60), count);
    }

    #[test]
    fn a_cookie_says_for_whose_port_an_entry_counts() {
        let counted = Counted::new(TenantId(7), 10).unwrap();
        assert_eq!(Counted::from_cookie(counted.to_cookie()), Some(counted));
        let by = Installation::default();
        let (cookie, mask) = Counted::cookies(TenantId(7), by);
        assert_eq!(counted.to_cookie().to_wire(by) & mask, cookie);
        assert_eq!(Counted::new(TenantId(7), 0), None);
        assert_eq!(Counted::from_cookie(Cookie { tenant: TenantId(7), number: 1 }), None);
    }
}
