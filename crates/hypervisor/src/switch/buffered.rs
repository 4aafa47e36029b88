//! Packets that the switch buffers, and the tenants that may release them.
//!
//! A switch uses a buffer id again after some time, and the new packet may belong to a different tenant. So when the
//! switch announces a packet, its buffer id is no longer valid for the tenant that had the id before. The id is also
//! removed from messages that still wait in a tenant's queue; with a low rate they may wait for long. Messages that
//! were sent before are the switch's affair: by the specification of 1.3, section 6.1.2, a switch waits before it uses
//! a buffer id again.

use super::Switch;
use openflow::NO_BUFFER;

impl Switch {
    /// The switch announces a packet with this buffer id: the tenant that had the id before loses it.
    pub(crate) fn announces(&mut self, physical: u32) {
        if physical == NO_BUFFER {
            return;
        }
        self.session.queues_mut().announces(physical);
        self.tenants.forget_buffered(physical);
        self.operations.announces(physical);
    }
}
