//! FLOW_REMOVED: with the tenant's own match, table and cookie.

use crate::south::held::Removed;
use crate::switch::Switch;
use crate::time::Instant;
use crate::v13::unreadable;
use flowspace::Match as Space;
use openflow::ErrorCode;
use openflow::v13::FlowRemoved;

impl Switch {
    /// The switch has removed an entry.
    pub(crate) fn flow_removed_v13(&mut self, body: &[u8], now: Instant) -> Result<(), ErrorCode> {
        let removed = FlowRemoved::parse(body).map_err(unreadable)?;
        let match_ = Space::from_v13(&removed.match_).map_err(|error| error.error_code())?;
        let removed = Removed {
            cookie: removed.cookie,
            key: self.rule_key(removed.table_id, removed.priority, &match_),
            reason: removed.reason.0,
            counted: (removed.packet_count, removed.byte_count),
            stood: (removed.duration_sec, removed.duration_nsec),
        };
        self.rule_removed(&removed, now);
        Ok(())
    }
}
