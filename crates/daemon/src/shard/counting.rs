//! What the core of one switch asks of another's: how much has come in by the ports of a tenant's network. It goes to the
//! shard of that switch, and is not waited for there: if the switch is not connected, nobody answers.

use super::{Command, Shard};
use hypervisor::{Counts, TenantId};

/// A question between cores, or an answer. There is at most one open between two switches for each tenant, since the
/// core asks again only when it has given up.
pub enum Counting {
    /// What has come in by the tenant's ports on switch `of`?
    Ask {
        /// Which switch.
        of: u64,
        /// Whose ports.
        tenant: TenantId,
        /// Which switch asks.
        by: u64,
    },
    /// This.
    Tell {
        /// Which switch has asked.
        to: u64,
        /// What has come in.
        counts: Counts,
        /// On which switch.
        from: u64,
    },
}

impl Counting {
    /// The switch that it is for.
    fn switch(&self) -> u64 {
        match *self {
            Counting::Ask { of, .. } => of,
            Counting::Tell { to, .. } => to,
        }
    }
}

impl Shard {
    /// Sends it on to the shard of its switch.
    pub(super) fn count(&mut self, counting: Counting) {
        let shard = self.shard_of(counting.switch());
        if shard == self.number {
            self.take_counting(counting);
        } else if let Some(peer) = self.peers.get(shard) {
            peer.send(Command::Counts(counting));
        }
    }

    /// Gives it to the core of its switch.
    pub(super) fn take_counting(&mut self, counting: Counting) {
        let now = self.now();
        let Some(&at) = self.by_dpid.get(&counting.switch()) else { return };
        let Some(Some(session)) = self.sessions.get_mut(at) else { return };
        match counting {
            Counting::Ask { tenant, by, .. } => session.core.handle_counts_asked(tenant, by, now),
            Counting::Tell { counts, from, .. } => {
                session.core.handle_counts_told(from, counts, now);
            }
        }
        self.touch(at);
    }
}
