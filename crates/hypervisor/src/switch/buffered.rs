//! Packets that the switch keeps, and who may have them released.
//!
//! A switch gives a number out again some time after it did last, whoever was told of the packet before. So a number that
//! is announced takes itself away from whoever had it and did not use it, and from messages that still wait in a tenant's queue,
//! which may be for as long as its rates say. What has been sent to the switch by then is its own matter: specification of 1.3,
//! section 6.1.2, has it wait before it gives a number out again.

use super::{Switch, set_length};
use crate::buffers::Buffered;
use crate::ids::TenantIndex;
use crate::queue::Item;
use openflow::error::v13 as code;
use openflow::{NO_BUFFER, Version, frame};

/// The type of a PACKET_OUT, in both versions.
const PACKET_OUT: u8 = 13;
/// A packet of nobody's: the shortest frame that there can be.
const NOBODYS: [u8; 60] = [0; 60];

impl Switch {
    /// The switch announces a packet by this number of its own: whoever had it has it no longer.
    pub(crate) fn announces(&mut self, physical: u32) {
        if physical == NO_BUFFER {
            return;
        }
        self.releases.remove(&physical);
        if let Some((tenant, number)) = self.kept.remove(&physical) {
            self.tenants[tenant.0 as usize].buffers.take(number);
        }
    }

    /// Gives a tenant a number for a packet that the switch keeps.
    pub(crate) fn give_buffered(&mut self, tenant: TenantIndex, buffered: Buffered) -> u32 {
        let (number, forgotten) = self.tenants[tenant.0 as usize].buffers.give(buffered);
        if let Some(forgotten) = forgotten {
            self.kept.remove(&forgotten.physical);
        }
        self.kept.insert(buffered.physical, (tenant, number));
        number
    }

    /// Uses a tenant's number up.
    pub(crate) fn take_buffered(&mut self, tenant: TenantIndex, number: u32) -> Option<Buffered> {
        let taken = self.tenants[tenant.0 as usize].buffers.take(number)?;
        self.kept.remove(&taken.physical);
        Some(taken)
    }

    /// A message waits at this place of a tenant's queue.
    pub(super) fn release_waits(&mut self, tenant: TenantIndex, place: u64, message: &[u8]) {
        if let Some(physical) = released_by(message) {
            self.releases.insert(physical, (tenant, place));
        }
    }

    /// The message at `start` of the switch's outbox has waited at this place of a tenant's queue. If the packet that it has
    /// released is another by now, a change goes without it, and of a PACKET_OUT nothing is left that the switch would do.
    pub(super) fn release_goes(
        &mut self,
        tenant: TenantIndex,
        place: u64,
        item: &Item,
        start: usize,
    ) {
        let message = self.south.tail(start);
        let Some(physical) = released_by(message) else { return };
        if self.releases.get(&physical) == Some(&(tenant, place)) {
            self.releases.remove(&physical);
            return;
        }
        frame::set_buffer_id(message, NO_BUFFER);
        if frame::type_(message) != Some(PACKET_OUT) {
            return;
        }
        self.send_nothing(start);
        // Where it goes with a change, that is done.
        if let Some(origin) = item.origin.filter(|_| item.operation.is_none()) {
            self.refuse(&origin, code::BAD_REQUEST_BUFFER_UNKNOWN);
        }
    }

    /// Makes the PACKET_OUT at `start` of the switch's outbox one that sends nothing by no action.
    fn send_nothing(&mut self, start: usize) {
        let (length_at, head) = if self.version == Version::V1_0 { (14, 16) } else { (16, 24) };
        let message = self.south.tail(start);
        let length = message.len();
        if let Some(actions_len) = message.get_mut(length_at..length_at + 2) {
            actions_len.fill(0);
        }
        let out = self.south.end();
        out.truncate(out.len().saturating_sub(length.saturating_sub(head)));
        out.extend_from_slice(&NOBODYS);
        set_length(self.south.tail(start));
    }
}

/// The switch's number of the packet that a message has released.
fn released_by(message: &[u8]) -> Option<u32> {
    frame::buffer_id(message).filter(|physical| *physical != NO_BUFFER)
}
