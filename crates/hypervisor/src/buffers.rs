//! Buffer ids, per tenant.
//!
//! A switch that buffers a packet announces the packet with a buffer id. Weir gives the tenant another buffer id, the
//! tenant's own. The tenant can use this id once, as long as the id is among the last [`CAPACITY`] ids and the switch
//! has not announced another packet with the same physical id. So an old or foreign id never releases another tenant's
//! packet.

use alloc::vec::Vec;
use flowspace::Key;

/// The most valid ids of one tenant on one switch.
pub const CAPACITY: usize = 256;

/// A packet that the switch buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffered {
    /// The switch's buffer id.
    pub physical: u32,
    /// The packet's headers and input port.
    pub key: Key,
    /// The length of the packet in the tenant's PACKET_IN.
    pub length: u16,
}

/// The buffer ids that one tenant has been given.
#[derive(Debug, Default)]
pub struct Buffers {
    /// Allocated with the first packet: most switches today buffer no packets.
    slots: Vec<Option<(u32, Buffered)>>,
    next: u32,
}

impl Buffers {
    /// Gives the tenant a buffer id for a packet that the switch buffers. Returns the packet of the oldest id, which is
    /// forgotten.
    pub fn give(&mut self, buffered: Buffered) -> (u32, Option<Buffered>) {
        if self.slots.is_empty() {
            self.slots.resize(CAPACITY, None);
        }
        let id = self.next;
        // 0xffffffff is NO_BUFFER.
        self.next = if id >= u32::MAX - 1 { 0 } else { id + 1 };
        let slot = id as usize % CAPACITY;
        let forgotten = self.slots[slot].replace((id, buffered));
        (id, forgotten.map(|(_, buffered)| buffered))
    }

    /// Makes a buffer id valid again that was taken and not used. Returns false if a newer packet has the place of this
    /// id.
    pub fn give_back(&mut self, id: u32, buffered: Buffered) -> bool {
        let slot = self.slots.get_mut(id as usize % CAPACITY).filter(|slot| slot.is_none());
        slot.map(|slot| *slot = Some((id, buffered))).is_some()
    }

    /// The packet of a buffer id, which stays valid.
    pub fn peek(&self, id: u32) -> Option<&Buffered> {
        match self.slots.get(id as usize % CAPACITY) {
            Some(Some((given, buffered))) if *given == id => Some(buffered),
            _ => None,
        }
    }

    /// The packet of a buffer id, which is used up.
    pub fn take(&mut self, id: u32) -> Option<Buffered> {
        let found = *self.peek(id)?;
        self.slots[id as usize % CAPACITY] = None;
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(physical: u32) -> Buffered {
        Buffered { physical, key: Key::extract(1, &[]), length: 0 }
    }

    #[test]
    fn a_buffer_id_is_valid_for_one_use() {
        let mut buffers = Buffers::default();
        let (id, _) = buffers.give(packet(77));
        assert_eq!(buffers.take(id), Some(packet(77)));
        assert_eq!(buffers.take(id), None);
    }

    #[test]
    fn buffer_ids_that_were_never_assigned_are_refused() {
        let mut buffers = Buffers::default();
        assert_eq!(buffers.take(0), None);
        buffers.give(packet(1));
        for id in [1, CAPACITY as u32, u32::MAX] {
            assert_eq!(buffers.take(id), None, "{id}");
        }
    }

    #[test]
    fn the_oldest_buffer_id_becomes_invalid_when_the_table_is_full() {
        let mut buffers = Buffers::default();
        let (first, _) = buffers.give(packet(0));
        for physical in 1..256 {
            assert_eq!(buffers.give(packet(physical)).1, None);
        }
        assert_eq!(buffers.give(packet(256)).1, Some(packet(0)));
        assert_eq!(buffers.take(first), None);
        assert_eq!(buffers.take(first + 1), Some(packet(1)));
    }

    #[test]
    fn the_reserved_id_no_buffer_is_never_assigned() {
        let mut buffers = Buffers { slots: Vec::new(), next: u32::MAX - 1 };
        assert_eq!(buffers.give(packet(1)).0, u32::MAX - 1);
        assert_eq!(buffers.give(packet(2)).0, 0);
    }
}
