//! Counters of the rules of table 0 that count received packets for one port of a tenant's network (1.3): the cookies
//! of these rules, and what a rule's counters mean for the tenant. [`crate::switch::counts`] decides when Weir asks
//! which switch.
//!
//! If packets carry a link's tag, the switch counts the four bytes of the tag too; Weir subtracts them, since the
//! tenant's packets have no such tag.

use crate::cookie::{Cookie, Installation};
use crate::policy::TenantId;
use compile::CountedPort;
use compile::metadata::{from_16_bits, to_16_bits};
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
    /// The sum of both counts.
    pub fn plus(self, other: Count) -> Count {
        Count {
            packets: self.packets.saturating_add(other.packets),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    /// The count for the tenant of a rule of table 0 with this match.
    pub(crate) fn by_entry(match_: &Match, packets: u64, bytes: u64) -> Count {
        let (_, tagged) = match_.get(Field::VlanVid);
        let tags = if tagged != 0 { packets.saturating_mul(TAG) } else { 0 };
        Count { packets, bytes: bytes.saturating_sub(tags) }
    }
}

/// The cookie of a rule of table 0 that counts the received packets of a port.
pub(crate) fn cookie_of(counted: CountedPort) -> Cookie {
    let port = to_16_bits(counted.port).map_or(0, u32::from);
    Cookie { tenant: Cookie::OWN, number: u32::from(counted.tenant.0) << 16 | port }
}

/// The cookie and the mask of all rules that count for a tenant's ports.
pub(crate) fn cookies_of(tenant: TenantId, by: Installation) -> (u64, u64) {
    let number = u32::from(tenant.0) << 16;
    (Cookie { tenant: Cookie::OWN, number }.to_wire(by), !u64::from(u16::MAX))
}

/// The port whose received packets are counted by a rule with this cookie.
pub(crate) fn counted(cookie: u64, by: Installation) -> Option<CountedPort> {
    let Cookie { number, .. } = Cookie::from_wire(cookie, by).filter(|it| it.is_own())?;
    CountedPort::new(TenantId((number >> 16) as u16), from_16_bits(number as u16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use compile::network::at_port;
    use flowspace::field::VLAN_PRESENT;

    #[test]
    fn the_bytes_of_the_link_tag_are_not_counted_for_the_tenant() {
        let tagged = at_port(5).with(Field::VlanVid, 2000 | VLAN_PRESENT);
        let count = Count { packets: 3, bytes: 3 * 60 };
        assert_eq!(Count::by_entry(&tagged, 3, 3 * 64), count);
        assert_eq!(Count::by_entry(&at_port(5), 3, 3 * 60), count);
    }

    #[test]
    fn the_cookie_of_a_counting_rule_identifies_tenant_and_port() {
        let port = CountedPort::new(TenantId(7), 10).unwrap();
        let by = Installation::default();
        let wire = cookie_of(port).to_wire(by);
        assert_eq!(counted(wire, by), Some(port));
        let (cookie, mask) = cookies_of(TenantId(7), by);
        assert_eq!(wire & mask, cookie);
        assert_eq!(CountedPort::new(TenantId(7), 0), None);
        assert_eq!(counted(Cookie { tenant: TenantId(7), number: 1 }.to_wire(by), by), None);
    }
}
