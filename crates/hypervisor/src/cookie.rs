//! Cookies on the switch: a cookie names the owner of a rule.
//!
//! ```text
//!  63  60 59          48 47            32 31                             0
//! +------+--------------+----------------+--------------------------------+
//! |  5   | installation |     tenant     |  number of the virtual entry   |
//! +------+--------------+----------------+--------------------------------+
//! ```
//! Weir's own rules have tenant 0, or a tenant with the highest bit set. Weir never changes rules without the mark 5:
//! other software has made them. Rules with the mark and another installation belong to another Weir, or to a Weir
//! whose store is lost. Weir leaves these rules, too, unless the operator starts Weir with `--take-over` for that
//! installation.

use crate::policy::TenantId;
use core::fmt;

const MARK: u64 = 0x5;

/// The Weir that has made a rule: twelve bits of a hash of its store's secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Installation(u16);

impl Installation {
    /// The installation of these bits; `None` if there are more than twelve.
    pub fn new(bits: u16) -> Option<Installation> {
        (bits < 1 << 12).then_some(Installation(bits))
    }

    /// The installation that has this secret.
    pub fn of_secret(secret: &[u8; 16]) -> Installation {
        // Everybody may see the installation: twelve bits of a hash (FNV-1a) say almost nothing about the secret.
        let hash = secret.iter().fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
        });
        Installation((hash ^ hash >> 12 ^ hash >> 24) as u16 & 0xfff)
    }

    /// The installation in a cookie; `None` if Weir has not made the cookie.
    pub(crate) fn of(cookie: u64) -> Option<Installation> {
        (cookie >> 60 == MARK).then_some(Installation((cookie >> 48) as u16 & 0xfff))
    }
}

impl Default for Installation {
    fn default() -> Self {
        Installation(0x745)
    }
}

/// Three hexadecimal digits, as in logs and on the command line.
impl fmt::Display for Installation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03x}", self.0)
    }
}

/// The parts of a cookie that Weir has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// The owner; for Weir's own rules [`OWN`](Self::OWN).
    pub tenant: TenantId,
    /// The number of the virtual entry.
    pub number: u32,
}

impl Cookie {
    /// The owner of Weir's own rules.
    pub const OWN: TenantId = TenantId(0);

    /// Whether the rule is Weir's own.
    pub fn is_own(self) -> bool {
        self.tenant == Cookie::OWN
    }

    /// The number on the wire.
    pub fn to_wire(self, by: Installation) -> u64 {
        MARK << 60 | u64::from(by.0) << 48 | u64::from(self.tenant.0) << 32 | u64::from(self.number)
    }

    /// The parts of a cookie of any installation; `None` if Weir has not made the cookie.
    pub fn of_any(cookie: u64) -> Option<Cookie> {
        Cookie::from_wire(cookie, Installation::of(cookie)?)
    }

    /// The parts of the cookie of a tenant's entry; `None` for all other cookies.
    pub(crate) fn of_entry(cookie: u64, by: Installation) -> Option<Cookie> {
        Cookie::from_wire(cookie, by).filter(|cookie| !cookie.is_own())
    }

    /// The parts of a cookie; `None` if this installation has not made the cookie.
    pub fn from_wire(cookie: u64, by: Installation) -> Option<Cookie> {
        (Installation::of(cookie) == Some(by))
            .then_some(Cookie { tenant: TenantId((cookie >> 32) as u16), number: cookie as u32 })
    }
}
