//! Bounds for a switch: the memory for its reports, and the time for its answers.

use super::Switch;
use super::event::Event;
use crate::parts::rules_with_cookies;
use crate::policy::Switches;
use crate::pool::{Pool, Taken};
use crate::south::pending::Entry;
use crate::time::Instant;
use alloc::sync::Arc;

/// An answer in several parts may take this many times the time for its first part.
const PARTS: u32 = 6;
/// Bytes of a switch's own memory for each of its items in the store. A switch holds some rules for an entry.
const STORED: usize = 16 << 10;

impl Switch {
    /// The operator has not listed the switch, so its reports take memory from this pool. A switch that a tenant's
    /// flowspace or network names has memory of its own, and so has a switch for its items in the store.
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
        self.has_exceeded_a_bound();
    }

    /// The switch reports rules. Rules of other installations are counted by their cookies, and no more of these rules
    /// is read.
    pub(super) fn learn_rules(&mut self, part: &[u8]) {
        let (own, other) = (self.settings.installation, self.settings.takes_over);
        let rules = rules_with_cookies(part, self.semantics().layout.flow_stats_cookie);
        self.datapath.learn_rules(rules, |it| it == own || other == Some(it));
    }

    /// Closes the session if the switch has reported more than it may. Returns whether it has.
    pub(crate) fn has_exceeded_a_bound(&mut self) -> bool {
        let reason = self.datapath.bound_exceeded();
        reason.into_iter().for_each(|reason| self.close(reason));
        reason.is_some()
    }

    /// Asks the driver to close the session, and forgets the reports of the switch. Further messages of the switch are
    /// ignored.
    pub(crate) fn close(&mut self, reason: &'static str) {
        if self.datapath.close() {
            self.statistics = Default::default();
            self.reports.push(Event::CloseSwitch(reason));
        }
    }

    /// Whether Weir gives up waiting for an answer.
    pub(super) fn is_late(&self, entry: &Entry, now: Instant) -> bool {
        let patience = self.settings.reply_timeout;
        // An answer that has begun gets more time, but not unlimited time.
        let patience = if entry.answered { patience.saturating_mul(PARTS) } else { patience };
        now - entry.sent.at() >= patience
    }
}
