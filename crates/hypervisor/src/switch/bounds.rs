//! What a switch may be, and how long it may take to say so.

use super::Switch;
use super::event::Event;
use crate::policy::Switches;
use crate::pool::{Pool, Taken};
use crate::south::pending::Entry;
use crate::time::{Duration, Instant};
use alloc::sync::Arc;
use openflow::Encode;

/// An answer in parts may take so many times as long as the first part of it.
const PARTS: u64 = 6;
/// Bytes of its own that a switch has for each item that the store has of it. A switch holds some rules for an entry.
const STORED: usize = 16 << 10;

impl Switch {
    /// Nobody has listed the switch: what it tells of itself takes memory from this pool. A switch that a tenant's flowspace or
    /// network names has memory of its own, and so has what the store has of the switch.
    pub fn share_memory(&mut self, pool: Arc<Pool>) {
        let (dpid, policy) = (self.dpid(), self.map.policy());
        let mut spaces = policy.tenants.iter().flat_map(|tenant| &tenant.flowspace);
        let is_named = policy.maps.contains_key(&dpid)
            || spaces.any(|it| matches!(&it.switches, Switches::Only(all) if all.contains(&dpid)));
        let stored = self.journal.restored().len().saturating_mul(STORED);
        let own = if is_named { usize::MAX } else { stored };
        self.datapath.share(Taken::new(Arc::clone(&pool)), own);
        if !is_named {
            self.statistics.share(Taken::new(pool));
        }
        self.has_told_too_much();
    }

    /// The switch has reported rules, by their cookies. What other installations have made is counted.
    pub(crate) fn learn_rules<T: Encode>(&mut self, rules: impl Iterator<Item = (u64, T)>) {
        let (own, other) = (self.settings.installation, self.settings.takes_over);
        self.datapath.learn_rules(rules, |it| it == own || other == Some(it));
    }

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
