//! What a switch may be, and how long it may take to say so.

use super::{Event, Switch};
use crate::south::pending::Entry;
use crate::time::{Duration, Instant};

/// An answer in parts may take so many times as long as the first part of it.
const PARTS: u64 = 6;

impl Switch {
    /// Whether the switch has told more of itself than it may. Then its session is closed.
    pub(crate) fn has_told_too_much(&mut self) -> bool {
        let reason = self.datapath.told_too_much();
        reason.into_iter().for_each(|reason| self.close(reason));
        reason.is_some()
    }

    /// Asks the driver to close the session, and forgets what the switch has told. Nothing more of it is listened to.
    pub(crate) fn close(&mut self, reason: &'static str) {
        if self.datapath.close() {
            self.statistics = Default::default();
            self.reports.push(Event::CloseSwitch(reason));
        }
    }

    /// Whether an answer is given up.
    pub(super) fn is_late(&self, entry: &Entry, now: Instant) -> bool {
        let Duration(patience) = self.settings.reply_timeout;
        // What has begun to come gets more time, but not for ever.
        let patience = if entry.answered { patience.saturating_mul(PARTS) } else { patience };
        now - entry.sent.at() >= Duration(patience)
    }
}
