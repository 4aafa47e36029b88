//! What a switch may be, and how long it may take to say so. Beyond these bounds its session is closed with a reason.

use super::start::{Learned, Phase};
use super::{Event, Switch};
use crate::south::pending::Entry;
use crate::time::{Duration, Instant};

/// Ports of one switch.
const PORTS: usize = 4096;
/// Bytes that a switch may tell of its entries, groups and meters when it connects: some 200,000 entries.
const LEARNED: usize = 32 << 20;
/// An answer in parts may take so many times as long as the first part of it.
const PARTS: u64 = 6;

impl Switch {
    /// Whether the switch has told more of itself than it may. Then its session is closed.
    pub(crate) fn has_told_too_much(&mut self) -> bool {
        let Learned { flows, groups, meters } = &self.learned;
        let reason = if self.ports.len() > PORTS {
            "the switch has more than 4096 ports"
        } else if flows.len() + groups.len() + meters.len() > LEARNED {
            "the switch tells more than 32 MiB of its entries, groups and meters"
        } else {
            return false;
        };
        self.close(reason);
        true
    }

    /// Asks the driver to close the session, and forgets what the switch has told. Nothing more of it is listened to.
    pub(crate) fn close(&mut self, reason: &'static str) {
        if self.phase == Phase::Closed {
            return;
        }
        self.phase = Phase::Closed;
        self.learned = Learned::default();
        self.ports.clear();
        self.statistics = Default::default();
        self.events.push_back(Event::CloseSwitch(reason));
    }

    /// Whether an answer is given up.
    pub(super) fn is_late(&self, entry: &Entry, now: Instant) -> bool {
        let Duration(patience) = self.settings.reply_timeout;
        // What has begun to come gets more time, but not for ever.
        let patience = if entry.answered { patience.saturating_mul(PARTS) } else { patience };
        now - entry.sent.at() >= Duration(patience)
    }
}
