//! Packets that the switch keeps, and who may have them released.
//!
//! A switch gives a number out again some time after it did last, and a different tenant may have got the packet before. So a number that
//! is announced is no longer valid for the tenant that had it and did not use it, and from messages that still wait in a tenant's queue,
//! which may be for as long as its rates say. What has been sent to the switch by then is its own matter: specification of 1.3,
//! section 6.1.2, has it wait before it gives a number out again.

use super::Switch;
use openflow::NO_BUFFER;

impl Switch {
    /// The switch announces a packet by this number of its own: the tenant that had the number has it no longer.
    pub(crate) fn announces(&mut self, physical: u32) {
        if physical == NO_BUFFER {
            return;
        }
        self.session.queues_mut().announces(physical);
        self.tenants.forget_buffered(physical);
        self.operations.announces(physical);
    }
}
