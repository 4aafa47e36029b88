//! Cookies on the switch: who owns an entry, without a look at its match.
//!
//! ```text
//!  63            48 47            32 31                             0
//! +----------------+----------------+--------------------------------+
//! |  mark 0x5745   |     tenant     |  number of the virtual entry   |
//! +----------------+----------------+--------------------------------+
//! ```
//! The hypervisor's own entries carry tenant 0. Entries without the mark are somebody else's and are never touched.

use crate::policy::TenantId;

const MARK: u64 = 0x5745;

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
    pub fn to_wire(self) -> u64 {
        MARK << 48 | u64::from(self.tenant.0) << 32 | u64::from(self.number)
    }

    /// The parts of a cookie; `None` when it is not the hypervisor's.
    pub fn from_wire(cookie: u64) -> Option<Cookie> {
        (cookie >> 48 == MARK)
            .then_some(Cookie { tenant: TenantId((cookie >> 32) as u16), number: cookie as u32 })
    }
}
