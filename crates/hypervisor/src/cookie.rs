//! Cookies on the switch: who owns an entry, without a look at its match.
//!
//! ```text
//!  63  60 59          48 47            32 31                             0
//! +------+--------------+----------------+--------------------------------+
//! |  5   | installation |     tenant     |  number of the virtual entry   |
//! +------+--------------+----------------+--------------------------------+
//! ```
//! The hypervisor's own entries carry tenant 0, or the highest bit of it. Entries without the mark, 5, are somebody else's and are
//! never touched. Entries with the mark and another installation are those of another Weir, or of one whose store is lost. They are
//! left, too, unless this Weir was told to take over from that installation.

use crate::policy::TenantId;
use core::fmt;

const MARK: u64 = 0x5;

/// Which Weir has made an entry: twelve bits that its store draws when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Installation(u16);

impl Installation {
    /// The installation of these bits; `None` if there are more than twelve.
    pub fn new(bits: u16) -> Option<Installation> {
        (bits < 1 << 12).then_some(Installation(bits))
    }

    /// The installation that has this secret.
    pub fn of_secret(secret: &[u8; 16]) -> Installation {
        // Everybody may see it: twelve bits of a hash (FNV-1a) tell next to nothing of the secret.
        let hash = secret.iter().fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
        });
        Installation((hash ^ hash >> 12 ^ hash >> 24) as u16 & 0xfff)
    }

    /// By which installation of Weir a cookie is; `None` when it is by none.
    pub(crate) fn of(cookie: u64) -> Option<Installation> {
        (cookie >> 60 == MARK).then_some(Installation((cookie >> 48) as u16 & 0xfff))
    }
}

impl Default for Installation {
    fn default() -> Self {
        Installation(0x745)
    }
}

/// As it is told, and as it is named on the command line: three hexadecimal digits.
impl fmt::Display for Installation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03x}", self.0)
    }
}

/// The parts of a cookie that the hypervisor made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// The owner; the hypervisor itself if it [is own](Self::is_own).
    pub tenant: TenantId,
    /// The number of the virtual entry.
    pub number: u32,
}

impl Cookie {
    /// The hypervisor's own entries.
    pub const OWN: TenantId = TenantId(0);

    /// Whether it is of an entry of the hypervisor's own.
    pub fn is_own(self) -> bool {
        self.tenant == Cookie::OWN
    }

    /// The number on the wire.
    pub fn to_wire(self, by: Installation) -> u64 {
        MARK << 60 | u64::from(by.0) << 48 | u64::from(self.tenant.0) << 32 | u64::from(self.number)
    }

    /// The parts of a cookie, by whichever installation; `None` when it is by none.
    pub fn of_any(cookie: u64) -> Option<Cookie> {
        Cookie::from_wire(cookie, Installation::of(cookie)?)
    }

    /// The parts of the cookie of a tenant's entry; `None` when it is of no tenant's.
    pub(crate) fn of_entry(cookie: u64, by: Installation) -> Option<Cookie> {
        Cookie::from_wire(cookie, by).filter(|cookie| !cookie.is_own())
    }

    /// The parts of a cookie; `None` when it is not this hypervisor's.
    pub fn from_wire(cookie: u64, by: Installation) -> Option<Cookie> {
        (Installation::of(cookie) == Some(by))
            .then_some(Cookie { tenant: TenantId((cookie >> 32) as u16), number: cookie as u32 })
    }
}
