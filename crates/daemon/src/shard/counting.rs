//! Questions of one switch's core to another core: the received packets of the ports of a tenant's network. A question
//! goes to the shard of the other switch. If that switch is not connected, there is no answer.

use super::Shard;
use super::command::{Command, Counting};

impl Shard {
    /// Sends a question or an answer to the shard of its switch.
    pub(super) fn count(&mut self, counting: Counting) {
        let shard = self.shard_of(counting.switch());
        if shard == self.number {
            self.take_counting(counting);
        } else if let Some(peer) = self.peers.get(shard) {
            peer.send(Command::Counts(counting));
        }
    }

    /// Gives a question or an answer to the core of its switch.
    pub(super) fn take_counting(&mut self, counting: Counting) {
        let now = self.now();
        let Some(&at) = self.by_dpid.get(&counting.switch()) else { return };
        let Some(Some(session)) = self.sessions.get_mut(at) else { return };
        match counting {
            Counting::Ask { tenant, by, .. } => {
                session.core.handle_counters_request(tenant, by, now)
            }
            Counting::Answer { counts, from, .. } => {
                session.core.handle_counters_reply(from, counts, now);
            }
        }
        self.touch(at);
    }
}
