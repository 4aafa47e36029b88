//! The cause of messages to the switch: the tenant, the request, and the way to the switch.

use crate::ids::TenantIndex;
use crate::south::pending::Origin;
use crate::time::Instant;

/// The context in which messages for the switch are made.
#[derive(Clone, Copy)]
pub(crate) struct Cause {
    pub tenant: TenantIndex,
    pub origin: Option<Origin>,
    pub operation: Option<u32>,
    /// Whether the messages bypass the tenant's queue, as for changes that Weir makes itself.
    pub direct: bool,
    pub now: Instant,
}

impl Cause {
    /// The cause of a change that Weir makes itself.
    pub(crate) fn own(tenant: TenantIndex, now: Instant) -> Cause {
        Cause { tenant, origin: None, operation: None, direct: true, now }
    }
}

/// The cause of a change that waits in the tenant's queue and that no controller asked for.
pub(crate) fn in_turn(tenant: TenantIndex, now: Instant) -> Cause {
    Cause { direct: false, ..Cause::own(tenant, now) }
}
