//! FLOW_REMOVED: once for each of the tenant's entries, with the tenant's own match and cookie.

use crate::south::held::Removed;
use crate::switch::Switch;
use crate::time::Instant;
use crate::v10::unreadable;
use flowspace::Match;
use openflow::ErrorCode;
use openflow::v10::FlowRemoved;

impl Switch {
    /// The switch has removed an entry.
    pub(crate) fn flow_removed_v10(&mut self, body: &[u8], now: Instant) -> Result<(), ErrorCode> {
        let removed = FlowRemoved::parse(body).map_err(unreadable)?;
        let match_ = Match::from_v10(&removed.match_);
        let removed = Removed {
            cookie: removed.cookie,
            key: self.rule_key(0, removed.priority, &match_),
            reason: removed.reason.0,
            counted: (removed.packet_count, removed.byte_count),
            stood: (removed.duration_sec, removed.duration_nsec),
        };
        self.rule_removed(&removed, now);
        Ok(())
    }
}
